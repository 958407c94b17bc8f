//! Lives of threads and processes: `processes` and `commands`.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError};

/// A program: what exec sets.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Program {
    pub comm_id: i32,
    pub command: String,
}

/// A row of `processes`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Life {
    pub session: u32,
    pub pid: i32,
    pub tid: i32,
    pub ppid: Option<i32>,
    /// Row of the thread that made it.
    pub parent: Option<usize>,
    pub start_ns: i64,
    pub end_ns: Option<i64>,
    pub program: Option<Rc<Program>>,
    pub execs: i64,
    pub calls: i64,
    pub exit_code: Option<i32>,
    pub exit_signal: Option<String>,
    pub usage: Option<Usage>,
}

/// What the kernel counted for a thread up to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
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
    let ids: Vec<Option<i32>> = (0..).map(Some).take(names.len()).collect();
    let rows = || vec![Column::Int32(ids.clone()), Column::String(names.iter().cloned().map(Some).collect())];
    recording.replace("commands", (!names.is_empty()).then(rows).into_iter())
}

/// Write `processes`.
pub fn write_processes(recording: &mut Recording, lives: &[Life], sessions: &[String]) -> Result<(), TableError> {
    let (depths, orders) = tree(lives);
    let processes = processes(lives);
    let group = |(number, rows): (usize, &[Life])| {
        let from = number * ROWS_PER_GROUP;
        let used = |field: fn(&Usage) -> i64| Column::Int64(rows.iter().map(|life| life.usage.as_ref().map(field)).collect());
        vec![
            Column::Int32((0..).skip(from).take(rows.len()).map(Some).collect()),
            Column::Int32(processes[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int32(rows.iter().map(|life| Some(life.pid)).collect()),
            Column::Int32(rows.iter().map(|life| Some(life.tid)).collect()),
            Column::Int32(rows.iter().map(|life| life.ppid).collect()),
            Column::Int32(depths[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int32(orders[from..from + rows.len()].iter().copied().map(Some).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.start_ns)).collect()),
            Column::Int64(rows.iter().map(|life| life.end_ns).collect()),
            Column::Int32(rows.iter().map(|life| life.program.as_ref().map(|program| program.comm_id)).collect()),
            Column::String(rows.iter().map(|life| life.program.as_ref().map(|program| program.command.clone())).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.execs)).collect()),
            Column::Int64(rows.iter().map(|life| Some(life.calls)).collect()),
            Column::Int32(rows.iter().map(|life| life.exit_code).collect()),
            Column::words(rows.iter().map(|life| life.exit_signal.as_deref())),
            Column::words(rows.iter().map(|life| Some(sessions[life.session as usize].as_str()))),
            used(|usage| usage.user_ns),
            used(|usage| usage.system_ns),
            used(|usage| usage.minor_faults),
            used(|usage| usage.major_faults),
            used(|usage| usage.read_chars),
            used(|usage| usage.write_chars),
            used(|usage| usage.device_read_bytes),
            used(|usage| usage.device_write_bytes),
        ]
    };
    recording.replace("processes", lives.chunks(ROWS_PER_GROUP).enumerate().map(group))
}

/// The process of each life, named by the life of its first thread. A thread belongs to the process that made it where the log shows
/// that, else to the last process with its id in the same log.
fn processes(lives: &[Life]) -> Vec<i32> {
    let mut current: FxHashMap<(u32, i32), usize> = FxHashMap::default();
    let mut found = Vec::with_capacity(lives.len());
    // Where the way from each life ends: the way of a later one ends there too.
    let mut ends: Vec<usize> = Vec::with_capacity(lives.len());
    for (index, life) in lives.iter().enumerate() {
        let key = (life.session, life.pid);
        let mut first = index;
        // Threads make threads; the walk is as long as that chain, and never longer than all lives.
        for _ in 0..lives.len() {
            match lives[first].parent.filter(|parent| (lives[*parent].session, lives[*parent].pid) == key) {
                Some(parent) if parent < index => {
                    first = ends[parent];
                    break;
                }
                Some(parent) => first = parent,
                None => break,
            }
        }
        ends.push(first);
        if first == index && life.tid != life.pid {
            first = *current.entry(key).or_insert(index);
        } else if first == index {
            current.insert(key, index);
        }
        found.push(i32::try_from(first).unwrap_or(i32::MAX));
    }
    found
}

/// Depth of each life below its root, and its place in depth-first order, children by start.
fn tree(lives: &[Life]) -> (Vec<i32>, Vec<i32>) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); lives.len()];
    let mut open: Vec<(usize, i32)> = Vec::new();
    for (index, life) in lives.iter().enumerate() {
        match life.parent {
            Some(parent) => children[parent].push(index),
            None => open.push((index, 0)),
        }
    }
    for list in &mut children {
        list.sort_by_key(|child| lives[*child].start_ns);
    }
    open.reverse();
    let (mut depths, mut orders) = (vec![0; lives.len()], vec![0; lives.len()]);
    let mut next = 0;
    while let Some((index, depth)) = open.pop() {
        depths[index] = depth;
        orders[index] = next;
        next += 1;
        open.extend(children[index].iter().rev().map(|child| (*child, depth + 1)));
    }
    (depths, orders)
}
