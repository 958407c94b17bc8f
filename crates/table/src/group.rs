//! Row groups of a large table, encoded block by block while their rows are in cache.

use std::sync::Arc;

use bytes::Bytes;
use parquet::{
    arrow::ArrowSchemaConverter,
    basic::{Compression, ZstdLevel},
    column::writer::ColumnCloseResult,
    errors::Result,
    file::{metadata::ColumnChunkMetaData, statistics::Statistics},
    schema::types::{SchemaDescPtr, SchemaDescriptor},
};

use crate::{
    ColumnDef, ColumnType, TableDef,
    pages::{Layout, PageBuilder, Pages, Press, put_plain},
    schema,
};

/// Rows that are sorted, turned into columns and encoded at a time: few enough to stay in a core's own cache.
pub const ROWS_PER_BLOCK: usize = 4096;

/// Encodes the rows of one table, column by column, a block at a time.
///
/// Every value is an `i64`; [`crate::NULL`] stands for NULL, and words are given as indices into a list of words that may grow until the group is
/// finished. Holds no file: it may run in a thread of its own.
pub struct GroupEncoder {
    /// By their numbers in the table.
    columns: Vec<(usize, ColumnEncoder)>,
    schema: SchemaDescPtr,
    rows: usize,
    press: Press,
    values: Vec<i64>,
}

/// A row group, ready to be appended to a part by [`crate::Recording::append`] once it has all columns.
pub struct EncodedGroup {
    pub(crate) rows: usize,
    /// By their numbers in the table, in order.
    pub(crate) columns: Vec<(usize, (Bytes, ColumnCloseResult))>,
}

impl EncodedGroup {
    /// Rows of it.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// With other columns of the same rows.
    ///
    /// # Panics
    /// If their counts differ: an error in sysdock.
    #[must_use]
    pub fn with(mut self, other: EncodedGroup) -> Self {
        assert_eq!(self.rows, other.rows, "columns of one group");
        self.columns.extend(other.columns);
        self.columns.sort_by_key(|(number, _)| *number);
        self
    }
}

struct ColumnEncoder {
    def: &'static ColumnDef,
    builder: PageBuilder,
    pages: Pages,
}

impl GroupEncoder {
    /// An encoder for a table of `knowhow/tables`. Its columns must be numbers, truth values or words.
    ///
    /// # Panics
    /// If there is no such table, or it has free text: errors in sysdock.
    #[must_use]
    pub fn new(table: &str) -> Self {
        Self::of_columns(table, |_| true)
    }

    /// An encoder for the columns of a table that are `wanted` by name. Those left out may be numbers that become known later: encode them by
    /// themselves, and join them by [`EncodedGroup::with`].
    ///
    /// # Panics
    /// As [`GroupEncoder::new`].
    #[must_use]
    pub fn of_columns(table: &str, wanted: impl Fn(&str) -> bool) -> Self {
        let def = schema::table(table);
        let columns = def.columns.iter().enumerate().filter(|(_, column)| wanted(&column.name));
        let columns = columns.map(|(number, column)| (number, ColumnEncoder::new(column))).collect();
        GroupEncoder { columns, schema: parquet_schema(def), rows: 0, press: Press::new(), values: Vec::new() }
    }

    /// Add a block of rows: `fill` is asked for the values of each column by its number, or for the one value that all rows have in it.
    ///
    /// Every block but the last of a group must have a multiple of 8 rows.
    ///
    /// # Panics
    /// If `fill` does not give `rows` values: an error in sysdock.
    pub fn block(&mut self, rows: usize, mut fill: impl FnMut(usize, &mut Vec<i64>) -> Option<i64>) {
        for (number, column) in &mut self.columns {
            self.values.clear();
            let all = fill(*number, &mut self.values);
            assert_eq!(self.values.len(), if all.is_none() { rows } else { 0 }, "column {}", column.def.name);
            column.add(rows, all, &self.values, &mut self.press);
        }
        self.rows += rows;
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Close the group and start anew. `words` gives the words of a column by its number.
    pub fn finish(&mut self, words: impl Fn(usize, usize) -> String) -> EncodedGroup {
        let rows = std::mem::take(&mut self.rows);
        let (schema, press) = (&self.schema, &mut self.press);
        let columns = self.columns.iter_mut().map(|(number, column)| {
            let number = *number;
            (number, column.finish(schema, number, rows, press, |word| words(number, word)).expect("memory only"))
        });
        let columns = columns.collect();
        EncodedGroup { rows, columns }
    }
}

/// The Parquet schema of a table.
pub(crate) fn parquet_schema(def: &TableDef) -> SchemaDescPtr {
    let schema: SchemaDescriptor = ArrowSchemaConverter::new().convert(&def.arrow_schema()).expect("plain types");
    Arc::new(schema)
}

impl ColumnEncoder {
    fn new(def: &'static ColumnDef) -> Self {
        let layout = match def.kind {
            ColumnType::Int64 | ColumnType::Int32 if def.delta => Layout::Delta,
            ColumnType::Int64 => Layout::Dictionary { bytes: 8 },
            ColumnType::Int32 => Layout::Dictionary { bytes: 4 },
            ColumnType::Bool => Layout::Bits,
            ColumnType::String if def.dictionary => Layout::Words,
            ColumnType::String | ColumnType::Float64 => panic!("column {}: not a number", def.name),
        };
        let builder = PageBuilder::new(layout, def.nullable);
        ColumnEncoder { def, builder, pages: Pages::new() }
    }

    fn add(&mut self, rows: usize, all: Option<i64>, values: &[i64], press: &mut Press) {
        let added = match all {
            Some(value) => self.builder.add_equal(value, rows, &mut self.pages, press),
            None => self.builder.add(values, &mut self.pages, press),
        };
        added.expect("memory only");
        self.check_nulls();
    }

    fn check_nulls(&self) {
        assert!(self.builder.range.nulls == 0 || self.def.nullable, "NULL in column {}", self.def.name);
    }

    fn finish(
        &mut self,
        schema: &SchemaDescPtr,
        number: usize,
        rows: usize,
        press: &mut Press,
        word: impl Fn(usize) -> String,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        self.builder.close(&mut self.pages, press)?;
        let values = &self.builder.dictionary.values;
        let mut plain = Vec::new();
        match self.def.kind {
            ColumnType::String => {
                for value in values {
                    let word = word(usize::try_from(*value).expect("an index"));
                    plain.extend_from_slice(&u32::try_from(word.len()).expect("a word is short").to_le_bytes());
                    plain.extend_from_slice(word.as_bytes());
                }
            }
            kind => put_plain(&mut plain, values, if kind == ColumnType::Int32 { 4 } else { 8 }),
        }
        let coded = !values.is_empty();
        let (bytes, dictionary) = self.pages.take(press, coded.then_some((plain.as_slice(), values.len())))?;
        let metadata = self.metadata(schema, number, rows, &bytes, dictionary)?;
        self.builder.clear();
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((bytes, close))
    }

    fn metadata(
        &mut self,
        schema: &SchemaDescPtr,
        number: usize,
        rows: usize,
        bytes: &Bytes,
        dictionary: usize,
    ) -> Result<ColumnChunkMetaData> {
        let mut builder = ColumnChunkMetaData::builder(schema.column(number))
            .set_encodings(self.builder.encodings())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_num_values(i64::try_from(rows).expect("few rows"))
            .set_total_compressed_size(i64::try_from(bytes.len()).expect("memory only"))
            .set_total_uncompressed_size(i64::try_from(std::mem::take(&mut self.pages.uncompressed)).expect("memory only"))
            .set_data_page_offset(i64::try_from(dictionary).expect("memory only"))
            .set_dictionary_page_offset((dictionary > 0).then_some(0));
        if let Some(statistics) = self.statistics() {
            builder = builder.set_statistics(statistics);
        }
        builder.build()
    }

    /// Least and greatest number: readers skip row groups by them.
    fn statistics(&self) -> Option<Statistics> {
        let range = self.builder.whole_range();
        let nulls = Some(range.nulls as u64);
        let known = range.least <= range.greatest;
        let narrow = |value: i64| i32::try_from(value).ok().filter(|_| known);
        match self.def.kind {
            ColumnType::Int64 => {
                Some(Statistics::int64(known.then_some(range.least), known.then_some(range.greatest), None, nulls, false))
            }
            ColumnType::Int32 => Some(Statistics::int32(narrow(range.least), narrow(range.greatest), None, nulls, false)),
            _ => None,
        }
    }
}
