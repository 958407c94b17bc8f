//! Table definitions, read from the TOML files that were embedded at build time.

use std::sync::{Arc, OnceLock};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::Deserialize;

include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// One table of `knowhow/tables`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDef {
    /// Name: a plural noun.
    pub name: String,
    /// What a row is.
    pub text: String,
    /// In which order rows are stored.
    pub order: String,
    /// Whether it has Parquet parts (`recording` is a view of recording.json).
    #[serde(default = "yes")]
    pub stored: bool,
    /// What it is about: the family of events, of those that captures name, that fills it. Not used by writers.
    #[serde(default)]
    pub about: Option<String>,
    /// Stored columns, in order.
    pub columns: Vec<ColumnDef>,
    /// Columns that exist in views only. Not used by writers.
    #[serde(default)]
    pub joined: Vec<toml::Table>,
    /// Columns that views compute from stored ones. Not used by writers.
    #[serde(default)]
    pub derived: Vec<toml::Table>,
    /// The SELECT that makes a summary, which readers count. Not used by writers.
    #[serde(default)]
    pub sql: Option<String>,
    /// Tables that `sql` reads.
    #[serde(default)]
    pub needs: Vec<String>,
}

fn yes() -> bool {
    true
}

/// One stored column.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnDef {
    /// Name, with the unit in it where it has one.
    pub name: String,
    /// Type in the file.
    #[serde(rename = "type")]
    pub kind: ColumnType,
    /// Unit, such as `ns` or `B`.
    pub unit: Option<String>,
    /// Whether values may be missing.
    #[serde(default)]
    pub nullable: bool,
    /// Whether a string column has few distinct values.
    #[serde(default)]
    pub dictionary: bool,
    /// Whether numbers are stored as differences (for values that grow).
    #[serde(default)]
    pub delta: bool,
    /// What it means.
    pub text: String,
}

/// Types a column may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum ColumnType {
    Int64,
    Int32,
    Float64,
    Bool,
    String,
}

impl TableDef {
    /// The Arrow schema that writers of this table must fill.
    #[must_use]
    pub fn arrow_schema(&self) -> SchemaRef {
        let fields: Vec<Field> = self.columns.iter().map(ColumnDef::arrow_field).collect();
        Arc::new(Schema::new(fields))
    }
}

impl ColumnDef {
    fn arrow_field(&self) -> Field {
        let kind = match self.kind {
            ColumnType::Int64 => DataType::Int64,
            ColumnType::Int32 => DataType::Int32,
            ColumnType::Float64 => DataType::Float64,
            ColumnType::Bool => DataType::Boolean,
            ColumnType::String if self.dictionary => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnType::String => DataType::Utf8,
        };
        Field::new(&self.name, kind, self.nullable)
    }
}

/// The definition of a table.
///
/// # Panics
/// If there is no such table: names are fixed at build time, so that is an error in sysdock.
#[must_use]
pub fn table(name: &str) -> &'static TableDef {
    tables().iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name:?} in knowhow/tables"))
}

/// Names of all tables that have parts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    tables().iter().filter(|table| table.stored).map(|table| table.name.as_str())
}

/// Every table definition.
fn tables() -> &'static [TableDef] {
    static TABLES: OnceLock<Vec<TableDef>> = OnceLock::new();
    TABLES.get_or_init(|| TABLE_FILES.iter().map(|text| toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_file_parses_and_names_are_unique() {
        let mut names: Vec<_> = tables().iter().map(|t| t.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"calls"));
    }

    #[test]
    fn every_number_with_a_unit_says_so_in_its_name() {
        for table in tables() {
            for column in &table.columns {
                let suffix = match column.unit.as_deref() {
                    Some("ns") => "_ns",
                    Some("B") => "_bytes",
                    _ => continue,
                };
                assert!(column.name.ends_with(suffix), "{}.{}", table.name, column.name);
            }
        }
    }
}
