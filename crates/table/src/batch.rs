//! Rows that are not written yet, kept as columns.

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

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Take all rows as JSON: each column with its values, in the order of the table's file. The
    /// batch is empty afterwards.
    pub fn take_values(&mut self) -> Vec<(String, Value)> {
        self.rows = 0;
        let names = schema::table(C::TABLE).columns.iter().map(|column| column.name.to_string());
        names.zip(self.columns.finish().into_iter().map(|column| column.json())).collect()
    }

    /// Encode all rows as a row group of a file with the table's schema. The batch is empty
    /// afterwards.
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
