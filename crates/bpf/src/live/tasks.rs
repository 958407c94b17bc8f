//! The kernel's counts for each process, by an iterator over threads: exact to the nanosecond, and
//! all processes in one reading.

use std::{collections::BTreeMap, io, io::Read};

use libbpf_rs::{Iter, Link, Object};

use super::load;
use crate::{
    events::{Layout, TaskCounts, until_nul},
    objects,
    probes::{ProbeError, Step},
};

pub(super) const OBJECT: &[u8] = programs!("live_tasks");

/// What the kernel counted for a process since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Time on a CPU [ns].
    pub cpu_ns: u64,
    /// Time in which the threads that still run could run but had no CPU [ns].
    pub cpu_wait_ns: u64,
    /// Number of times that a thread left its CPU to wait.
    pub switches: u64,
    /// Number of times that a thread was preempted.
    pub preemptions: u64,
    /// Number of page faults that waited for a disk.
    pub major_faults: u64,
    /// Bytes read by system calls.
    pub read_bytes: u64,
    /// Bytes written by system calls.
    pub written_bytes: u64,
    /// Bytes read from disks.
    pub disk_read_bytes: u64,
    /// Bytes written to disks, or to be written.
    pub disk_written_bytes: u64,
}

impl Counts {
    /// Combine two counts, number by number.
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

/// The state of a process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Process id in this PID namespace.
    pub pid: u32,
    /// Start by an arbitrary clock: with another start, a reused pid is another process.
    pub start: u64,
    /// Name; any bytes except NUL.
    pub name: Vec<u8>,
    /// Id of the control group (version 2): the inode number of its folder.
    pub cgroup: u64,
    /// Number of running threads.
    pub threads: u64,
    /// Counts since the process began.
    pub counts: Counts,
}

/// Reads processes.
pub struct Tasks {
    link: Link,
    _object: Object,
}

impl Tasks {
    /// Load the iterator, which runs only while it is read.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or the kernel lacks a feature.
    pub fn open() -> Result<Tasks, ProbeError> {
        let object = load(OBJECT)?;
        let mut links =
            objects::attach_all(&object, None, std::time::Duration::ZERO).map_err(|refused| refused.at(Step::AttachIterator))?;
        let link = links.pop().expect("the object has a program");
        Ok(Tasks { link, _object: object })
    }

    /// All processes.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self) -> io::Result<Vec<Process>> {
        let mut bytes = Vec::new();
        Iter::new(&self.link).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
        let mut found: BTreeMap<u32, Process> = BTreeMap::new();
        // Threads of other PID namespaces have no number in this one.
        for task in bytes.chunks_exact(TaskCounts::BYTES).filter_map(TaskCounts::read).filter(|task| task.pid != 0) {
            let process = found.entry(task.pid).or_insert_with(|| process_of(&task));
            process.threads += 1;
            process.counts = process.counts.with(&of_thread(&task), |sum, more| sum + more);
        }
        Ok(found.into_values().collect())
    }
}

/// A process with the counts of its ended threads.
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
