//! mdtest: the tables of its versions 1.9, 3 and 4.
//!
//! A line of its table is an operation. The rates are the largest, the smallest and the mean of the
//! iterations, of which the mean is used. The second table (`SUMMARY time`) is not read: it states
//! ms per operation, but contains seconds of a phase.

use sysdock_table::facts::load_logs as facts;

use crate::{Measured, Status};

use super::{Log, Reader, Tool, doubt, numbers, remark, reported};

const TOOL: Tool = Tool {
    name: "mdtest",
    shown: "mdtest",
    hint: "mdtest prints its tables at the end of a run; was it killed, or its output cut?",
};

pub(super) struct Mdtest;

impl Reader for Mdtest {
    fn tool(&self) -> Tool {
        TOOL
    }

    fn begins(&self, line: &str) -> bool {
        line.starts_with("mdtest-") && line.contains("was launched with")
    }

    fn read_section(&mut self, section: &str, log: &mut Log) {
        read(section, log);
    }
}

/// The setting of a run.
#[derive(Default)]
struct Setting {
    tasks: i32,
    nodes: i32,
    /// Number of files or directories of all processes, in one iteration.
    entries: i64,
    iterations: i32,
    write_bytes: i64,
    read_bytes: i64,
    own: bool,
    /// Whether processes read the files of another node.
    shifted: bool,
    direct: bool,
}

/// Read a run.
fn read(section: &str, log: &mut Log) {
    let before = log.measured.len() + log.broken.len();
    let mut setting = Setting { tasks: 1, nodes: 1, iterations: 1, ..Setting::default() };
    let mut in_table = false;
    for (line, text) in (log.line..).zip(section.lines()) {
        if text.starts_with("SUMMARY") {
            in_table = !text.starts_with("SUMMARY time");
            let iterations = text.split("(of ").nth(1).and_then(|rest| numbers::count(rest.split(' ').next()?));
            setting.iterations = iterations.unwrap_or(1).max(1);
        } else if in_table && text.starts_with("   ") {
            setting.line(line, text, log);
        } else {
            setting.header(text);
        }
    }
    if log.measured.len() + log.broken.len() == before {
        log.broken(log.line, section.lines().next().unwrap_or_default(), facts::run_without_result("mdtest"));
    }
}

impl Setting {
    /// Read a line above the table.
    fn header(&mut self, text: &str) {
        if text.starts_with("mdtest-") {
            let numbers: Vec<i32> = text.split([' ', '(']).filter_map(numbers::count).collect();
            if let [tasks, nodes, ..] = numbers.as_slice() {
                (self.tasks, self.nodes) = ((*tasks).max(1), (*nodes).max(1));
            }
        } else if let Some(command) = text.strip_prefix("Command line used:") {
            self.command(command);
        } else if let Some((_, rest)) = text.split_once(" tasks, ") {
            self.entries = rest.split(' ').next().and_then(|count| count.parse().ok()).filter(|count| *count >= 0).unwrap_or(0);
        }
    }

    fn command(&mut self, command: &str) {
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['\'', '"'])).collect();
        let after = |option: &str| {
            let place = words.iter().position(|word| *word == option)?;
            numbers::bytes(words.get(place + 1)?)
        };
        (self.write_bytes, self.read_bytes) = (after("-w").unwrap_or(0), after("-e").unwrap_or(0));
        // Letters may be combined (-Fu), before their values.
        self.own = words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('u'));
        self.shifted = after("-N").is_some_and(|stride| stride > 0);
        self.direct = words.iter().any(|word| word.ends_with("odirect"));
    }

    /// Read a line of the table: a name of two words, and numbers; in some versions a colon after
    /// the name.
    fn line(&self, line: u64, text: &str, log: &mut Log) {
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != ":").collect();
        let [object, verb, values @ ..] = words.as_slice() else { return };
        let Some((item, operation)) = self.operation(object, verb.trim_end_matches(':')) else { return };
        // Rates of each process come first, if requested (--showRankStatistics).
        let of_all = values.get(values.len().saturating_sub(4)..).unwrap_or_default();
        let rates: Option<Vec<f64>> = of_all.iter().map(|value| numbers::number(value)).collect();
        let Some([most, least, mean, _]) = rates.as_deref() else {
            return log.broken(line, text, facts::no_rates());
        };
        // Operations that were not requested have 0.
        if *mean == 0.0 {
            return;
        }
        let mut row = self.row(item, operation);
        row.operations_per_s = Some(*mean);
        if item == "tree" {
            (row.processes, row.layout, row.operations) = (1, None, 0);
            remark(&mut row, facts::by_one_process());
        }
        if row.bytes > 0 && self.entries > 0 {
            row.bytes_per_s = Some(*mean * row.length_bytes.unwrap_or(0) as f64);
        }
        if self.iterations > 1 {
            remark(&mut row, facts::mean_per_second(self.iterations, *least, *most));
        }
        let seconds = self.entries as f64 / mean;
        if item != "tree" && self.entries > 0 && seconds < 0.001 {
            doubt(&mut row, Status::TooShort, facts::iteration_took(seconds * 1e9));
        }
        log.take(line, row);
    }

    /// Item and operation, by our own names.
    fn operation(&self, object: &str, verb: &str) -> Option<(&'static str, &'static str)> {
        Some(match (object, verb) {
            ("File", "creation") => ("metadata", "create"),
            ("File", "stat") => ("metadata", "stat"),
            // Without -e a file is opened and closed.
            ("File", "read") => ("metadata", if self.read_bytes > 0 { "read" } else { "open" }),
            ("File", "removal") => ("metadata", "remove"),
            ("Directory", "creation") => ("metadata", "mkdir"),
            ("Directory", "stat") => ("metadata", "stat_directory"),
            ("Directory", "rename") => ("metadata", "rename_directory"),
            ("Directory", "removal") => ("metadata", "rmdir"),
            ("Tree", "creation") => ("tree", "mkdir"),
            ("Tree", "removal") => ("tree", "rmdir"),
            _ => return None,
        })
    }

    fn row(&self, item: &'static str, operation: &'static str) -> Measured {
        let mut row = reported(TOOL, item, operation, self.tasks);
        row.layout = Some(if self.own { "own" } else { "shared" });
        row.operations = self.entries.saturating_mul(i64::from(self.iterations));
        let data = match operation {
            "create" => self.write_bytes,
            "read" => self.read_bytes,
            _ => 0,
        };
        if data > 0 {
            row.bytes = row.operations.saturating_mul(data);
            (row.length_bytes, row.direct) = (Some(data), Some(self.direct));
        }
        let of_its_own = !self.shifted || self.nodes == 1;
        match operation {
            "read" if of_its_own && !self.direct => {
                doubt(&mut row, Status::NotKnown, facts::read_where_written());
            }
            "stat" | "stat_directory" | "open" if of_its_own => {
                remark(&mut row, facts::on_the_node_that_made_them());
            }
            _ => {}
        }
        row
    }
}
