//! A batch: the rows of one interval, on their way from an agent to the lake, with the number by
//! which they land exactly once.

use serde::{Deserialize, Serialize};
use sysdock_table::rows::{AgentBatches, JobFiles, JobSamples, JobTotals};

use crate::rows::Origin;

/// Format of a batch. A collector refuses newer ones.
pub(crate) const FORMAT: u32 = 1;
/// Longest name that a collector accepts [B].
pub(crate) const LONGEST_NAME: usize = 255;

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
        serde_json::to_string(self).expect("keys are text")
    }

    /// From the text of a collector's answer.
    pub(crate) fn from_json(text: String) -> Refusal {
        serde_json::from_str(&text).unwrap_or(Refusal::Stated { text })
    }
}

pub(crate) const DAY_NS: i64 = 86_400_000_000_000;
/// 2020-01-01.
const EARLIEST_NS: i64 = 1_577_836_800_000_000_000;

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

    /// Parse a line of a request body. The sender named in the batch overrides what its rows say
    /// about their origin.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn parse(line: &[u8], now_ns: i64) -> Result<Batch, Refusal> {
        let mut batch: Batch = serde_json::from_slice(line).map_err(|error| Refusal::Malformed { error: error.to_string() })?;
        if batch.format > FORMAT {
            return Err(Refusal::Newer { format: batch.format, latest: FORMAT });
        }
        let is_name = |name: &str| {
            (1..=LONGEST_NAME).contains(&name.len())
                && !name.starts_with('.')
                && !name.chars().any(|c| c.is_control() || c == '/' || c == '=')
        };
        if !is_name(&batch.cluster) {
            return Err(Refusal::Name { of: Named::Cluster });
        }
        if !is_name(&batch.node) {
            return Err(Refusal::Name { of: Named::Node });
        }
        if batch.agent.len() != 16 || !batch.agent.bytes().all(|byte| byte.is_ascii_hexdigit()) || batch.sequence < 0 {
            return Err(Refusal::Name { of: Named::Agent });
        }
        let times = batch.job_samples.iter().map(|row| row.ts_ns).chain([batch.ts_ns]);
        if let Some(time) = times.into_iter().find(|time| !(EARLIEST_NS..=now_ns + DAY_NS).contains(time)) {
            return Err(Refusal::Time { ns: time });
        }
        batch.own_rows();
        Ok(batch)
    }

    fn own_rows(&mut self) {
        let Batch { cluster, node, agent, sequence, .. } = &*self;
        let (cluster, node, agent, sequence) = (cluster.clone(), node.clone(), agent.clone(), *sequence);
        macro_rules! own {
            ($($rows:expr),*) => {
                $(for row in &mut $rows {
                    row.cluster = cluster.clone().into();
                    row.node = node.clone().into();
                    row.agent = agent.clone().into();
                    row.sequence = sequence;
                })*
            };
        }
        own!(self.job_samples, self.job_totals, self.job_files, self.agent_batches);
    }

    /// Format as a line of a request body.
    ///
    /// # Panics
    /// Never: all keys are text.
    #[must_use]
    pub fn to_line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("keys are text");
        line.push(b'\n');
        line
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.job_samples.len() + self.job_totals.len() + self.job_files.len() + self.agent_batches.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::empty_sample;

    const NOW: i64 = 1_800_000_000_000_000_000;

    fn batch() -> Batch {
        let origin = Origin { cluster: "c".into(), node: "n".into(), agent: "0123456789abcdef".into(), sequence: 7 };
        let mut batch = Batch::new(&origin, NOW);
        batch.job_samples.push(empty_sample(&origin, NOW, 10, "files"));
        batch
    }

    #[test]
    fn a_batch_comes_as_it_was_sent() {
        let mut sent = batch();
        sent.job_samples[0].reads = Some(5);
        assert_eq!(Batch::parse(&sent.to_line(), NOW), Ok(sent));
    }

    #[test]
    fn rows_are_of_their_sender() {
        let mut forged = batch();
        forged.job_samples[0].node = "another".into();
        let taken = Batch::parse(&forged.to_line(), NOW).expect("it is taken");
        assert_eq!(taken.job_samples[0].node, "n");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refusal = |change: fn(&mut Batch)| {
            let mut changed = batch();
            change(&mut changed);
            Batch::parse(&changed.to_line(), NOW).expect_err("it is refused")
        };
        assert_eq!(refusal(|batch| batch.format = 2), Refusal::Newer { format: 2, latest: FORMAT });
        assert_eq!(refusal(|batch| batch.node = "x".repeat(4096)), Refusal::Name { of: Named::Node });
        assert_eq!(refusal(|batch| batch.cluster = "../up".into()), Refusal::Name { of: Named::Cluster });
        assert_eq!(refusal(|batch| batch.agent = "1".into()), Refusal::Name { of: Named::Agent });
        assert_eq!(refusal(|batch| batch.job_samples[0].ts_ns = NOW + 2 * DAY_NS), Refusal::Time { ns: NOW + 2 * DAY_NS });
        assert!(matches!(Batch::parse(b"{\"format\":1}", NOW), Err(Refusal::Malformed { .. })));
        assert!(matches!(Batch::parse(b"", NOW), Err(Refusal::Malformed { .. })));
    }

    #[test]
    fn a_refusal_is_read_from_the_answer_of_any_collector() {
        let refusal = Refusal::Name { of: Named::Node };
        assert_eq!(refusal.to_json(), r#"{"code":"name","of":"node"}"#);
        assert_eq!(Refusal::from_json(refusal.to_json()), refusal);
        for text in ["not a batch of an agent: EOF", r#"{"code":"newer than this"}"#] {
            assert_eq!(Refusal::from_json(text.into()), Refusal::Stated { text: text.into() });
        }
    }

    #[test]
    fn what_a_newer_agent_adds_is_left_out() {
        let line = String::from_utf8(batch().to_line()).expect("JSON").replacen('{', "{\"new\":[1],", 1);
        assert_eq!(Batch::parse(line.as_bytes(), NOW), Ok(batch()));
    }
}
