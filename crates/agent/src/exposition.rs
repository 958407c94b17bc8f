//! The text of `/metrics`: OpenMetrics 1.0
//! (https://prometheus.io/docs/specs/om/open_metrics_spec/). It is made once per interval, so a
//! request costs nothing. It names no job, user, command or file.

use std::{collections::BTreeMap, fmt::Write};

use sysdock_table::rows::AgentBatches;

use crate::{
    asking::DestinationStatus,
    batch::Batch,
    sums::{GROUPS, Group, Key, Sums, Unit, fixed_series},
};

/// Upper bound for the number of series about the agent itself.
const OWN: usize = 40 + 4 * MOST_REASONS;
/// Reasons that are shown, of answers and of batches each.
const MOST_REASONS: usize = 10;
/// The smallest limit for the number of series.
pub const FEWEST_SERIES: usize = 200;

/// Facts about the agent that are published in addition to the sums.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    /// When the process began [ns, Unix time].
    pub(crate) started_ns: i64,
    /// Number of intervals that could not be read or kept.
    pub(crate) missed: u64,
    /// Number of connections to the endpoint that were closed at once.
    pub(crate) turned_away: u64,
    /// State of each destination.
    pub(crate) destinations: Vec<DestinationStatus>,
}

/// The published sums, and what the last batch said about the agent.
pub(crate) struct Exposition {
    sums: Sums,
    limit: usize,
    last: Option<AgentBatches<'static>>,
    /// CPU time of the agent [ns].
    cpu_ns: i64,
}

impl Exposition {
    /// `limit`: largest number of series; values below [`FEWEST_SERIES`] are raised to it.
    pub(crate) fn new(limit: usize) -> Exposition {
        let limit = limit.max(FEWEST_SERIES);
        Exposition { sums: Sums::new(limit - fixed_series() - OWN), limit, last: None, cpu_ns: 0 }
    }

    /// Add the rows of a batch.
    pub(crate) fn add(&mut self, batch: &Batch) {
        self.sums.add(&batch.job_samples, batch.ts_ns);
        if let Some(about) = batch.agent_batches.last() {
            self.cpu_ns += about.cpu_ns;
            self.last = Some(about.clone());
        }
    }

    /// Number of series of the last batch that found no room.
    pub(crate) fn dropped(&self) -> usize {
        self.sums.dropped()
    }

    /// The whole text, with its end mark.
    pub(crate) fn text(&self, health: &Health) -> String {
        let mut out = Out { text: String::new(), node: self.last.as_ref().map(|last| last.node.to_string()).unwrap_or_default() };
        for (place, group) in GROUPS.iter().enumerate() {
            self.write_group(&mut out, place, group);
        }
        self.write_own(&mut out, health);
        out.text.push_str("# EOF\n");
        out.text
    }

    fn write_group(&self, out: &mut Out, place: usize, group: &Group) {
        if self.sums.of_group(place).next().is_none() {
            return;
        }
        let mut family = "";
        for (at, metric) in group.metrics.iter().enumerate() {
            let name = full_name(group.name, metric.name, metric.unit);
            if family != metric.name {
                out.head(&name, "counter", metric.unit, metric.text);
                family = metric.name;
            }
            for (key, values) in self.sums.of_group(place) {
                let mut labels = labels_of(group, key);
                labels.extend(metric.label);
                out.sample(&format!("{name}_total"), &labels, &number(values.get(at).copied().unwrap_or(0), metric.unit));
            }
        }
    }

    fn write_own(&self, out: &mut Out, health: &Health) {
        let Some(last) = &self.last else { return };
        out.head("sysdock_agent", "info", Unit::Number, "Version and cluster of the agent.");
        out.sample("sysdock_agent_info", &[("cluster", &last.cluster), ("version", &last.version)], "1");
        for (name, value, text) in [
            ("start_time", health.started_ns, "When the agent began, Unix time: counters begin at 0 then."),
            ("last_interval", last.ts_ns, "When the last interval ended, Unix time."),
        ] {
            out.one(name, "gauge", Unit::Seconds, text, value);
        }
        out.one("cpu", "counter", Unit::Seconds, "CPU time of the agent.", self.cpu_ns);
        out.one("memory", "gauge", Unit::Bytes, "Resident memory of the agent.", last.memory_bytes);
        let text = "Things that found no room in the kernel's tables since the programs were loaded.";
        out.one("lost", "counter", Unit::Number, text, last.lost);
        let text = "Intervals that could not be read or kept; the next one has what they would have had.";
        out.one("missed_intervals", "counter", Unit::Number, text, health.missed as i64);
        let text = "Connections to this endpoint that were closed at once, as there were too many.";
        out.one("refused_connections", "counter", Unit::Number, text, health.turned_away as i64);
        out.one(
            "series",
            "gauge",
            Unit::Number,
            "Series of what was counted, without those of the agent.",
            self.sums.len() as i64,
        );
        out.one("series_limit", "gauge", Unit::Number, "Series that this endpoint may have.", self.limit as i64);
        let text = "Series of the last interval that found no room; what they count is in those of (other).";
        out.one("dropped_series", "gauge", Unit::Number, text, self.sums.dropped() as i64);
        write_destinations(out, &health.destinations);
    }
}

fn write_destinations(out: &mut Out, destinations: &[DestinationStatus]) {
    type Value = fn(&DestinationStatus) -> i64;
    let families: [(&str, &str, Unit, &str, Value); 6] = [
        ("last_sent", "gauge", Unit::Seconds, "When batches were last taken there, Unix time; 0: never.", |one| one.sent_ns),
        ("failed_sends", "counter", Unit::Number, "Attempts to send that failed.", |one| one.failed_attempts as i64),
        ("refused", "counter", Unit::Number, "Batches, or data points of OTLP, that were refused.", |one| {
            (one.set_aside.batches + one.refused_points) as i64
        }),
        ("dropped_batches", "counter", Unit::Number, "Batches removed unsent for want of room.", |one| {
            one.dropped_batches as i64
        }),
        ("waiting_batches", "gauge", Unit::Number, "Batches in the spool.", |one| one.waiting_batches as i64),
        ("spool", "gauge", Unit::Bytes, "Bytes in the spool.", |one| one.waiting_bytes as i64),
    ];
    for (name, kind, unit, text, value) in families {
        let name = full_name("agent", name, unit);
        out.head(&name, kind, unit, text);
        let sample = sample_name(&name, kind);
        for one in destinations {
            out.sample(&sample, &[("destination", &one.name)], &number(value(one), unit));
        }
    }
    write_reasons(out, destinations);
}

/// Why answers did not count, and batches were set aside. There are few reasons.
fn write_reasons(out: &mut Out, destinations: &[DestinationStatus]) {
    type Reasons = fn(&DestinationStatus) -> &BTreeMap<String, u64>;
    let families: [(&str, &str, Reasons); 2] = [
        ("uncounted_answers", "Answers that were not those of the destination: nothing was removed.", |one| {
            &one.uncounted_answers
        }),
        ("set_aside_batches", "Batches that are not taken there, and are kept in the spool.", |one| &one.set_aside.reasons),
    ];
    for (name, text, reasons) in families {
        if destinations.iter().all(|one| reasons(one).is_empty()) {
            continue;
        }
        let name = full_name("agent", name, Unit::Number);
        out.head(&name, "counter", Unit::Number, text);
        for one in destinations {
            for (reason, times) in reasons(one).iter().take(MOST_REASONS) {
                let labels = [("destination", one.name.as_str()), ("reason", reason)];
                out.sample(&sample_name(&name, "counter"), &labels, &times.to_string());
            }
        }
    }
}

fn labels_of<'a>(group: &Group, key: &'a Key) -> Vec<(&'static str, &'a str)> {
    let Some(target) = group.target else { return Vec::new() };
    let mut labels = vec![(target, key.target.as_str())];
    if target == "mount_point" {
        labels.push(("file_system", key.file_system.as_str()));
    }
    labels
}

/// Name of a metric as OpenMetrics expects it: with its unit at the end.
fn full_name(group: &str, name: &str, unit: Unit) -> String {
    match unit_name(unit) {
        Some(unit) => format!("sysdock_{group}_{name}_{unit}"),
        None => format!("sysdock_{group}_{name}"),
    }
}

fn unit_name(unit: Unit) -> Option<&'static str> {
    match unit {
        Unit::Number => None,
        Unit::Bytes => Some("bytes"),
        Unit::Seconds => Some("seconds"),
    }
}

fn sample_name(family: &str, kind: &str) -> String {
    if kind == "counter" { format!("{family}_total") } else { family.into() }
}

/// A value as text. Nanoseconds are written as seconds, exactly.
fn number(value: i64, unit: Unit) -> String {
    let value = value.max(0);
    if unit == Unit::Seconds { format!("{}.{:09}", value / 1_000_000_000, value % 1_000_000_000) } else { value.to_string() }
}

/// The text as it grows, and the label of its node.
struct Out {
    text: String,
    node: String,
}

impl Out {
    #[expect(clippy::expect_used, reason = "a text in memory takes all that is written to it")]
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        self.text.write_fmt(text).expect("text grows");
    }

    fn head(&mut self, family: &str, kind: &str, unit: Unit, text: &str) {
        self.line(format_args!("# TYPE {family} {kind}\n"));
        if let Some(unit) = unit_name(unit) {
            self.line(format_args!("# UNIT {family} {unit}\n"));
        }
        self.line(format_args!("# HELP {family} {text}\n"));
    }

    /// Write a family about the agent that has one series.
    fn one(&mut self, name: &str, kind: &str, unit: Unit, text: &str, value: i64) {
        let name = full_name("agent", name, unit);
        self.head(&name, kind, unit, text);
        self.sample(&sample_name(&name, kind), &[], &number(value, unit));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: &str) {
        let node = escaped(&self.node);
        self.line(format_args!("{name}{{node=\"{node}\""));
        for (label, value) in labels {
            self.line(format_args!(",{label}=\"{}\"", escaped(value)));
        }
        self.line(format_args!("}} {value}\n"));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        aside::Aside,
        rows::{Origin, empty_sample},
    };
    use sysdock_table::rows::JobSamples;

    fn batch(rows: Vec<JobSamples<'static>>) -> Batch {
        let origin = Origin { cluster: "c".into(), node: "n\"1".into(), agent: "0123456789abcdef".into(), sequence: 7 };
        let mut batch = Batch::new(&origin, 1_800_000_000_000_000_001);
        batch.job_samples = rows;
        batch.agent_batches.push(AgentBatches {
            ts_ns: batch.ts_ns,
            interval_ns: 10,
            cluster: "c".into(),
            node: origin.node.clone().into(),
            agent: "0123456789abcdef".into(),
            sequence: 7,
            version: "1".into(),
            is_resumed: false,
            jobs: 3,
            lost: 0,
            dropped_batches: 0,
            refused_batches: 0,
            waiting_batches: 0,
            cpu_ns: 5,
            memory_bytes: 4096,
        });
        batch
    }

    fn files(target: String) -> JobSamples<'static> {
        let mut row = empty_sample(&Origin::default(), 0, 0, "files");
        row.job_id = Some("4242".into());
        row.user = Some("somebody".into());
        row.name = Some("secret-name".into());
        row.target = Some(target.into());
        row.file_system = Some("ext4".into());
        row.opens = Some(3);
        row.io_time_ns = Some(1_500_000_000);
        row
    }

    #[test]
    fn names_units_and_values_are_as_the_format_wants_them() {
        let mut exposition = Exposition::new(1000);
        exposition.add(&batch(vec![files("/a\\\"\nb".into())]));
        let text = exposition.text(&Health::default());
        let labels = "node=\"n\\\"1\",mount_point=\"/a\\\\\\\"\\nb\",file_system=\"ext4\"";
        assert!(text.contains(&format!("\nsysdock_files_calls_total{{{labels},class=\"open\"}} 3\n")), "{text}");
        assert!(text.contains(&format!("\nsysdock_files_call_time_seconds_total{{{labels}}} 1.500000000\n")), "{text}");
        assert!(text.contains("# UNIT sysdock_files_call_time_seconds seconds\n"));
        assert!(text.ends_with("\n# EOF\n"));
        for secret in ["4242", "somebody", "secret-name"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }

    #[test]
    fn there_are_never_more_series_than_the_limit() {
        let mut exposition = Exposition::new(300);
        let reasons: BTreeMap<String, u64> = (0..30).map(|number| (format!("reason{number}"), 1)).collect();
        let set_aside = Aside { reasons: reasons.clone(), ..Aside::default() };
        let one = DestinationStatus { uncounted_answers: reasons, set_aside, ..DestinationStatus::default() };
        let destinations = vec![one; 2];
        for round in 0..5 {
            let rows = (0..500).map(|number| files(format!("/{round}-{number}"))).collect();
            exposition.add(&batch(rows));
            let text = exposition.text(&Health { destinations: destinations.clone(), ..Health::default() });
            let series = text.lines().filter(|line| !line.starts_with('#')).count();
            assert!(series <= 300, "{series}");
            assert!(text.contains("mount_point=\"(other)\",file_system=\"\",class=\"open\"} "), "{text}");
            assert!(text.contains("sysdock_agent_series_limit{node=\"n\\\"1\"} 300\n"));
        }
        assert_eq!(exposition.dropped(), 500 * 17);
    }
}
