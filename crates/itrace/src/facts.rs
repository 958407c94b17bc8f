//! Facts about a trace besides its events: in the event file itself, or in `facts.json` next to it.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

/// All facts. Those that a recorder does not know are missing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceFacts {
    /// `attach` (ptrace), `vm` (a guest of qemu) or `user` (qemu-user).
    pub backend: String,
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// The kernel's mitigations of processor vulnerabilities.
    pub mitigations: Option<String>,
    /// How the request reached the server: `loopback` or `virtio-net`.
    pub path: Option<String>,
    /// Version of qemu.
    pub qemu: Option<String>,
    /// Symbols of the kernel, in the form of /proc/kallsyms: path of a file.
    pub kallsyms: Option<PathBuf>,
    /// Folder with the files of the traced system.
    pub root: Option<PathBuf>,
    pub tasks: Vec<TaskFact>,
    /// Mappings of the processes.
    pub mappings: Vec<Mapping>,
    /// Requests, delimited by markers.
    pub requests: Vec<RequestFact>,
    /// Whether only the server's work on a request counts: from when it has accepted a connection,
    /// or waited for one that it accepted, until it accepts or waits again.
    pub cut_by_server: bool,
    /// Number of operands whose addresses the recorder does not know.
    pub unread: u64,
    /// The function of each block, if it was determined before: the files that show it may no
    /// longer exist.
    pub places: Option<Places>,
}

/// The function of each block of code.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Places {
    /// Path, mode, build ID, and source of the names of functions.
    pub images: Vec<(String, String, Option<String>, String)>,
    /// Index of the image, name, and first address.
    pub functions: Vec<(u32, String, u64)>,
    /// By process (0: the kernel): number of the block, index of the function.
    pub blocks: BTreeMap<i32, Vec<(u32, u32)>>,
}

/// A thread of the traced system.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskFact {
    /// Its number in the events, if they state which thread executes.
    pub id: Option<u32>,
    /// Address of its `task_struct`, in hexadecimal, if the events do not state it.
    pub address: Option<String>,
    /// Id of the thread.
    pub pid: i32,
    /// Id of its process.
    pub tgid: i32,
    /// Name of the thread.
    pub comm: String,
    /// Its mappings, in the form of /proc/PID/maps: path of a file.
    pub maps: Option<PathBuf>,
}

/// A request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestFact {
    /// Number, from 1.
    pub id: i32,
    /// Name of the request.
    pub name: String,
    /// Marker at its beginning.
    pub from_marker: Option<u32>,
    /// Marker at its end.
    pub to_marker: Option<u32>,
}

/// A mapping: a part of a file, or memory without one, at an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mapping {
    /// Id of the process.
    pub tgid: i32,
    /// Its first address.
    pub start: u64,
    /// The address after its last one.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// The file, or `[stack]` and the like; empty if it is neither.
    pub path: String,
    /// Index of the event from which on it was known.
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

    /// Whether both are equal, apart from the time when they became known.
    pub(crate) fn same_place(&self, other: &Mapping) -> bool {
        Mapping { from_event: other.from_event, ..self.clone() } == *other
    }
}
