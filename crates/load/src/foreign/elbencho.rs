//! elbencho: the tables that it prints, and its CSV and JSON files.
//!
//! It has two results for each phase: when the first worker was done, and when the last was. The
//! last is used, because it counts all work, and the first shows the overlap: all workers begin
//! together.

use serde_json::Value;
use sysdock_table::facts::load_logs as facts;

use crate::{LatencyClass, Measured, Status};

use super::{LEAST_OVERLAP, Log, Reader, SHORTEST_MS, Tool, doubt, json, numbers, quantile, remark, reported};

const MIB: f64 = 1_048_576.0;

const TOOL: Tool = Tool {
    name: "elbencho",
    shown: "elbencho",
    hint: "elbencho prints a table for each phase; --csvfile and --jsonfile hold the same",
};

/// Its files contain the command line before each table, so what that says is kept.
#[derive(Default)]
pub(super) struct Elbencho(Past);

impl Reader for Elbencho {
    fn tool(&self) -> Tool {
        TOOL
    }

    fn begins(&self, line: &str) -> bool {
        begins_table(line) || line.contains("operation,") && line.contains("time ms [first]")
    }

    fn begins_document(&self, head: &str) -> bool {
        head.contains("\"phase_type\"") && head.contains("\"phase_id\"")
    }

    fn read_section(&mut self, section: &str, log: &mut Log) {
        let read = if section.lines().next().is_some_and(begins_table) { read_text } else { read_csv };
        read(section, &mut self.0, log);
    }

    fn read_document(&mut self, document: &Value, log: &mut Log) {
        read_json(document, &mut self.0, log);
    }

    fn see(&mut self, line: &str) {
        self.0.see(line);
    }
}

fn begins_table(line: &str) -> bool {
    line.starts_with("OPERATION") && line.contains("RESULT TYPE")
}

/// Facts from earlier lines of a log about the phases that follow.
#[derive(Default)]
struct Past {
    threads: Option<i32>,
    hosts: Option<i32>,
    length_bytes: Option<i64>,
    direct: Option<bool>,
    random: bool,
    /// Whether data was written, and caches were not dropped since.
    written: bool,
}

impl Past {
    /// Read a line between sections: files of results contain the command line of elbencho.
    fn see(&mut self, line: &str) {
        let Some(command) = line.trim_start().strip_prefix("COMMAND LINE:") else { return };
        let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches('"')).collect();
        let after = |names: [&str; 2]| {
            let place = words.iter().position(|word| names.contains(word))?;
            words.get(place + 1).copied()
        };
        let has = |name: &str| words.contains(&name);
        self.threads = Some(after(["-t", "--threads"]).and_then(numbers::count).unwrap_or(1));
        self.hosts = Some(after(["--hosts", "--hosts"]).map_or(1, |hosts| i32::try_from(hosts.split(',').count()).unwrap_or(1)));
        // Ranges in brackets are more hosts than the commas indicate.
        if after(["--hosts", "--hosts"]).is_some_and(|hosts| hosts.contains('[')) || has("--hostsfile") {
            self.hosts = None;
        }
        self.length_bytes = Some(after(["-b", "--block"]).and_then(numbers::bytes).unwrap_or(1 << 20));
        (self.direct, self.random) = (Some(has("--direct")), has("--rand"));
    }
}

/// A phase, from any of the three forms.
#[derive(Default)]
struct Phase {
    name: String,
    threads: Option<i32>,
    hosts: Option<i32>,
    length_bytes: Option<i64>,
    direct: Option<bool>,
    random: bool,
    depth: Option<i32>,
    start_ns: Option<i64>,
    /// Time until the first, and the last, worker was done.
    first_ms: Option<f64>,
    last_ms: Option<f64>,
    data: Counts,
    /// Reads of a mixed phase, alongside the writes.
    mixed_reads: Counts,
    entries: Counts,
}

/// Results of one kind.
#[derive(Default)]
struct Counts {
    total: Option<f64>,
    per_s: Option<f64>,
    bytes: Option<f64>,
    bytes_per_s: Option<f64>,
    max_ns: Option<i64>,
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    classes: Vec<LatencyClass>,
}

impl Phase {
    /// Write the rows of the phase: one for its data, one for its files or directories.
    fn rows(&self, past: &mut Past, line: u64, log: &mut Log) {
        let before = log.measured.len() + log.broken.len();
        let random = if self.random { "random_write" } else { "transfer" };
        let mixed = if self.random { "random_mix" } else { "transfer" };
        let (data, entries) = match self.name.as_str() {
            name if name.starts_with("RWMIX") => (Some((mixed, "write")), None),
            name if name.starts_with("WRITE") => (Some((random, "write")), Some(("metadata", "create"))),
            name if name.starts_with("READ") => {
                (Some((if self.random { "random_read" } else { "transfer" }, "read")), Some(("metadata", "open")))
            }
            "MKDIRS" => (None, Some(("metadata", "mkdir"))),
            "RMDIRS" => (None, Some(("metadata", "rmdir"))),
            "STAT" => (None, Some(("metadata", "stat"))),
            "STATDIRS" => (None, Some(("metadata", "stat_directory"))),
            "RMFILES" => (None, Some(("metadata", "remove"))),
            "DROPCACHE" => {
                past.written = false;
                return;
            }
            // Objects of a store, sync, and phases of newer versions: these are not results of a
            // file system.
            _ => return,
        };
        if let Some((item, operation)) = data.filter(|_| self.data.bytes_per_s.is_some() || self.data.per_s.is_some()) {
            let mut row = self.row(item, operation, &self.data);
            if operation == "read" && past.written && row.direct != Some(true) {
                doubt(&mut row, Status::NotKnown, facts::caches_kept());
            }
            log.take(line, row);
        }
        if self.mixed_reads.per_s.is_some() || self.mixed_reads.bytes_per_s.is_some() {
            log.take(line, self.row(mixed, "read", &self.mixed_reads));
        }
        if let Some((item, operation)) = entries.filter(|_| self.entries.per_s.is_some()) {
            log.take(line, self.entry_row(item, operation));
        }
        past.written |= self.name.starts_with("WRITE") || self.name.starts_with("RWMIX");
        if before == log.measured.len() + log.broken.len() && self.entries.total.is_none() && self.last_ms.is_none() {
            log.broken(line, &self.name, facts::phase_without_result());
        }
    }

    /// A row with the times of the phase.
    fn timed(&self, item: &'static str, operation: &'static str, counts: &Counts) -> Measured {
        let threads = self.threads.unwrap_or(1).max(1);
        let processes = threads.saturating_mul(self.hosts.unwrap_or(1).max(1));
        let mut row = reported(TOOL, item, operation, processes);
        (row.max_ns, row.p50_ns, row.p99_ns) = (counts.max_ns, counts.p50_ns, counts.p99_ns);
        row.latencies.clone_from(&counts.classes);
        row.operations_per_s = counts.per_s;
        let seconds = self.last_ms.map(|ms| ms / 1e3);
        let reckoned = counts.per_s.zip(seconds).map(|(rate, seconds)| rate * seconds);
        row.operations = numbers::whole(counts.total.or(reckoned).unwrap_or(0.0));
        row.overlap =
            self.first_ms.zip(self.last_ms).filter(|(_, last)| *last > 0.0).map(|(first, last)| (first / last).min(1.0));
        if let (Some(start), Some(first), Some(last)) = (self.start_ns, self.first_ms, self.last_ms) {
            let end = |ms: f64| start.checked_add(numbers::whole(ms * 1e6));
            (row.started_ns, row.first_end_ns, row.ended_ns) = (Some(start), end(first), end(last));
        }
        if self.threads.is_none() || self.hosts.is_none() {
            remark(&mut row, facts::threads_unknown());
        }
        if self.last_ms.is_some_and(|ms| ms < SHORTEST_MS) {
            doubt(&mut row, Status::TooShort, facts::took(self.last_ms.unwrap_or(0.0) * 1e6));
        } else if let Some(overlap) = row.overlap.filter(|overlap| *overlap < LEAST_OVERLAP) {
            doubt(&mut row, Status::NoOverlap, facts::few_threads_together(overlap));
        }
        row
    }

    fn row(&self, item: &'static str, operation: &'static str, counts: &Counts) -> Measured {
        let mut row = self.timed(item, operation, counts);
        row.bytes_per_s = counts.bytes_per_s;
        row.bytes = numbers::whole(counts.bytes.unwrap_or(0.0));
        (row.length_bytes, row.depth, row.direct) = (self.length_bytes, self.depth, self.direct);
        // `IOPS` is missing if a request is a whole file.
        if let (None, Some(rate), Some(length)) =
            (row.operations_per_s, row.bytes_per_s, row.length_bytes.filter(|length| *length > 0))
        {
            row.operations_per_s = Some(rate / length as f64);
            row.operations = row.bytes / length;
        }
        // Times are whole ms, bytes are exact in JSON.
        if let (None, Some(length)) = (counts.total, row.length_bytes.filter(|length| *length > 0 && row.bytes > 0)) {
            row.operations = (row.bytes - 1) / length + 1;
        }
        row
    }

    fn entry_row(&self, item: &'static str, operation: &'static str) -> Measured {
        let mut row = self.timed(item, operation, &self.entries);
        if self.data.bytes_per_s.is_some_and(|rate| rate > 0.0) {
            remark(&mut row, if operation == "create" { facts::with_writing() } else { facts::with_reading() });
        }
        row
    }
}

/// Read a printed table.
fn read_text(section: &str, past: &mut Past, log: &mut Log) {
    let mut current: Option<(u64, Phase)> = None;
    for (line, text) in (log.line..).zip(section.lines()).skip(1) {
        past.see(text);
        let Some((left, right)) = text.split_once(':') else { continue };
        // The name of a phase is in the first column of its first line.
        let label = left.trim_end();
        let is_first = !label.starts_with(' ') && label.contains("Elapsed");
        if is_first && let Some((line, phase)) = current.take() {
            phase.rows(past, line, log);
        }
        if is_first {
            let name = label.split_whitespace().next().unwrap_or_default().to_string();
            let (threads, hosts, direct) = (past.threads, past.hosts, past.direct);
            let phase =
                Phase { name, threads, hosts, direct, length_bytes: past.length_bytes, random: past.random, ..Phase::default() };
            current = Some((line, phase));
        }
        if let Some((_, phase)) = &mut current {
            phase.line(label.trim_start(), right);
        }
    }
    if let Some((line, phase)) = current {
        phase.rows(past, line, log);
    }
}

impl Phase {
    /// Read a line of a phase: its label, and values when the first and the last worker were done.
    fn line(&mut self, label: &str, values: &str) {
        let words: Vec<&str> = values.split_whitespace().collect();
        let last = words.get(1).and_then(|word| numbers::number(word));
        if label.ends_with("Elapsed ms") {
            (self.first_ms, self.last_ms) = (words.first().and_then(|word| numbers::number(word)), last);
        } else if label.ends_with("Elapsed time") {
            (self.first_ms, self.last_ms) = (
                words.first().and_then(|word| numbers::milliseconds(word)),
                words.get(1).and_then(|word| numbers::milliseconds(word)),
            );
        }
        let mib = last.map(|value| value * MIB);
        match label {
            "IOPS" | "IOPS write" => self.data.per_s = last,
            "IOPS read" => self.mixed_reads.per_s = last,
            "Throughput MiB/s" | "MiB/s write" => self.data.bytes_per_s = mib,
            "Throughput MB/s" | "MB/s write" => self.data.bytes_per_s = last.map(|value| value * 1e6),
            "MiB/s read" => self.mixed_reads.bytes_per_s = mib,
            "MB/s read" => self.mixed_reads.bytes_per_s = last.map(|value| value * 1e6),
            "Total MiB" | "MiB write" => self.data.bytes = mib,
            "MiB read" => self.mixed_reads.bytes = mib,
            "IOs total" | "IOs write" => self.data.total = last,
            "Files/s" | "Files/s write" => self.entries.per_s = last,
            "Dirs/s" if self.name.contains("DIRS") => self.entries.per_s = last,
            "Files total" => self.entries.total = last,
            "Dirs total" if self.name.contains("DIRS") => self.entries.total = last,
            "IO latency" | "IO wr latency" => self.data.max_ns = latency(values, "max="),
            "IO rd latency" => self.mixed_reads.max_ns = latency(values, "max="),
            "Files latency" | "Dirs latency" => self.entries.max_ns = latency(values, "max="),
            "IO lat % us" | "IO wr lat % us" => percentiles(&mut self.data, values),
            "IO rd lat % us" => percentiles(&mut self.mixed_reads, values),
            "Files lat % us" | "Dirs lat % us" => percentiles(&mut self.entries, values),
            _ => {}
        }
    }
}

/// Parse a value of `[ min=12us avg=1.2ms max=3s ]`.
fn latency(values: &str, name: &str) -> Option<i64> {
    values.split_whitespace().find_map(|word| numbers::latency_ns(word.strip_prefix(name)?))
}

/// Parse `[ 1%<=8 50%<=19 75%<=32 99%<=64 ]`, in microseconds.
fn percentiles(counts: &mut Counts, values: &str) {
    let of = |name: &str| {
        let us = values.split_whitespace().find_map(|word| numbers::number(word.strip_prefix(name)?))?;
        Some(numbers::whole(us * 1e3))
    };
    (counts.p50_ns, counts.p99_ns) = (of("50%<="), of("99%<="));
}

/// Read a table with commas: the line with the names of its columns, and a line for each phase.
fn read_csv(section: &str, past: &mut Past, log: &mut Log) {
    let first = log.line;
    let mut lines = (first..).zip(section.lines());
    let columns: Vec<&str> = lines.next().map(|(_, line)| line.split(',').collect()).unwrap_or_default();
    for (line, text) in lines {
        let values: Vec<&str> = text.split(',').collect();
        let has_phase = text.contains(',');
        if !has_phase {
            continue;
        }
        if values.len() != columns.len() {
            log.broken(line, text, facts::wrong_number_of_columns(values.len(), columns.len()));
            continue;
        }
        let text = |name: &str| {
            columns
                .iter()
                .position(|column| *column == name)
                .and_then(|place| values.get(place).copied())
                .filter(|text| !text.is_empty())
        };
        phase_of_columns(&text).rows(past, line, log);
    }
}

fn phase_of_columns<'a>(text: &dyn Fn(&str) -> Option<&'a str>) -> Phase {
    let number = |name: &str| text(name).and_then(numbers::number);
    let us = |name: &str| number(name).map(|us| us * 1e3).filter(|ns| numbers::possible(*ns)).map(numbers::whole);
    let count = |name: &str| text(name).and_then(numbers::count);
    let counts = |prefix: &str, kind: &str, rate: &str, total: &str| Counts {
        total: number(&format!("{prefix}{total} [last]")),
        per_s: number(&format!("{prefix}{rate} [last]")),
        max_ns: us(&format!("{prefix}{kind} lat us [max]")),
        ..Counts::default()
    };
    let data = |prefix: &str| Counts {
        bytes: number(&format!("{prefix}MiB [last]")).map(|mib| mib * MIB),
        bytes_per_s: number(&format!("{prefix}MiB/s [last]")).map(|mib| mib * MIB),
        ..counts(prefix, "IO", "IOPS", "IOs")
    };
    Phase {
        name: text("operation").unwrap_or_default().to_string(),
        threads: count("threads"),
        hosts: count("hosts"),
        length_bytes: number("block size").map(numbers::whole),
        direct: count("direct IO").map(|direct| direct != 0),
        random: count("random").is_some_and(|random| random != 0),
        depth: count("IO depth"),
        // When the phase began or, before 3.0.28, ended: the file does not tell which.
        start_ns: None,
        first_ms: number("time ms [first]"),
        last_ms: number("time ms [last]"),
        data: data(""),
        mixed_reads: data("rwmix read "),
        entries: counts("", "Ent", "entries/s", "entries"),
    }
}

/// Read a document: one phase.
fn read_json(document: &Value, past: &mut Past, log: &mut Log) {
    let (config, first, last) = (&document["config"], &document["first_done"], &document["last_done"]);
    let count = |key: &str| json::whole(config, key).and_then(|count| i32::try_from(count).ok());
    let flag = |key: &str| config.get(key).map(|value| value == "true" || value == "1" || value == true || value == 1);
    let data = |done: &Value, latency: &Value| Counts {
        bytes: json::number(done, "bytes"),
        bytes_per_s: json::number(done, "bytes/s"),
        per_s: json::number(done, "iops"),
        ..latencies(latency)
    };
    let latency = &last["latency"];
    let phase = Phase {
        name: json::text(document, "phase_type").unwrap_or_default().into_owned(),
        threads: count("threads"),
        hosts: count("hosts"),
        length_bytes: json::whole(config, "block_size"),
        direct: flag("direct_io"),
        random: flag("random_offsets").unwrap_or(false),
        depth: count("io_depth"),
        start_ns: json::text(document, "iso_start_date").and_then(|text| numbers::iso_ns(&text)),
        first_ms: json::number(first, "elapsed_time_ms"),
        last_ms: json::number(last, "elapsed_time_ms"),
        data: data(last, &latency["IO"]),
        mixed_reads: data(&last["rwmix_read"], latency.pointer("/IO/rwmix_read").unwrap_or(&Value::Null)),
        entries: Counts {
            total: json::number(last, "entries"),
            per_s: json::number(last, "entries/s"),
            ..latencies(&latency["entries"])
        },
    };
    log.written_ns = log.written_ns.or(phase.start_ns);
    phase.rows(past, log.line, log);
}

/// The latencies in a document (`--lat`, `--lathisto`).
fn latencies(latency: &Value) -> Counts {
    let buckets = latency.pointer("/histogram/buckets").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut classes: Vec<LatencyClass> = buckets.iter().filter_map(class).collect();
    classes.sort_by_key(|class| class.low_ns);
    // A class contains values from its lower limit to below its upper one.
    Counts {
        max_ns: json::number(latency, "max_us").map(|us| us * 1e3).filter(|ns| numbers::possible(*ns)).map(numbers::whole),
        p50_ns: quantile(&classes, 0.5),
        p99_ns: quantile(&classes, 0.99),
        classes,
        ..Counts::default()
    }
}

/// Parse `{"range": "45-54us", "count": "28"}`.
fn class(bucket: &Value) -> Option<LatencyClass> {
    let range = json::text(bucket, "range")?;
    let (low, high) = range.strip_suffix("us")?.split_once('-')?;
    let ns = |text: &str| numbers::number(text).map(|us| us * 1e3).filter(|ns| numbers::possible(*ns)).map(numbers::whole);
    let (low_ns, high_ns) = (ns(low)?, ns(high)?.checked_sub(1)?);
    let operations = json::whole(bucket, "count").filter(|count| *count > 0)?;
    (low_ns <= high_ns).then_some(LatencyClass { low_ns, high_ns, operations })
}
