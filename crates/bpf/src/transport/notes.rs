//! What the recorder itself says, between the events of the spool: one JSON object a line.

use serde::{Deserialize, Serialize};

use sysdock_table::{FamilyState, Watched};

use crate::families::{Family, probes::spec::ProbeList};

/// A note. Unknown ones, of a newer recorder, are skipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// Recording begins.
    Start(Box<Start>),
    /// Both clocks, read at the same moment. Taken at the start, about every second, and at the end.
    Clock {
        /// `CLOCK_MONOTONIC` [ns].
        monotonic_ns: u64,
        /// `CLOCK_REALTIME`, since the Unix epoch [ns].
        realtime_ns: i64,
    },
    /// Events that found no room, since the start: of several notes for the same CPU and kind the highest count holds.
    Drops {
        /// Number of the CPU.
        cpu: u32,
        /// Kind of the events: `enum event_kind`.
        kind: u8,
        /// How many.
        count: u64,
        /// When the first was lost, `CLOCK_MONOTONIC` [ns].
        first_ns: u64,
        /// When the last was lost.
        last_ns: u64,
    },
    /// Something that is to be seen on every time line.
    Mark {
        /// When, `CLOCK_MONOTONIC` [ns].
        monotonic_ns: u64,
        /// The thread that it is about; 0: none.
        tid: u32,
        /// What it is.
        text: String,
    },
    /// Recording came to its end; the last note.
    End(End),
    /// Of a newer recorder.
    #[serde(other)]
    Unknown,
}

/// What is recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Start {
    /// The command, as one would type it. `None`: what runs already is recorded.
    pub command: Option<String>,
    /// What runs already and is recorded.
    pub watched: Option<Watched>,
    /// Working directory of the command.
    pub directory: Option<String>,
    /// Name of the machine.
    pub host: Option<String>,
    /// Options of the recorder, as text.
    pub options: Vec<String>,
    /// When the machine was started, as an id: addresses in the kernel hold until it is started again.
    pub boot: Option<String>,
    /// Between two samples of a CPU [ns].
    pub sample_period_ns: Option<i64>,
    /// Process id of the command.
    pub pid: Option<u32>,
    /// What is recorded in addition to system calls and processes.
    pub families: Vec<FamilyState>,
    /// Places that the user named.
    #[serde(alias = "asked")]
    pub probe_list: ProbeList,
    /// System calls are not recorded.
    pub without_calls: bool,
    /// When this began, where events know what was before, `CLOCK_MONOTONIC` [ns]: rows begin no earlier.
    pub since_ns: Option<u64>,
}

impl Start {
    /// Whether events of a family are recorded.
    pub(crate) fn records(&self, family: &Family) -> bool {
        self.families.iter().any(|state| state.family == family.name && state.missing.is_none())
    }
}

/// How recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Exit status of the command.
    pub exit_code: Option<i32>,
    /// Number of the signal that killed it.
    pub exit_signal: Option<i32>,
    /// Why recording ended.
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

/// The notes of a payload. What is no note is skipped and counted.
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
