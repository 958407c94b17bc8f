//! What the kernel counts of each process, by an iterator over threads: exact, to the nanosecond, in one reading for all.

use std::{collections::BTreeMap, io, io::Read};

use libbpf_rs::{Iter, Link, Object};

use super::load;
use crate::{
    events::{Layout, TaskCounts, until_nul},
    objects,
    probes::{ProbeError, failed},
};

pub(super) const OBJECT: &[u8] = programs!("live_tasks");

/// What the kernel counted of a process since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time on a CPU [ns].
    pub cpu_ns: u64,
    /// Time in which threads could run and had no CPU; of those that still live [ns].
    pub cpu_wait_ns: u64,
    /// Times that a thread left its CPU to wait.
    pub switches: u64,
    /// Times that a thread had to leave its CPU to another one.
    pub preemptions: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// Read by system calls [B].
    pub read_bytes: u64,
    /// Written by system calls [B].
    pub written_bytes: u64,
    /// Read from disks [B].
    pub disk_read_bytes: u64,
    /// Written to disks, or to be written [B].
    pub disk_written_bytes: u64,
}

impl Counts {
    /// Another count, number by number.
    #[must_use]
    pub fn with(&self, other: &Counts, join: impl Fn(u64, u64) -> u64) -> Counts {
        Counts {
            cpu_ns: join(self.cpu_ns, other.cpu_ns),
            cpu_wait_ns: join(self.cpu_wait_ns, other.cpu_wait_ns),
            switches: join(self.switches, other.switches),
            preemptions: join(self.preemptions, other.preemptions),
            major_faults: join(self.major_faults, other.major_faults),
            read_bytes: join(self.read_bytes, other.read_bytes),
            written_bytes: join(self.written_bytes, other.written_bytes),
            disk_read_bytes: join(self.disk_read_bytes, other.disk_read_bytes),
            disk_written_bytes: join(self.disk_written_bytes, other.disk_written_bytes),
        }
    }
}

/// A process as it is.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number here.
    pub pid: u32,
    /// When it began, by a clock of its own: a number that is used again is another process.
    pub start: u64,
    /// Its name; any bytes but NUL.
    pub name: Vec<u8>,
    /// Id of its control group (version 2): the inode number of its folder.
    pub cgroup: u64,
    /// Threads that live.
    pub threads: u64,
    /// Since it began.
    pub counts: Counts,
}

/// Reads processes.
pub struct Tasks {
    link: Link,
    _object: Object,
}

impl Tasks {
    /// Load the iterator; it runs only while it is read.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or a kernel without what it needs.
    pub fn open() -> Result<Tasks, ProbeError> {
        let object = load(OBJECT)?;
        let mut links = objects::attach_all(&object, None, std::time::Duration::ZERO).map_err(failed("attach the iterator"))?;
        let link = links.pop().expect("the object has a program");
        Ok(Tasks { link, _object: object })
    }

    /// All processes that there are.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self) -> io::Result<Vec<Process>> {
        let mut bytes = Vec::new();
        Iter::new(&self.link).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
        let mut found: BTreeMap<u32, Process> = BTreeMap::new();
        // Threads of other PID namespaces have no number here.
        for task in bytes.chunks_exact(TaskCounts::BYTES).filter_map(TaskCounts::read).filter(|task| task.pid != 0) {
            let process = found.entry(task.pid).or_insert_with(|| process_of(&task));
            process.threads += 1;
            process.counts = process.counts.with(&of_thread(&task), |sum, more| sum + more);
        }
        Ok(found.into_values().collect())
    }
}

/// With what its ended threads have counted.
fn process_of(task: &TaskCounts) -> Process {
    let counts = Counts {
        cpu_ns: task.group_cpu_ns,
        cpu_wait_ns: 0,
        switches: task.group_switches,
        preemptions: task.group_preemptions,
        major_faults: task.group_major_faults,
        read_bytes: task.group_read_bytes,
        written_bytes: task.group_written_bytes,
        disk_read_bytes: task.group_disk_read_bytes,
        disk_written_bytes: task.group_disk_written_bytes,
    };
    let name = until_nul(&task.comm).to_vec();
    Process { pid: task.pid, start: task.start_ns, name, cgroup: task.cgroup, threads: 0, counts }
}

fn of_thread(task: &TaskCounts) -> Counts {
    Counts {
        cpu_ns: task.cpu_ns,
        cpu_wait_ns: task.cpu_wait_ns,
        switches: task.switches,
        preemptions: task.preemptions,
        major_faults: task.major_faults,
        read_bytes: task.read_bytes,
        written_bytes: task.written_bytes,
        disk_read_bytes: task.disk_read_bytes,
        disk_written_bytes: task.disk_written_bytes,
    }
}
