//! The view `cgroup`: the activity of the processes of each control group (version 2), without
//! those of its subgroups.

use std::{collections::HashMap, fs, path::PathBuf};

use sysdock_bpf::live::Counts;
use sysdock_mounts::groups;

use super::{
    processes::{Change, Known, Processes, cells},
    table::Cell,
    views::View,
};
use crate::messages::Message;

/// The view of control groups.
pub(super) struct Groups {
    processes: Processes,
    /// Mount point of the file system of groups; `None`: it is not mounted.
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
        Groups { processes: Processes::begin(), root: groups::mount_point(), names: HashMap::new() }
    }

    fn name(&mut self, id: u64) -> Vec<u8> {
        if !self.names.contains_key(&id) {
            // Ids are reused, so all names are read again.
            self.names.clear();
            if let Some(root) = self.root.clone() {
                groups::add_names(&root, &mut self.names);
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
            // If part of a sum is unknown, so is the sum.
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

/// The group of a process, as /proc names it.
fn group_in_proc(pid: u32) -> Vec<u8> {
    let text = fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let group = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"));
    group.unwrap_or(b"?").to_vec()
}
