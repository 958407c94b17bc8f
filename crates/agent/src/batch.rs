//! A batch: the rows of one interval, on their way from an agent to the lake, with the number by
//! which they land exactly once.

use serde::{Deserialize, Serialize};
use sysdock_table::{
    Fact, facts,
    rows::{AgentBatches, JobFiles, JobSamples, JobTotals},
};

use crate::{json, rows::Origin};

/// Format of a batch. A collector refuses newer ones.
pub(crate) const FORMAT: u32 = 1;

/// The rows of one interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// [`FORMAT`] of the agent that made it.
    pub format: u32,
    pub cluster: String,
    pub node: String,
    /// The agent's id: 16 hexadecimal digits.
    pub agent: String,
    /// Number of the batch, from 1 on for each agent.
    pub sequence: i64,
    /// When the batch was made [ns, Unix time].
    pub ts_ns: i64,
    #[serde(default)]
    pub job_samples: Vec<JobSamples<'static>>,
    #[serde(default)]
    pub job_totals: Vec<JobTotals<'static>>,
    #[serde(default)]
    pub job_files: Vec<JobFiles<'static>>,
    #[serde(default)]
    pub agent_batches: Vec<AgentBatches<'static>>,
}

/// Why a batch is refused, with its code and values as JSON: a collector's answer holds that as
/// text, because agents of earlier versions only read texts there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum Refusal {
    /// It is not JSON of this form.
    Malformed { error: String },
    /// Its format is newer than the latest one that can be read there.
    Newer { format: u32, latest: u32 },
    /// A name is empty, too long, or contains a character that no name contains.
    Name { of: Named },
    /// Its time is before 2020, or more than a day after the collector's [ns].
    Time { ns: i64 },
    /// The token of the request is not for this cluster.
    Cluster { name: String },
    /// It is longer than a collector takes [B].
    TooLong { bytes: u64 },
    /// Its file in the spool cannot be read: why, as the system states it.
    Unreadable { error: String },
    /// A collector of another version states it in its own words.
    Stated { text: String },
}

/// What a name in a batch names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Named {
    Cluster,
    Node,
    Agent,
}

impl Refusal {
    /// As text of a collector's answer.
    pub(crate) fn to_json(&self) -> String {
        json::text(self)
    }

    /// From the text of a collector's answer.
    pub(crate) fn from_json(text: &str) -> Refusal {
        let stated = || Refusal::Stated { text: text.chars().take(LONGEST_TEXT).collect() };
        serde_json::from_str(text).unwrap_or_else(|_| stated())
    }

    /// As a fact.
    #[must_use]
    pub fn fact(&self) -> Fact {
        match self {
            Refusal::Malformed { error } => facts::agent::malformed(error.as_str()),
            Refusal::Newer { format, latest } => facts::agent::newer(i64::from(*format), i64::from(*latest)),
            Refusal::Name { of: Named::Cluster } => facts::agent::name_of_cluster(),
            Refusal::Name { of: Named::Node } => facts::agent::name_of_node(),
            Refusal::Name { of: Named::Agent } => facts::agent::name_of_agent(),
            Refusal::Time { ns } => facts::agent::time(*ns),
            Refusal::Cluster { name } => facts::agent::cluster(name.as_str()),
            Refusal::TooLong { bytes } => facts::agent::batch_too_long(*bytes as i64),
            Refusal::Unreadable { error } => facts::agent::unreadable(error.as_str()),
            Refusal::Stated { text } => facts::agent::stated(text.as_str()),
        }
    }

    /// Its code, as in JSON.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::Malformed { .. } => "malformed",
            Refusal::Newer { .. } => "newer",
            Refusal::Name { .. } => "name",
            Refusal::Time { .. } => "time",
            Refusal::Cluster { .. } => "cluster",
            Refusal::TooLong { .. } => "too_long",
            Refusal::Unreadable { .. } => "unreadable",
            Refusal::Stated { .. } => "stated",
        }
    }
}

/// Longest text of another program that is kept [letters].
pub(crate) const LONGEST_TEXT: usize = 200;
pub(crate) const DAY_NS: i64 = 86_400_000_000_000;

impl Batch {
    /// A batch without rows.
    #[must_use]
    pub fn new(origin: &Origin, ts_ns: i64) -> Batch {
        Batch {
            format: FORMAT,
            cluster: origin.cluster.clone(),
            node: origin.node.clone(),
            agent: origin.agent.clone(),
            sequence: origin.sequence,
            ts_ns,
            job_samples: Vec::new(),
            job_totals: Vec::new(),
            job_files: Vec::new(),
            agent_batches: Vec::new(),
        }
    }

    /// Format as a line of a request body.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = json::text(self).into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_from_the_answer_of_any_collector() {
        let refusal = Refusal::Name { of: Named::Node };
        assert_eq!(refusal.to_json(), r#"{"code":"name","of":"node"}"#);
        assert_eq!(Refusal::from_json(&refusal.to_json()), refusal);
        for text in ["not a batch of an agent: EOF", r#"{"code":"newer than this"}"#] {
            assert_eq!(Refusal::from_json(text), Refusal::Stated { text: text.into() });
        }
        assert_eq!(Refusal::from_json(&"x".repeat(1000)), Refusal::Stated { text: "x".repeat(LONGEST_TEXT) });
    }

    #[test]
    fn codes_are_those_of_json() {
        let all = [
            Refusal::Malformed { error: String::new() },
            Refusal::Newer { format: 2, latest: 1 },
            Refusal::Name { of: Named::Agent },
            Refusal::Time { ns: 0 },
            Refusal::Cluster { name: String::new() },
            Refusal::TooLong { bytes: 1 },
            Refusal::Unreadable { error: String::new() },
            Refusal::Stated { text: String::new() },
        ];
        for refusal in all {
            assert!(refusal.to_json().starts_with(&format!("{{\"code\":\"{}\"", refusal.code())), "{refusal:?}");
        }
    }
}
