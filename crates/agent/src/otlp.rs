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
use sysdock_table::{
    Folder,
    rows::{AgentBatches, JobFiles, JobSamples, JobTotals},
};
use ureq::http::StatusCode;

use crate::{
    answers::{Id, Uncounted},
    batch::LONGEST_TEXT,
    error::{AgentError, Unsent},
    http::RequestRefusal,
    json as own_json,
    line::Rows,
    outcome::{Outcome, Rejection},
    pushing::readable,
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
        let text = file.and_then(|file| std::io::read_to_string(std::io::Read::take(file, LONGEST_ANSWER)).ok());
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    fn keep(&self, folder: &Folder) -> Result<(), AgentError> {
        folder
            .replace(PROGRESS, own_json::text(self).as_bytes())
            .map_err(|error| AgentError::Io(folder.path().join(PROGRESS), error))
    }

    /// Whether rows of this batch, or of a later one of this agent, were answered.
    pub(crate) fn has(&self, agent: &str, sequence: i64) -> bool {
        self.agent == agent && self.sequence >= sequence
    }

    fn rows_of(&self, batch: &Id) -> usize {
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
#[derive(Debug, PartialEq)]
enum Taken {
    All,
    /// This many points were refused, and must not be sent again.
    Not(u64, Rejection),
    /// The request is too long: a part of it may not be.
    TooLong,
}

/// An answer.
struct Answered {
    status: StatusCode,
    kind: String,
    text: String,
}

impl Receiver {
    /// Send the rows of one batch that were not sent yet.
    pub(crate) fn send(&mut self, spool: &Spool, waiting: &Waiting) -> Result<Outcome, AgentError> {
        let (lines, refused) = readable(spool, std::slice::from_ref(waiting))?;
        let Some((_, line)) = lines.first() else { return Ok(refused.map_or(Outcome::Idle, Outcome::Refused)) };
        let mut rows = Samples::default();
        line.read(&mut rows).map_err(|error| AgentError::Io(spool.path().into(), error.into()))?;
        let mut rejected = None;
        let mut from = self.done.rows_of(&line.id).min(rows.0.len());
        let mut most = MOST_ROWS;
        while from < rows.0.len() {
            let end = (from + most).min(rows.0.len());
            match self.post(rows.0.get(from..end).unwrap_or_default())? {
                Taken::All => {}
                Taken::TooLong if end - from > 1 => {
                    most = (end - from) / 2;
                    continue;
                }
                // No receiver has such a limit.
                Taken::TooLong => {
                    let why = Unsent::Answers(StatusCode::PAYLOAD_TOO_LARGE, RequestRefusal::TooLong);
                    return Err(AgentError::Otlp(why, None));
                }
                Taken::Not(points, why) => rejected = Some(self.reject(points, why)),
            }
            from = end;
            (self.done.agent, self.done.sequence, self.done.rows) = (line.id.agent.clone(), line.id.sequence, from);
            self.done.keep(spool.folder())?;
        }
        spool.landed(waiting)?;
        Ok(rejected.map_or(Outcome::Landed, |(points, why)| Outcome::Rejected(points, why)))
    }

    fn reject(&mut self, points: u64, why: Rejection) -> (u64, Rejection) {
        self.done.refused += points;
        (points, why)
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
        let failed = |why| AgentError::Otlp(why, None);
        let mut answer = post.send(request.to_string()).map_err(|error| failed(Unsent::Unreachable(error)))?;
        let status = answer.status();
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let after = header("retry-after").and_then(wait_of);
        let kind = header("content-type").unwrap_or_default().chars().take(LONGEST_TEXT).collect();
        let text = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string();
        let text = text.map_err(|error| failed(Uncounted::Broken(error.to_string()).into()))?;
        taken(&Answered { status, kind, text }, points).map_err(|why| AgentError::Otlp(why, after))
    }
}

/// What an answer says. It cannot be signed, so it counts only if it is what the specification
/// demands of a receiver: everything else may come from a server in its place.
fn taken(answer: &Answered, points: u64) -> Result<Taken, Unsent> {
    let Answered { status, kind, text } = answer;
    let is_json = kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
    match status.as_u16() {
        300..=399 => Err(Uncounted::Redirect(status.as_u16()).into()),
        200 if !is_json => Err(Uncounted::ContentType(kind.clone()).into()),
        200 => partly(text).ok_or(Uncounted::Form.into()),
        // A limit of the receiver, or of a proxy before it.
        413 => Ok(Taken::TooLong),
        // The request cannot be decoded, which is permanent.
        400 if is_json && is_status(text) => Ok(Taken::Not(points, Rejection { status: Some(400), text: shortened(text) })),
        // For these the specification demands a retry; others are about the connection to the
        // receiver, or about the token, and not about the data.
        429 | 502 | 503 | 504 => Err(Unsent::NotReady(*status)),
        _ => Err(Unsent::Answers(*status, RequestRefusal::Stated { text: shortened(text) })),
    }
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(LONGEST_TEXT).collect()
}

/// Whether a text is a `google.rpc.Status`, with which a receiver says what is wrong.
fn is_status(text: &str) -> bool {
    let Ok(Value::Object(status)) = serde_json::from_str(text) else { return false };
    status.get("message").is_none_or(Value::is_string)
        && status.get("code").is_none_or(Value::is_number)
        && (status.is_empty() || status.contains_key("message") || status.contains_key("code"))
}

/// Keeps the samples of a batch.
#[derive(Default)]
struct Samples(Vec<JobSamples<'static>>);

impl Rows for Samples {
    fn sample(&mut self, row: JobSamples<'static>) {
        self.0.push(row);
    }

    fn total(&mut self, _: JobTotals<'static>) {}

    fn file(&mut self, _: JobFiles<'static>) {}

    fn about(&mut self, _: AgentBatches<'static>) {}
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

/// Parse an `ExportMetricsServiceResponse`; `None`: it is none. The number in `partialSuccess` may be a
/// string, as JSON has no integers of 64 bits.
fn partly(answer: &str) -> Option<Taken> {
    let Ok(Value::Object(answer)) = serde_json::from_str(answer) else { return None };
    let partial = match answer.get("partialSuccess") {
        Some(Value::Object(partial)) => partial,
        Some(_) => return None,
        // Fields that are not known may be of a later version, but not alone.
        None => return answer.is_empty().then_some(Taken::All),
    };
    let points = match partial.get("rejectedDataPoints") {
        Some(rejected) => rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok())?,
        None => 0,
    };
    let text = match partial.get("errorMessage") {
        Some(text) => shortened(text.as_str()?),
        None => String::new(),
    };
    Some(if points == 0 { Taken::All } else { Taken::Not(points, Rejection { status: None, text }) })
}

/// Whether a text says that all was taken.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn is_taken(text: &str) -> bool {
    matches!(partly(text), Some(Taken::All)) || is_status(text)
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
        .filter_map(|rows| {
            let metrics = metrics(&rows, &mut points);
            let scope = json!({"name": "sysdock", "version": env!("CARGO_PKG_VERSION")});
            Some(json!({
                "resource": {"attributes": resource(rows.first()?)},
                "scopeMetrics": [{"scope": scope, "metrics": metrics}],
            }))
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
    let (name, value) = match metric.unit {
        Unit::Seconds => ("asDouble", json!(value as f64 / 1e9)),
        Unit::Bytes | Unit::Number => ("asInt", json!(value.to_string())),
    };
    json!({
        "attributes": attributes,
        "startTimeUnixNano": row.ts_ns.saturating_sub(row.interval_ns).to_string(),
        "timeUnixNano": row.ts_ns.to_string(),
        name: value,
    })
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
            Some(Taken::Not(points, _)) => points,
            _ => 0,
        };
        let texts = [r#"{"partialSuccess":{"rejectedDataPoints":"7"}}"#, r#"{"partialSuccess":{"rejectedDataPoints":7}}"#];
        assert_eq!(texts.map(refused), [7, 7]);
        for text in ["{}", r#"{"partialSuccess":{}}"#, r#"{"partialSuccess":{"errorMessage":"slow down"},"new":1}"#] {
            assert_eq!(partly(text), Some(Taken::All), "{text}");
        }
    }

    fn of(status: u16, kind: &str, text: &str) -> Result<Taken, &'static str> {
        let status = StatusCode::from_u16(status).expect("a status");
        let answer = Answered { status, kind: kind.into(), text: text.into() };
        taken(&answer, 5).map_err(|why| match why {
            Unsent::Uncounted(why) => why.code(),
            Unsent::NotReady(_) => "not ready",
            _ => "answers",
        })
    }

    #[test]
    fn only_the_answer_of_a_receiver_counts() {
        const JSON: &str = "application/json";
        let page = "<html>Log in</html>";
        for (status, kind, text, why) in [
            (200, "text/html", page, "content_type"),
            (200, "", "", "content_type"),
            (200, JSON, "", "form"),
            (200, JSON, page, "form"),
            (200, JSON, "{\"partialSuccess\":{", "form"),
            (200, JSON, "[]", "form"),
            (200, JSON, "null", "form"),
            (200, JSON, "{\"login\":\"required\"}", "form"),
            (200, JSON, "{\"partialSuccess\":{\"rejectedDataPoints\":-1}}", "form"),
            (302, "text/html", page, "redirect"),
            (307, JSON, "{}", "redirect"),
            (204, JSON, "{}", "answers"),
            (202, JSON, "{}", "answers"),
            (400, "text/html", page, "answers"),
            (400, JSON, "{\"login\":1}", "answers"),
            (401, JSON, "{}", "answers"),
            (403, "text/html", page, "answers"),
            (404, "text/html", page, "answers"),
            (511, "text/html", page, "answers"),
            (500, JSON, "{}", "answers"),
            (429, JSON, "{}", "not ready"),
            (503, "text/html", page, "not ready"),
        ] {
            assert_eq!(of(status, kind, text), Err(why), "{status} {kind} {text}");
        }
        assert_eq!(of(200, "Application/JSON; charset=utf-8", "{}"), Ok(Taken::All));
        assert_eq!(of(413, "text/html", page), Ok(Taken::TooLong));
        let text = "{\"code\":3,\"message\":\"bad\"}";
        let why = Rejection { status: Some(400), text: text.into() };
        assert_eq!(of(400, JSON, text), Ok(Taken::Not(5, why)));
    }
}
