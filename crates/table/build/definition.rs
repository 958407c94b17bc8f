//! The format of a file of `knowhow/tables`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file that defines one table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "some keys are for readers; that they are known is checked here all the same")]
pub(crate) struct Table {
    pub(crate) name: String,
    /// What a row describes.
    pub(crate) text: String,
    /// The order in which rows are stored.
    pub(crate) order: String,
    /// Whether the table has Parquet parts.
    #[serde(default = "yes")]
    pub(crate) stored: bool,
    pub(crate) about: Option<String>,
    /// Whether `sysdock merge` copies its rows.
    #[serde(default = "yes")]
    pub(crate) merged: bool,
    /// Whether its rows are sent from one host to another before they are stored, as JSON.
    #[serde(default)]
    pub(crate) travels: bool,
    /// Stored columns, in order.
    pub(crate) columns: Vec<Column>,
    /// The table whose counters are columns of this one, too.
    pub(crate) counters_of: Option<CountersOf>,
    /// Columns that only views have.
    #[serde(default)]
    pub(crate) joined: Vec<toml::Table>,
    /// Columns that views compute from stored ones.
    #[serde(default)]
    pub(crate) derived: Vec<toml::Table>,
    /// The rows of a table that is the same in all recordings: for each value of its last column,
    /// those of its first one, separated by spaces.
    pub(crate) constant: Option<BTreeMap<String, String>>,
    /// The SELECT that computes a summary.
    pub(crate) sql: Option<String>,
    /// For a summary with parts: the column whose sum equals the number of rows of the first table
    /// in `needs`, if no part is missing.
    pub(crate) adds_up_to: Option<String>,
    /// Tables that `sql` requires.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// Tables that `sql` reads and a recording may lack.
    #[serde(default)]
    pub(crate) uses: Vec<String>,
}

/// Columns that stand in the file of another table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CountersOf {
    pub(crate) table: String,
    /// The column that they follow.
    pub(crate) after: String,
    /// Whether they may be NULL here, where that differs.
    pub(crate) nullable: Option<bool>,
}

/// Give each table the counters that the file of another one defines.
pub(crate) fn add_counters(tables: &mut [Table]) {
    for number in 0..tables.len() {
        let Some(CountersOf { table, after, nullable }) = tables[number].counters_of.take() else { continue };
        let other = tables.iter().find(|other| other.name == table).expect("counters_of names a table");
        let mut counters: Vec<Column> = other.columns.iter().filter(|column| column.counter).cloned().collect();
        counters.iter_mut().for_each(|column| column.nullable = nullable.unwrap_or(column.nullable));
        let columns = &mut tables[number].columns;
        let place = columns.iter().position(|column| column.name == after).expect("`after` names a column");
        columns.splice(place + 1..=place, counters);
    }
}

fn yes() -> bool {
    true
}

/// A stored column.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "`id_of` is for the merge of recordings; that it is known is checked here all the same")]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    pub(crate) unit: Option<String>,
    #[serde(default)]
    pub(crate) nullable: bool,
    #[serde(default)]
    pub(crate) dictionary: bool,
    #[serde(default)]
    pub(crate) delta: bool,
    /// Whether it is a counter of a sample, which other tables add up.
    #[serde(default)]
    pub(crate) counter: bool,
    /// The table whose rows the values number, within one recording.
    pub(crate) id_of: Option<String>,
    pub(crate) text: String,
}

/// Types of columns, named as in `ColumnType` of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Int64,
    Int32,
    Float64,
    Bool,
    String,
}
