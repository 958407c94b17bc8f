//! `recording.json`: where and when was recorded by which program, what each capture understood and
//! lost, and a hash of each part.
//!
//! A *capture* is the work of one writer: a log reader, the kernel recorder, a scan. The tables
//! show what a recording contains; a capture states how complete its share of them is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Fact, Facts, Folder, TableError};

/// Version of the folder format. It is raised when a reader of the old format would read wrong
/// numbers.
pub const FORMAT_VERSION: u32 = 5;

/// Name of the file.
pub(crate) const NAME: &str = "recording.json";

/// Content of `recording.json`. The fields are described in `docs/reference/recording.md`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub format_version: u32,
    pub tool: Tool,
    pub command: Option<String>,
    pub directory: Option<String>,
    pub host: Option<String>,
    /// Processes that were running already and were recorded; `None`: the recording is of a
    /// command, or a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
    pub started_ns: i64,
    pub duration_ns: i64,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<String>,
    /// Whether all captures ended as intended.
    pub complete: bool,
    /// At least one; the last is the one that is being written.
    pub captures: Vec<Capture>,
    pub tables: BTreeMap<String, TableEntry>,
}

/// The recorded processes, if the recording is not of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Watched {
    /// Every process.
    All,
    /// The processes of the control group in this folder.
    Cgroup(String),
    /// Processes that the user named.
    Processes(Vec<WatchedProcess>),
}

/// A process that the user named, and the number of its descendants at that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedProcess {
    pub pid: u32,
    pub name: String,
    pub children: usize,
}

/// The work of one writer: what it set out to record, and how complete it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Capture {
    /// Name of the writer, as `sysdock info` shows it. Nothing depends on it.
    pub recorder: String,
    /// Unit of `total`, `understood` and `lost`: `lines`, `events`, `files`, ...
    pub unit: String,
    /// Number of units that were seen.
    pub total: u64,
    /// Number of seen units that are in the tables.
    pub understood: u64,
    /// Number of units that were dropped before they were seen, as far as known.
    pub lost: u64,
    pub clock: Clock,
    pub options: Vec<String>,
    pub families: Vec<FamilyState>,
    pub sources: Vec<Source>,
    /// Other counts by name, such as `restarted_calls`.
    pub counts: BTreeMap<String, u64>,
    /// Number of rows of `import_issues`, by kind.
    pub issues: BTreeMap<String, u64>,
    pub complete: bool,
    pub ended_by: Ending,
}

/// The program that wrote the recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub version: String,
    /// The host that it ran on, if the recorded events happened elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// Meaning of `ts_ns`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    pub kind: String,
    pub resolution_ns: i64,
    pub has_durations: bool,
    /// The kind of time in `dur_ns`: `elapsed`, `system_cpu` or `none`.
    pub durations: String,
    /// Whether durations include the cost of a tracer that stops the program at each call.
    pub includes_tracer: bool,
    /// The point of a call that `ts_ns` refers to: `entry` or `return`.
    pub stamps: String,
    /// What limits the times.
    #[serde(default, skip_serializing_if = "Facts::is_empty")]
    pub note: Facts,
}

/// State of one family of events that a capture can record: a value of `about` in `knowhow/tables`,
/// or one that adds columns to tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FamilyState {
    /// Name as in `sysdock record --what`.
    pub family: String,
    /// Why the family is not recorded: the kernel's refusal, or that it was not requested. `None`:
    /// it is recorded.
    pub missing: Option<Fact>,
}

/// An input of an import.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Source {
    pub path: String,
    pub offset_ns: i64,
    pub bytes: u64,
    pub lines: u64,
    /// Whether a recorder created the file for its own use and removed it.
    pub temporary: bool,
}

/// Why a capture ended.
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
    /// A manifest of a recording that a new capture is writing: see [`Capture::new`].
    #[must_use]
    pub fn new(recorder: &str, unit: &str, about: &str) -> Self {
        Manifest::of(Capture::new(recorder, unit, about))
    }

    /// A manifest of a recording that this capture is writing.
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

    /// Set how the capture that is being written ended.
    pub(crate) fn end(&mut self, ending: Ending) {
        let capture = self.capture_mut();
        capture.ended_by = ending;
        capture.complete = ending == Ending::EndOfInput;
        self.complete = self.captures.iter().all(|capture| capture.complete);
    }

    /// Extend the time span of the recording to a capture that ran from `start_ns` to `end_ns`.
    pub fn cover(&mut self, start_ns: i64, end_ns: i64) {
        let known = (self.started_ns, self.started_ns.saturating_add(self.duration_ns));
        let (start, end) =
            if self.captures.len() > 1 { (known.0.min(start_ns), known.1.max(end_ns)) } else { (start_ns, end_ns) };
        self.started_ns = start;
        self.duration_ns = end.saturating_sub(start).max(0);
    }

    /// Replace the recording.json of a folder in one step, so that a reader never sees half of it.
    pub(crate) fn save(&self, folder: &Folder) -> Result<(), TableError> {
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is always valid JSON");
        text.push(b'\n');
        folder.replace_noted(NAME, &text).map_err(|error| TableError::Io(folder.path().join(NAME), error))
    }
}

impl Capture {
    /// A capture that has seen nothing yet. It counts its input in `unit`, and records the tables
    /// with this `about` in `knowhow/tables`.
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
