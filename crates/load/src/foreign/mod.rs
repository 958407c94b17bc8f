//! Logs of other tools that make load (fio, IOR, mdtest, elbencho) as rows of `load_results`.
//!
//! A log may hold results of several tools, as the output of a batch job does, and other text between them. So it is cut into sections:
//! where a tool prints its name, or a JSON document opens, one begins. What the tools themselves get wrong, and what of it a log shows, is
//! described in the status and the note of a row; all else is [`Status::Reported`].

mod elbencho;
mod fio;
mod ior;
mod json;
mod mdtest;
mod numbers;
mod sections;

use std::collections::BTreeSet;

use sysdock_table::{Fact, facts::load_logs as facts};

use crate::{Measured, Status, histogram::quantile, judge::LEAST_OVERLAP};

/// A log longer than this is refused: it is held in memory, and that of a large campaign has some MiB.
pub const LONGEST_LOG: u64 = 64 << 20;

/// Bytes at the beginning of a log that show what wrote it.
pub const BEGINNING: usize = 64 << 10;

/// Shorter than this, a phase is too short for a clock that counts milliseconds: 5 % of its time are not known.
const SHORTEST_MS: f64 = 20.0;

/// Who wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    Fio,
    Ior,
    Mdtest,
    Elbencho,
}

impl Tool {
    /// The name in `load_results.engine`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Tool::Fio => "fio",
            Tool::Ior => "ior",
            Tool::Mdtest => "mdtest",
            Tool::Elbencho => "elbencho",
        }
    }
}

/// A result that is in the log and not among the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Line of the log, from 1.
    pub line: u64,
    /// What is wrong.
    pub detail: Fact,
    /// The line, or its beginning.
    pub text: String,
}

/// What a log holds.
#[derive(Debug, Default)]
pub struct Log {
    /// Whose output is in it.
    pub tools: BTreeSet<Tool>,
    /// Rows, in the order of the log.
    pub measured: Vec<Measured>,
    /// Results that could not be read.
    pub broken: Vec<Broken>,
    /// Lines of the log.
    pub lines: u64,
    /// When a document was written [ns since the epoch]: the first that states it.
    pub written_ns: Option<i64>,
    /// Where the section that is being read begins.
    line: u64,
}

impl Log {
    fn broken(&mut self, line: u64, text: &str, detail: Fact) {
        let text = text.chars().take(120).collect();
        self.broken.push(Broken { line, detail, text });
    }

    /// Take a row, if its numbers are such that a real measurement could have them.
    fn take(&mut self, line: u64, row: Measured) {
        let rates = [row.bytes_per_s, row.operations_per_s];
        if rates.iter().flatten().any(|rate| !(0.0..=numbers::MOST).contains(rate)) {
            let text = format!("{} {}", row.item, row.operation);
            return self.broken(line, &text, facts::impossible_rate());
        }
        self.measured.push(row);
    }
}

/// Who wrote the log that begins so; `None`: another tool.
#[must_use]
pub fn recognize(beginning: &[u8]) -> Option<Tool> {
    sections::first_tool(&String::from_utf8_lossy(beginning))
}

/// Read a log.
#[must_use]
pub fn read(text: &[u8]) -> Log {
    let text = json::without_nan(String::from_utf8_lossy(text));
    let mut log = Log { lines: text.lines().count() as u64, ..Log::default() };
    sections::read(&text, &mut log);
    log
}

/// Lower a status, and say why; the first reason stays, and notes add up.
fn doubt(row: &mut Measured, status: Status, why: Fact) {
    if row.status == Status::Reported {
        row.status = status;
    }
    remark(row, why);
}

/// Add to the note.
fn remark(row: &mut Measured, what: Fact) {
    row.note.push(what);
}

/// A row of another tool, about which nothing is in doubt yet.
fn reported(tool: Tool, item: &'static str, operation: &'static str, processes: i32) -> Measured {
    Measured { engine: tool.name(), status: Status::Reported, ..Measured::new(item, operation, processes) }
}

#[cfg(test)]
mod tests;
