//! Rows of `system_metrics` from lines of /proc and of control groups. The lines are described in
//! proc(5), Documentation/admin-guide/iostats.rst, Documentation/accounting/psi.rst and
//! Documentation/admin-guide/cgroup-v2.rst of the kernel.

use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{SystemMetrics, SystemMetricsColumns},
};

use crate::events::{
    Raw, SYSTEM_DISKS, SYSTEM_GROUP_CPU, SYSTEM_GROUP_EVENTS, SYSTEM_GROUP_IO, SYSTEM_GROUP_MEMORY, SYSTEM_GROUP_PEAK,
    SYSTEM_LOAD, SYSTEM_MEMORY, SYSTEM_NETWORK, SYSTEM_PAGING, SYSTEM_PRESSURE_CPU, SYSTEM_PRESSURE_IO, SYSTEM_PRESSURE_MEMORY,
    SYSTEM_STAT, SystemEvent,
};

/// Unit of times in /proc/stat, 1 / `USER_HZ`, which is the same on all of x86.
const TICK_NS: f64 = 1e9 / 100.0;
/// Size of a sector in /proc/diskstats, independent of the device [B].
const SECTOR: f64 = 512.0;
const MS: f64 = 1e6;
const US: f64 = 1e3;
const KIB: f64 = 1024.0;

/// A file as it was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    source: u32,
    is_missing: bool,
    text: &'a [u8],
}

impl<'a> Reading<'a> {
    /// `None`: the event is broken.
    pub(super) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<SystemEvent>()?;
        let text = rest.get(..fixed.length as usize)?;
        Some(Reading { source: fixed.source.into(), is_missing: fixed.is_missing != 0, text })
    }

    /// The value of `about` for the file, and the object that all of it is about, if there is one.
    fn about(&self) -> Option<(&'static str, Option<&'static str>)> {
        Some(match self.source {
            SYSTEM_STAT => ("cpu", None),
            SYSTEM_LOAD => ("load", None),
            SYSTEM_MEMORY => ("memory", None),
            SYSTEM_PAGING => ("paging", None),
            SYSTEM_DISKS => ("disk", None),
            SYSTEM_NETWORK => ("network", None),
            SYSTEM_PRESSURE_CPU => ("pressure", Some("cpu")),
            SYSTEM_PRESSURE_MEMORY => ("pressure", Some("memory")),
            SYSTEM_PRESSURE_IO => ("pressure", Some("io")),
            SYSTEM_GROUP_CPU => ("cgroup", Some("cpu")),
            SYSTEM_GROUP_MEMORY | SYSTEM_GROUP_PEAK | SYSTEM_GROUP_EVENTS => ("cgroup", Some("memory")),
            SYSTEM_GROUP_IO => ("cgroup", Some("io")),
            _ => return None,
        })
    }

    /// Pass all numbers of the file to `take`.
    fn metrics(&self, take: &mut Take<'_>) -> Result<(), TableError> {
        let text = String::from_utf8_lossy(self.text);
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let Some((first, rest)) = words.split_first() else { continue };
            match self.source {
                SYSTEM_STAT => processors(first, rest, take)?,
                SYSTEM_LOAD => {
                    each(&["1min", "5min", "15min"], &words, &mut |name, value| take(None, name, "count", false, value))?;
                }
                SYSTEM_MEMORY => {
                    let name = first.trim_end_matches(':');
                    each(&[name], rest, &mut |name, value| take(None, name, "B", false, value * KIB))?;
                }
                SYSTEM_PAGING => {
                    let (unit, scale) = if first.starts_with("pgpg") { ("B", KIB) } else { ("count", 1.0) };
                    each(&[first], rest, &mut |name, value| take(None, name, unit, true, value * scale))?;
                }
                SYSTEM_DISKS => disk(&words, take)?,
                SYSTEM_NETWORK => network(line, take)?,
                SYSTEM_PRESSURE_CPU | SYSTEM_PRESSURE_MEMORY | SYSTEM_PRESSURE_IO => {
                    let total: Vec<&str> = rest.iter().filter_map(|word| word.strip_prefix("total=")).collect();
                    each(&[first], &total, &mut |name, value| take(None, name, "ns", true, value * US))?;
                }
                source => group(source, first, rest, take)?,
            }
        }
        Ok(())
    }
}

/// A line of /proc/stat.
fn processors(first: &str, rest: &[&str], take: &mut Take<'_>) -> Result<(), TableError> {
    if first.starts_with("cpu") {
        let object = Some(first).filter(|name| *name != "cpu");
        return each(&CPU, rest, &mut |name, value| take(object, name, "ns", true, value * TICK_NS));
    }
    let is_counter = !first.starts_with("procs_");
    each(&[first], rest, &mut |name, value| take(None, name, "count", is_counter, value))
}

/// A line of a file of the control group.
fn group(source: u32, first: &str, rest: &[&str], take: &mut Take<'_>) -> Result<(), TableError> {
    match source {
        SYSTEM_GROUP_CPU => {
            let (name, unit, scale) = first.strip_suffix("_usec").map_or((first, "count", 1.0), |name| (name, "ns", US));
            each(&[name], rest, &mut |name, value| take(None, name, unit, true, value * scale))
        }
        SYSTEM_GROUP_MEMORY => each(&["current"], &[first], &mut |name, value| take(None, name, "B", false, value)),
        SYSTEM_GROUP_PEAK => each(&["peak"], &[first], &mut |name, value| take(None, name, "B", false, value)),
        SYSTEM_GROUP_EVENTS => each(&[first], rest, &mut |name, value| take(None, name, "count", true, value)),
        SYSTEM_GROUP_IO => rest.iter().filter_map(|word| word.split_once('=')).try_for_each(|(name, value)| {
            let unit = if name.ends_with("bytes") { "B" } else { "count" };
            each(&[name], &[value], &mut |name, value| take(Some(first), name, unit, true, value))
        }),
        _ => Ok(()),
    }
}

/// Receives a number: object, name, unit, whether it counts up, value.
type Take<'a> = dyn FnMut(Option<&str>, &str, &'static str, bool, f64) -> Result<(), TableError> + 'a;

/// `guest` and `guest_nice` follow, which are parts of `user` and `nice`.
const CPU: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// Numbers with their names. Words that are no numbers are left out.
fn each(names: &[&str], words: &[&str], take: &mut impl FnMut(&str, f64) -> Result<(), TableError>) -> Result<(), TableError> {
    for (name, word) in names.iter().zip(words) {
        if let Some(value) = word.parse::<f64>().ok().filter(|value| value.is_finite()) {
            take(name, value)?;
        }
    }
    Ok(())
}

/// Name, unit, whether it counts up, and a factor for the number.
type Column = (&'static str, &'static str, bool, f64);

/// Columns of a disk, after its name; those without a name are left out.
const DISK: [Column; 11] = [
    ("reads", "count", true, 1.0),
    ("", "", true, 1.0),
    ("read_bytes", "B", true, SECTOR),
    ("read_time", "ns", true, MS),
    ("writes", "count", true, 1.0),
    ("", "", true, 1.0),
    ("written_bytes", "B", true, SECTOR),
    ("write_time", "ns", true, MS),
    ("in_flight", "count", false, 1.0),
    ("busy_time", "ns", true, MS),
    ("queue_time", "ns", true, MS),
];

/// Columns of a network interface, after its name.
const NETWORK: [Column; 12] = [
    ("received_bytes", "B", true, 1.0),
    ("received_packets", "count", true, 1.0),
    ("receive_errors", "count", true, 1.0),
    ("receive_drops", "count", true, 1.0),
    ("", "", true, 1.0),
    ("", "", true, 1.0),
    ("", "", true, 1.0),
    ("", "", true, 1.0),
    ("sent_bytes", "B", true, 1.0),
    ("sent_packets", "count", true, 1.0),
    ("send_errors", "count", true, 1.0),
    ("send_drops", "count", true, 1.0),
];

fn disk(words: &[&str], take: &mut Take<'_>) -> Result<(), TableError> {
    let Some(([_, _, name], numbers)) = words.split_first_chunk() else { return Ok(()) };
    columns(&DISK, name, numbers, take)
}

fn network(line: &str, take: &mut Take<'_>) -> Result<(), TableError> {
    // The first two lines are headings.
    let Some((name, numbers)) = line.split_once(':') else { return Ok(()) };
    let numbers: Vec<&str> = numbers.split_ascii_whitespace().collect();
    columns(&NETWORK, name.trim(), &numbers, take)
}

fn columns(columns: &[Column], name: &str, numbers: &[&str], take: &mut Take<'_>) -> Result<(), TableError> {
    for ((metric, unit, is_counter, scale), number) in columns.iter().zip(numbers).filter(|((metric, ..), _)| !metric.is_empty())
    {
        each(&[metric], &[number], &mut |metric, value| take(Some(name), metric, unit, *is_counter, value * scale))?;
    }
    Ok(())
}

/// Rows of `system_metrics` that are not written yet.
#[derive(Default)]
pub(super) struct MetricRows(Batch<SystemMetricsColumns>);

impl MetricRows {
    pub(super) fn push(&mut self, reading: &Reading<'_>, ts_ns: i64, recording: &mut Recording) -> Result<(), TableError> {
        let Some((source, of)) = reading.about() else { return Ok(()) };
        let mut row = |object: Option<&str>, metric: &str, unit: &'static str, is_counter, value| {
            self.0.push(&SystemMetrics {
                ts_ns,
                source: source.into(),
                object: object.or(of).map(Into::into),
                metric: metric.into(),
                unit: unit.into(),
                is_counter,
                value,
            });
            if self.0.len() >= ROWS_PER_GROUP { recording.write_batch(&mut self.0) } else { Ok(()) }
        };
        if reading.is_missing {
            return row(None, "missing", "count", false, None);
        }
        reading.metrics(&mut |object, metric, unit, is_counter, value| row(object, metric, unit, is_counter, Some(value)))
    }

    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}
