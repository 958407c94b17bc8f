//! Rows on their way to a table, kept as columns until they are written.

use std::sync::Arc;

use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, types::Int32Type};
use rustc_hash::FxHashMap;

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
