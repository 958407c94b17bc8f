//! `recording.json`: who, where, when, what each capture understood and lost, and a hash of every part.
//!
//! A *capture* is one thing that wrote into the recording: a log reader, the kernel recorder, a scan. What a recording holds follows from its
//! tables; a capture says how complete its share of them is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Fact, Facts, Folder, TableError};

/// Version of the folder format. Raise it when a reader of the old format would read wrong numbers.
pub const FORMAT_VERSION: u32 = 5;

/// The file itself.
pub(crate) const NAME: &str = "recording.json";

/// The contents of `recording.json`. Field meanings: `docs/reference/recording.md`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format_version: u32,
    pub tool: Tool,
    pub command: Option<String>,
    pub directory: Option<String>,
    pub host: Option<String>,
    /// What runs already and was recorded; none: a command, or a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    pub started_ns: i64,
    pub duration_ns: i64,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<String>,
    /// Whether all captures came to their ends.
    pub complete: bool,
    /// At least one: the last is the one that is being written.
    pub captures: Vec<Capture>,
    pub tables: BTreeMap<String, TableEntry>,
}

/// Whose events were recorded, where it was no command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// Every process.
    All,
    /// The processes of a control group, by its folder.
    Cgroup(String),
    /// Those that were named.
    Processes(Vec<WatchedProcess>),
}

/// A process that was named, and how many processes below it ran then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedProcess {
    pub pid: u32,
    pub name: String,
    pub children: usize,
}

/// One thing that wrote into a recording: what it set out to record, and how much of it is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capture {
    /// What wrote it, as `sysdock info` shows it. Nothing follows from this name.
    pub recorder: String,
    /// What `total`, `understood` and `lost` count: `lines`, `events`, `files`, ...
    pub unit: String,
    /// Units of input that were seen.
    pub total: u64,
    /// Those of them that are in the tables.
    pub understood: u64,
    /// Units that happened and were dropped before they were seen, as far as known.
    pub lost: u64,
    pub clock: Clock,
    pub options: Vec<String>,
    pub families: Vec<FamilyState>,
    pub sources: Vec<Source>,
    /// Other counts of what was seen, by name, such as `restarted_calls`.
    pub counts: BTreeMap<String, u64>,
    /// Rows of `import_issues`, by kind.
    pub issues: BTreeMap<String, u64>,
    pub complete: bool,
    pub ended_by: Ending,
}

/// The program that wrote the recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
    /// Where it ran, if it wrote of what happened elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// What `ts_ns` means.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    pub kind: String,
    pub resolution_ns: i64,
    pub has_durations: bool,
    /// What kind of time `dur_ns` holds: `elapsed`, `system_cpu` or `none`.
    pub durations: String,
    /// Whether the durations hold the cost of a tracer that stops the program at each call.
    pub includes_tracer: bool,
    /// What `ts_ns` is the time of: the `entry` into a call or its `return`.
    pub stamps: String,
    /// What limits the times.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub note: Facts,
}

/// What became of one family of events that a capture can record: a value of `about` in `knowhow/tables`, or one that adds columns to tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyState {
    /// Its name, as in `sysdock record --what`.
    pub family: String,
    /// Why it is not recorded: what the kernel reported, or that it was not requested. `None`: it is.
    pub missing: Option<Fact>,
}

/// One input of an import.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    pub path: String,
    pub offset_ns: i64,
    pub bytes: u64,
    pub lines: u64,
    /// Whether a recorder wrote it for itself: it is gone by now.
    pub temporary: bool,
}

/// Why a capture came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "end of input")]
    EndOfInput,
    #[serde(rename = "interrupted")]
    Interrupted,
    #[serde(rename = "write error")]
    WriteError,
    #[serde(rename = "input error")]
    InputError,
}

/// The parts of one table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TableEntry {
    pub rows: u64,
    pub lost: u64,
    pub parts: Vec<Part>,
}

/// One closed Parquet file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    pub file: String,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    /// An empty manifest of a recording that one capture is writing: see [`Capture::new`].
    #[must_use]
    pub fn new(recorder: &str, unit: &str, about: &str) -> Self {
        Manifest::of(Capture::new(recorder, unit, about))
    }

    /// An empty manifest of a recording that this capture is writing.
    #[must_use]
    pub fn of(capture: Capture) -> Self {
        Manifest {
            format_version: FORMAT_VERSION,
            tool: Tool { name: "sysdock".into(), version: env!("CARGO_PKG_VERSION").into(), host: None },
            command: None,
            directory: None,
            host: None,
            watched: None,
            started_ns: 0,
            duration_ns: 0,
            exit_code: None,
            exit_signal: None,
            complete: false,
            captures: vec![capture],
            tables: BTreeMap::new(),
        }
    }

    /// The capture that is being written.
    ///
    /// # Panics
    /// If there is none: a manifest always has one.
    #[must_use]
    pub fn capture(&self) -> &Capture {
        self.captures.last().expect("a manifest has a capture")
    }

    /// The capture that is being written, to fill in.
    ///
    /// # Panics
    /// If there is none: a manifest always has one.
    pub fn capture_mut(&mut self) -> &mut Capture {
        self.captures.last_mut().expect("a manifest has a capture")
    }

    /// Say how the capture that is being written ended.
    pub(crate) fn end(&mut self, ending: Ending) {
        let capture = self.capture_mut();
        capture.ended_by = ending;
        capture.complete = ending == Ending::EndOfInput;
        self.complete = self.captures.iter().all(|capture| capture.complete);
    }

    /// Make the recording span from its earliest start to `end_ns`, now that a capture ran from `start_ns` to there.
    pub fn cover(&mut self, start_ns: i64, end_ns: i64) {
        let known = (self.started_ns, self.started_ns.saturating_add(self.duration_ns));
        let (start, end) =
            if self.captures.len() > 1 { (known.0.min(start_ns), known.1.max(end_ns)) } else { (start_ns, end_ns) };
        self.started_ns = start;
        self.duration_ns = end.saturating_sub(start).max(0);
    }

    /// Replace the recording.json in this folder in one step, so that a reader never sees half of it.
    pub(crate) fn save(&self, folder: &Folder) -> Result<(), TableError> {
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is always valid JSON");
        text.push(b'\n');
        folder.replace(NAME, &text).map_err(|error| TableError::Io(folder.path().join(NAME), error))
    }
}

impl Capture {
    /// One that has not seen anything yet: it counts its input in `unit`, and records what the tables with this `about` in `knowhow/tables`
    /// hold.
    #[must_use]
    pub fn new(recorder: &str, unit: &str, about: &str) -> Self {
        Capture {
            recorder: recorder.into(),
            unit: unit.into(),
            total: 0,
            understood: 0,
            lost: 0,
            clock: Clock::default(),
            options: Vec::new(),
            families: vec![FamilyState { family: about.into(), missing: None }],
            sources: Vec::new(),
            counts: BTreeMap::new(),
            issues: BTreeMap::new(),
            complete: false,
            ended_by: Ending::Running,
        }
    }
}
