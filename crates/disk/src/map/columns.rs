//! Reads columns of the tables of a recording, after a check against recording.json.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    panic::{self, AssertUnwindSafe},
    path::{Component, Path, PathBuf},
};

use parquet::{
    basic::Type as PhysicalType,
    column::reader::ColumnReaderImpl,
    data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        reader::{FileReader, RowGroupReader},
        serialized_reader::SerializedFileReader,
    },
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use sysdock_table::{FORMAT_VERSION, Part, TableEntry};

use super::{Damage, MapError};

/// Number of rows in memory at a time.
const ROWS_AT_A_TIME: usize = 1 << 14;

/// The part of recording.json that is read.
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
        let listed: Listed =
            serde_json::from_slice(&text).map_err(|error| MapError::Damaged(path.clone(), Damage::Json(error)))?;
        if listed.format_version != FORMAT_VERSION {
            let damage = Damage::Version { found: listed.format_version, read: FORMAT_VERSION };
            return Err(MapError::Damaged(path, damage));
        }
        Ok(Tables { folder: folder.into(), listed })
    }

    /// Whether the recording lists the table, with or without rows.
    pub(super) fn has(&self, table: &str) -> bool {
        self.listed.tables.contains_key(table)
    }

    /// Pass these columns of a table, some thousand rows at a time. A table that is not listed has
    /// no rows: it was never written.
    pub(super) fn read(
        &self,
        table: &str,
        columns: &[&str],
        mut take: impl FnMut(&Rows) -> Result<(), Damage>,
    ) -> Result<(), MapError> {
        let Some(entry) = self.listed.tables.get(table) else { return Ok(()) };
        for part in &entry.parts {
            let path = self.checked(part)?;
            let damaged = |damage| MapError::Damaged(path.clone(), damage);
            let file = File::open(&path).map_err(|error| MapError::Io(path.clone(), error))?;
            let reader = caught(|| open(file, part.bytes)).map_err(damaged)?;
            for number in 0..reader.num_row_groups() {
                let mut group = caught(|| Group::open(&reader, number, columns)).map_err(damaged)?;
                while let Some(rows) = caught(|| group.next_rows()).map_err(damaged)? {
                    take(&rows).map_err(damaged)?;
                }
            }
        }
        Ok(())
    }

    /// The path of a part, if it is in the folder and has the recorded hash: damaged Parquet mostly
    /// reads as wrong numbers without an error.
    fn checked(&self, part: &Part) -> Result<PathBuf, MapError> {
        let path = self.folder.join(&part.file);
        let damaged = |damage| MapError::Damaged(path.clone(), damage);
        if !Path::new(&part.file).components().all(|component| matches!(component, Component::Normal(_))) {
            return Err(damaged(Damage::Outside));
        }
        let failed = |error: io::Error| MapError::Io(path.clone(), error);
        let status = fs::symlink_metadata(&path).map_err(failed)?;
        if !status.is_file() || status.len() != part.bytes {
            return Err(damaged(Damage::NoFile(part.bytes)));
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
        if hash == part.sha256 { Ok(path) } else { Err(damaged(Damage::Hash)) }
    }
}

/// Open a part of this length.
fn open(file: File, bytes: u64) -> Result<SerializedFileReader<File>, Damage> {
    let reader = SerializedFileReader::new(file)?;
    if can_be_right(reader.metadata(), bytes) { Ok(reader) } else { Err(Damage::Footer) }
}

/// The result of a call to the Parquet library, which panics on some malformed files.
fn caught<T>(work: impl FnOnce() -> Result<T, Damage>) -> Result<T, Damage> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Damage::Panic))
}

/// From now on print nothing when a library that reads tables panics: the panic is caught, and
/// reported as an error.
pub fn expect_panics_of_libraries() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_of_library = |place: &panic::Location<'_>| ["/parquet-", "/arrow-"].iter().any(|name| place.file().contains(name));
        if !info.location().is_some_and(is_of_library) {
            before(info);
        }
    }));
}

/// Whether everything in a footer is within a file of this length: the reader relies on it, and
/// panics otherwise.
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

/// Some columns of a row group, which are read in parallel.
struct Group {
    /// Number of rows that were not read yet.
    left: usize,
    columns: Vec<(String, ColumnOf)>,
}

enum ColumnOf {
    Int64(ColumnReaderImpl<Int64Type>),
    Int32(ColumnReaderImpl<Int32Type>),
    Text(ColumnReaderImpl<ByteArrayType>),
}

impl Group {
    fn open(reader: &SerializedFileReader<File>, number: usize, wanted: &[&str]) -> Result<Self, Damage> {
        let group = reader.get_row_group(number)?;
        let left = usize::try_from(group.metadata().num_rows()).map_err(Damage::Rows)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut columns = Vec::new();
        for (index, column) in schema.columns().iter().enumerate().filter(|(_, column)| wanted.contains(&column.name())) {
            columns.push((column.name().to_string(), ColumnOf::open(group.as_ref(), index)?));
        }
        // Without a column, nothing would limit the number of rows.
        if columns.is_empty() { Err(Damage::NoColumn(wanted.join(", "))) } else { Ok(Group { left, columns }) }
    }

    /// The next rows; `None` at the end.
    fn next_rows(&mut self) -> Result<Option<Rows>, Damage> {
        let count = self.left.min(ROWS_AT_A_TIME);
        if count == 0 {
            return Ok(None);
        }
        self.left -= count;
        let columns = self.columns.iter_mut().map(|(name, column)| Ok((name.clone(), column.next_values(count)?)));
        Ok(Some(Rows { count, columns: columns.collect::<Result<_, Damage>>()? }))
    }
}

impl ColumnOf {
    fn open(group: &dyn RowGroupReader, index: usize) -> Result<Self, Damage> {
        let column = group.metadata().column(index).column_descr_ptr();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(Damage::Lists(column.name().into()));
        }
        let pages = group.get_column_page_reader(index)?;
        match column.physical_type() {
            PhysicalType::INT64 => Ok(ColumnOf::Int64(ColumnReaderImpl::new(column, pages))),
            PhysicalType::INT32 => Ok(ColumnOf::Int32(ColumnReaderImpl::new(column, pages))),
            PhysicalType::BYTE_ARRAY => Ok(ColumnOf::Text(ColumnReaderImpl::new(column, pages))),
            _ => Err(Damage::NoValues(column.name().into())),
        }
    }

    fn next_values(&mut self, count: usize) -> Result<Values, Damage> {
        Ok(match self {
            ColumnOf::Int64(reader) => Values::Numbers(next_values(reader, count, |number| number)?),
            ColumnOf::Int32(reader) => Values::Numbers(next_values(reader, count, i64::from)?),
            ColumnOf::Text(reader) => Values::Texts(next_values(reader, count, |text| text)?),
        })
    }
}

fn next_values<D: DataType, T>(
    reader: &mut ColumnReaderImpl<D>,
    count: usize,
    value: impl Fn(D::T) -> T,
) -> Result<Vec<Option<T>>, Damage> {
    let (mut levels, mut present) = (Vec::new(), Vec::new());
    let (rows, ..) = reader.read_records(count, Some(&mut levels), None, &mut present)?;
    let is_nullable = !levels.is_empty();
    let mut present = present.into_iter().map(value);
    let values: Vec<_> = if is_nullable {
        levels.iter().map(|level| if *level == 0 { None } else { present.next() }).collect()
    } else {
        present.map(Some).collect()
    };
    if rows == count && values.len() == count { Ok(values) } else { Err(Damage::Lengths) }
}

/// Some rows of a table.
pub(super) struct Rows {
    count: usize,
    columns: Vec<(String, Values)>,
}

/// Values of a column. `None` is NULL.
enum Values {
    Numbers(Vec<Option<i64>>),
    Texts(Vec<Option<ByteArray>>),
}

impl Rows {
    pub(super) fn count(&self) -> usize {
        self.count
    }

    fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values)
    }

    /// A column of integers. `None` is NULL.
    pub(super) fn numbers(&self, name: &str) -> Result<Vec<Option<i64>>, Damage> {
        self.numbers_if_there(name)?.ok_or_else(|| Damage::NoColumn(name.into()))
    }

    /// A column of integers that older recordings do not have.
    pub(super) fn numbers_if_there(&self, name: &str) -> Result<Option<Vec<Option<i64>>>, Damage> {
        match self.column(name) {
            Some(Values::Numbers(numbers)) => Ok(Some(numbers.clone())),
            Some(Values::Texts(_)) => Err(Damage::NoIntegers(name.into())),
            None => Ok(None),
        }
    }

    /// The text of the first row; empty if it is NULL.
    pub(super) fn first_text(&self, name: &str) -> Result<String, Damage> {
        Ok(self.all_texts(name)?.into_iter().next().unwrap_or_default())
    }

    /// A column with few rows of texts; empty if they are NULL.
    pub(super) fn all_texts(&self, name: &str) -> Result<Vec<String>, Damage> {
        let found = RefCell::new(Vec::new());
        let keep = |text: Option<&str>| {
            found.borrow_mut().push(text.unwrap_or_default().to_string());
            found.borrow().len() - 1
        };
        let places = self.texts(name, keep)?;
        let found = found.into_inner();
        Ok(places.into_iter().map(|place| found[place].clone()).collect())
    }

    /// A column of texts, each converted by `meaning`, which is called once for equal texts in a
    /// row.
    pub(super) fn texts<T: Copy>(&self, name: &str, meaning: impl Fn(Option<&str>) -> T) -> Result<Vec<T>, Damage> {
        let wrong = || Damage::NoTexts(name.into());
        let texts = match self.column(name) {
            Some(Values::Texts(texts)) => texts,
            Some(Values::Numbers(_)) => return Err(wrong()),
            None => return Err(Damage::NoColumn(name.into())),
        };
        let missing = meaning(None);
        let mut last: Option<(&[u8], T)> = None;
        let mut meanings = Vec::with_capacity(texts.len());
        for text in texts {
            meanings.push(match (text.as_ref().map(ByteArray::data), last) {
                (None, _) => missing,
                (Some(text), Some((before, known))) if text == before => known,
                (Some(text), _) => {
                    let known = meaning(Some(str::from_utf8(text).map_err(|_| wrong())?));
                    last = Some((text, known));
                    known
                }
            });
        }
        Ok(meanings)
    }
}

#[cfg(test)]
mod tests {
    use sysdock_table::{Ending, Manifest, Recording, rows::Paths};

    use super::*;

    #[test]
    fn what_panics_is_an_error() {
        assert!(matches!(caught(|| Ok(7)), Ok(7)));
        assert!(caught::<()>(|| panic!("as a library does")).is_err());
    }

    #[test]
    fn a_footer_that_tells_of_what_is_not_in_the_file_cannot_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("rec");
        let mut recording = Recording::create(&folder, Manifest::new("test", "files", "scan")).unwrap();
        recording.write_rows([Paths { path_id: 0, path: "/".into(), kind: "directory".into() }]).unwrap();
        let part = recording.finish(Ending::EndOfInput).unwrap().tables["paths"].parts[0].clone();
        let reader = SerializedFileReader::new(File::open(folder.join(&part.file)).unwrap()).unwrap();
        let footer = reader.metadata();
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
