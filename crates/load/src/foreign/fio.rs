//! fio, `--output-format=json` and `json+`, of its versions 2 and 3.
//!
//! Differences between versions were read in the history of its `stat.c`: `io_bytes` counts KiB
//! before 2.21, which has no `io_kbytes` next to it; latencies are microseconds (`clat`) before
//! 2.99, nanoseconds (`clat_ns`) since; `bw_bytes` exists since 3.2, `job_start` since 3.36.
//!
//! Without `group_reporting` each process has an entry of its own: those of one job section are
//! combined here. With it one entry represents all, its `runtime` is that of the longest process,
//! and its `job_runtime` the sum of all: so the log shows if most were much shorter.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;
use sysdock_table::facts::load_logs as facts;

use crate::{LatencyClass, Measured, Status};

use super::{LEAST_OVERLAP, Log, Reader, SHORTEST_MS, Tool, doubt, json, numbers, quantile, remark, reported};

/// A rate from this share of the limit of the job on is that of the limit.
const NEAR_LIMIT: f64 = 0.9;
const TOOL: Tool = Tool {
    name: "fio",
    shown: "fio",
    hint: "fio --output-format=json --output=FILE writes what is read here; a run that was killed has no result",
};

pub(super) struct Fio;

impl Reader for Fio {
    fn tool(&self) -> Tool {
        TOOL
    }

    fn begins_document(&self, head: &str) -> bool {
        head.contains("\"fio version\"")
    }

    fn read_document(&mut self, document: &Value, log: &mut Log) {
        read(document, log);
    }
}

/// Keys in the JSON of the parts of an entry that are measured.
const SECTIONS: [&str; 4] = ["read", "write", "trim", "mixed"];

/// Entries of one job section.
struct Job<'a> {
    entries: Vec<&'a Value>,
    processes: i32,
    /// Whether each entry is one process.
    separate: bool,
    hosts: Vec<&'a str>,
    global: Option<&'a Value>,
    /// Statistics of the only device, if no other job used it meanwhile.
    device: Option<&'a Value>,
}

/// Read one document.
fn read(document: &Value, log: &mut Log) {
    let written = json::number(document, "timestamp_ms").or_else(|| Some(json::number(document, "timestamp")? * 1e3));
    log.written_ns = log.written_ns.or(written.map(|ms| numbers::whole(ms * 1e6)));
    let entries = ["jobs", "client_stats"].iter().find_map(|key| document.get(*key)?.as_array());
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else {
        return log.broken(log.line, "fio version", facts::no_jobs());
    };
    let jobs = jobs(entries, document);
    for job in &jobs {
        let before = log.measured.len() + log.broken.len();
        for section in SECTIONS {
            job.rows(section, log);
        }
        if before == log.measured.len() + log.broken.len() {
            job.nothing(log);
        }
    }
}

/// Combine the entries of each job section.
fn jobs<'a>(entries: &'a [Value], document: &'a Value) -> Vec<Job<'a>> {
    let mut order: Vec<Vec<&Value>> = Vec::new();
    let mut places: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    // The entries of hosts already contain the sums over all hosts.
    for entry in entries.iter().filter(|entry| entry["jobname"] != "All clients") {
        let options = entry.get("job options").map(ToString::to_string).unwrap_or_default();
        let key = (entry["jobname"].to_string(), entry["groupid"].to_string(), options);
        let place = *places.entry(key).or_insert(order.len());
        match order.get_mut(place) {
            Some(of_job) => of_job.push(entry),
            None => order.push(vec![entry]),
        }
    }
    let alone = order.len() == 1;
    let device = document.get("disk_util").and_then(Value::as_array).filter(|devices| alone && devices.len() == 1);
    let job = |entries: Vec<&'a Value>| {
        let mut by_host: BTreeMap<&str, usize> = BTreeMap::new();
        for entry in &entries {
            *by_host.entry(entry["hostname"].as_str().unwrap_or_default()).or_default() += 1;
        }
        let mut job = Job {
            hosts: by_host.keys().copied().filter(|host| !host.is_empty()).collect(),
            processes: 1,
            separate: true,
            global: document.get("global options"),
            device: device.and_then(|devices| devices.first()),
            entries,
        };
        let numjobs = job.option("numjobs").and_then(|text| numbers::count(&text)).unwrap_or(1).max(1);
        job.separate = numjobs == 1 || by_host.values().any(|count| *count > 1);
        let each = |count: &usize| if *count == 1 { numjobs } else { i32::try_from(*count).unwrap_or(i32::MAX) };
        job.processes = by_host.values().map(each).fold(0, i32::saturating_add);
        job
    };
    order.into_iter().map(job).collect()
}

impl Job<'_> {
    /// A member of its first entry.
    fn first(&self, key: &str) -> Option<&Value> {
        self.entries.first()?.get(key)
    }

    /// An option as it was given, for the job or for all.
    fn option(&self, name: &str) -> Option<Cow<'_, str>> {
        let own = self.first("job options").and_then(|options| json::text(options, name));
        own.or_else(|| json::text(self.global?, name))
    }

    /// Whether an option is set. fio lists some without a value.
    fn is_set(&self, name: &str) -> bool {
        self.option(name).is_some_and(|value| value != "0")
    }

    /// Sum of a number over the entries; `None` if one lacks it.
    fn sum(&self, section: &str, key: &str) -> Option<f64> {
        self.entries.iter().map(|entry| json::number(entry.get(section)?, key)).sum()
    }

    /// Write the rows of reads, writes or trims, and of the syncs after writes.
    fn rows(&self, section: &'static str, log: &mut Log) {
        if self.entries.iter().all(|entry| entry.get(section).is_none()) {
            return;
        }
        let name = self.first("jobname").and_then(Value::as_str).unwrap_or_default().to_string();
        let (Some(bytes), Some(operations)) = (self.bytes(section), self.sum(section, "total_ios")) else {
            return log.broken(log.line, &name, facts::invalid_numbers(section));
        };
        if operations == 0.0 {
            return;
        }
        let (item, operation) = self.names(section);
        let mut row = reported(TOOL, item, operation, self.processes);
        row.bytes = if moves_data(item) { numbers::whole(bytes) } else { 0 };
        row.operations = numbers::whole(operations);
        self.describe(section, &mut row);
        // A failure has precedence over all other doubts.
        self.errors(&mut row);
        self.times(section, &mut row);
        self.latencies(section, &mut row);
        self.judge_rate(section, &mut row);
        if operation == "read" {
            self.judge_reads(&mut row);
        }
        let line = log.line;
        let syncs = (section == "write").then(|| self.syncs(&row)).flatten();
        log.take(line, row);
        if let Some(row) = syncs {
            log.take(line, row);
        }
    }

    /// Number of bytes: `io_bytes` was KiB before `io_kbytes` was added.
    fn bytes(&self, section: &str) -> Option<f64> {
        let old = self.entries.iter().all(|entry| entry.get(section).is_none_or(|section| section.get("io_kbytes").is_none()));
        self.sum(section, "io_bytes")
            .map(|bytes| if old { bytes * 1024.0 } else { bytes })
            .filter(|bytes| numbers::possible(*bytes))
    }

    /// Item and operation, by our own names where they mean the same.
    fn names(&self, section: &'static str) -> (&'static str, &'static str) {
        if !self.has_options() {
            return ("unknown", if section == "mixed" { "mixed" } else { section });
        }
        let pattern = self.option("rw").or_else(|| self.option("readwrite")).unwrap_or_default();
        let (random, mixed) = (pattern.contains("rand"), pattern.contains("rw"));
        match self.option("ioengine").as_deref().unwrap_or_default() {
            "filecreate" => return ("metadata", "create"),
            "filestat" => return ("metadata", "stat"),
            "filedelete" => return ("metadata", "remove"),
            "dircreate" => return ("metadata", "mkdir"),
            "dirstat" => return ("metadata", "stat_directory"),
            "dirdelete" => return ("metadata", "rmdir"),
            "mmap" if section != "trim" => return ("mmap", if section == "read" { "read" } else { "write" }),
            _ => {}
        }
        match section {
            "read" if random && mixed => ("random_mix", "read"),
            "write" if random && mixed => ("random_mix", "write"),
            "mixed" => (if random { "random_mix" } else { "transfer" }, "mixed"),
            "read" if random => ("random_read", "read"),
            "write" if random => ("random_write", "write"),
            "read" => ("transfer", "read"),
            "write" if self.each_is_synced() => ("log", "append"),
            "write" => ("transfer", "write"),
            _ => ("trim", "trim"),
        }
    }

    /// Whether the log says how the job was set up, which those of fio 2 do not.
    fn has_options(&self) -> bool {
        self.global.is_some() || self.first("job options").is_some()
    }

    /// Whether the engine has one request at a time, whatever `iodepth` says. The default of fio on
    /// Linux is such a one.
    fn is_synchronous(&self) -> bool {
        const SYNCHRONOUS: [&str; 7] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"];
        SYNCHRONOUS.contains(&self.option("ioengine").as_deref().unwrap_or("psync"))
    }

    /// Doubt a rate that the job itself held down.
    fn judge_rate(&self, section: &str, row: &mut Measured) {
        if self.is_set("thinktime") {
            doubt(row, Status::NotKnown, facts::had_pauses());
        }
        let limit = |name: &str| {
            let given = self.option(name)?;
            numbers::bytes(of_section(&given, section)?).filter(|limit| *limit > 0)
        };
        let processes = f64::from(row.processes.max(1));
        let reaches = |rate: Option<f64>, limit: i64| rate.is_some_and(|rate| rate >= NEAR_LIMIT * limit as f64 * processes);
        if let Some(limit) = limit("rate_iops").filter(|limit| reaches(row.operations_per_s, *limit)) {
            doubt(row, Status::NotKnown, facts::held_to_operations(limit));
        }
        if let Some(limit) = limit("rate").filter(|limit| reaches(row.bytes_per_s, *limit)) {
            doubt(row, Status::NotKnown, facts::held_to_bytes(limit));
        }
    }

    /// Whether each write is synced before the next one.
    fn each_is_synced(&self) -> bool {
        matches!(self.sync(), Some("fsync" | "fdatasync" | "dsync"))
    }

    /// How writes reach the device; `None`: in a way that has no name here.
    fn sync(&self) -> Option<&'static str> {
        let every = |name: &str| self.option(name).filter(|value| value != "0").map(|value| value == "1");
        match (every("fdatasync"), every("fsync")) {
            (Some(true), _) => return Some("fdatasync"),
            (_, Some(true)) => return Some("fsync"),
            (Some(false), _) | (_, Some(false)) => return None,
            _ => {}
        }
        if self.option("sync").is_some_and(|value| value != "0" && value != "none") {
            return Some("dsync");
        }
        Some(if self.is_set("end_fsync") || self.is_set("fsync_on_close") { "end" } else { "none" })
    }

    /// Fill in the setting.
    fn describe(&self, section: &str, row: &mut Measured) {
        row.hosts = (!self.hosts.is_empty()).then(|| self.hosts.join(","));
        if !moves_data(&row.item) {
            row.layout = Some("own");
            return;
        }
        row.length_bytes = self.length(section, row);
        if !self.has_options() {
            return remark(row, facts::no_job_options());
        }
        row.layout = Some(if self.option("filename").is_some() && self.processes > 1 { "shared" } else { "own" });
        row.sync = if section == "write" { self.sync() } else { None };
        let depth = self.option("iodepth").and_then(|text| numbers::count(&text)).unwrap_or(1);
        row.depth = Some(if self.is_synchronous() { 1 } else { depth });
        if self.is_synchronous() && depth > 1 {
            remark(row, facts::depth_of_one(depth));
        }
        row.direct = Some(self.is_set("direct") || self.option("buffered").is_some_and(|value| value == "0"));
    }

    /// Size of a request [B]: `bs` has up to three, for reads, writes and trims. `None` if sizes
    /// vary.
    fn length(&self, section: &str, row: &Measured) -> Option<i64> {
        if ["bsrange", "bssplit", "blocksize_range"].iter().any(|name| self.option(name).is_some()) {
            return None;
        }
        let given = self.option("bs").or_else(|| self.option("blocksize"));
        let Some(given) = given else {
            return (row.bytes % row.operations == 0).then(|| row.bytes / row.operations);
        };
        numbers::bytes(of_section(&given, section)?)
    }

    /// Fill in times and rates, and determine whether the processes ran together.
    fn times(&self, section: &str, row: &mut Measured) {
        let runtimes: Vec<f64> = self.entries.iter().filter_map(|entry| json::number(entry.get(section)?, "runtime")).collect();
        let longest = runtimes.iter().copied().fold(0.0, f64::max);
        let window = self.window(section, row).unwrap_or(longest);
        if window > 0.0 {
            row.bytes_per_s = (row.bytes > 0).then(|| row.bytes as f64 * 1e3 / window);
            row.operations_per_s = Some(row.operations as f64 * 1e3 / window);
        }
        if window < SHORTEST_MS {
            doubt(row, Status::TooShort, facts::took_in_whole_ms(window * 1e6));
        }
        if self.processes < 2 {
            return row.overlap = Some(1.0);
        }
        match row.overlap {
            Some(overlap) if overlap < LEAST_OVERLAP => {
                doubt(row, Status::NoOverlap, facts::few_processes_together(overlap));
            }
            Some(_) => {}
            None => self.judge_overlap(&runtimes, longest, row),
        }
    }

    /// Time from the first start to the last end [ms], if fio reports when each process began.
    fn window(&self, section: &str, row: &mut Measured) -> Option<f64> {
        // With one entry for all, the start is that of the first process.
        if !self.separate {
            return None;
        }
        let span = |entry: &&Value| {
            let start = json::number(entry, "job_start").filter(|start| *start > 0.0)?;
            Some((start, start + json::number(entry.get(section)?, "runtime")?))
        };
        let spans: Vec<(f64, f64)> = self.entries.iter().map(span).collect::<Option<_>>()?;
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let (first, last) = (least(&mut spans.iter().map(|span| span.0)), most(&mut spans.iter().map(|span| span.0)));
        let (first_end, end) = (least(&mut spans.iter().map(|span| span.1)), most(&mut spans.iter().map(|span| span.1)));
        let window = end - first;
        row.overlap = (window > 0.0).then(|| ((first_end - last) / window).clamp(0.0, 1.0));
        // With another clock than that of the day (job_start_clock_id), only differences have a
        // meaning.
        if first > 1e12 && end < 8e12 {
            let ns = |ms: f64| Some(numbers::whole(ms * 1e6));
            (row.started_ns, row.first_end_ns, row.ended_ns) = (ns(first), ns(first_end), ns(end));
        }
        (window > 0.0).then_some(window)
    }

    /// If only durations are known: processes that were much shorter than the longest cannot all
    /// have run during all of its time.
    fn judge_overlap(&self, runtimes: &[f64], longest: f64, row: &mut Measured) {
        let together: f64 = match self.separate {
            true => runtimes.iter().sum(),
            false => self.entries.iter().filter_map(|entry| json::number(entry, "job_runtime")).sum(),
        };
        let share = together / (longest * f64::from(self.processes));
        if together > 0.0 && longest > 0.0 && share < LEAST_OVERLAP {
            let mean = together / f64::from(self.processes);
            return doubt(row, Status::NoOverlap, facts::not_all_together(mean * 1e6, longest * 1e6));
        }
        if !self.separate && share > 1.5 {
            remark(row, facts::more_jobs_in_group());
        }
        // These jobs prepare nothing before they start to measure, so any other time is that of
        // processes that started late.
        let elapsed = self.entries.first().and_then(|entry| json::number(entry, "elapsed")).unwrap_or(0.0) * 1e3;
        let is_of_first_group = self.first("groupid").is_some_and(|group| *group == 0);
        if row.operation == "create" && is_of_first_group && longest < elapsed / 10.0 && elapsed > 2000.0 {
            doubt(row, Status::NoOverlap, facts::longest_too_short(elapsed * 1e6, longest * 1e6));
        }
    }

    fn latencies(&self, section: &str, row: &mut Measured) {
        let sections = self.entries.iter().filter_map(|entry| entry.get(section));
        merge(
            &sections.filter_map(|section| Latency::of(section, &["clat_ns", "lat_ns"], &["clat", "lat"])).collect::<Vec<_>>(),
            row,
        );
    }

    /// The syncs after the writes, which fio counts since 3.4.
    fn syncs(&self, writes: &Measured) -> Option<Measured> {
        let operations = self.sum("sync", "total_ios").filter(|operations| *operations > 0.0)?;
        let operation = if writes.sync == Some("fdatasync") { "fdatasync" } else { "fsync" };
        let mut row = Measured { operation: operation.into(), bytes: 0, ..writes.clone() };
        row.operations = numbers::whole(operations);
        row.operations_per_s = writes.operations_per_s.map(|rate| rate / writes.operations as f64 * operations);
        (row.length_bytes, row.bytes_per_s, row.latencies) = (None, None, Vec::new());
        (row.p50_ns, row.p99_ns, row.max_ns) = (None, None, None);
        let sections = self.entries.iter().filter_map(|entry| entry.get("sync"));
        merge(&sections.filter_map(|section| Latency::of(section, &["lat_ns"], &[])).collect::<Vec<_>>(), &mut row);
        remark(&mut row, facts::within_writes());
        Some(row)
    }

    fn errors(&self, row: &mut Measured) {
        let sum = |key: &str| self.entries.iter().filter_map(|entry| json::number(entry, key)).sum::<f64>();
        row.errors = numbers::whole(sum("total_err"));
        let Some(error) = self.error() else { return };
        row.errors = row.errors.max(1);
        // A full device is no failure of the device.
        let status = if error == libc::ENOSPC { Status::Full } else { Status::Failed };
        let text = std::io::Error::from_raw_os_error(error).to_string();
        doubt(row, status, facts::job_ended_with(text));
    }

    fn error(&self) -> Option<i32> {
        let error = |entry: &&Value| json::whole(entry, "error").and_then(|error| i32::try_from(error).ok());
        self.entries.iter().filter_map(error).find(|error| *error != 0)
    }

    /// A job that did nothing: a row if it failed.
    fn nothing(&self, log: &mut Log) {
        let section = if self.option("rw").is_some_and(|pattern| pattern.contains("write")) { "write" } else { "read" };
        let (item, operation) = self.names(section);
        let mut row = reported(TOOL, item, operation, self.processes);
        match self.error() {
            Some(_) => self.errors(&mut row),
            None => doubt(&mut row, Status::Failed, facts::job_did_nothing()),
        }
        log.take(log.line, row);
    }

    /// Determine whether reads came from the device. fio drops a file from the page cache before
    /// its first read, unless `invalidate=0`, and not again.
    fn judge_reads(&self, row: &mut Measured) {
        let device = self.device.and_then(|device| json::number(device, "read_sectors")).map(|sectors| sectors * 512.0);
        row.device_read_bytes = device.map(numbers::whole);
        if row.direct != Some(false) {
            return;
        }
        let size = self.option("size").and_then(|text| numbers::bytes(&text));
        let each = row.bytes / i64::from(row.processes.max(1));
        let again = size.is_some_and(|size| size > 0 && each as f64 > 1.02 * size as f64);
        match device {
            Some(device) if device < 0.9 * row.bytes as f64 => {
                doubt(row, Status::FromMemory, facts::device_read(device));
            }
            Some(_) => {}
            None if self.is_set("pre_read") => doubt(row, Status::FromMemory, facts::read_before()),
            None if self.option("invalidate").is_some_and(|value| value == "0") => {
                doubt(row, Status::NotKnown, facts::not_invalidated());
            }
            None if again => doubt(row, Status::NotKnown, facts::read_again()),
            None => {}
        }
    }
}

/// The value for reads, writes or trims of an option that has up to three: without one of its own,
/// the last one given; an empty one stands for the first.
fn of_section<'a>(given: &'a str, section: &str) -> Option<&'a str> {
    let place = match section {
        "write" => 1,
        "trim" => 2,
        _ => 0,
    };
    let own = given.split(',').take(place + 1).last().filter(|part| !part.is_empty());
    own.or(given.split(',').next())
}

fn moves_data(item: &str) -> bool {
    item != "metadata"
}

/// Latencies as fio reports them [ns].
struct Latency<'a> {
    p50_ns: Option<i64>,
    p99_ns: Option<i64>,
    max_ns: Option<i64>,
    bins: Option<&'a serde_json::Map<String, Value>>,
}

impl<'a> Latency<'a> {
    /// The first that has values, of those in nanoseconds and those in microseconds.
    fn of(section: &'a Value, in_ns: &[&str], in_us: &[&str]) -> Option<Self> {
        let known = |key: &&str| section.get(*key).filter(|latency| json::number(latency, "max").is_some_and(|max| max > 0.0));
        let found = in_ns.iter().find_map(|key| Some((known(key)?, 1.0)));
        let (latency, factor) = found.or_else(|| in_us.iter().find_map(|key| Some((known(key)?, 1e3))))?;
        let ns = |value: Option<f64>| value.map(|value| value * factor).filter(|ns| numbers::possible(*ns)).map(numbers::whole);
        let percentile = |names: [&str; 2]| {
            let all = latency.get("percentile")?;
            names.iter().find_map(|name| json::number(all, name)).filter(|value| *value > 0.0)
        };
        Some(Latency {
            p50_ns: ns(percentile(["50.000000", "50.00"])),
            p99_ns: ns(percentile(["99.000000", "99.00"])),
            max_ns: ns(json::number(latency, "max")),
            bins: latency.get("bins").and_then(Value::as_object).filter(|_| factor == 1.0),
        })
    }
}

/// Combine the latencies of all processes. Percentiles of several processes can be computed only
/// from their classes.
fn merge(all: &[Latency<'_>], row: &mut Measured) {
    row.max_ns = all.iter().filter_map(|latency| latency.max_ns).max();
    if let Some(bins) = all.iter().map(|latency| latency.bins).collect::<Option<Vec<_>>>().filter(|bins| !bins.is_empty()) {
        let mut classes: BTreeMap<i64, i64> = BTreeMap::new();
        for (middle, count) in bins.into_iter().flatten() {
            let (Ok(middle), Some(count)) = (middle.parse::<i64>(), count.as_i64()) else { continue };
            if (0..1 << 60).contains(&middle) && (1..1 << 60).contains(&count) {
                let sum = classes.entry(middle).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        row.latencies = classes.into_iter().map(|(middle, count)| class(middle, count)).collect();
    }
    if let [only] = all {
        (row.p50_ns, row.p99_ns) = (only.p50_ns, only.p99_ns);
    } else {
        (row.p50_ns, row.p99_ns) = (quantile(&row.latencies, 0.5), quantile(&row.latencies, 0.99));
    }
}

/// The class that fio names by its middle: 64 for each power of two, and one for each number below
/// 128.
fn class(middle: i64, operations: i64) -> LatencyClass {
    let width = if middle < 128 { 1 } else { 1_i64 << (middle.ilog2() - 6) };
    let low_ns = middle - middle % width;
    LatencyClass { low_ns, high_ns: low_ns + width - 1, operations }
}
