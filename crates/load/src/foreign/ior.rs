//! IOR: its text of versions 2 to 4, and its JSON and CSV.
//!
//! Each line of its table (`access bw(MiB/s) ...`, whose heading names its columns) is an
//! iteration, and a row here. Version 2 prints that table only with `-v`; otherwise there is a
//! summary of all iterations, or at least the best of them. Bandwidth counts from the first open to
//! the last close, so operations are computed from it; the column `IOPS` counts the transfers
//! alone.

use serde_json::Value;
use sysdock_table::facts::load_logs as facts;

use crate::{Measured, Status};

use super::{Log, Reader, Tool, doubt, json, numbers, remark, reported};

const MIB: f64 = 1_048_576.0;

const TOOL: Tool =
    Tool { name: "ior", shown: "IOR", hint: "IOR prints its results at the end of a run; was it killed, or its output cut?" };
/// Beginning of the first line of a CSV file.
const CSV: &str = "access,bw(MiB/s),";

pub(super) struct Ior;

impl Reader for Ior {
    fn tool(&self) -> Tool {
        TOOL
    }

    fn begins(&self, line: &str) -> bool {
        line.starts_with("IOR-") && line.contains("MPI Coordinated Test") || line.starts_with(CSV)
    }

    fn begins_document(&self, head: &str) -> bool {
        head.contains("\"Began\"") && head.contains("\"Command line\"")
    }

    fn read_section(&mut self, section: &str, log: &mut Log) {
        if section.starts_with(CSV) { read_csv(section, log) } else { read_text(section, log) }
    }

    fn read_document(&mut self, document: &Value, log: &mut Log) {
        read_json(document, log);
    }

    fn read_damaged(&mut self, section: &str, log: &mut Log) -> bool {
        read_broken_json(section, log);
        true
    }
}

/// The setting of a run, as far as the output shows it.
#[derive(Default)]
struct Setting {
    /// Whether anything is known: CSV has no header.
    known: bool,
    tasks: Option<i32>,
    nodes: Option<i32>,
    transfer_bytes: Option<i64>,
    total_bytes: Option<i64>,
    shared: Option<bool>,
    random: bool,
    /// Whether processes read what another one wrote.
    reordered: bool,
    direct: bool,
    sync: Option<&'static str>,
    writes: bool,
    has_deadline: bool,
    repetitions: i32,
}

/// Read a run as text.
fn read_text(section: &str, log: &mut Log) {
    let mut setting = setting(section);
    let before = log.measured.len() + log.broken.len();
    let (mut columns, mut summary): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut summaries = Vec::new();
    for (line, text) in (log.line..).zip(section.lines()) {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["access", second, ..] if second.starts_with("bw(") => columns = words,
            ["Operation", ..] if text.contains("Max") && text.contains("Mean") => summary = words,
            [access @ ("write" | "read"), values @ ..] if !summary.is_empty() => {
                summaries.push((line, text, *access, values.to_vec()));
            }
            [access @ ("write" | "read"), values @ ..] if !columns.is_empty() => {
                table_line(&mut setting, &columns, access, values, (line, text), log);
            }
            _ => {}
        }
    }
    if log.measured.len() + log.broken.len() == before {
        for (line, text, access, values) in summaries {
            summary_line(&setting, access, &values, (line, text), log);
        }
    }
    if log.measured.len() + log.broken.len() == before {
        best(&setting, section, log);
    }
    if log.measured.len() + log.broken.len() == before {
        // Version 3.2 writes this line before its JSON, too.
        let is_title = section.lines().filter(|line| !line.trim().is_empty()).count() == 1;
        if !is_title {
            log.broken(log.line, section.lines().next().unwrap_or_default(), facts::run_without_result("IOR"));
        }
    }
}

/// The setting in the lines above the table.
fn setting(section: &str) -> Setting {
    let mut setting = Setting { known: true, repetitions: 1, ..Setting::default() };
    for line in section.lines() {
        let Some((key, value)) = line.split_once([':', '=']) else { continue };
        let value = value.trim();
        match key.trim() {
            "Command line" | "Command line used" => setting.command(value),
            "access" => setting.shared = Some(value.contains("shared")),
            "ordering in a file" => setting.random = value.starts_with("random"),
            "ordering inter file" => setting.reordered = !value.starts_with("no "),
            "nodes" => setting.nodes = numbers::count(value),
            "tasks" => setting.tasks = numbers::count(value),
            // `32 (8 per node)`
            "clients" => {
                let mut words = value.split([' ', '(']).filter_map(numbers::count);
                setting.tasks = words.next();
                let per_node = words.next().filter(|count| *count > 0);
                setting.nodes = setting.tasks.zip(per_node).map(|(tasks, per_node)| (tasks / per_node).max(1));
            }
            "repetitions" => setting.repetitions = numbers::count(value).unwrap_or(1),
            "xfersize" => setting.transfer_bytes = numbers::bytes(value),
            "aggregate filesize" => setting.total_bytes = numbers::bytes(value),
            _ => {}
        }
    }
    setting
}

impl Setting {
    /// Read the parts of the setting that only the command line shows. Options may be combined
    /// (`-wre`); `-O` has names.
    fn command(&mut self, command: &str) {
        const WITH_VALUE: &str = "abcdDfGhHiIjJlLmMNoOpPqQsStTuUxX";
        let mut sync = "none";
        let mut words = command.split_whitespace().skip(1).peekable();
        while let Some(word) = words.next() {
            if word.starts_with("--") {
                self.direct |= word.ends_with("odirect");
            } else if let Some(letters) = word.strip_prefix('-') {
                for (place, letter) in letters.char_indices() {
                    match letter {
                        'w' => self.writes = true,
                        'B' => self.direct = true,
                        'e' if sync == "none" => sync = "end",
                        'Y' => sync = "fsync",
                        'D' => self.has_deadline = true,
                        _ => {}
                    }
                    if WITH_VALUE.contains(letter) {
                        if place + letter.len_utf8() == letters.len() {
                            words.next();
                        }
                        break;
                    }
                }
            }
        }
        // Without any of -w, -r, -W and -R, IOR writes and reads.
        let chosen = |letter: char| command.split_whitespace().any(|word| word.starts_with('-') && word.contains(letter));
        self.writes |= !['w', 'r', 'W', 'R'].into_iter().any(chosen);
        self.direct |= command.contains("useO_DIRECT=1");
        self.sync = Some(sync);
    }

    /// A row whose rates are not known yet.
    fn row(&self, access: &str) -> Measured {
        let item = match (self.random, access) {
            (true, "read") => "random_read",
            (true, _) => "random_write",
            _ => "transfer",
        };
        let operation = if access == "read" { "read" } else { "write" };
        let mut row = reported(TOOL, item, operation, self.tasks.unwrap_or(1));
        row.length_bytes = self.transfer_bytes;
        row.layout = self.shared.map(|shared| if shared { "shared" } else { "own" });
        row.sync = self.sync.filter(|_| operation == "write");
        row.direct = self.known.then_some(self.direct);
        if self.tasks.is_none() {
            remark(&mut row, facts::processes_unknown());
        }
        if operation == "read" {
            self.judge_reads(&mut row);
        }
        row
    }

    /// Mark reads that a node itself has written: they come from its memory, unless they bypass it.
    fn judge_reads(&self, row: &mut Measured) {
        if !self.known {
            return doubt(row, Status::NotKnown, facts::caching_unknown());
        }
        if self.direct || !self.writes || (self.reordered && self.nodes.is_some_and(|nodes| nodes > 1)) {
            return;
        }
        let why = match self.reordered {
            true => facts::one_node(),
            false => facts::read_their_own(),
        };
        doubt(row, Status::NotKnown, why);
    }

    /// Fill in rates, and what follows from them.
    fn rate(&self, row: &mut Measured, mib_per_s: f64, seconds: Option<f64>) {
        let rate = mib_per_s * MIB;
        row.bytes_per_s = Some(rate);
        // A run with a deadline (-D) does less than was requested.
        let requested = self.total_bytes.filter(|_| !self.has_deadline).map(|bytes| bytes as f64);
        let bytes = requested.or_else(|| seconds.map(|seconds| rate * seconds)).filter(|bytes| numbers::possible(*bytes));
        row.bytes = numbers::whole(bytes.unwrap_or(0.0));
        if let Some(length) = row.length_bytes.filter(|length| *length > 0) {
            row.operations_per_s = Some(rate / length as f64);
            row.operations = numbers::whole(row.bytes as f64 / length as f64);
        }
        if let Some(seconds) = seconds.filter(|seconds| *seconds < 0.001) {
            doubt(row, Status::TooShort, facts::took(seconds * 1e9));
        }
    }
}

/// Read an iteration: a line of the table.
fn table_line(setting: &mut Setting, columns: &[&str], access: &str, values: &[&str], (line, text): (u64, &str), log: &mut Log) {
    let value = |name: &str| {
        let place = columns.iter().position(|column| column.starts_with(name))?;
        numbers::number(values.get(place.checked_sub(1)?)?)
    };
    let Some(bandwidth) = value("bw(") else {
        return log.broken(line, text, facts::no_bandwidth());
    };
    if let Some(kib) = value("xfer(") {
        setting.transfer_bytes = Some(numbers::whole(kib * 1024.0));
    }
    let mut row = setting.row(access);
    setting.rate(&mut row, bandwidth, value("total("));
    log.take(line, row);
}

/// Read the summary of all iterations: largest, smallest, mean.
fn summary_line(setting: &Setting, access: &str, values: &[&str], (line, text): (u64, &str), log: &mut Log) {
    let value = |place: usize| values.get(place).and_then(|value| numbers::number(value));
    let (Some(most), Some(least), Some(mean)) = (value(0), value(1), value(2)) else {
        return log.broken(line, text, facts::no_bandwidth());
    };
    let mut row = setting.row(access);
    setting.rate(&mut row, mean, None);
    if setting.repetitions > 1 {
        remark(&mut row, facts::mean_in_mib_per_s(setting.repetitions, least, most));
    }
    log.take(line, row);
}

/// The last resort: `Max Write: 1234.56 MiB/sec (1294.53 MB/sec)`.
fn best(setting: &Setting, section: &str, log: &mut Log) {
    for (line, text) in (log.line..).zip(section.lines()) {
        let access = if text.starts_with("Max Write:") { "write" } else { "read" };
        let Some(rest) = text.strip_prefix("Max Write:").or_else(|| text.strip_prefix("Max Read:")) else { continue };
        match rest.split_whitespace().next().and_then(numbers::number) {
            // Operations that were not requested have 0.
            Some(bandwidth) if bandwidth > 0.0 => {
                let mut row = setting.row(access);
                setting.rate(&mut row, bandwidth, None);
                if setting.repetitions > 1 {
                    remark(&mut row, facts::best_of(setting.repetitions));
                }
                log.take(line, row);
            }
            Some(_) => {}
            None => log.broken(line, text, facts::no_bandwidth()),
        }
    }
}

/// Read a table with commas.
fn read_csv(section: &str, log: &mut Log) {
    let first = log.line;
    let mut lines = (first..).zip(section.lines());
    let columns: Vec<&str> = lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
    for (line, text) in lines {
        let values: Vec<&str> = text.split(',').collect();
        let [access @ ("write" | "read"), values @ ..] = values.as_slice() else { continue };
        let place = columns.iter().position(|column| *column == "numTasks");
        let tasks = place.and_then(|place| numbers::count(values.get(place.checked_sub(1)?)?));
        let mut setting = Setting { tasks, ..Setting::default() };
        table_line(&mut setting, &columns, access, values, (line, text), log);
    }
}

/// Read `summaryFormat=JSON`.
fn read_json(document: &Value, log: &mut Log) {
    let before = log.measured.len() + log.broken.len();
    let tests = document.get("tests").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for test in tests {
        let mut setting = Setting { known: true, repetitions: 1, ..Setting::default() };
        setting.command(&json::text(document, "Command line").unwrap_or_default());
        setting.of_json(&test["Parameters"], &test["Options"]);
        let mut results = Vec::new();
        // With several iterations each has a list of its own.
        for result in test.get("Results").and_then(Value::as_array).into_iter().flatten() {
            match result {
                Value::Array(inner) => results.extend(inner),
                other => results.push(other),
            }
        }
        for result in results {
            let access = json::text(result, "access").unwrap_or_default();
            if access != "write" && access != "read" {
                continue;
            }
            let Some(bandwidth) = json::number(result, "bwMiB") else {
                log.broken(log.line, &access, facts::no_bandwidth());
                continue;
            };
            if let Some(kib) = json::number(result, "xferKiB") {
                setting.transfer_bytes = Some(numbers::whole(kib * 1024.0));
            }
            let mut row = setting.row(&access);
            // Four digits of a second are too few for a short run: the bandwidth has more.
            setting.rate(&mut row, bandwidth, None);
            if bandwidth > 0.0 && (row.bytes as f64) / (bandwidth * MIB) < 0.001 && row.bytes > 0 {
                doubt(&mut row, Status::TooShort, facts::less_than_1_ms());
            }
            log.take(log.line, row);
        }
    }
    if log.measured.len() + log.broken.len() == before {
        log.broken(log.line, "tests", facts::run_without_result("IOR"));
    }
}

/// Read an invalid document: IOR 3.2 writes superfluous commas and brackets if there are several
/// iterations. Its single lines are valid.
fn read_broken_json(section: &str, log: &mut Log) {
    let (mut all, mut results) = (serde_json::Map::new(), Vec::<Value>::new());
    for line in section.lines() {
        let line = line.trim().trim_end_matches(',').trim_end();
        // One line has several pairs, none of which is needed.
        let Some((key, value)) = line.split_once("\": ") else { continue };
        let (Some(key), Ok(value)) = (key.strip_prefix('"'), serde_json::from_str::<Value>(value)) else { continue };
        if key == "access" && (value == "write" || value == "read" || value == "remove") {
            results.push(serde_json::json!({}));
        }
        match results.last_mut().and_then(Value::as_object_mut) {
            Some(result) => result.insert(key.into(), value),
            None => all.insert(key.into(), value),
        };
    }
    let command = all.get("Command line").cloned().unwrap_or_default();
    let all = Value::Object(all);
    read_json(
        &serde_json::json!({"Command line": command, "tests": [{"Parameters": all, "Options": all, "Results": results}]}),
        log,
    );
}

impl Setting {
    fn of_json(&mut self, parameters: &Value, options: &Value) {
        let number = |key: &str| json::whole(parameters, key).or_else(|| json::whole(options, key));
        let narrow = |value: Option<i64>| value.and_then(|value| i32::try_from(value).ok());
        (self.tasks, self.nodes) = (narrow(number("tasks")), narrow(number("nodes")));
        self.repetitions = narrow(number("repetitions")).unwrap_or(1);
        self.shared = json::whole(parameters, "filePerProc").map(|own| own == 0);
        self.random = json::whole(parameters, "randomOffset").is_some_and(|random| random != 0);
        let set = |key: &str| json::whole(parameters, key).is_some_and(|value| value != 0);
        self.reordered = set("reorderTasks") || set("reorderTasksRandom");
        self.has_deadline |= set("deadlineForStonewall");
        self.writes |= set("writeFile");
        self.total_bytes = json::text(options, "aggregate filesize").and_then(|text| numbers::bytes(&text));
        let exact = (number("blockSize"), number("segmentCount"), self.tasks);
        if let (Some(block), Some(segments), Some(tasks)) = exact {
            self.total_bytes = block.checked_mul(segments).and_then(|bytes| bytes.checked_mul(i64::from(tasks)));
        }
        if set("fsyncperwrite") {
            self.sync = Some("fsync");
        } else if set("fsync") {
            self.sync = Some("end");
        }
    }
}
