//! Reads the kernel's counters of the machine, and of the recorded control group, from files that
//! are opened while the process has the rights, and read repeatedly. Only lines that become rows go
//! into the spool.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use crate::{
    events::{
        self, EVENT_SYSTEM, SYSTEM_DISKS, SYSTEM_GROUP_CPU, SYSTEM_GROUP_EVENTS, SYSTEM_GROUP_IO, SYSTEM_GROUP_MEMORY,
        SYSTEM_GROUP_PEAK, SYSTEM_LOAD, SYSTEM_MEMORY, SYSTEM_NETWORK, SYSTEM_PAGING, SYSTEM_PRESSURE_CPU, SYSTEM_PRESSURE_IO,
        SYSTEM_PRESSURE_MEMORY, SYSTEM_STAT, SystemEvent,
    },
    families::{Family, SOCKETS, SYSTEM, sockets::census::Census},
    transport::{capture::Polled, spool::monotonic_ns},
};

/// The length of an event has 16 bits. A longer text (thousands of CPUs or disks) is cut after a
/// line.
const MOST_TEXT: usize = 60_000;
const MOST_READ: usize = 1 << 20;

const MACHINE: [(u32, &str); 9] = [
    (SYSTEM_STAT, "/proc/stat"),
    (SYSTEM_LOAD, "/proc/loadavg"),
    (SYSTEM_MEMORY, "/proc/meminfo"),
    (SYSTEM_PAGING, "/proc/vmstat"),
    (SYSTEM_DISKS, "/proc/diskstats"),
    (SYSTEM_NETWORK, "/proc/net/dev"),
    (SYSTEM_PRESSURE_CPU, "/proc/pressure/cpu"),
    (SYSTEM_PRESSURE_MEMORY, "/proc/pressure/memory"),
    (SYSTEM_PRESSURE_IO, "/proc/pressure/io"),
];
const GROUP: [(u32, &str); 5] = [
    (SYSTEM_GROUP_CPU, "cpu.stat"),
    (SYSTEM_GROUP_MEMORY, "memory.current"),
    (SYSTEM_GROUP_PEAK, "memory.peak"),
    (SYSTEM_GROUP_EVENTS, "memory.events"),
    (SYSTEM_GROUP_IO, "io.stat"),
];

/// The open files of counters, and the sockets.
#[derive(Debug)]
pub struct Meters {
    /// `None` in place of a file: this kernel does not have it, which is reported once.
    files: Vec<(u32, Option<File>)>,
    text: Vec<u8>,
    sockets: Option<Census>,
}

impl Meters {
    /// Open what these families need, if anything: the files of the machine, and of the control
    /// group in this folder.
    #[must_use]
    pub fn open(families: &[Family], group: Option<&Path>) -> Option<Meters> {
        let sockets = families.contains(&SOCKETS).then(Census::open).flatten();
        let mut meters = Meters { files: Vec::new(), text: Vec::new(), sockets };
        if families.contains(&SYSTEM) {
            meters.files = files(group);
        }
        (!meters.files.is_empty() || meters.sockets.is_some()).then_some(meters)
    }

    /// Events about sockets: about new ones, or about `all`.
    pub(crate) fn sockets(&mut self, all: bool) -> Vec<u8> {
        self.sockets.as_mut().map(|sockets| sockets.read(all)).unwrap_or_default()
    }
}

impl Polled for Meters {
    /// Read everything, as events for the spool. Files that can no longer be read are left out. Of
    /// sockets only new ones are reported, or `all`.
    fn read(&mut self, all: bool) -> Vec<u8> {
        let mut out = self.sockets(all);
        let Meters { files, text, .. } = self;
        for (source, file) in &mut *files {
            text.clear();
            match file {
                None => add(&mut out, *source, &[], true),
                Some(file) if read_whole(file, text).is_ok() => add(&mut out, *source, &wanted(*source, text), false),
                Some(_) => {}
            }
        }
        files.retain(|(_, file)| file.is_some());
        out
    }
}

fn files(group: Option<&Path>) -> Vec<(u32, Option<File>)> {
    let machine = MACHINE.iter().map(|(source, path)| (*source, File::open(path).ok()));
    let of_group = group.iter().flat_map(|folder| GROUP.map(|(source, name)| (source, File::open(folder.join(name)).ok())));
    machine.chain(of_group).collect()
}

fn read_whole(file: &File, text: &mut Vec<u8>) -> io::Result<()> {
    const STEP: usize = 16 << 10;
    while text.len() < MOST_READ {
        let held = text.len();
        text.resize(held + STEP, 0);
        let got = file.read_at(&mut text[held..], held as u64)?;
        text.truncate(held + got);
        if got == 0 {
            break;
        }
    }
    Ok(())
}

fn add(out: &mut Vec<u8>, source: u32, text: &[u8], is_missing: bool) {
    let at_ns = monotonic_ns();
    let fixed = SystemEvent { at_ns, source: source as u16, is_missing: is_missing.into(), length: text.len() as u32 };
    events::add(out, EVENT_SYSTEM, 0, &fixed, text);
}

/// The lines that become rows.
fn wanted(source: u32, text: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| is_wanted(source, line)) {
        if lines.len() + line.len() > MOST_TEXT {
            break;
        }
        lines.extend(line);
    }
    lines
}

fn is_wanted(source: u32, line: &[u8]) -> bool {
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word.as_bytes()));
    match source {
        SYSTEM_STAT => begins(&["cpu", "ctxt ", "processes ", "procs_"]),
        SYSTEM_MEMORY => begins(&[
            "MemTotal:",
            "MemFree:",
            "MemAvailable:",
            "Cached:",
            "Dirty:",
            "Writeback:",
            "Slab:",
            "SwapTotal:",
            "SwapFree:",
        ]),
        SYSTEM_PAGING => begins(&["pgfault ", "pgmajfault ", "pgpg", "pswp", "allocstall", "compact_stall ", "oom_kill "]),
        // Disks that were never used are left out.
        SYSTEM_DISKS => line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(3).any(|word| word != b"0"),
        _ => true,
    }
}
