//! Table definitions, made by the build from the files of `knowhow/tables`.

use std::sync::Arc;

use parquet::{
    basic::{LogicalType, Repetition, Type as PhysicalType},
    errors::Result,
    schema::types::{SchemaDescPtr, SchemaDescriptor, Type, TypePtr},
};

include!(concat!(env!("OUT_DIR"), "/definitions.rs"));

/// One table of `knowhow/tables`, as far as writers need to know it.
#[derive(Debug)]
pub struct TableDef {
    /// Name: a plural noun.
    pub name: &'static str,
    /// Whether it has Parquet parts (`recording` is a view of recording.json).
    pub stored: bool,
    /// Stored columns, in order.
    pub columns: &'static [ColumnDef],
}

/// One stored column.
#[derive(Debug)]
pub struct ColumnDef {
    /// Name, with the unit in it where it has one.
    pub name: &'static str,
    /// Type in the file.
    pub kind: ColumnType,
    /// Unit, such as `ns` or `B`.
    pub unit: Option<&'static str>,
    /// Whether values may be missing.
    pub nullable: bool,
    /// Whether a string column has few distinct values.
    pub dictionary: bool,
    /// Whether numbers are stored as differences (for values that grow).
    pub delta: bool,
}

/// Types a column may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    Int64,
    Int32,
    Float64,
    Bool,
    String,
}

impl TableDef {
    /// The Parquet schema of its files.
    pub(crate) fn parquet_schema(&self) -> SchemaDescPtr {
        let columns = self.columns.iter().map(ColumnDef::parquet_type).collect::<Result<_>>();
        // The name of the root means nothing; this one is what other writers use.
        let root = columns.and_then(|columns| Type::group_type_builder("schema").with_fields(columns).build());
        Arc::new(SchemaDescriptor::new(Arc::new(root.expect("plain types"))))
    }
}

impl ColumnDef {
    fn parquet_type(&self) -> Result<TypePtr> {
        let (kind, meaning) = match self.kind {
            ColumnType::Int64 => (PhysicalType::INT64, None),
            ColumnType::Int32 => (PhysicalType::INT32, None),
            ColumnType::Float64 => (PhysicalType::DOUBLE, None),
            ColumnType::Bool => (PhysicalType::BOOLEAN, None),
            ColumnType::String => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(self.name, kind).with_repetition(repetition).with_logical_type(meaning);
        column.build().map(Arc::new)
    }
}

/// The definition of a table.
///
/// # Panics
/// If there is no such table: names are fixed at build time, so that is an error in sysdock.
#[must_use]
pub fn table(name: &str) -> &'static TableDef {
    TABLES.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no table {name:?} in knowhow/tables"))
}

/// Names of all tables that have parts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().filter(|table| table.stored).map(|table| table.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"calls"));
    }

    #[test]
    fn every_number_with_a_unit_says_so_in_its_name() {
        for table in TABLES {
            for column in table.columns {
                let suffix = match column.unit {
                    Some("ns") => "_ns",
                    Some("B") => "_bytes",
                    _ => continue,
                };
                // A column may be called by nothing but its unit: `bytes`.
                let has_suffix = column.name.ends_with(suffix) || column.name == &suffix[1..];
                assert!(has_suffix, "{}.{}", table.name, column.name);
            }
        }
    }
}
