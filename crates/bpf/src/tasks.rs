//! Threads that are there when recording begins, from /proc: the kernel side tells of births only.

use std::{fs, path::Path};

/// `EVENT_TASK` of `bpf/events.h`.
const KIND: u8 = 7;
const FIXED: usize = 8 + 8 + 4 * 3 + 2 + 2 + 16;
const LONGEST_ARGUMENTS: usize = 1024;

/// Events about all threads of these processes, one behind another. A process that is gone has none.
#[must_use]
pub fn task_events(pids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut out = Vec::new();
    for pid in pids {
        let folder = format!("/proc/{pid}/task");
        let Ok(threads) = fs::read_dir(&folder) else { continue };
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let tids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse::<u32>().ok());
        for tid in tids {
            if let Some(task) = Task::of(&Path::new(&folder).join(tid.to_string()), tid, pid) {
                task.write(&arguments, &mut out);
            }
        }
    }
    out
}

/// The process of the command: it runs nothing yet, so it has no name.
#[must_use]
pub fn first_task(pid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Task { started_ns: 0, tid: pid, pid, parent: 0, comm: [0; 16] }.write(&[], &mut out);
    out
}

/// All processes.
///
/// # Errors
/// /proc cannot be read.
pub fn all_processes() -> std::io::Result<Vec<u32>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

struct Task {
    started_ns: u64,
    tid: u32,
    pid: u32,
    parent: u32,
    comm: [u8; 16],
}

impl Task {
    /// From proc(5), /proc/pid/stat: behind the name, which ends at the last bracket, the parent is field 2 and the start field 20.
    fn of(folder: &Path, tid: u32, pid: u32) -> Option<Task> {
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let ticks: u64 = fields.nth(17)?.parse().ok()?;
        let mut comm = [0; 16];
        let length = name.len().min(15);
        comm[..length].copy_from_slice(&name.as_bytes()[..length]);
        // SAFETY: sysconf has no preconditions.
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1).cast_unsigned();
        // Since boot, which is CLOCK_MONOTONIC but for the time that the machine was asleep.
        Some(Task { started_ns: ticks * (1_000_000_000 / per_second), tid, pid, parent, comm })
    }

    fn write(&self, arguments: &[u8], out: &mut Vec<u8>) {
        let arguments = &arguments[..arguments.len().min(LONGEST_ARGUMENTS)];
        let length = (FIXED + arguments.len()).next_multiple_of(8);
        let start = out.len();
        out.extend((start as u32).to_le_bytes());
        out.extend((length as u16).to_le_bytes());
        out.extend([KIND, 0]);
        out.extend(self.started_ns.to_le_bytes());
        out.extend(self.tid.to_le_bytes());
        out.extend(self.pid.to_le_bytes());
        out.extend(self.parent.to_le_bytes());
        out.extend((arguments.len() as u16).to_le_bytes());
        out.extend([0; 2]);
        out.extend(self.comm);
        out.extend(arguments);
        out.resize(start + length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_told_with_its_threads() {
        let pid = std::process::id();
        let events = task_events([pid]);
        let threads = fs::read_dir("/proc/self/task").expect("/proc").count();
        let (mut at, mut seen) = (0, 0);
        while at < events.len() {
            let length = usize::from(u16::from_le_bytes([events[at + 4], events[at + 5]]));
            assert_eq!(events[at + 6], KIND);
            assert_eq!(u32::from_le_bytes(events[at + 20..at + 24].try_into().expect("four bytes")), pid);
            assert_eq!(length % 8, 0);
            (at, seen) = (at + length, seen + 1);
        }
        assert!(seen > 0 && seen <= threads + 1, "{seen} of {threads}");
        assert!(task_events([u32::MAX]).is_empty());
    }
}
