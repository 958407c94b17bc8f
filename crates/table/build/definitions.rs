//! Generates the definitions as constants, so that nothing is parsed at run time.

use std::fmt::Write;

use crate::definition::{Column, Table};

/// Code of `static TABLES: &[TableDef]`, and of the rows of tables that are constant.
pub(crate) fn code(tables: &[Table]) -> String {
    let mut code = String::from("static TABLES: &[TableDef] = &[\n");
    for table in tables {
        let Table { name, stored, .. } = table;
        writeln!(code, "    TableDef {{ name: {name:?}, stored: {stored}, columns: &[").unwrap();
        for column in &table.columns {
            let Column { name, kind, unit, nullable, dictionary, delta, .. } = column;
            writeln!(
                code,
                "        ColumnDef {{ name: {name:?}, kind: ColumnType::{kind:?}, unit: {unit:?}, nullable: {nullable}, \
                 dictionary: {dictionary}, delta: {delta} }},"
            )
            .unwrap();
        }
        code.push_str("    ] },\n");
    }
    code.push_str("];\n");
    for table in tables {
        let Some(constant) = &table.constant else { continue };
        let rows = constant.iter().flat_map(|(value, words)| words.split_ascii_whitespace().map(move |word| (word, value)));
        let name = table.name.to_uppercase();
        writeln!(code, "/// {}\npub static {name}: &[(&str, &str)] = &{:?};", table.text, rows.collect::<Vec<_>>()).unwrap();
    }
    code
}
