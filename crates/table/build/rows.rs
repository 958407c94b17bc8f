//! Generates the typed rows of each table that has parts.
//!
//! For each table: a struct with a field for each column, and the columns that its rows become. For
//! tables without free text and fractions, which can be encoded in blocks, also a trait with a
//! method for each column, and one with a method for each column of texts.

use std::fmt::Write;

use crate::definition::{Column, Kind, Table};

/// Code for `sysdock_table::rows`.
pub(crate) fn code(tables: &[Table]) -> String {
    let mut code = String::new();
    for table in tables.iter().filter(|table| table.stored) {
        row(&mut code, table);
        columns(&mut code, table);
        if table.columns.iter().all(can_be_encoded_in_blocks) {
            block_row(&mut code, table);
            block_texts(&mut code, table);
        }
    }
    code
}

fn can_be_encoded_in_blocks(column: &Column) -> bool {
    match column.kind {
        Kind::String => column.dictionary,
        Kind::Float64 => false,
        Kind::Int64 | Kind::Int32 | Kind::Bool => true,
    }
}

/// Name of the type: `ImportIssues` for `import_issues`.
fn type_name(table: &Table) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    table.name.split('_').map(capital).collect()
}

fn or_null(column: &Column, kind: &str) -> String {
    // No facts are NULL.
    if column.nullable && !is_facts(column) { format!("Option<{kind}>") } else { kind.to_string() }
}

/// Whether it holds facts: codes with values, which only constructors of `facts` make.
fn is_facts(column: &Column) -> bool {
    column.unit.as_deref() == Some("fact")
}

/// The struct that a writer fills in.
fn row(code: &mut String, table: &Table) {
    let (name, has_text) = (type_name(table), table.columns.iter().any(|c| c.kind == Kind::String && !is_facts(c)));
    let (lifetime, any) = if has_text { ("<'a>", "<'_>") } else { ("", "") };
    let json = if table.travels { ", Default, serde::Serialize, serde::Deserialize" } else { "" };
    writeln!(code, "#[doc = {:?}]\n#[derive(Clone, Debug, PartialEq{json})]\npub struct {name}{lifetime} {{", table.text)
        .unwrap();
    for column in &table.columns {
        let kind = match column.kind {
            Kind::Int64 => "i64",
            Kind::Int32 => "i32",
            Kind::Float64 => "f64",
            Kind::Bool => "bool",
            Kind::String if is_facts(column) => "Facts",
            Kind::String => "Cow<'a, str>",
        };
        if table.travels && column.nullable {
            code.push_str("    #[serde(default, skip_serializing_if = \"Option::is_none\")]\n");
        }
        writeln!(code, "    #[doc = {:?}]\n    pub {}: {},", column.text, column.name, or_null(column, kind)).unwrap();
    }
    code.push_str("}\n\n");
    if table.travels {
        setter(code, table, &format!("{name}{any}"));
    }
    writeln!(code, "impl Row for {name}{any} {{\n    type Columns = {name}Columns;\n").unwrap();
    writeln!(code, "    fn add_to(&self, columns: &mut {name}Columns) {{").unwrap();
    for column in &table.columns {
        let Column { name, nullable, kind, .. } = column;
        let append = match (kind, nullable) {
            (Kind::String, true) if is_facts(column) => format!("append_option(self.{name}.json().as_deref())"),
            (Kind::String, false) if is_facts(column) => format!("append_value(&self.{name}.json().unwrap_or_default())"),
            (Kind::String, true) => format!("append_option(self.{name}.as_deref())"),
            (Kind::String, false) => format!("append_value(&self.{name})"),
            (_, true) => format!("append_option(self.{name})"),
            (_, false) => format!("append_value(self.{name})"),
        };
        writeln!(code, "        columns.{name}.{append};").unwrap();
    }
    code.push_str("    }\n}\n\n");
}

/// The function by which counters get into a row without being named again.
fn setter(code: &mut String, table: &Table, name: &str) {
    writeln!(code, "impl {name} {{\n    /// Set a number by the name of its column. False: there is no such column.").unwrap();
    code.push_str("    pub fn set(&mut self, column: &str, value: i64) -> bool {\n        match column {\n");
    for Column { name, nullable, .. } in table.columns.iter().filter(|column| matches!(column.kind, Kind::Int64)) {
        let value = if *nullable { "Some(value)" } else { "value" };
        writeln!(code, "            {name:?} => self.{name} = {value},").unwrap();
    }
    code.push_str("            _ => return false,\n        }\n        true\n    }\n}\n\n");
}

/// The columns that rows become, and the constants that number them.
fn columns(code: &mut String, table: &Table) {
    let name = type_name(table);
    writeln!(code, "#[doc = \"Columns of `{}`.\"]\n#[derive(Debug, Default)]\npub struct {name}Columns {{", table.name).unwrap();
    for column in &table.columns {
        let builder = match column.kind {
            Kind::Int64 => "Plain<i64>",
            Kind::Int32 => "Plain<i32>",
            Kind::Float64 => "Plain<f64>",
            Kind::Bool => "Plain<bool>",
            Kind::String if column.dictionary => "CodedTexts",
            Kind::String => "Texts",
        };
        writeln!(code, "    {}: {builder},", column.name).unwrap();
    }
    writeln!(code, "}}\n\nimpl {name}Columns {{").unwrap();
    for (number, column) in table.columns.iter().enumerate() {
        let constant = column.name.to_uppercase();
        writeln!(code, "    #[doc = {:?}]\n    pub const {constant}: ColumnNumber = ColumnNumber({number});", column.text)
            .unwrap();
    }
    writeln!(code, "}}\n\nimpl Columns for {name}Columns {{\n    const TABLE: &'static str = {:?};\n", table.name).unwrap();
    code.push_str("    fn finish(&mut self) -> Vec<Column> {\n        vec![\n");
    for column in &table.columns {
        writeln!(code, "            take(&mut self.{}).into(),", column.name).unwrap();
    }
    code.push_str("        ]\n    }\n}\n\n");
}

/// The trait that block encoding requires of a row, whatever its form.
fn block_row(code: &mut String, table: &Table) {
    let name = type_name(table);
    writeln!(code, "#[doc = \"What is read of a row of `{}` while blocks of them are encoded.\"]", table.name).unwrap();
    writeln!(code, "pub trait {name}Row {{").unwrap();
    for column in &table.columns {
        let (kind, more) = match column.kind {
            Kind::Int64 => ("i64", ""),
            Kind::Int32 => ("i32", ""),
            Kind::Bool => ("bool", ""),
            _ => ("usize", " As the number of a text."),
        };
        let text = format!("{}{more}", column.text);
        writeln!(code, "    #[doc = {text:?}]\n    fn {}(&self) -> {};", column.name, or_null(column, kind)).unwrap();
    }
    writeln!(code, "}}\n\nimpl<R: {name}Row> BlockColumns<R> for {name}Columns {{").unwrap();
    code.push_str("    fn fill<'r>(column: ColumnNumber, rows: impl Iterator<Item = &'r R> + Clone, fill: &mut Fill<'_>)\n");
    code.push_str("    where\n        R: 'r,\n    {\n        match column {\n");
    for column in &table.columns {
        let constant = column.name.to_uppercase();
        writeln!(code, "            Self::{constant} => fill.rows(rows, R::{}),", column.name).unwrap();
    }
    code.push_str("            other => other.is_of_no(Self::TABLE),\n        }\n    }\n}\n\n");
}

/// The trait that resolves the text numbers of rows.
fn block_texts(code: &mut String, table: &Table) {
    let name = type_name(table);
    let texts: Vec<&Column> = table.columns.iter().filter(|column| column.kind == Kind::String).collect();
    if texts.is_empty() {
        writeln!(code, "impl<W> BlockTexts<W> for {name}Columns {{").unwrap();
        code.push_str("    fn text(_: &W, column: ColumnNumber, _: usize) -> &str {\n        column.is_of_no(Self::TABLE)\n");
        code.push_str("    }\n}\n\n");
        return;
    }
    writeln!(code, "#[doc = \"The texts that numbers stand for in blocks of rows of `{}`.\"]", table.name).unwrap();
    writeln!(code, "pub trait {name}Texts {{").unwrap();
    for column in &texts {
        writeln!(code, "    #[doc = {:?}]\n    fn {}(&self, number: usize) -> &str;", column.text, column.name).unwrap();
    }
    writeln!(code, "}}\n\nimpl<W: {name}Texts> BlockTexts<W> for {name}Columns {{").unwrap();
    code.push_str("    fn text(texts: &W, column: ColumnNumber, number: usize) -> &str {\n        match column {\n");
    for column in &texts {
        writeln!(code, "            Self::{} => texts.{}(number),", column.name.to_uppercase(), column.name).unwrap();
    }
    code.push_str("            other => other.is_of_no(Self::TABLE),\n        }\n    }\n}\n\n");
}
