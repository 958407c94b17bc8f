//! The view `process`, and the activity of each process in an interval: from an iterator over the
//! kernel's threads, or from /proc if there is no right to load one.

use std::{collections::HashMap, fs};

use sysdock_bpf::live::{CallSum, CallSums, Counts, Process, Tasks};

use super::{
    table::Cell,
    views::{View, cannot, unreadable},
};
use crate::{messages::Message, privileges};

/// The activity of a process in an interval.
pub(super) struct Change {
    pub(super) process: Process,
    pub(super) done: Counts,
    /// Which values are known: not all are, if they come from /proc.
    pub(super) known: Known,
}

/// The known values of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    All,
    /// All except waits, as in /proc.
    Bytes,
    /// Neither waits nor bytes: the process belongs to another user.
    Cpu,
}

/// Reads processes repeatedly.
pub(super) struct Processes {
    /// `None`: from /proc.
    tasks: Option<Tasks>,
    before: HashMap<(u32, u64), Counts>,
    ticks_each_second: u64,
}

impl Processes {
    pub(super) fn begin() -> Processes {
        let ticks_each_second = rustix::param::clock_ticks_per_second().max(1);
        Processes { tasks: Tasks::open().ok(), before: HashMap::new(), ticks_each_second }
    }

    pub(super) fn note(&self) -> Option<String> {
        let missing = privileges::missing();
        let why = if missing.is_empty() { "that this kernel refuses".to_string() } else { missing.join(" and ") };
        self.tasks.is_none().then(|| format!("waits and switches need {why}; bytes of other users' processes need root"))
    }

    /// The activity of each process since the last time.
    pub(super) fn changes(&mut self) -> Result<Vec<Change>, Message> {
        let now = match &mut self.tasks {
            Some(tasks) => {
                let all = tasks.read().map_err(|error| unreadable(&error))?;
                all.into_iter().map(|process| (process, Known::All)).collect()
            }
            None => from_proc(self.ticks_each_second),
        };
        let key = |process: &Process| (process.pid, process.start);
        let after = now.iter().map(|(process, _)| (key(process), process.counts)).collect();
        let before = std::mem::replace(&mut self.before, after);
        let change = |(process, known): (Process, Known)| {
            // Everything of a new process is new. Numbers of threads that end may be missing for a
            // moment.
            let then = before.get(&key(&process)).copied().unwrap_or_default();
            Change { done: process.counts.with(&then, u64::saturating_sub), process, known }
        };
        Ok(now.into_iter().map(change).collect())
    }
}

fn from_proc(ticks_each_second: u64) -> Vec<(Process, Known)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| one_from_proc(pid, ticks_each_second)).collect()
}

/// `None`: the process has ended.
fn one_from_proc(pid: u32, ticks_each_second: u64) -> Option<(Process, Known)> {
    let mut process = parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?, ticks_each_second)?;
    process.pid = pid;
    let Ok(io) = fs::read_to_string(format!("/proc/{pid}/io")) else { return Some((process, Known::Cpu)) };
    add_io(&mut process.counts, &io);
    Some((process, Known::Bytes))
}

/// Parse a line of proc_pid_stat(5); the name in parentheses may contain parentheses.
pub(super) fn parse_stat(stat: &[u8], ticks_each_second: u64) -> Option<Process> {
    let begin = stat.iter().position(|byte| *byte == b'(')? + 1;
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<u64> = std::str::from_utf8(stat.get(end + 1..)?)
        .ok()?
        .split_ascii_whitespace()
        // The state and negative numbers are not used.
        .map(|field| field.parse().unwrap_or(0))
        .collect();
    // After the name comes field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let cpu_ns = (field(14)? + field(15)?) * (1_000_000_000 / ticks_each_second);
    let counts = Counts { cpu_ns, major_faults: field(12)?, ..Counts::default() };
    let name = stat.get(begin..end)?.to_vec();
    Some(Process { start: field(22)?, name, threads: field(20)?, counts, ..Process::default() })
}

/// proc_pid_io(5).
fn add_io(counts: &mut Counts, io: &str) {
    for (name, number) in io.lines().filter_map(|line| line.split_once(": ")) {
        let number = number.trim().parse().unwrap_or(0);
        match name {
            "rchar" => counts.read_bytes = number,
            "wchar" => counts.written_bytes = number,
            "read_bytes" => counts.disk_read_bytes = number,
            "write_bytes" => counts.disk_written_bytes = number,
            _ => {}
        }
    }
}

/// The cells of the activity: times and switches, then bytes.
pub(super) fn cells(done: &Counts, known: Known) -> ([Cell; 4], [Cell; 4]) {
    let waits = |cell: Cell| if known == Known::All { cell } else { Cell::Missing };
    let bytes = |number: u64| if known == Known::Cpu { Cell::Missing } else { Cell::Whole(number) };
    (
        [
            Cell::seconds(done.cpu_ns),
            waits(Cell::seconds(done.cpu_wait_ns)),
            waits(Cell::Whole(done.switches)),
            waits(Cell::Whole(done.preemptions)),
        ],
        [done.read_bytes, done.written_bytes, done.disk_read_bytes, done.disk_written_bytes].map(bytes),
    )
}

/// The view of processes.
pub(super) struct Rows {
    processes: Processes,
    calls: Option<CallSums>,
}

impl Rows {
    pub(super) fn begin(with_calls: bool) -> Result<Rows, Message> {
        let counted = || CallSums::begin().map_err(|error| cannot("counting system calls (y, --calls)", &error));
        let calls = with_calls.then(counted).transpose()?;
        Ok(Rows { processes: Processes::begin(), calls })
    }
}

impl View for Rows {
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message> {
        let changes = self.processes.changes()?;
        let sums = self.calls.as_mut().map(CallSums::take).transpose().map_err(|error| unreadable(&error))?;
        let sums: Option<HashMap<u32, CallSum>> = sums.map(|sums| sums.into_iter().map(|sum| (sum.pid, sum)).collect());
        Ok(changes.iter().map(|change| row(change, sums.as_ref())).collect())
    }

    fn lost(&self) -> u64 {
        self.calls.as_ref().map_or(0, CallSums::lost)
    }

    fn note(&self) -> Option<String> {
        self.processes.note()
    }
}

fn row(change: &Change, calls: Option<&HashMap<u32, CallSum>>) -> Vec<Cell> {
    let Change { process, done, known } = change;
    let ([cpu, wait, switches, preemptions], bytes) = cells(done, *known);
    let end = [Cell::Whole(done.major_faults), Cell::Whole(process.threads), Cell::name(&process.name)];
    let mut row = vec![Cell::Whole(process.pid.into()), cpu, wait];
    if let Some(calls) = calls {
        let sum = calls.get(&process.pid).copied().unwrap_or_default();
        row.extend([Cell::Whole(sum.calls), Cell::Whole(sum.errors), Cell::seconds(sum.time_ns)]);
        row.extend(bytes);
        row.extend([switches, preemptions]);
    } else {
        row.extend([switches, preemptions]);
        row.extend(bytes);
    }
    row.extend(end);
    row
}
