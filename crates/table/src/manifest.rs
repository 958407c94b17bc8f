//! `recording.json`: who, where, when, clock, losses, and a hash of every part.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::Write,
    path::Path,
};

use serde::{Deserialize, Serialize};

use crate::TableError;

/// Version of the folder format. Raise it when a reader of the old format would read wrong numbers.
pub const FORMAT_VERSION: u32 = 2;

/// The contents of `recording.json`. Field meanings: `docs/reference/recording.md`.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Manifest {
    pub format_version: u32,
    pub tool: Tool,
    pub recorder: String,
    pub command: Option<String>,
    pub directory: Option<String>,
    pub host: Option<String>,
    pub started_ns: i64,
    pub duration_ns: i64,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<String>,
    pub clock: Clock,
    pub has_exits: bool,
    pub options: Vec<String>,
    pub families: Vec<FamilyState>,
    pub sources: Vec<Source>,
    pub lines_total: u64,
    pub lines_understood: u64,
    pub restarted_calls: u64,
    pub issues: BTreeMap<String, u64>,
    pub lost_events: u64,
    pub complete: bool,
    pub ended_by: Ending,
    pub tables: BTreeMap<String, TableEntry>,
}

/// The program that wrote the recording.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Tool {
    pub name: String,
    pub version: String,
}

/// What `ts_ns` means.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Clock {
    pub kind: String,
    pub resolution_ns: i64,
    pub has_durations: bool,
    /// What kind of time `dur_ns` holds: `elapsed`, `system_cpu` or `none`.
    pub durations: String,
    /// What `ts_ns` is the time of: the `entry` into a call or its `return`.
    pub stamps: String,
    pub note: Option<String>,
}

/// What became of a family of events that a recorder of the kernel knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FamilyState {
    /// Its word, as in `sysdock record --what`.
    pub family: String,
    /// Why it is not recorded: what the kernel said, or that it was not asked for. `None`: it is.
    pub missing: Option<String>,
}

/// One input of an import.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)]
pub struct Source {
    pub path: String,
    pub offset_ns: i64,
    pub bytes: u64,
    pub lines: u64,
}

/// Why the writing of a recording came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
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
#[allow(missing_docs)]
pub struct TableEntry {
    pub rows: u64,
    pub lost: u64,
    pub parts: Vec<Part>,
}

/// One closed Parquet file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Part {
    pub file: String,
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

impl Manifest {
    /// An empty manifest of a recording that is being written.
    #[must_use]
    pub fn new(recorder: &str) -> Self {
        Manifest {
            format_version: FORMAT_VERSION,
            tool: Tool { name: "sysdock".into(), version: env!("CARGO_PKG_VERSION").into() },
            recorder: recorder.into(),
            command: None,
            directory: None,
            host: None,
            started_ns: 0,
            duration_ns: 0,
            exit_code: None,
            exit_signal: None,
            clock: Clock::default(),
            has_exits: false,
            options: Vec::new(),
            families: Vec::new(),
            sources: Vec::new(),
            lines_total: 0,
            lines_understood: 0,
            restarted_calls: 0,
            issues: BTreeMap::new(),
            lost_events: 0,
            complete: false,
            ended_by: Ending::Running,
            tables: BTreeMap::new(),
        }
    }

    /// Replace `folder/recording.json` in one step, so that a reader never sees half of it.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), TableError> {
        let path = folder.join("recording.json");
        let fresh = folder.join("recording.json.new");
        let failed = |error| TableError::Io(path.clone(), error);
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest is always valid JSON");
        text.push(b'\n');
        let mut file = File::create(&fresh).map_err(failed)?;
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        if let Err(error) = written {
            let _ = fs::remove_file(&fresh);
            return Err(failed(error));
        }
        fs::rename(&fresh, &path).map_err(failed)
    }
}
