//! The published totals: which columns of rows are metrics, and their sums over all jobs.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use sysdock_table::rows::JobSamples;

use crate::tokens::hex;

type Row = JobSamples<'static>;

/// Unit of a metric. Rows contain bytes and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A number of things, without a unit.
    Number,
    Bytes,
    Seconds,
}

/// A column as a metric. Adjacent metrics of the same name are one family, and differ in a label.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) text: &'static str,
    pub(crate) label: Option<(&'static str, &'static str)>,
    pub(crate) column: fn(&Row) -> Option<i64>,
}

/// Metrics of one [`JobSamples::counter_group`].
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// Meaning of [`JobSamples::target`]; `None`: the group has no targets.
    pub(crate) target: Option<&'static str>,
    pub(crate) metrics: &'static [Metric],
}

const fn metric(name: &'static str, unit: Unit, text: &'static str, column: fn(&Row) -> Option<i64>) -> Metric {
    Metric { name, unit, text, label: None, column }
}

const fn labelled(
    name: &'static str,
    text: &'static str,
    label: (&'static str, &'static str),
    column: fn(&Row) -> Option<i64>,
) -> Metric {
    Metric { name, unit: Unit::Number, text, label: Some(label), column }
}

const fn calls(class: &'static str, column: fn(&Row) -> Option<i64>) -> Metric {
    labelled("calls", "Calls on files, by class.", ("class", class), column)
}

static FILES: [Metric; 17] = [
    calls("read", |row| row.reads),
    calls("write", |row| row.writes),
    calls("open", |row| row.opens),
    calls("create", |row| row.creates),
    calls("close", |row| row.closes),
    calls("stat", |row| row.stats),
    calls("readdir", |row| row.readdirs),
    calls("remove", |row| row.removes),
    calls("rename", |row| row.renames),
    calls("make", |row| row.makes),
    calls("attribute", |row| row.attributes),
    calls("sync", |row| row.syncs),
    metric("read", Unit::Bytes, "Bytes read.", |row| row.read_bytes),
    metric("written", Unit::Bytes, "Bytes written.", |row| row.written_bytes),
    metric("errors", Unit::Number, "Calls that failed; of NFS, requests sent again.", |row| row.errors),
    metric("call_time", Unit::Seconds, "Time in calls, of all threads.", |row| row.io_time_ns),
    metric("wait", Unit::Seconds, "Of the time in calls, waits for anything but a CPU.", |row| row.io_wait_ns),
];

static TASKS: [Metric; 7] = [
    metric("cpu", Unit::Seconds, "CPU time of all processes.", |row| row.cpu_ns),
    metric("run_queue", Unit::Seconds, "Time in which threads were ready to run and had no CPU.", |row| row.cpu_wait_ns),
    labelled("page_faults", "Page faults; major ones read from a device.", ("kind", "minor"), |row| row.minor_faults),
    labelled("page_faults", "Page faults; major ones read from a device.", ("kind", "major"), |row| row.major_faults),
    metric("device_read", Unit::Bytes, "Bytes that processes read from devices or servers.", |row| row.disk_read_bytes),
    metric("device_written", Unit::Bytes, "Bytes that processes wrote to devices or servers.", |row| row.disk_written_bytes),
    metric("ended_processes", Unit::Number, "Processes that ended.", |row| row.ended_processes),
];

static DEVICE: [Metric; 7] = [
    metric("read", Unit::Bytes, "Bytes read from the device.", |row| row.read_bytes),
    metric("written", Unit::Bytes, "Bytes written to the device.", |row| row.written_bytes),
    labelled("requests", "Completed requests.", ("operation", "read"), |row| row.reads),
    labelled("requests", "Completed requests.", ("operation", "write"), |row| row.writes),
    labelled("requests", "Completed requests.", ("operation", "flush"), |row| row.syncs),
    metric("request_time", Unit::Seconds, "Time that requests took, added up.", |row| row.io_time_ns),
    metric("busy", Unit::Seconds, "Time in which the device had a request.", |row| row.io_wait_ns),
];

static NETWORK: [Metric; 5] = [
    metric("received", Unit::Bytes, "Bytes received.", |row| row.read_bytes),
    metric("sent", Unit::Bytes, "Bytes sent.", |row| row.written_bytes),
    labelled("packets", "Packets.", ("direction", "received"), |row| row.reads),
    labelled("packets", "Packets.", ("direction", "sent"), |row| row.writes),
    metric("errors", Unit::Number, "Packets in error or dropped.", |row| row.errors),
];

/// All groups that agents count.
pub(crate) static GROUPS: [Group; 7] = [
    Group { name: "files", target: Some("mount_point"), metrics: &FILES },
    Group { name: "tasks", target: None, metrics: &TASKS },
    Group { name: "device", target: Some("device"), metrics: &DEVICE },
    Group { name: "network", target: Some("interface"), metrics: &NETWORK },
    Group { name: "nfs", target: Some("mount_point"), metrics: &FILES },
    Group { name: "lustre", target: Some("target"), metrics: &FILES },
    Group { name: "lustre_server", target: Some("target"), metrics: &FILES },
];

/// Target of the series for everything that has no series of its own, for lack of room.
pub(crate) const OTHER: &str = "(other)";
/// A series that counted nothing for this long may be replaced by a new one [ns].
const QUIET_NS: i64 = 600_000_000_000;
/// Longest value of a label [B].
const LONGEST_LABEL: usize = 128;

/// What a series counts: index of its group in [`GROUPS`], target and file system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    group: usize,
    pub(crate) target: String,
    pub(crate) file_system: String,
}

struct Sum {
    /// In the order of [`Group::metrics`].
    values: Vec<i64>,
    changed_ns: i64,
}

/// Sums since the process began, in a limited number of series.
pub(crate) struct Sums {
    all: BTreeMap<Key, Sum>,
    room: usize,
    /// Number of series of the last rows that found no room.
    dropped: usize,
}

/// Number of series that always exist: one for each metric, of tasks or of [`OTHER`].
pub(crate) fn fixed_series() -> usize {
    GROUPS.iter().map(|group| group.metrics.len()).sum()
}

impl Sums {
    /// `room`: number of series besides [`fixed_series`].
    pub(crate) fn new(room: usize) -> Sums {
        Sums { all: BTreeMap::new(), room, dropped: 0 }
    }

    /// Number of series of the last rows that found no room; [`OTHER`] contains what they count.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped
    }

    /// Number of series.
    pub(crate) fn len(&self) -> usize {
        self.all.keys().map(|key| key.of().metrics.len()).sum()
    }

    /// Add what was done in an interval that ended at `now_ns`.
    pub(crate) fn add(&mut self, rows: &[Row], now_ns: i64) {
        let mut dropped: BTreeMap<Key, usize> = BTreeMap::new();
        for row in rows {
            let found = GROUPS.iter().enumerate().find(|(_, group)| group.name == row.counter_group);
            let Some((place, group)) = found else { continue };
            let text = |value: &Option<std::borrow::Cow<'static, str>>| bounded(value.as_deref().unwrap_or_default());
            let (target, file_system) =
                if group.target.is_some() { (text(&row.target), text(&row.file_system)) } else { Default::default() };
            let mut key = Key { group: place, target, file_system };
            if group.target.is_some() && !self.all.contains_key(&key) && !self.make_room(group.metrics.len(), now_ns) {
                dropped.insert(key, group.metrics.len());
                key = other(place);
            }
            let changes: Vec<i64> = group.metrics.iter().map(|metric| (metric.column)(row).unwrap_or(0)).collect();
            self.grow(key, &changes, now_ns);
        }
        self.dropped = dropped.values().sum();
    }

    fn grow(&mut self, key: Key, changes: &[i64], now_ns: i64) {
        let sum = self.all.entry(key).or_insert_with(|| Sum { values: vec![0; changes.len()], changed_ns: now_ns });
        sum.changed_ns = sum.changed_ns.max(now_ns);
        for (value, change) in sum.values.iter_mut().zip(changes) {
            *value = value.saturating_add(*change);
        }
    }

    /// Whether that many more series have room. If not, the series that was idle longest is merged
    /// into [`OTHER`]: sums over all targets never decrease.
    fn make_room(&mut self, series: usize, now_ns: i64) -> bool {
        let is_own = |key: &Key| key.of().target.is_some() && key.target != OTHER;
        loop {
            let taken: usize = self.all.keys().filter(|key| is_own(key)).map(|key| key.of().metrics.len()).sum();
            if taken + series <= self.room {
                return true;
            }
            let own = self.all.iter().filter(|(key, sum)| is_own(key) && now_ns - sum.changed_ns >= QUIET_NS);
            let Some(quiet) = own.min_by_key(|(_, sum)| sum.changed_ns).map(|(key, _)| key.clone()) else { return false };
            if let Some(sum) = self.all.remove(&quiet) {
                self.grow(other(quiet.group), &sum.values, sum.changed_ns);
            }
        }
    }

    /// Series of a group, by its index in [`GROUPS`]: the key, and the sums in the order of the
    /// group's metrics.
    pub(crate) fn of_group(&self, group: usize) -> impl Iterator<Item = (&Key, &[i64])> {
        self.all.iter().filter(move |(key, _)| key.group == group).map(|(key, sum)| (key, sum.values.as_slice()))
    }
}

impl Key {
    #[expect(clippy::indexing_slicing, reason = "a key is made of an index of this list")]
    fn of(&self) -> &'static Group {
        &GROUPS[self.group]
    }
}

fn other(group: usize) -> Key {
    Key { group, target: OTHER.into(), file_system: String::new() }
}

/// The value of a label: of bounded length and without control characters. Components that
/// distinguish one job, user or container from the next, of which there is no end, become `*`:
/// those with four digits or sixteen hexadecimal ones, as in mount points like /run/user/1000 or
/// .../overlay2/ID/merged.
fn bounded(text: &str) -> String {
    let component = |part: &str| {
        let longest = |is: fn(&u8) -> bool| part.as_bytes().split(|byte| !is(byte)).map(<[u8]>::len).max().unwrap_or(0);
        if longest(u8::is_ascii_digit) >= 4 || longest(u8::is_ascii_hexdigit) >= 16 { "*".into() } else { part.to_string() }
    };
    let clean: Vec<String> = text.split('/').map(component).collect();
    let clean: String = clean.join("/").chars().map(|one| if one.is_control() && one != '\n' { '?' } else { one }).collect();
    if clean.len() <= LONGEST_LABEL {
        return clean;
    }
    let hash: String = hex(&Sha256::digest(clean.as_bytes())).chars().take(8).collect();
    let begin = (0..=LONGEST_LABEL - hash.len() - 3).rev().find_map(|end| clean.get(..end)).unwrap_or_default();
    format!("{begin}...{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Origin, empty_sample};

    const MINUTE_NS: i64 = 60_000_000_000;

    fn row(target: &str, reads: i64) -> Row {
        let mut row = empty_sample(&Origin::default(), 0, 0, "files");
        row.target = Some(target.to_string().into());
        row.file_system = Some("ext4".into());
        row.reads = Some(reads);
        row
    }

    fn reads(sums: &Sums) -> Vec<(&str, i64)> {
        sums.of_group(0).map(|(key, values)| (key.target.as_str(), values[0])).collect()
    }

    #[test]
    fn jobs_on_one_file_system_add_up() {
        let mut sums = Sums::new(100);
        let of = |job: &'static str| JobSamples { job_id: Some(job.into()), ..row("/", 2) };
        sums.add(&[of("1"), of("2"), row("/data", 5)], 1);
        sums.add(&[of("3")], 2);
        assert_eq!(reads(&sums), [("/", 6), ("/data", 5)]);
        assert_eq!((sums.len(), sums.dropped()), (34, 0));
    }

    #[test]
    fn what_finds_no_room_is_counted_together() {
        let mut sums = Sums::new(2 * FILES.len());
        sums.add(&[row("/a", 1), row("/b", 1), row("/c", 2), row("/d", 3), row("/c", 4)], 1);
        assert_eq!(reads(&sums), [("(other)", 9), ("/a", 1), ("/b", 1)]);
        assert_eq!(sums.dropped(), 2 * FILES.len());
        sums.add(&[row("/a", 1)], 2);
        assert_eq!(sums.dropped(), 0);
    }

    #[test]
    fn a_quiet_series_gives_way_and_no_sum_goes_down() {
        let mut sums = Sums::new(2 * FILES.len());
        sums.add(&[row("/a", 1), row("/b", 2)], MINUTE_NS);
        sums.add(&[row("/b", 2), row("/c", 1)], 5 * MINUTE_NS);
        assert_eq!(reads(&sums), [("(other)", 1), ("/a", 1), ("/b", 4)], "none was quiet for ten minutes");
        sums.add(&[row("/c", 1)], 12 * MINUTE_NS);
        assert_eq!(reads(&sums), [("(other)", 2), ("/b", 4), ("/c", 1)]);
    }

    #[test]
    fn labels_are_bounded() {
        assert_eq!(bounded("/run/user/1000"), "/run/user/*");
        assert_eq!(bounded("/scratch/slurm.4242/tmp"), "/scratch/*/tmp");
        assert_eq!(bounded(&format!("/var/lib/docker/overlay2/{}/merged", "0a".repeat(32))), "/var/lib/docker/overlay2/*/merged");
        assert_eq!([bounded("/data12"), bounded("nvme0n1"), bounded("/a\tb\"\n")], ["/data12", "nvme0n1", "/a?b\"\n"]);
        let long = format!("/{}", "ü".repeat(3000));
        assert!(bounded(&long).len() <= LONGEST_LABEL);
        assert_ne!(bounded(&long), bounded(&format!("{long}x")), "two long names stay two");
    }

    #[test]
    fn all_groups_of_rows_are_known() {
        let definition = include_str!("../../../knowhow/tables/job_samples.toml");
        let text = definition.split("name = \"counter_group\"").nth(1).and_then(|rest| rest.split("text = ").nth(1));
        let text = text.and_then(|rest| rest.lines().next()).expect("the column has a text");
        let named = text
            .trim_matches(['"', '.'])
            .split("; ")
            .filter_map(|part| part.split_once(": "))
            .flat_map(|(names, _)| names.split(", "));
        let known: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        assert_eq!(named.collect::<Vec<_>>(), known);
    }
}
