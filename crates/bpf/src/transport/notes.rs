//! Notes of the recorder itself, between the events of the spool: one JSON object per line.

use serde::{Deserialize, Deserializer, Serialize};

use sysdock_table::{Fact, FamilyState, Watched, facts::marks as facts};

use crate::probe_list::ProbeList;

/// A note. Unknown ones, of a newer recorder, are skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// Recording begins.
    Start(Box<Start>),
    /// Both clocks, read at the same moment: at the start, about every second, and at the end.
    Clock {
        /// `CLOCK_MONOTONIC` [ns].
        monotonic_ns: u64,
        /// `CLOCK_REALTIME`, since the Unix epoch [ns].
        realtime_ns: i64,
    },
    /// Events that found no room since the start. Of several notes for the same CPU and kind, the
    /// highest count is valid.
    Drops {
        cpu: u32,
        /// Kind of the events: `enum event_kind`.
        kind: u8,
        /// Number of events.
        count: u64,
        /// When the first was lost, `CLOCK_MONOTONIC` [ns].
        first_ns: u64,
        /// When the last was lost, `CLOCK_MONOTONIC` [ns].
        last_ns: u64,
    },
    /// A mark that is shown on every time line.
    Mark {
        /// Time, `CLOCK_MONOTONIC` [ns].
        monotonic_ns: u64,
        /// Id of the thread that it is about; 0: none.
        tid: u32,
        /// What it marks; a spool of an earlier version has a text.
        #[serde(alias = "text", deserialize_with = "fact_or_text")]
        what: Fact,
    },
    /// Recording ended; the last note.
    End(End),
    /// A note of a newer recorder.
    #[serde(other)]
    Unknown,
}

fn fact_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fact, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Fact(Fact),
        Text(String),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Fact(fact) => fact,
        Either::Text(text) => facts::stated(text),
    })
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// The command, as a user would type it. `None`: running processes are recorded.
    pub command: Option<String>,
    /// The running processes that are recorded.
    pub watched: Option<Watched>,
    /// Working directory of the command.
    pub directory: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Options of the recorder, as text.
    pub options: Vec<String>,
    /// Id of the boot: addresses in the kernel are valid until reboot.
    pub boot: Option<String>,
    /// Interval between samples of a CPU [ns].
    pub sample_period_ns: Option<i64>,
    /// Process id of the command.
    pub pid: Option<u32>,
    /// State of the families besides system calls and processes.
    pub families: Vec<FamilyState>,
    /// Places in programs that the user named.
    #[serde(alias = "asked")]
    pub probe_list: ProbeList,
    /// Whether system calls are not recorded.
    pub without_calls: bool,
    /// Start of the kept time, if events know about the time before, `CLOCK_MONOTONIC` [ns]: rows
    /// begin no earlier.
    pub since_ns: Option<u64>,
}

impl Start {
    /// Whether events of the family with this name are recorded.
    pub(crate) fn records(&self, family: &str) -> bool {
        self.families.iter().any(|state| state.family == family && state.missing.is_none())
    }
}

/// How recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Exit status of the command.
    pub exit_code: Option<i32>,
    /// Number of the signal that killed the command.
    pub exit_signal: Option<i32>,
    pub reason: Reason,
}

/// Why recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The command ended, or the time was up.
    #[default]
    Done,
    /// The user stopped it.
    Interrupted,
    /// The disk was full.
    Full,
}

/// The notes of a payload. Lines that are no notes are skipped and counted.
pub(crate) fn parse(payload: &[u8]) -> (Vec<Note>, u64) {
    let lines = payload.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut notes = Vec::new();
    let mut broken = 0;
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(note) => notes.push(note),
            Err(_) => broken += 1,
        }
    }
    (notes, broken)
}
