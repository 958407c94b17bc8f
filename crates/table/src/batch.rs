//! Rows on their way to a table, kept as columns until they are written.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray,
    cast::AsArray,
    types::{Float64Type, Int32Type, Int64Type},
};
use arrow_schema::DataType;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::{
    rows::{Columns, Row},
    schema,
};

/// Rows of one table that are not written yet.
#[derive(Debug, Default)]
pub struct Batch<C> {
    columns: C,
    rows: usize,
}

impl<C: Columns> Batch<C> {
    /// Add a row.
    pub fn push(&mut self, row: &impl Row<Columns = C>) {
        row.add_to(&mut self.columns);
        self.rows += 1;
    }

    /// Rows so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// As JSON: each column with its values, in the order of the table's file. Starts anew.
    pub fn take_values(&mut self) -> Vec<(String, Value)> {
        let batch = self.take();
        let names = batch.schema_ref().fields().iter().map(|field| field.name().clone());
        names.zip(batch.columns().iter().map(values_of)).collect()
    }

    /// As Arrow has them. Starts anew.
    pub(crate) fn take(&mut self) -> RecordBatch {
        self.rows = 0;
        let schema = schema::table(C::TABLE).arrow_schema();
        RecordBatch::try_new(schema, self.columns.finish()).expect("rows and schema are made of the same file")
    }
}

impl<R: Row> FromIterator<R> for Batch<R::Columns> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut batch = Batch::default();
        rows.into_iter().for_each(|row| batch.push(&row));
        batch
    }
}

/// The values of a column as JSON.
fn values_of(column: &ArrayRef) -> Value {
    let known = |row: usize| column.is_valid(row);
    let all = |value: &dyn Fn(usize) -> Value| {
        Value::Array((0..column.len()).map(|row| if known(row) { value(row) } else { Value::Null }).collect())
    };
    match column.data_type() {
        DataType::Int64 => all(&|row| column.as_primitive::<Int64Type>().value(row).into()),
        DataType::Int32 => all(&|row| column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Float64 => all(&|row| column.as_primitive::<Float64Type>().value(row).into()),
        DataType::Boolean => all(&|row| column.as_boolean().value(row).into()),
        DataType::Utf8 => all(&|row| column.as_string::<i32>().value(row).into()),
        _ => {
            let coded = column.as_dictionary::<Int32Type>();
            let words = coded.values().as_string::<i32>();
            all(&|row| words.value(coded.keys().value(row) as usize).into())
        }
    }
}

/// A column of words, coded in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct WordBuilder {
    codes: Vec<Option<i32>>,
    words: Vec<String>,
    by_word: FxHashMap<String, i32>,
    last: i32,
}

impl WordBuilder {
    pub(crate) fn append_value(&mut self, word: &str) {
        // Words come in a row: most often it is the one before.
        if self.words.get(self.last as usize).is_none_or(|last| last != word) {
            self.last = self.by_word.get(word).copied().unwrap_or_else(|| self.add(word));
        }
        self.codes.push(Some(self.last));
    }

    pub(crate) fn append_option(&mut self, word: Option<&str>) {
        match word {
            Some(word) => self.append_value(word),
            None => self.codes.push(None),
        }
    }

    fn add(&mut self, word: &str) -> i32 {
        let code = i32::try_from(self.words.len()).expect("few words");
        self.words.push(word.into());
        self.by_word.insert(word.into(), code);
        code
    }

    pub(crate) fn finish(&mut self) -> DictionaryArray<Int32Type> {
        let WordBuilder { codes, words, .. } = std::mem::take(self);
        let words: ArrayRef = Arc::new(StringArray::from(words));
        DictionaryArray::new(Int32Array::from(codes), words)
    }
}
