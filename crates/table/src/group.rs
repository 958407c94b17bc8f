//! Row groups of a large table, encoded block by block while the rows are in cache.

use std::marker::PhantomData;

use bytes::Bytes;
use parquet::{
    basic::{Compression, ZstdLevel},
    column::writer::ColumnCloseResult,
    errors::Result,
    file::{metadata::ColumnChunkMetaData, statistics::Statistics},
    schema::types::SchemaDescPtr,
};

use crate::{
    ColumnDef, ColumnType, NULL,
    pages::{Layout, PageBuilder, Pages, Press, put_plain},
    rows::{BlockColumns, BlockTexts, ColumnNumber, Columns, Fill},
    schema,
};

/// Number of rows that are sorted, turned into columns and encoded at a time: few enough to stay in
/// a core's own cache.
pub const ROWS_PER_BLOCK: usize = 4096;

/// Encodes the rows of one table, column by column, a block at a time.
///
/// Rows may have any form that provides the values of each column ([`crate::rows`]). Texts are
/// given as indices into a list that may grow until the group is finished. The encoder owns no
/// file, so it may run in a thread of its own.
pub struct GroupEncoder<C> {
    /// With their numbers in the table.
    columns: Vec<(ColumnNumber, ColumnEncoder)>,
    schema: SchemaDescPtr,
    rows: usize,
    press: Press,
    values: Vec<i64>,
    table: PhantomData<fn(C)>,
}

/// A row group. [`crate::Recording::append`] adds it to a part, once it has all columns.
pub struct EncodedGroup {
    pub(crate) rows: usize,
    /// With their numbers in the table, in that order.
    pub(crate) columns: Vec<(ColumnNumber, (Bytes, ColumnCloseResult))>,
}

impl EncodedGroup {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Add other columns of the same rows.
    ///
    /// # Panics
    /// If the numbers of rows differ, which is an error in sysdock.
    #[must_use]
    pub fn with(mut self, other: EncodedGroup) -> Self {
        assert_eq!(self.rows, other.rows, "columns of one group");
        self.columns.extend(other.columns);
        self.columns.sort_by_key(|(number, _)| number.0);
        self
    }
}

struct ColumnEncoder {
    def: &'static ColumnDef,
    /// Whether to check if all rows of a block have the same value.
    may_agree: bool,
    builder: PageBuilder,
    pages: Pages,
}

impl<C: Columns> Default for GroupEncoder<C> {
    fn default() -> Self {
        Self::of(|_| true)
    }
}

impl<C: Columns> GroupEncoder<C> {
    /// An encoder for all columns but one, whose values become known later: [`LateColumn`] encodes
    /// that one, and [`EncodedGroup::with`] joins both.
    #[must_use]
    pub fn without(late: ColumnNumber) -> Self {
        Self::of(|number| number != late)
    }

    fn of(wanted: impl Fn(ColumnNumber) -> bool) -> Self {
        let def = schema::table(C::TABLE);
        let columns = def.columns.iter().enumerate().map(|(number, column)| (ColumnNumber(number), column));
        let columns = columns.filter(|(number, _)| wanted(*number));
        let columns = columns.map(|(number, column)| (number, ColumnEncoder::new(column))).collect();
        let schema = def.parquet_schema();
        GroupEncoder { columns, schema, rows: 0, press: Press::new(), values: Vec::new(), table: PhantomData }
    }

    /// Mark columns whose values usually differ from row to row: blocks of them are not checked for
    /// equal values.
    #[must_use]
    pub fn varying(mut self, columns: &[ColumnNumber]) -> Self {
        for (number, column) in &mut self.columns {
            column.may_agree &= !columns.contains(number);
        }
        self
    }

    /// Add a block of rows.
    ///
    /// Each block of a group, except the last, must have a multiple of 8 rows.
    pub fn block<'r, R: 'r>(&mut self, rows: &(impl ExactSizeIterator<Item = &'r R> + Clone))
    where
        C: BlockColumns<R>,
    {
        for (number, column) in &mut self.columns {
            self.values.clear();
            let mut fill = Fill { values: &mut self.values, all: None, may_agree: column.may_agree };
            C::fill(*number, rows.clone(), &mut fill);
            let all = fill.all;
            column.add(rows.len(), all, &self.values, &mut self.press);
        }
        self.rows += rows.len();
    }

    /// Number of rows in the group.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Close the group and start over.
    pub fn finish<W>(&mut self, texts: &W) -> EncodedGroup
    where
        C: BlockTexts<W>,
    {
        self.close(|column, number| C::text(texts, column, number))
    }

    fn close<'w>(&mut self, text: impl Fn(ColumnNumber, usize) -> &'w str) -> EncodedGroup {
        let rows = std::mem::take(&mut self.rows);
        let (schema, press) = (&self.schema, &mut self.press);
        let columns = self.columns.iter_mut().map(|(number, column)| {
            let number = *number;
            (number, column.finish(schema, number, rows, press, |index| text(number, index)).expect("memory only"))
        });
        let columns = columns.collect();
        EncodedGroup { rows, columns }
    }
}

/// Encodes one column of numbers by itself, for rows whose other columns were encoded before.
pub struct LateColumn<C>(GroupEncoder<C>);

impl<C: Columns> LateColumn<C> {
    /// An encoder for this column.
    #[must_use]
    pub fn new(column: ColumnNumber) -> Self {
        LateColumn(GroupEncoder::of(|number| number == column))
    }

    /// Add the values of a block. Each block of a group, except the last, must have a multiple of 8
    /// values.
    pub fn block(&mut self, values: impl Iterator<Item = Option<i32>>) {
        let GroupEncoder { columns, rows, press, values: numbers, .. } = &mut self.0;
        numbers.clear();
        numbers.extend(values.map(|value| value.map_or(NULL, i64::from)));
        columns.iter_mut().for_each(|(_, column)| column.add(numbers.len(), None, numbers, press));
        *rows += numbers.len();
    }

    /// Close the group and start over.
    pub fn finish(&mut self) -> EncodedGroup {
        self.0.close(|column, _| panic!("column {} holds numbers", column.0))
    }
}

impl ColumnEncoder {
    fn new(def: &'static ColumnDef) -> Self {
        let layout = match def.kind {
            ColumnType::Int64 | ColumnType::Int32 if def.delta => Layout::Delta,
            ColumnType::Int64 => Layout::Dictionary { bytes: 8 },
            ColumnType::Int32 => Layout::Dictionary { bytes: 4 },
            ColumnType::Bool => Layout::Bits,
            ColumnType::String if def.dictionary => Layout::Texts,
            ColumnType::String | ColumnType::Float64 => panic!("column {}: not a number", def.name),
        };
        let builder = PageBuilder::new(layout, def.nullable);
        ColumnEncoder { def, may_agree: true, builder, pages: Pages::new() }
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

    fn finish<'w>(
        &mut self,
        schema: &SchemaDescPtr,
        number: ColumnNumber,
        rows: usize,
        press: &mut Press,
        text: impl Fn(usize) -> &'w str,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        self.builder.close(&mut self.pages, press)?;
        let values = &self.builder.dictionary.values;
        let mut plain = Vec::new();
        match self.def.kind {
            ColumnType::String => {
                for value in values {
                    let text = text(usize::try_from(*value).expect("an index"));
                    plain.extend_from_slice(&u32::try_from(text.len()).expect("a text is short").to_le_bytes());
                    plain.extend_from_slice(text.as_bytes());
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
        number: ColumnNumber,
        rows: usize,
        bytes: &Bytes,
        dictionary: usize,
    ) -> Result<ColumnChunkMetaData> {
        let mut builder = ColumnChunkMetaData::builder(schema.column(number.0))
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

    /// Least and greatest number, by which readers skip row groups.
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
