//! Reads columns of the tables of a recording, after a look at what recording.json says of them.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
};

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int32Type, Int64Type},
};
use parquet::arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder};
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
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| damaged(error.to_string()))?;
            let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
            let batches = builder.with_projection(mask).with_batch_size(1 << 14).build();
            for batch in batches.map_err(|error| damaged(error.to_string()))? {
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
