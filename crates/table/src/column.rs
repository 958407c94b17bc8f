//! Columns of plain values, turned into Arrow arrays by the table's definition.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::OffsetBuffer;

use crate::{TableDef, TableError};

/// Values of one column of a batch. `None` is NULL.
#[derive(Debug)]
pub enum Column {
    /// `int64`
    Int64(Vec<Option<i64>>),
    /// `int32`
    Int32(Vec<Option<i32>>),
    /// `float64`
    Float64(Vec<Option<f64>>),
    /// `bool`
    Bool(Vec<bool>),
    /// `string`
    String(Vec<Option<String>>),
    /// `string` without NULL, behind one another, and where each of them ends. For columns with many rows.
    Text(String, Vec<i32>),
    /// `string` with `dictionary = true`: a code per row, and the words the codes stand for.
    Words(Vec<Option<i32>>, Vec<String>),
}

impl Column {
    fn into_array(self) -> ArrayRef {
        match self {
            Column::Int64(values) => Arc::new(Int64Array::from(values)),
            Column::Int32(values) => Arc::new(Int32Array::from(values)),
            Column::Float64(values) => Arc::new(Float64Array::from(values)),
            Column::Bool(values) => Arc::new(BooleanArray::from(values)),
            Column::String(values) => Arc::new(StringArray::from(values)),
            Column::Text(text, mut ends) => {
                ends.insert(0, 0);
                Arc::new(StringArray::new(OffsetBuffer::new(ends.into()), text.into_bytes().into(), None))
            }
            Column::Words(codes, words) => {
                let words = Arc::new(StringArray::from(words));
                Arc::new(DictionaryArray::new(Int32Array::from(codes), words))
            }
        }
    }

    /// A word column from strings, coded in order of first appearance.
    #[must_use]
    pub fn words<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Column {
        let mut words: Vec<String> = Vec::new();
        let mut codes = Vec::new();
        for value in values {
            codes.push(value.map(|value| {
                let code = words.iter().position(|word| word == value).unwrap_or_else(|| {
                    words.push(value.into());
                    words.len() - 1
                });
                i32::try_from(code).expect("few words")
            }));
        }
        Column::Words(codes, words)
    }
}

/// Fit columns to a table's definition.
pub(crate) fn record_batch(table: &TableDef, columns: Vec<Column>) -> Result<RecordBatch, TableError> {
    let arrays = columns.into_iter().map(Column::into_array).collect();
    RecordBatch::try_new(table.arrow_schema(), arrays).map_err(|error| panic!("table {}: {error}", table.name))
}
