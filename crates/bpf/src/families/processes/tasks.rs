//! Threads that exist when recording begins, from /proc: the kernel side reports only new ones.

use std::{fs, path::Path};

use crate::events::{self, EVENT_TASK, TaskEvent};

/// User id of a process whose user is unknown, see `processes/events.h`.
pub(crate) const NO_USER: u32 = u32::MAX;

const LONGEST_ARGUMENTS: usize = 1024;

/// Events about all threads of these processes. A process that has ended has none.
#[must_use]
pub fn task_events(pids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut out = Vec::new();
    for pid in pids {
        let folder = format!("/proc/{pid}/task");
        let Ok(threads) = fs::read_dir(&folder) else { continue };
        let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let user_id = user(pid);
        let tids = threads.filter_map(|thread| thread.ok()?.file_name().to_str()?.parse::<u32>().ok());
        for tid in tids {
            if let Some(task) = task(&Path::new(&folder).join(tid.to_string()), tid, pid) {
                add(&mut out, TaskEvent { user_id, ..task }, &arguments);
            }
        }
    }
    out
}

/// The event about the process of the command. It runs nothing yet, so it has no name.
#[must_use]
pub fn first_task(pid: u32) -> Vec<u8> {
    let mut out = Vec::new();
    add(&mut out, TaskEvent { tid: pid, pid, user_id: user(pid), ..TaskEvent::default() }, &[]);
    out
}

/// Numbers of all processes.
///
/// # Errors
/// /proc cannot be read.
pub fn all_processes() -> std::io::Result<Vec<u32>> {
    Ok(fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// Everything except the user, from proc(5), /proc/pid/stat: after the name, which ends at the last
/// bracket, the parent is field 2 and the start field 20.
fn task(folder: &Path, tid: u32, pid: u32) -> Option<TaskEvent> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let parent_pid = fields.nth(1)?.parse().ok()?;
    let ticks: u64 = fields.nth(17)?.parse().ok()?;
    let mut comm = [0; 16];
    let length = name.len().min(15);
    comm[..length].copy_from_slice(&name.as_bytes()[..length]);
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    // Time since boot, which is CLOCK_MONOTONIC except for the time that the machine was suspended.
    let started_ns = ticks * (1_000_000_000 / per_second);
    Some(TaskEvent { started_ns, tid, pid, parent_pid, user_id: NO_USER, comm, arguments_length: 0 })
}

/// The real user id, from proc(5), /proc/pid/status; [`NO_USER`] if the process has ended.
fn user(pid: u32) -> u32 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:\t"));
    let real = line.and_then(|ids| std::str::from_utf8(ids).ok()?.split_ascii_whitespace().next()?.parse().ok());
    real.unwrap_or(NO_USER)
}

fn add(out: &mut Vec<u8>, task: TaskEvent, arguments: &[u8]) {
    let arguments = &arguments[..arguments.len().min(LONGEST_ARGUMENTS)];
    let task = TaskEvent { arguments_length: arguments.len() as u16, ..task };
    events::add(out, EVENT_TASK, 0, &task, arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_reported_with_its_threads() {
        let pid = std::process::id();
        let events = task_events([pid]);
        let threads = fs::read_dir("/proc/self/task").expect("/proc").count();
        let (mut rest, mut seen) = (&events[..], 0);
        while let Some((event, after)) = events::split(rest) {
            assert_eq!((event.kind, event.read::<TaskEvent>().unwrap().0.pid), (EVENT_TASK, pid));
            (rest, seen) = (after, seen + 1);
        }
        assert!(seen > 0 && seen <= threads + 1, "{seen} of {threads}");
        assert!(task_events([u32::MAX]).is_empty());
    }
}
