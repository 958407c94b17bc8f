//! Encoded row groups, read back by the parquet crate's own reader.

use std::{collections::BTreeMap, fs::File, path::Path};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sysdock_table::{Ending, GroupEncoder, Manifest, NULL, ROWS_PER_BLOCK, Recording, table};

type Columns = BTreeMap<String, Vec<String>>;

/// Numbers that are the same in each run.
fn random(state: &mut u64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 20).cast_signed()
}

/// Values that bring out every layout: growing, few, many, equal, NULL here and there, NULL throughout.
fn values(column: &str, rows: usize, state: &mut u64) -> Vec<i64> {
    let mut now = 1_700_000_000_000_000_000;
    let mut one = |row: usize| match column {
        "ts_ns" => {
            now += random(state) % 1_000_000 - if row.is_multiple_of(97) { 500_000 } else { 0 };
            now
        }
        "offset_bytes" => random(state),
        "dur_ns" if row % 10 == 3 => NULL,
        "dur_ns" => random(state) % 3000 * 1000,
        "comm_id" => 7,
        "to_path_id" | "to_offset_bytes" | "via" | "stack_id" => NULL,
        "errno" if !row.is_multiple_of(50) => NULL,
        "errno" | "class" => random(state) % 3,
        "call" => random(state) % 300,
        "offset_uncertain" => i64::from(random(state) % 5 == 0),
        "value" => [i64::MIN + 1, -1, i64::MAX][row % 3],
        _ => random(state) % 100,
    };
    (0..rows).map(&mut one).collect()
}

fn word(column: usize, index: usize) -> String {
    format!("word {column}/{index} é")
}

/// Write groups of these sizes; returns what must be read back.
fn write(folder: &Path, groups: &[usize]) -> Columns {
    let def = table("calls");
    let mut recording = Recording::create(folder, Manifest::new("test", "events", "calls")).unwrap();
    // One column by itself, as if its values were known later.
    let mut encoders = [
        GroupEncoder::of_columns("calls", |name| name != "life_id"),
        GroupEncoder::of_columns("calls", |name| name == "life_id"),
    ];
    let mut expected = Columns::new();
    let mut state = 42;
    for rows in groups {
        for block in (0..*rows).step_by(ROWS_PER_BLOCK) {
            let rows = ROWS_PER_BLOCK.min(rows - block);
            let mut fill = |number: usize, out: &mut Vec<i64>| {
                let column = &def.columns[number];
                out.extend(values(&column.name, rows, &mut state));
                let shown = out.iter().map(|value| match (*value, column.dictionary, column.name.as_str()) {
                    (NULL, ..) => "NULL".to_string(),
                    (value, true, _) => word(number, usize::try_from(value).unwrap()),
                    (value, _, "offset_uncertain") => (value != 0).to_string(),
                    (value, ..) => value.to_string(),
                });
                expected.entry(column.name.clone()).or_default().extend(shown);
                let equal = out.iter().all(|value| *value == out[0]).then(|| out[0]);
                if equal.is_some() {
                    out.clear();
                }
                equal
            };
            encoders.iter_mut().for_each(|encoder| encoder.block(rows, &mut fill));
        }
        let [most, rest] = encoders.each_mut().map(|encoder| encoder.finish(word));
        recording.append("calls", rest.with(most)).unwrap();
    }
    recording.finish(Ending::EndOfInput).unwrap();
    expected
}

fn shown(batch: &RecordBatch, column: usize) -> Vec<String> {
    let array = batch.column(column);
    let one = |row: usize| {
        if array.is_null(row) {
            "NULL".to_string()
        } else if let Some(numbers) = array.as_primitive_opt::<Int64Type>() {
            numbers.value(row).to_string()
        } else if let Some(numbers) = array.as_primitive_opt::<Int32Type>() {
            numbers.value(row).to_string()
        } else if let Some(truths) = array.as_boolean_opt() {
            truths.value(row).to_string()
        } else {
            array.as_string::<i32>().value(row).to_string()
        }
    };
    (0..array.len()).map(one).collect()
}

fn read(folder: &Path) -> Columns {
    let file = File::open(folder.join("calls/part-0000.parquet")).unwrap();
    let mut found = Columns::new();
    for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
        let batch = batch.unwrap();
        for (number, field) in batch.schema().fields().iter().enumerate() {
            found.entry(field.name().clone()).or_default().extend(shown(&batch, number));
        }
    }
    found
}

#[test]
fn what_is_encoded_is_read_back() {
    // One row; a block and a bit; many pages, with a dictionary that overflows; a group after that.
    for groups in [&[1][..], &[ROWS_PER_BLOCK + 5], &[100_003, 17]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rec");
        let expected = write(&path, groups);
        let found = read(&path);
        for (column, values) in &expected {
            assert!(found[column] == *values, "column {column} of {groups:?}");
        }
    }
}

#[test]
fn statistics_hold_every_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let expected = write(&path, &[50_000]);
    let file = File::open(path.join("calls/part-0000.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let group = builder.metadata().row_group(0);
    for column in group.columns() {
        let Some(parquet::file::statistics::Statistics::Int64(statistics)) = column.statistics() else { continue };
        let values: Vec<i64> = expected[column.column_path().string().as_str()].iter().filter_map(|v| v.parse().ok()).collect();
        assert_eq!(statistics.min_opt(), values.iter().min(), "{}", column.column_path());
        assert_eq!(statistics.max_opt(), values.iter().max(), "{}", column.column_path());
    }
}
