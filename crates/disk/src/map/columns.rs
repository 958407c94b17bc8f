//! Reads columns of the tables of a recording, after a look at what recording.json says of them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    panic::{self, AssertUnwindSafe},
    path::{Component, Path, PathBuf},
};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    },
    file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use sysdock_table::{FORMAT_VERSION, Part, TableEntry};

use super::MapError;

/// What is read of recording.json.
#[derive(Deserialize)]
struct Listed {
    format_version: u32,
    tables: BTreeMap<String, TableEntry>,
}

/// A recording that is read.
pub(super) struct Tables {
    folder: PathBuf,
    listed: Listed,
}

impl Tables {
    pub(super) fn open(folder: &Path) -> Result<Self, MapError> {
        let path = folder.join("recording.json");
        let text = fs::read(&path).map_err(|error| MapError::Io(path.clone(), error))?;
        let listed: Listed = serde_json::from_slice(&text).map_err(|error| MapError::Damaged(path.clone(), error.to_string()))?;
        if listed.format_version != FORMAT_VERSION {
            let how = format!("format version {}, where {FORMAT_VERSION} is read", listed.format_version);
            return Err(MapError::Damaged(path, how));
        }
        Ok(Tables { folder: folder.into(), listed })
    }

    /// Whether the table is in the recording, with or without rows.
    pub(super) fn has(&self, table: &str) -> bool {
        self.listed.tables.contains_key(table)
    }

    /// Give these columns of a table, some thousand rows at a time. A table that is not listed has no rows: it was never written to.
    pub(super) fn read(
        &self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&Rows<'_>) -> Result<(), String>,
    ) -> Result<(), MapError> {
        let Some(entry) = self.listed.tables.get(table) else { return Ok(()) };
        for part in &entry.parts {
            let path = self.checked(part)?;
            let damaged = |how: String| MapError::Damaged(path.clone(), how);
            let file = File::open(&path).map_err(|error| MapError::Io(path.clone(), error))?;
            let mut batches = caught(|| batches(file, columns, part.bytes)).and_then(|made| made).map_err(damaged)?;
            while let Some(batch) = caught(|| batches.next()).map_err(damaged)? {
                let batch = batch.map_err(|error| damaged(error.to_string()))?;
                take(&Rows(&batch)).map_err(damaged)?;
            }
        }
        Ok(())
    }

    /// The path of a part, if it lies in the folder and is what was written: damaged Parquet mostly reads as wrong numbers without an error.
    fn checked(&self, part: &Part) -> Result<PathBuf, MapError> {
        let path = self.folder.join(&part.file);
        let damaged = |how: &str| MapError::Damaged(path.clone(), how.into());
        if !Path::new(&part.file).components().all(|component| matches!(component, Component::Normal(_))) {
            return Err(damaged("not inside the recording"));
        }
        let failed = |error: io::Error| MapError::Io(path.clone(), error);
        let status = fs::symlink_metadata(&path).map_err(failed)?;
        if !status.is_file() || status.len() != part.bytes {
            return Err(damaged(&format!("not a plain file of {} bytes", part.bytes)));
        }
        let mut file = File::open(&path).map_err(failed)?;
        let mut digest = Sha256::new();
        let mut block = vec![0; 1 << 18];
        loop {
            match file.read(&mut block).map_err(failed)? {
                0 => break,
                length => digest.update(&block[..length]),
            }
        }
        let hash: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if hash == part.sha256 { Ok(path) } else { Err(damaged("its content does not match the hash in recording.json")) }
    }
}

/// Some thousand rows of these columns after another, of a part of this length.
fn batches(file: File, columns: &[&str], bytes: u64) -> Result<ParquetRecordBatchReader, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| error.to_string())?;
    if !can_be_right(builder.metadata(), bytes) {
        return Err("its footer cannot be right".into());
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    builder.with_projection(mask).with_batch_size(1 << 14).build().map_err(|error| error.to_string())
}

/// What the Parquet library does: of some files that nobody should write it panics.
fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| "the Parquet library cannot read it".into())
}

/// From now on print nothing when a library that reads tables panics: the panic is caught, and reported as an error.
pub fn expect_panics_of_libraries() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_of_library = |place: &panic::Location<'_>| ["/parquet-", "/arrow-"].iter().any(|name| place.file().contains(name));
        if !info.location().is_some_and(is_of_library) {
            before(info);
        }
    }));
}

/// Whether all that a footer tells of lies in a file of this length: the reader relies on it, and panics.
fn can_be_right(footer: &ParquetMetaData, bytes: u64) -> bool {
    let is_right = |group: &RowGroupMetaData| group.columns().iter().all(|column| lies_inside(column, bytes));
    footer.row_groups().iter().all(|group| group.num_rows() >= 0 && is_right(group))
}

fn lies_inside(column: &ColumnChunkMetaData, bytes: u64) -> bool {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let (start, length) = (u64::try_from(start), u64::try_from(column.compressed_size()));
    let end = start.ok().zip(length.ok()).and_then(|(start, length)| start.checked_add(length));
    end.is_some_and(|end| end <= bytes) && column.num_values() >= 0
}

/// Some rows of a table.
pub(super) struct Rows<'a>(&'a RecordBatch);

impl Rows<'_> {
    pub(super) fn count(&self) -> usize {
        self.0.num_rows()
    }

    fn column(&self, name: &str) -> Result<&dyn Array, String> {
        self.0.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| format!("no column {name}"))
    }

    /// A column of integers. `None` is NULL.
    pub(super) fn numbers(&self, name: &str) -> Result<Vec<Option<i64>>, String> {
        let column = self.column(name)?;
        if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            return Ok(values.iter().collect());
        }
        let values = column.as_primitive_opt::<Int32Type>().ok_or_else(|| format!("column {name} holds no integers"))?;
        Ok(values.iter().map(|value| value.map(i64::from)).collect())
    }

    /// A column of integers that older recordings do not have.
    pub(super) fn numbers_if_there(&self, name: &str) -> Result<Option<Vec<Option<i64>>>, String> {
        self.0.column_by_name(name).map(|_| self.numbers(name)).transpose()
    }

    /// The text of the first row; empty where it is NULL.
    pub(super) fn first_text(&self, name: &str) -> Result<String, String> {
        Ok(self.all_texts(name)?.into_iter().next().unwrap_or_default())
    }

    /// A column of few texts; empty where they are NULL.
    pub(super) fn all_texts(&self, name: &str) -> Result<Vec<String>, String> {
        let found = RefCell::new(Vec::new());
        let keep = |text: Option<&str>| {
            found.borrow_mut().push(text.unwrap_or_default().to_string());
            found.borrow().len() - 1
        };
        let places = self.texts(name, keep)?;
        let found = found.into_inner();
        Ok(places.into_iter().map(|place| found[place].clone()).collect())
    }

    /// A column of texts, each turned into something by `meaning`: once for each text that a dictionary holds.
    pub(super) fn texts<T: Copy>(&self, name: &str, meaning: impl Fn(Option<&str>) -> T) -> Result<Vec<T>, String> {
        let wrong = || format!("column {name} holds no texts");
        let column = self.column(name)?;
        if let Some(texts) = column.as_string_opt::<i32>() {
            return Ok(texts.iter().map(meaning).collect());
        }
        let dictionary = column.as_any_dictionary_opt().ok_or_else(wrong)?;
        let words = dictionary.values().as_string_opt::<i32>().ok_or_else(wrong)?;
        let meanings: Vec<T> = words.iter().map(&meaning).collect();
        let missing = meaning(None);
        let keys = if words.is_empty() { vec![0; column.len()] } else { dictionary.normalized_keys() };
        let of_row = |row: usize| if column.is_null(row) { missing } else { meanings.get(keys[row]).copied().unwrap_or(missing) };
        Ok((0..column.len()).map(of_row).collect())
    }
}

#[cfg(test)]
mod tests {
    use sysdock_table::{Ending, Manifest, Recording, rows::Paths};

    use super::*;

    #[test]
    fn what_panics_is_an_error() {
        assert_eq!(caught(|| 7), Ok(7));
        assert!(caught(|| panic!("as a library does")).is_err());
    }

    #[test]
    fn a_footer_that_tells_of_what_is_not_in_the_file_cannot_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("rec");
        let mut recording = Recording::create(&folder, Manifest::new("test", "files", "scan")).unwrap();
        recording.write_rows([Paths { path_id: 0, path: "/".into(), kind: "directory".into() }]).unwrap();
        let part = recording.finish(Ending::EndOfInput).unwrap().tables["paths"].parts[0].clone();
        let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(folder.join(&part.file)).unwrap()).unwrap();
        let footer = builder.metadata();
        assert!(can_be_right(footer, part.bytes) && !can_be_right(footer, 8));
        let column = footer.row_group(0).column(0);
        for wrong in [-1, i64::MIN, i64::MAX] {
            let other = column.clone().into_builder();
            assert!(!lies_inside(&other.set_total_compressed_size(wrong).build().unwrap(), part.bytes));
            let other = column.clone().into_builder().set_dictionary_page_offset(None);
            assert!(!lies_inside(&other.set_data_page_offset(wrong).build().unwrap(), part.bytes));
        }
    }
}
