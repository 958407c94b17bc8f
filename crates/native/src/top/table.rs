//! A table of the activity in an interval: sorted, filtered, and as text or JSON.

use std::{cmp::Ordering, time::Duration};

use serde_json::{Map, Value, json};

/// The meaning of a number, and its format. JSON shows it per interval, text per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Not a number.
    Text,
    /// A number that is shown unchanged.
    Plain,
    /// A count of events.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds; as text the share of the interval.
    Seconds,
    /// Mean or greatest time of an event [s]; as text in milliseconds.
    Each,
    /// A mean value.
    Mean,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Text => "",
            Unit::Plain | Unit::Count | Unit::Mean => "1",
            Unit::Bytes => "B",
            Unit::Seconds | Unit::Each => "s",
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    /// Name in JSON, and for `--sort`.
    pub(crate) name: &'static str,
    /// Title on the screen.
    pub(crate) title: &'static str,
    pub(crate) unit: Unit,
    /// Width on the screen; for the last column the least, because it takes the remaining space.
    pub(crate) width: usize,
}

impl Column {
    pub(crate) const fn new(name: &'static str, title: &'static str, unit: Unit, width: usize) -> Self {
        Column { name, title, unit, width }
    }
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    Whole(u64),
    Real(f64),
    /// Unknown.
    Missing,
}

impl Cell {
    /// A name, which may have any bytes.
    pub(crate) fn name(bytes: &[u8]) -> Cell {
        Cell::Text(sysdock_table::readable(bytes).into_owned())
    }

    /// A time [s].
    pub(crate) fn seconds(ns: u64) -> Cell {
        Cell::Real(ns as f64 / 1e9)
    }

    fn number(&self) -> Option<f64> {
        match self {
            Cell::Whole(number) => Some(*number as f64),
            Cell::Real(number) => Some(*number),
            Cell::Text(_) | Cell::Missing => None,
        }
    }

    fn json(&self) -> Value {
        match self {
            Cell::Text(text) => json!(text),
            Cell::Whole(number) => json!(number),
            Cell::Real(number) => json!(number),
            Cell::Missing => Value::Null,
        }
    }
}

/// The user's choice of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// Name of a column; `None`: that of the view.
    pub(crate) sort: Option<String>,
    /// Part of a name.
    pub(crate) filter: String,
}

/// The activity in an interval.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) view: &'static str,
    pub(crate) columns: &'static [Column],
    /// Column to sort by if none is chosen.
    pub(crate) sort: &'static str,
    pub(crate) interval: Duration,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Number of items that found no room in the kernel.
    pub(crate) lost: u64,
    /// Description of missing values, and a remedy.
    pub(crate) note: Option<String>,
    /// Explanation of an empty table.
    pub(crate) nothing: &'static str,
}

impl Table {
    /// Rows that match the filter, in descending order; names in ascending order.
    fn chosen(&self, chosen: &Chosen) -> Vec<&Vec<Cell>> {
        let wanted = chosen.filter.to_lowercase();
        let fits =
            |row: &&Vec<Cell>| row.iter().any(|cell| matches!(cell, Cell::Text(text) if text.to_lowercase().contains(&wanted)));
        let mut rows: Vec<&Vec<Cell>> = self.rows.iter().filter(fits).collect();
        let name = chosen.sort.as_deref().unwrap_or(self.sort);
        let at = self.columns.iter().position(|column| column.name == name).unwrap_or(0);
        let last = self.columns.len() - 1;
        rows.sort_by(|one, other| order(&one[at], &other[at]).then_with(|| order(&one[last], &other[last])));
        rows
    }

    /// The table as one object in a line.
    pub(crate) fn json(&self, chosen: &Chosen, limit: Option<usize>) -> String {
        let rows = self.chosen(chosen);
        let object = |row: &&Vec<Cell>| {
            let pairs = self.columns.iter().zip(row.iter()).map(|(column, cell)| (column.name.to_string(), cell.json()));
            Value::Object(pairs.collect::<Map<_, _>>())
        };
        let units: Map<_, _> = self.columns.iter().map(|column| (column.name.to_string(), json!(column.unit.name()))).collect();
        let shown: Vec<Value> = rows.iter().take(limit.unwrap_or(usize::MAX)).map(object).collect();
        let whole = json!({
            "view": self.view,
            "interval_s": self.interval.as_secs_f64(),
            "units": units,
            "rows": shown,
            "rows_total": rows.len(),
            "lost": self.lost,
            "note": self.note,
        });
        format!("{whole}\n")
    }

    /// Lines of any width.
    pub(crate) fn text(&self, chosen: &Chosen, limit: Option<usize>) -> String {
        const WIDE: usize = 1 << 12;
        let lines = self.lines(chosen, WIDE, limit.unwrap_or(usize::MAX));
        lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// A heading, and at most `most` rows.
    pub(crate) fn lines(&self, chosen: &Chosen, width: usize, most: usize) -> Vec<String> {
        let rows = self.chosen(chosen);
        let mut lines: Vec<String> = self.note.iter().cloned().collect();
        if rows.is_empty() {
            lines.push(if chosen.filter.is_empty() { self.nothing.into() } else { "nothing has this in its name".into() });
            return lines;
        }
        let shown = shown(self.columns, width);
        lines.push(join(&shown, |_, column| column.title.to_string(), width));
        let cell = |row: &[Cell], at: usize, column: &Column| shown_as(&row[at], column.unit, self.interval);
        lines.extend(rows.iter().take(most).map(|row| join(&shown, |at, column| cell(row, at, column), width)));
        lines
    }
}

fn order(one: &Cell, other: &Cell) -> Ordering {
    match (one, other) {
        (Cell::Text(one), Cell::Text(other)) => one.cmp(other),
        _ => other.number().partial_cmp(&one.number()).unwrap_or(Ordering::Equal),
    }
}

/// Columns that fit: if there is no room for all, the ones before the last are dropped.
fn shown(columns: &'static [Column], width: usize) -> Vec<(usize, &'static Column)> {
    let (last, others) = columns.split_last().expect("a table has columns");
    let mut shown: Vec<(usize, &Column)> = others.iter().enumerate().collect();
    while shown.iter().map(|(_, column)| column.width + 1).sum::<usize>() + last.width > width && shown.len() > 1 {
        shown.pop();
    }
    shown.push((others.len(), last));
    shown
}

/// Join cells: numbers right-aligned, names left-aligned, the last one as long as there is room.
fn join(shown: &[(usize, &'static Column)], text: impl Fn(usize, &Column) -> String, width: usize) -> String {
    let mut line = String::new();
    for (number, (at, column)) in shown.iter().enumerate() {
        let text = harmless(&text(*at, column));
        if number + 1 == shown.len() {
            line += &cut_front(&text, width.saturating_sub(wide(&line)));
        } else if column.unit == Unit::Text {
            let text = cut(&text, column.width);
            line += &format!("{text}{} ", " ".repeat(column.width - wide(&text)));
        } else {
            line += &format!("{text:>width$} ", width = column.width);
        }
    }
    line
}

fn shown_as(cell: &Cell, unit: Unit, interval: Duration) -> String {
    let number = match cell {
        Cell::Text(text) => return text.clone(),
        Cell::Missing => return "-".into(),
        Cell::Whole(number) => *number as f64,
        Cell::Real(number) => *number,
    };
    let each_second = number / interval.as_secs_f64().max(1e-9);
    match unit {
        Unit::Text | Unit::Plain => format!("{number}"),
        Unit::Count => short(each_second, 1000.0),
        Unit::Bytes => short(each_second, 1024.0),
        Unit::Seconds => format!("{:.1}", 100.0 * each_second),
        Unit::Each => format!("{:.2}", 1000.0 * number),
        Unit::Mean => format!("{number:.1}"),
    }
}

/// A number in five characters.
fn short(number: f64, step: f64) -> String {
    const PREFIXES: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    let (mut number, mut prefix) = (number, 0);
    while number >= 999.5 && prefix + 1 < PREFIXES.len() {
        number /= step;
        prefix += 1;
    }
    let is_whole = number >= 99.95 || number.fract() == 0.0;
    if is_whole { format!("{number:.0}{}", PREFIXES[prefix]) } else { format!("{number:.1}{}", PREFIXES[prefix]) }
}

/// Escape characters that a terminal would execute, or that change the direction of text.
fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let escape = |c: char| if c.is_control() || turns(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// Greatest number of columns that a terminal uses for a character.
fn width_of(c: char) -> usize {
    if c < '\u{1100}' { 1 } else { 2 }
}

fn wide(text: &str) -> usize {
    text.chars().map(width_of).sum()
}

/// The beginning of a text, at most `width` columns wide.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let mut left = width;
    let fits = |c: &char| {
        let fits = width_of(*c) <= left;
        left = left.saturating_sub(width_of(*c));
        fits
    };
    text.chars().take_while(fits).collect()
}

/// The end of a text, which is the most informative part of a path.
fn cut_front(text: &str, width: usize) -> String {
    if wide(text) <= width {
        return text.to_string();
    }
    let reversed: String = text.chars().rev().collect();
    let end: String = cut(&reversed, width.saturating_sub(1)).chars().rev().collect();
    format!("<{end}")
}
