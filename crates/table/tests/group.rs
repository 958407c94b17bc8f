//! Tests that encoded row groups can be read back by the parquet crate's own reader.

use std::{collections::BTreeMap, fs::File, path::Path};

use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::Field,
};
use sysdock_table::{
    Ending, GroupEncoder, LateColumn, Manifest, NULL, ROWS_PER_BLOCK, Recording,
    rows::{CallsColumns, CallsRow, CallsTexts},
    table,
};

type Columns = BTreeMap<String, Vec<String>>;

/// Pseudo-random numbers, the same in each run.
fn random(state: &mut u64) -> i64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 20).cast_signed()
}

/// Values that cause every layout: increasing, few, many, equal, some NULL, all NULL.
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

fn word(column: &str, index: usize) -> String {
    format!("word {column}/{index} é")
}

/// The row of this index in columns of values.
struct At<'a>(&'a BTreeMap<&'static str, Vec<i64>>, usize);

/// A value of a column, made from its number.
trait FromNumber {
    fn from_number(number: i64) -> Self;
}

impl FromNumber for i64 {
    fn from_number(number: i64) -> Self {
        number
    }
}

impl FromNumber for i32 {
    fn from_number(number: i64) -> Self {
        number.try_into().unwrap()
    }
}

impl FromNumber for usize {
    fn from_number(number: i64) -> Self {
        number.try_into().unwrap()
    }
}

impl FromNumber for bool {
    fn from_number(number: i64) -> Self {
        number != 0
    }
}

impl<T: FromNumber> FromNumber for Option<T> {
    fn from_number(number: i64) -> Self {
        (number != NULL).then(|| T::from_number(number))
    }
}

macro_rules! by_name {
    ($($column:ident: $kind:ty,)*) => {
        impl CallsRow for At<'_> {
            $(fn $column(&self) -> $kind {
                FromNumber::from_number(self.0[stringify!($column)][self.1])
            })*
        }
    };
}

by_name! {
    ts_ns: i64,
    dur_ns: Option<i64>,
    task_id: i32,
    comm_id: Option<i32>,
    call: usize,
    class: usize,
    fd: Option<i32>,
    path_id: Option<i32>,
    offset_bytes: Option<i64>,
    offset_uncertain: bool,
    requested_bytes: Option<i64>,
    transferred_bytes: Option<i64>,
    value: Option<i64>,
    errno: Option<usize>,
    to_path_id: Option<i32>,
    to_offset_bytes: Option<i64>,
    via: Option<usize>,
    stack_id: Option<i32>,
    open_flags: Option<usize>,
}

/// Texts for any number below 300.
struct Words(BTreeMap<&'static str, Vec<String>>);

macro_rules! words {
    ($($column:ident,)*) => {
        impl CallsTexts for Words {
            $(fn $column(&self, number: usize) -> &str {
                &self.0[stringify!($column)][number]
            })*
        }
    };
}

words! { call, class, errno, via, open_flags, }

/// Writes groups of these sizes. Returns the values that must be read back.
fn write(folder: &Path, groups: &[usize]) -> Columns {
    let def = table("calls");
    let mut recording = Recording::create(folder, Manifest::new("test", "events", "calls")).unwrap();
    // One column is encoded by itself, as if its values were known later, and one is not checked
    // for equal values.
    let mut most = GroupEncoder::<CallsColumns>::without(CallsColumns::PATH_ID).varying(&[CallsColumns::COMM_ID]);
    let mut late = LateColumn::<CallsColumns>::new(CallsColumns::PATH_ID);
    let of_column = |name| (name, (0..300).map(|index| word(name, index)).collect());
    let words = Words(def.columns.iter().map(|column| of_column(column.name)).collect());
    let mut expected = Columns::new();
    let mut state = 42;
    for rows in groups {
        for block in (0..*rows).step_by(ROWS_PER_BLOCK) {
            let rows = ROWS_PER_BLOCK.min(rows - block);
            let mut block = BTreeMap::new();
            for column in def.columns {
                let values = values(column.name, rows, &mut state);
                let shown = values.iter().map(|value| match (*value, column.dictionary, column.name) {
                    (NULL, ..) => "NULL".to_string(),
                    (value, true, name) => word(name, usize::try_from(value).unwrap()),
                    (value, _, "offset_uncertain") => (value != 0).to_string(),
                    (value, ..) => value.to_string(),
                });
                expected.entry(column.name.into()).or_default().extend(shown);
                block.insert(column.name, values);
            }
            let rows: Vec<At<'_>> = (0..rows).map(|row| At(&block, row)).collect();
            most.block(&rows.iter());
            late.block(rows.iter().map(CallsRow::path_id));
        }
        recording.append("calls", late.finish().with(most.finish(&words))).unwrap();
    }
    recording.finish(Ending::EndOfInput).unwrap();
    expected
}

fn shown(field: &Field) -> String {
    match field {
        Field::Null => "NULL".into(),
        Field::Long(number) => number.to_string(),
        Field::Int(number) => number.to_string(),
        Field::Bool(truth) => truth.to_string(),
        Field::Str(text) => text.clone(),
        other => panic!("no column of calls is like {other}"),
    }
}

fn reader(folder: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(folder.join("calls/part-0000.parquet")).unwrap()).unwrap()
}

fn read(folder: &Path) -> Columns {
    let mut found = Columns::new();
    for row in reader(folder).get_row_iter(None).unwrap() {
        for (name, field) in row.unwrap().get_column_iter() {
            found.entry(name.clone()).or_default().push(shown(field));
        }
    }
    found
}

#[test]
fn what_is_encoded_is_read_back() {
    // One row; a block and some rows; many pages with a dictionary that overflows, and another
    // group.
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
    let reader = reader(&path);
    let group = reader.metadata().row_group(0);
    for column in group.columns() {
        let Some(parquet::file::statistics::Statistics::Int64(statistics)) = column.statistics() else { continue };
        let values: Vec<i64> = expected[column.column_path().string().as_str()].iter().filter_map(|v| v.parse().ok()).collect();
        assert_eq!(statistics.min_opt(), values.iter().min(), "{}", column.column_path());
        assert_eq!(statistics.max_opt(), values.iter().max(), "{}", column.column_path());
    }
}
