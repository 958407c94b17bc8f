//! What is known about a trace besides its events: in the event file itself, or in `facts.json` next to it.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// All of it. What a recorder does not know is missing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceFacts {
    /// `attach` (ptrace), `vm` (a guest of qemu) or `user` (qemu-user).
    pub backend: String,
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// What the kernel does against faults of processors.
    pub mitigations: Option<String>,
    /// How the request reached the server: `loopback` or `virtio-net`.
    pub path: Option<String>,
    /// Version of qemu.
    pub qemu: Option<String>,
    /// Symbols of the kernel, as /proc/kallsyms has them; a file next to it.
    pub kallsyms: Option<PathBuf>,
    /// Where files of the traced system are found.
    pub root: Option<PathBuf>,
    /// Threads.
    pub tasks: Vec<TaskFact>,
    /// What lay where.
    pub mappings: Vec<Mapping>,
    /// Requests, by their markers.
    pub requests: Vec<RequestFact>,
    /// Whether only what the server does with a request counts: from where it has accepted a connection, or has waited for one that it
    /// accepted, until it accepts or waits again.
    pub cut_by_server: bool,
    /// Operands whose addresses the recorder does not know.
    pub unread: u64,
    /// What each block is, where that was found out before: the files that show it may be gone.
    pub places: Option<Places>,
}

/// Which function each block of code belongs to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Places {
    /// Path, mode, build ID, and where names of functions come from.
    pub images: Vec<(String, String, Option<String>, String)>,
    /// Number of the image, name, and first address.
    pub functions: Vec<(u32, String, u64)>,
    /// By process (0: the kernel): number of the block, number of the function.
    pub blocks: BTreeMap<i32, Vec<(u32, u32)>>,
}

/// A thread of the traced system.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFact {
    /// Its number in the events, where they say which thread executes.
    pub id: Option<u32>,
    /// Its `task_struct`, in hexadecimal, where they do not.
    pub address: Option<String>,
    /// Number of the thread.
    pub pid: i32,
    /// Number of its process.
    pub tgid: i32,
    /// Name.
    pub comm: String,
    /// What it had mapped, as /proc/PID/maps; a file next to it.
    pub maps: Option<PathBuf>,
}

/// A request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestFact {
    /// Number, from 1.
    pub id: i32,
    /// What was requested.
    pub name: String,
    /// Marker that begins it.
    pub from_marker: Option<u32>,
    /// Marker that ends it.
    pub to_marker: Option<u32>,
}

/// A part of a file, or memory without one, at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mapping {
    /// Process.
    pub tgid: i32,
    /// Its first address.
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file, or `[stack]` and the like; empty where it is neither.
    pub path: String,
    /// From which event on it was known.
    pub from_event: u64,
}

impl Mapping {
    /// The mappings of a process, from the text of /proc/PID/maps.
    #[must_use]
    pub fn parse(text: &str, tgid: i32, from_event: u64) -> Vec<Mapping> {
        text.lines().filter_map(|line| Mapping::parse_line(line, tgid, from_event)).collect()
    }

    fn parse_line(line: &str, tgid: i32, from_event: u64) -> Option<Mapping> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        let offset = hexadecimal(words.nth(1)?)?;
        let path = words.nth(2)?.trim_start();
        Some(Mapping { tgid, start, end, offset, path: path.into(), from_event })
    }

    /// Whether both say the same, whenever it was known.
    pub(crate) fn same_place(&self, other: &Mapping) -> bool {
        Mapping { from_event: other.from_event, ..self.clone() } == *other
    }
}
