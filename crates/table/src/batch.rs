//! Rows on their way to a table, kept as columns until they are written.

use parquet::{errors::Result, file::properties::WriterPropertiesPtr, schema::types::SchemaDescriptor};
use serde_json::Value;

use crate::{
    EncodedGroup,
    rows::{ColumnNumber, Columns, Row},
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

    /// As JSON: each column with its values, in the order of the table's file. Starts over.
    pub fn take_values(&mut self) -> Vec<(String, Value)> {
        self.rows = 0;
        let names = schema::table(C::TABLE).columns.iter().map(|column| column.name.to_string());
        names.zip(self.columns.finish().into_iter().map(|column| column.json())).collect()
    }

    /// As a row group of a file with this schema, that of the table. Starts over.
    pub(crate) fn encode(&mut self, schema: &SchemaDescriptor, properties: &WriterPropertiesPtr) -> Result<EncodedGroup> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns.finish().into_iter().enumerate().map(|(number, column)| {
            let encoded = column.encode(schema.column(number), properties.clone())?;
            Ok((ColumnNumber(number), encoded))
        });
        Ok(EncodedGroup { rows, columns: columns.collect::<Result<_>>()? })
    }
}

impl<R: Row> FromIterator<R> for Batch<R::Columns> {
    fn from_iter<I: IntoIterator<Item = R>>(rows: I) -> Self {
        let mut batch = Batch::default();
        rows.into_iter().for_each(|row| batch.push(&row));
        batch
    }
}
