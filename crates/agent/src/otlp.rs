//! Batches as OTLP metrics over HTTP, in the JSON encoding
//! (https://opentelemetry.io/docs/specs/otlp/), with the job as a resource, for a store of the
//! user's choice.
//!
//! Sums have delta temporality: each point states what was done in one interval, as the rows do. A
//! job may end and an agent may be killed at any time, and no receiver has to guess what a counter
//! that restarts means. A request that was accepted while its answer was lost is sent again: OTLP
//! has no number by which a receiver could notice.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sysdock_table::{Folder, rows::JobSamples};

use crate::{
    batch::{Batch, DAY_NS},
    error::{AgentError, Unsent},
    outcome::{Outcome, Rejection},
    spool::{Spool, Waiting},
    sums::{GROUPS, Group, Metric, Unit},
};

/// Rows in one request, so that it has some megabytes of JSON at most.
const MOST_ROWS: usize = 1000;
const PROGRESS: &str = "otlp.json";
const DELTA: u32 = 1;
/// Longest wait that a receiver may request.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);
const LONGEST_ANSWER: u64 = 1 << 20;

/// How far sending has come. Kept next to the batches, so that an agent that was killed sends no
/// accepted rows again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Done {
    agent: String,
    sequence: i64,
    /// Number of rows of that batch that were accepted or refused.
    rows: usize,
    /// Number of points that were refused, of all batches.
    pub(crate) refused: u64,
}

impl Done {
    /// Read the progress in a folder of batches; a missing or damaged file means none.
    pub(crate) fn read(folder: &Folder) -> Done {
        let file = folder.open_file(PROGRESS).ok();
        file.and_then(|file| serde_json::from_reader(file).ok()).unwrap_or_default()
    }

    fn keep(&self, folder: &Folder) -> Result<(), AgentError> {
        let text = serde_json::to_vec(self).expect("keys are text");
        folder.replace(PROGRESS, &text).map_err(|error| AgentError::Io(folder.path().join(PROGRESS), error))
    }

    /// Whether rows of this batch, or of a later one of this agent, were answered.
    pub(crate) fn has(&self, agent: &str, sequence: i64) -> bool {
        self.agent == agent && self.sequence >= sequence
    }

    fn rows_of(&self, batch: &Batch) -> usize {
        if self.agent == batch.agent && self.sequence == batch.sequence { self.rows } else { 0 }
    }
}

/// A receiver of OTLP.
pub(crate) struct Receiver {
    pub(crate) client: ureq::Agent,
    /// Without `/v1/metrics`.
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) done: Done,
}

/// Outcome of a request.
enum Taken {
    All,
    /// This many points were refused, and must not be sent again.
    Not(u64, Rejection),
}

impl Receiver {
    /// Send the rows of one batch that were not sent yet.
    pub(crate) fn send(&mut self, spool: &Spool, waiting: &Waiting) -> Result<Outcome, AgentError> {
        // The node's own clock is trusted.
        let batch = match Batch::parse(&spool.line(waiting)?, i64::MAX - DAY_NS) {
            Ok(batch) => batch,
            Err(why) => {
                spool.refused(waiting)?;
                return Ok(Outcome::Refused(why));
            }
        };
        let mut rejected = None;
        let from = self.done.rows_of(&batch).min(batch.job_samples.len());
        let mut rows = from;
        while rows < batch.job_samples.len() {
            let end = (rows + MOST_ROWS).min(batch.job_samples.len());
            if let Taken::Not(points, why) = self.post(&batch.job_samples[rows..end])? {
                self.done.refused += points;
                rejected = Some((points, why));
            }
            rows = end;
            (self.done.agent, self.done.sequence, self.done.rows) = (batch.agent.clone(), batch.sequence, rows);
            self.done.keep(spool.folder())?;
        }
        spool.landed(waiting)?;
        Ok(rejected.map_or(Outcome::Landed, |(points, why)| Outcome::Rejected(points, why)))
    }

    fn post(&self, rows: &[JobSamples<'static>]) -> Result<Taken, AgentError> {
        let (request, points) = request(rows);
        if points == 0 {
            return Ok(Taken::All);
        }
        let mut post = self.client.post(format!("{}/v1/metrics", self.url)).header("content-type", "application/json");
        if let Some(token) = &self.token {
            post = post.header("authorization", format!("Bearer {token}"));
        }
        let mut answer = post.send(request.to_string()).map_err(|error| AgentError::Otlp(Unsent::Unreachable(error), None))?;
        let status = answer.status();
        let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok()).and_then(wait_of);
        let text = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string().unwrap_or_default();
        match status.as_u16() {
            200..=299 => Ok(partly(&text)),
            // The statuses for which the specification demands a retry.
            429 | 502 | 503 | 504 => Err(AgentError::Otlp(Unsent::NotReady(status), after)),
            _ => Ok(Taken::Not(points, Rejection { status: Some(status.as_u16()), text: text.chars().take(200).collect() })),
        }
    }
}

/// Parse `Retry-After`: seconds, or a date.
fn wait_of(value: &str) -> Option<Duration> {
    let wait = match value.trim().parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = chrono::DateTime::parse_from_rfc2822(value).ok()?;
            date.signed_duration_since(chrono::Utc::now()).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

/// Parse an answer with `partialSuccess`. Its number may be a string, as JSON has no integers of 64
/// bits.
fn partly(answer: &str) -> Taken {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let partial = &answer["partialSuccess"];
    let rejected = &partial["rejectedDataPoints"];
    let points = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or(0);
    let text = || partial["errorMessage"].as_str().unwrap_or_default().into();
    if points == 0 { Taken::All } else { Taken::Not(points, Rejection { status: None, text: text() }) }
}

/// An `ExportMetricsServiceRequest`, with a resource for each job and a metric for each column, and
/// its number of points. Zero counters have no point.
fn request(rows: &[JobSamples<'static>]) -> (Value, u64) {
    let mut resources: BTreeMap<_, Vec<&JobSamples<'static>>> = BTreeMap::new();
    for row in rows {
        let job = (&row.cluster, &row.node, &row.job_id, &row.user, &row.name);
        resources.entry(job).or_default().push(row);
    }
    let mut points = 0;
    let resources: Vec<Value> = resources
        .into_values()
        .map(|rows| {
            let metrics = metrics(&rows, &mut points);
            let scope = json!({"name": "sysdock", "version": env!("CARGO_PKG_VERSION")});
            json!({
                "resource": {"attributes": resource(rows[0])},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            })
        })
        .collect();
    (json!({"resourceMetrics": resources}), points)
}

fn resource(row: &JobSamples<'static>) -> Vec<Value> {
    let named = [
        ("service.name", Some("sysdock-agent")),
        ("host.name", Some(row.node.as_ref())),
        ("sysdock.cluster", Some(row.cluster.as_ref())),
        ("sysdock.job.id", row.job_id.as_deref()),
        ("sysdock.job.user", row.user.as_deref()),
        ("sysdock.job.name", row.name.as_deref()),
    ];
    named.into_iter().filter_map(|(name, value)| Some(attribute(name, value?))).collect()
}

fn attribute(name: &str, value: &str) -> Value {
    json!({"key": name, "value": {"stringValue": value}})
}

fn metrics(rows: &[&JobSamples<'static>], points: &mut u64) -> Vec<Value> {
    let mut found: BTreeMap<(&str, &str), (&Metric, Vec<Value>)> = BTreeMap::new();
    for row in rows {
        let Some(group) = GROUPS.iter().find(|group| group.name == row.counter_group) else { continue };
        for metric in group.metrics {
            let Some(value) = (metric.column)(row).filter(|value| *value > 0) else { continue };
            let (_, of_metric) = found.entry((group.name, metric.name)).or_insert((metric, Vec::new()));
            of_metric.push(point(group, metric, row, value));
            *points += 1;
        }
    }
    let metric = |((group, name), (metric, points)): ((&str, &str), (&Metric, Vec<Value>))| {
        json!({
            "name": format!("sysdock.{group}.{name}"),
            "description": metric.text,
            "unit": unit(metric.unit),
            "sum": {"aggregationTemporality": DELTA, "isMonotonic": true, "dataPoints": points},
        })
    };
    found.into_iter().map(metric).collect()
}

fn point(group: &Group, metric: &Metric, row: &JobSamples<'static>, value: i64) -> Value {
    let target = group.target.zip(row.target.as_deref());
    let file_system = row.file_system.as_deref().map(|name| ("file_system", name));
    let attributes: Vec<Value> =
        [target, file_system, metric.label].into_iter().flatten().map(|(name, value)| attribute(name, value)).collect();
    let mut point = json!({
        "attributes": attributes,
        "startTimeUnixNano": (row.ts_ns - row.interval_ns).to_string(),
        "timeUnixNano": row.ts_ns.to_string(),
    });
    match metric.unit {
        Unit::Seconds => point["asDouble"] = json!(value as f64 / 1e9),
        Unit::Bytes | Unit::Number => point["asInt"] = json!(value.to_string()),
    }
    point
}

/// The unit's name in UCUM.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Number => "1",
        Unit::Bytes => "By",
        Unit::Seconds => "s",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Origin, empty_sample};

    #[test]
    fn a_row_becomes_points_of_its_job() {
        let mut row = empty_sample(&Origin { node: "n".into(), cluster: "c".into(), ..Origin::default() }, 30, 10, "files");
        (row.job_id, row.target, row.file_system) = (Some("42".into()), Some("/data".into()), Some("ext4".into()));
        (row.opens, row.stats, row.read_bytes, row.io_wait_ns) = (Some(3), Some(0), Some(1 << 60), Some(1_500_000_000));
        let (request, points) = request(&[row]);
        assert_eq!(points, 3, "what was not done has no point");
        let resource = &request["resourceMetrics"][0];
        assert!(resource["resource"]["attributes"].as_array().expect("a list").contains(&attribute("sysdock.job.id", "42")));
        let metrics = resource["scopeMetrics"][0]["metrics"].as_array().expect("a list");
        let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).expect("it is there");
        let read = &of("sysdock.files.read")["sum"];
        assert_eq!((&read["aggregationTemporality"], &read["isMonotonic"]), (&json!(1), &json!(true)));
        let point = &read["dataPoints"][0];
        let times = (&point["startTimeUnixNano"], &point["timeUnixNano"]);
        assert_eq!((&point["asInt"], times), (&json!("1152921504606846976"), (&json!("20"), &json!("30"))));
        assert_eq!(of("sysdock.files.wait")["sum"]["dataPoints"][0]["asDouble"], json!(1.5));
        let class = attribute("class", "open");
        assert!(of("sysdock.files.calls")["sum"]["dataPoints"][0]["attributes"].as_array().expect("a list").contains(&class));
    }

    #[test]
    fn how_long_a_receiver_asks_to_wait() {
        assert_eq!([wait_of("7"), wait_of("soon")], [Some(Duration::from_secs(7)), None]);
        assert_eq!(wait_of("99999999"), Some(LONGEST_WAIT));
        assert_eq!(wait_of("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO), "that is over");
    }

    #[test]
    fn answers_say_what_was_refused() {
        let refused = |text: &str| match partly(text) {
            Taken::All => 0,
            Taken::Not(points, _) => points,
        };
        let answers =
            ["", "{}", r#"{"partialSuccess":{"rejectedDataPoints":"7"}}"#, r#"{"partialSuccess":{"rejectedDataPoints":7}}"#];
        assert_eq!(answers.map(refused), [0, 0, 7, 7]);
    }
}
