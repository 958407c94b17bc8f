//! Logs of other load generators (fio, IOR, mdtest, elbencho) as rows of `load_results`.
//!
//! A log may contain results of several tools, as the output of a batch job does, and other text
//! between them. So it is divided into sections: one begins where a tool prints its name, or a JSON
//! document begins. Each tool has a [`Reader`] in a file of its own, and [`READERS`] lists them. Known errors of the tools that a log shows are described in the status and the
//! note of a row; all other rows are [`Status::Reported`].

mod elbencho;
mod fio;
mod ior;
mod json;
mod mdtest;
mod numbers;
#[expect(clippy::indexing_slicing, reason = "a reader is known by its place in the list")]
mod sections;

use std::collections::BTreeSet;

use serde_json::Value;
use sysdock_table::{Fact, facts::load_logs as facts};

use crate::{Measured, Status, histogram::quantile, judge::LEAST_OVERLAP};

/// A longer log is refused [B]: it is held in memory, and that of a large campaign has some MiB.
pub const LONGEST_LOG: u64 = 64 << 20;

/// Number of bytes at the beginning of a log that show what wrote it.
pub const BEGINNING: usize = 64 << 10;

/// A shorter phase is too short for a clock with milliseconds: 5 % of its duration are unknown.
const SHORTEST_MS: f64 = 20.0;

/// The tool that wrote a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tool {
    /// The name in `load_results.engine`.
    pub name: &'static str,
    /// The name that its users know.
    pub shown: &'static str,
    /// Advice where its log has no result.
    pub hint: &'static str,
}

/// Reads the logs of one tool. It is made anew for each log, and sees it from its beginning.
pub(crate) trait Reader {
    /// The tool whose logs it reads.
    fn tool(&self) -> Tool;

    /// Whether a section of the tool's output begins with this line; it ends where the next begins.
    fn begins(&self, line: &str) -> bool {
        let _ = line;
        false
    }

    /// Whether the tool writes JSON documents with this beginning.
    fn begins_document(&self, head: &str) -> bool {
        let _ = head;
        false
    }

    /// Take the rows of a section; its first line is `log.line`.
    fn read_section(&mut self, section: &str, log: &mut Log) {
        let _ = (section, log);
    }

    /// Take the rows of a document.
    fn read_document(&mut self, document: &Value, log: &mut Log) {
        let _ = (document, log);
    }

    /// Take the rows of a document that is not valid JSON. False: nothing can be read of it.
    fn read_damaged(&mut self, section: &str, log: &mut Log) -> bool {
        let _ = (section, log);
        false
    }

    /// See a line between sections.
    fn see(&mut self, line: &str) {
        let _ = line;
    }
}

/// All readers. The first that knows a line, or a document, reads it.
const READERS: [fn() -> Box<dyn Reader>; 4] =
    [|| Box::new(fio::Fio), || Box::new(ior::Ior), || Box::new(mdtest::Mdtest), || Box::<elbencho::Elbencho>::default()];

fn readers() -> Vec<Box<dyn Reader>> {
    READERS.iter().map(|reader| reader()).collect()
}

/// The tools whose logs are read, for messages: `fio, IOR, mdtest or elbencho`.
#[must_use]
pub fn shown() -> String {
    let names: Vec<_> = readers().iter().map(|reader| reader.tool().shown).collect();
    names.split_last().map(|(last, others)| format!("{} or {last}", others.join(", "))).unwrap_or_default()
}

/// A result in the log that is not among the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    /// Line of the log, from 1.
    pub line: u64,
    /// What is wrong.
    pub detail: Fact,
    /// The line, or its beginning.
    pub text: String,
}

/// Content of a log.
#[derive(Debug, Default)]
pub struct Log {
    /// The tools that wrote it.
    pub tools: BTreeSet<Tool>,
    /// Rows, in the order of the log.
    pub measured: Vec<Measured>,
    /// Results that could not be read.
    pub broken: Vec<Broken>,
    /// Number of lines.
    pub lines: u64,
    /// When a document was written [ns since the epoch]: the first that states it.
    pub written_ns: Option<i64>,
    /// First line of the section that is being read.
    line: u64,
}

impl Log {
    fn broken(&mut self, line: u64, text: &str, detail: Fact) {
        let text = text.chars().take(120).collect();
        self.broken.push(Broken { line, detail, text });
    }

    /// Take a row, if its numbers could be those of a real measurement.
    fn take(&mut self, line: u64, row: Measured) {
        let rates = [row.bytes_per_s, row.operations_per_s];
        if rates.iter().flatten().any(|rate| !(0.0..=numbers::MOST).contains(rate)) {
            let text = format!("{} {}", row.item, row.operation);
            return self.broken(line, &text, facts::impossible_rate());
        }
        self.measured.push(row);
    }
}

/// The tool that wrote a log with this beginning; `None`: another tool.
#[must_use]
pub fn recognize(beginning: &[u8]) -> Option<Tool> {
    sections::first_tool(&String::from_utf8_lossy(beginning), &readers())
}

/// Read a log.
#[must_use]
pub fn read(text: &[u8]) -> Log {
    read_by(text, &mut readers())
}

fn read_by(text: &[u8], readers: &mut [Box<dyn Reader>]) -> Log {
    let text = json::without_nan(String::from_utf8_lossy(text));
    let mut log = Log { lines: text.lines().count() as u64, ..Log::default() };
    sections::read(&text, readers, &mut log);
    log
}

/// Set a status, and the reason. The first status is kept; reasons are collected.
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

/// A row of another tool, without any doubt yet.
fn reported(tool: Tool, item: &'static str, operation: &'static str, processes: i32) -> Measured {
    Measured { engine: tool.name, status: Status::Reported, ..Measured::new(item, operation, processes) }
}

#[cfg(test)]
mod tests;
