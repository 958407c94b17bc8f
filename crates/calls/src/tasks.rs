//! Tasks, which are processes and threads from their creation to their end: the tables `processes` and `commands`.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use sysdock_table::{Recording, TableError, rows};

/// A program, as exec sets it.
#[derive(Debug)]
pub struct Program {
    pub comm_id: i32,
    pub command: String,
}

/// A row of `processes`.
#[derive(Debug)]
pub struct Task {
    pub session: u32,
    pub pid: i32,
    pub tid: i32,
    pub ppid: Option<i32>,
    /// Index of the task that created it.
    pub parent: Option<usize>,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    pub program: Option<Rc<Program>>,
    /// The thread's own name, if it has one.
    pub name: Option<Box<str>>,
    pub execs: i64,
    pub calls: i64,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<String>,
    /// Real user id, as last seen.
    pub user_id: Option<u32>,
    pub usage: Option<Usage>,
}

/// What the kernel counted for a thread up to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub user_ns: i64,
    pub system_ns: i64,
    pub minor_faults: i64,
    pub major_faults: i64,
    pub read_chars: i64,
    pub write_chars: i64,
    pub device_read_bytes: i64,
    pub device_write_bytes: i64,
}

/// Write `commands`.
pub fn write_commands(recording: &mut Recording, names: &[String]) -> Result<(), TableError> {
    recording.replace_rows((0..).zip(names).map(|(comm_id, comm)| rows::Commands { comm_id, comm: comm.into() }))
}

/// Write `processes`.
pub fn write_processes(recording: &mut Recording, tasks: &[Task], sessions: &[String]) -> Result<(), TableError> {
    let (depths, orders) = tree(tasks);
    let processes = processes(tasks);
    recording.replace_rows((0i32..).zip(tasks).map(|(task_id, task)| {
        let index = task_id as usize;
        let (program, usage) = (task.program.as_ref(), task.usage.as_ref());
        rows::Processes {
            task_id,
            process_id: processes[index],
            pid: task.pid,
            tid: task.tid,
            ppid: task.ppid,
            depth: depths[index],
            tree_order: orders[index],
            start_ts_ns: task.start_ns,
            end_ts_ns: task.end_ns,
            comm_id: program.map(|program| program.comm_id),
            command: program.map(|program| program.command.as_str().into()),
            thread_name: task.name.as_deref().map(Into::into),
            execs: task.execs,
            calls: task.calls,
            exit_code: task.exit_code,
            exit_signal: task.exit_signal.as_deref().map(Into::into),
            user_id: task.user_id.map(i64::from),
            log: sessions[task.session as usize].as_str().into(),
            user_ns: usage.map(|usage| usage.user_ns),
            system_ns: usage.map(|usage| usage.system_ns),
            minor_faults: usage.map(|usage| usage.minor_faults),
            major_faults: usage.map(|usage| usage.major_faults),
            rchar_bytes: usage.map(|usage| usage.read_chars),
            wchar_bytes: usage.map(|usage| usage.write_chars),
            device_read_bytes: usage.map(|usage| usage.device_read_bytes),
            device_write_bytes: usage.map(|usage| usage.device_write_bytes),
            // Only `sysdock merge` knows several ranks.
            rank: None,
        }
    }))
}

/// The process of each task, named by the task of its first thread. A thread belongs to the process
/// of its creator if the log shows the creation, else to the last process with its id in the same
/// log.
fn processes(tasks: &[Task]) -> Vec<i32> {
    let mut current: FxHashMap<(u32, i32), usize> = FxHashMap::default();
    let mut found = Vec::with_capacity(tasks.len());
    // Where the path from each task ends, once it was followed. All tasks on a path have the same
    // process, so their paths end there too.
    let mut ends: Vec<Option<usize>> = vec![None; tasks.len()];
    let mut way = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let key = (task.session, task.pid);
        let mut at = index;
        // Threads create threads. A garbage log may state that two created each other: a path ends
        // where it returns to itself.
        let mut first = loop {
            if let Some(end) = ends[at] {
                break end;
            }
            ends[at] = Some(index);
            way.push(at);
            match tasks[at].parent.filter(|parent| (tasks[*parent].session, tasks[*parent].pid) == key) {
                Some(parent) => at = parent,
                None => break at,
            }
        };
        way.drain(..).for_each(|task| ends[task] = Some(first));
        if first == index && task.tid != task.pid {
            first = *current.entry(key).or_insert(index);
        } else if first == index {
            current.insert(key, index);
        }
        found.push(i32::try_from(first).unwrap_or(i32::MAX));
    }
    found
}

/// Depth of each task below its root, and its index in depth-first order, children by start.
fn tree(tasks: &[Task]) -> (Vec<i32>, Vec<i32>) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut open: Vec<(usize, i32)> = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        match task.parent {
            Some(parent) => children[parent].push(index),
            None => open.push((index, 0)),
        }
    }
    for list in &mut children {
        list.sort_by_key(|child| tasks[*child].start_ns);
    }
    open.reverse();
    let (mut depths, mut orders) = (vec![0; tasks.len()], vec![0; tasks.len()]);
    let mut next = 0;
    while let Some((index, depth)) = open.pop() {
        depths[index] = depth;
        orders[index] = next;
        next += 1;
        open.extend(children[index].iter().rev().map(|child| (*child, depth + 1)));
    }
    (depths, orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tid: i32, parent: Option<usize>) -> Task {
        let (program, exit_code, exit_signal, usage) = (None, None, None, None);
        Task {
            session: 0,
            pid: 1,
            tid,
            ppid: None,
            parent,
            start_ns: 0,
            end_ns: None,
            program,
            name: None,
            execs: 0,
            calls: 0,
            exit_code,
            exit_signal,
            user_id: None,
            usage,
        }
    }

    #[test]
    fn a_long_chain_of_threads_is_gone_once() {
        // Each was created by the next one; at the end, two created each other.
        let count = 300_000;
        let mut tasks: Vec<Task> = (0..count).map(|index| task(i32::try_from(index).unwrap() + 2, Some(index + 1))).collect();
        tasks.push(task(1, None));
        assert!(processes(&tasks).iter().all(|process| usize::try_from(*process).unwrap() == count));
        tasks[count].parent = Some(count - 1);
        assert_eq!(processes(&tasks).len(), tasks.len());
    }
}
