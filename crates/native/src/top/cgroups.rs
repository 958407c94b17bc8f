//! The view `cgroup`: what the processes of each control group (version 2) did, without those of the groups in it.

use std::{
    collections::HashMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use sysdock_bpf::live::Counts;

use super::{
    processes::{Change, Known, Processes, cells},
    table::Cell,
    views::View,
};
use crate::messages::Message;

/// Groups in groups; deeper ones have their number only.
const DEEPEST: usize = 32;

/// The view.
pub(super) struct Groups {
    processes: Processes,
    /// Where the groups are; `None`: no such file system is mounted.
    root: Option<PathBuf>,
    /// Names by id.
    names: HashMap<u64, Vec<u8>>,
}

struct Sum {
    done: Counts,
    processes: u64,
    known: Known,
}

impl Groups {
    pub(super) fn begin() -> Groups {
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        Groups { processes: Processes::begin(), root: mount_point(&mounts), names: HashMap::new() }
    }

    fn name(&mut self, id: u64) -> Vec<u8> {
        if !self.names.contains_key(&id) {
            // Ids are used again: all names are read anew.
            self.names.clear();
            if let Some(root) = self.root.clone() {
                add_names(&root, &root, DEEPEST, &mut self.names);
            }
            let unknown = || format!("group {id}").into_bytes();
            self.names.entry(id).or_insert_with(unknown);
        }
        self.names[&id].clone()
    }

    fn group_of(&mut self, change: &Change) -> Vec<u8> {
        if change.known == Known::All { self.name(change.process.cgroup) } else { group_in_proc(change.process.pid) }
    }
}

impl View for Groups {
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message> {
        let mut sums: HashMap<Vec<u8>, Sum> = HashMap::new();
        for change in self.processes.changes()? {
            let group = self.group_of(&change);
            let none = || Sum { done: Counts::default(), processes: 0, known: change.known };
            let sum = sums.entry(group).or_insert_with(none);
            sum.done = sum.done.with(&change.done, |sum, more| sum + more);
            sum.processes += 1;
            // A sum of which a part is not known is not known.
            sum.known = if sum.known == Known::Cpu { Known::Cpu } else { change.known };
        }
        let row = |(group, sum): (Vec<u8>, Sum)| {
            let (times, bytes) = cells(&sum.done, sum.known);
            let end = [Cell::Whole(sum.processes), Cell::name(&group)];
            times.into_iter().chain(bytes).chain(end).collect()
        };
        Ok(sums.into_iter().map(row).collect())
    }

    fn note(&self) -> Option<String> {
        let unmounted = || "control groups of version 2 are not mounted (mount -t cgroup2): all processes are in one".to_string();
        self.root.is_none().then(unmounted).or_else(|| self.processes.note())
    }
}

/// Where the control groups of version 2 are mounted (proc_pid_mountinfo(5)).
pub(super) fn mount_point(mounts: &[u8]) -> Option<PathBuf> {
    let of_line = |line: &str| {
        let (fields, kind) = line.split_once(" - ")?;
        let path = fields.split(' ').nth(4).filter(|_| kind.starts_with("cgroup2 "))?;
        // A space in a path is written as octal digits; nobody mounts them there.
        (!path.contains('\\')).then(|| PathBuf::from(path))
    };
    String::from_utf8_lossy(mounts).lines().find_map(of_line)
}

fn add_names(root: &Path, folder: &Path, depth: usize, names: &mut HashMap<u64, Vec<u8>>) {
    let (Ok(found), Some(depth)) = (fs::metadata(folder), depth.checked_sub(1)) else { return };
    let path = folder.strip_prefix(root).unwrap_or(folder);
    names.insert(found.ino(), [b"/", path.as_os_str().as_bytes()].concat());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_names(root, &entry.path(), depth, names);
        }
    }
}

/// As /proc names it.
fn group_in_proc(pid: u32) -> Vec<u8> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"));
    group.unwrap_or(b"?").to_vec()
}
