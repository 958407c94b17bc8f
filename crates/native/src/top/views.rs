//! The views: their contents, names and requirements.

use std::time::{Duration, Instant};

use sysdock_bpf::ProbeError;

use super::{
    cgroups::Groups,
    devices::Devices,
    files::Files,
    locks::Locks,
    processes::Rows,
    table::{Cell, Column, Table, Unit},
};
use crate::{
    arguments::TopView,
    messages::{self, Message},
    privileges, sentences,
};

/// Reads the activity since the last time.
pub(super) trait View {
    /// One row for each item that was active, or exists.
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message>;

    /// Number of items that found no room in the kernel since the view began.
    fn lost(&self) -> u64 {
        0
    }

    /// Description of missing values, and a remedy.
    fn note(&self) -> Option<String> {
        None
    }
}

const PID: Column = Column::new("pid", "PID", Unit::Plain, 7);
const CPU: Column = Column::new("cpu_s", "CPU%", Unit::Seconds, 6);
const CPU_WAIT: Column = Column::new("cpu_wait_s", "WAIT%", Unit::Seconds, 6);
const SWITCHES: Column = Column::new("switches", "SWITCH", Unit::Count, 6);
const PREEMPTIONS: Column = Column::new("preemptions", "PREEMP", Unit::Count, 6);
const READ: Column = Column::new("read_bytes", "READ", Unit::Bytes, 6);
const WRITTEN: Column = Column::new("written_bytes", "WRITE", Unit::Bytes, 6);
const DISK_READ: Column = Column::new("disk_read_bytes", "DISKRD", Unit::Bytes, 6);
const DISK_WRITTEN: Column = Column::new("disk_written_bytes", "DISKWR", Unit::Bytes, 6);
const READS: Column = Column::new("reads", "READS", Unit::Count, 6);
const WRITES: Column = Column::new("writes", "WRITES", Unit::Count, 6);
const MAJOR_FAULTS: Column = Column::new("major_faults", "MAJFLT", Unit::Count, 6);
const THREADS: Column = Column::new("threads", "THR", Unit::Plain, 4);
const COMMAND: Column = Column::new("command", "COMMAND", Unit::Text, 15);

const PROCESS: [Column; 12] =
    [PID, CPU, CPU_WAIT, SWITCHES, PREEMPTIONS, READ, WRITTEN, DISK_READ, DISK_WRITTEN, MAJOR_FAULTS, THREADS, COMMAND];

const PROCESS_AND_CALLS: [Column; 15] = [
    PID,
    CPU,
    CPU_WAIT,
    Column::new("calls", "CALLS", Unit::Count, 6),
    Column::new("call_errors", "ERRORS", Unit::Count, 6),
    Column::new("call_s", "INCALL", Unit::Seconds, 6),
    READ,
    WRITTEN,
    DISK_READ,
    DISK_WRITTEN,
    SWITCHES,
    PREEMPTIONS,
    MAJOR_FAULTS,
    THREADS,
    COMMAND,
];

const CGROUP: [Column; 10] = [
    CPU,
    CPU_WAIT,
    SWITCHES,
    PREEMPTIONS,
    READ,
    WRITTEN,
    DISK_READ,
    DISK_WRITTEN,
    Column::new("processes", "PROCS", Unit::Plain, 5),
    Column::new("cgroup", "CONTROL GROUP", Unit::Text, 24),
];

const FILE: [Column; 10] = [
    Column::new("bytes", "BYTES", Unit::Bytes, 6),
    READ,
    WRITTEN,
    Column::new("time_s", "TIME%", Unit::Seconds, 6),
    Column::new("command", "USED BY", Unit::Text, 11),
    READS,
    WRITES,
    Column::new("syncs", "SYNCS", Unit::Count, 6),
    PID,
    Column::new("path", "FILE", Unit::Text, 32),
];

const DEVICE: [Column; 9] = [
    Column::new("busy_s", "BUSY%", Unit::Seconds, 6),
    READS,
    WRITES,
    READ,
    WRITTEN,
    Column::new("request_s", "MS/REQ", Unit::Each, 7),
    Column::new("depth", "DEPTH", Unit::Mean, 6),
    Column::new("in_flight", "NOW", Unit::Plain, 4),
    Column::new("device", "DEVICE", Unit::Text, 12),
];

const LOCK: [Column; 9] = [
    Column::new("wait_s", "WAIT%", Unit::Seconds, 6),
    Column::new("waits", "WAITS", Unit::Count, 6),
    Column::new("longest_s", "MAX MS", Unit::Each, 7),
    Column::new("kind", "KIND", Unit::Text, 8),
    Column::new("waiter", "WAITER", Unit::Text, 11),
    Column::new("holder", "HELD BY", Unit::Text, 11),
    Column::new("mean_s", "MEANMS", Unit::Each, 7),
    Column::new("locks", "LOCKS", Unit::Plain, 5),
    Column::new("name", "LOCK", Unit::Text, 20),
];

/// The view that is shown, and its programs in the kernel.
pub(super) struct Shown {
    view: TopView,
    with_calls: bool,
    source: Option<Box<dyn View>>,
    /// Reason why it cannot be shown.
    refusal: Option<String>,
    since: Instant,
    lost: u64,
}

impl Shown {
    pub(super) fn new(view: TopView, with_calls: bool) -> Shown {
        Shown { view, with_calls, source: None, refusal: None, since: Instant::now(), lost: 0 }
    }

    pub(super) fn view(&self) -> TopView {
        self.view
    }

    pub(super) fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Switch to another view.
    pub(super) fn turn(&mut self, view: TopView) {
        *self = Shown::new(view, self.with_calls);
    }

    /// Show processes with or without their system calls.
    pub(super) fn turn_calls(&mut self) {
        let is_shown = self.view == TopView::Process && self.with_calls;
        *self = Shown::new(TopView::Process, !is_shown);
    }

    pub(super) fn columns(&self) -> &'static [Column] {
        match self.view {
            TopView::Process if self.with_calls => &PROCESS_AND_CALLS,
            TopView::Process => &PROCESS,
            TopView::Cgroup => &CGROUP,
            TopView::File => &FILE,
            TopView::Device => &DEVICE,
            TopView::Lock => &LOCK,
        }
    }

    /// The column that rows are sorted by.
    pub(super) fn sort<'a>(&self, chosen: Option<&'a str>) -> &'a str {
        chosen.unwrap_or(match self.view {
            TopView::Process | TopView::Cgroup => CPU.name,
            TopView::File => "bytes",
            TopView::Device => "busy_s",
            TopView::Lock => "wait_s",
        })
    }

    /// The column `steps` after the one that rows are sorted by.
    pub(super) fn neighbour(&self, chosen: Option<&str>, steps: isize) -> String {
        let (columns, sort) = (self.columns(), self.sort(chosen));
        let at = columns.iter().position(|column| column.name == sort).unwrap_or(0);
        let other = (at.cast_signed() + steps).rem_euclid(columns.len().cast_signed());
        columns[other.cast_unsigned()].name.to_string()
    }

    /// The activity since the last time. `None`: there was no last time.
    pub(super) fn table(&mut self) -> Result<Option<Table>, Message> {
        let result = self.read();
        if let Err(message) = &result {
            self.refusal = Some(message.text());
        }
        result
    }

    fn read(&mut self) -> Result<Option<Table>, Message> {
        let Some(source) = &mut self.source else {
            let mut source = begin(self.view, self.with_calls)?;
            source.rows()?;
            (self.lost, self.since, self.source) = (source.lost(), Instant::now(), Some(source));
            return Ok(None);
        };
        let rows = source.rows()?;
        let (interval, lost) = (self.since.elapsed(), source.lost());
        let note = source.note();
        let lost_now = lost - std::mem::replace(&mut self.lost, lost);
        self.since = Instant::now();
        Ok(Some(self.of(rows, interval, lost_now, note)))
    }

    fn of(&self, rows: Vec<Vec<Cell>>, interval: Duration, lost: u64, note: Option<String>) -> Table {
        let nothing = match self.view {
            TopView::Process => "no process is seen",
            TopView::Cgroup => "no control group has a process that is seen",
            TopView::File => "no file and no block device was read or written by a system call",
            TopView::Device => "no block device has had a request since the machine was started",
            TopView::Lock => "no thread had to wait for a kernel lock",
        };
        let (view, columns, sort) = (self.view.name(), self.columns(), self.sort(None));
        Table { view, columns, sort, interval, rows, lost, note, nothing }
    }
}

fn begin(view: TopView, with_calls: bool) -> Result<Box<dyn View>, Message> {
    Ok(match view {
        TopView::Process => Box::new(Rows::begin(with_calls)?),
        TopView::Cgroup => Box::new(Groups::begin()),
        TopView::File => Box::new(Files::begin()?),
        TopView::Device => Box::new(Devices::default()),
        TopView::Lock => Box::new(Locks::begin()?),
    })
}

/// The error for something that cannot be counted.
pub(super) fn cannot(what: &str, error: &ProbeError) -> Message {
    let missing = privileges::missing();
    if missing.is_empty() {
        let (step, why) = (messages::step(error.step), sentences::sentence(&error.reason));
        let fact = format!("top: {what}: this kernel refuses to {step}: {why}");
        return Message::new(fact, "the views process, cgroup and device do without");
    }
    let fact = format!("top: {what} needs {}", missing.join(" and "));
    Message::new(fact, "run it as root; without root, the views process, cgroup and device work, but show less")
}

/// The kernel rejects reading sums that it allowed to be collected.
pub(super) fn unreadable(error: &std::io::Error) -> Message {
    Message::bare(format!("top: the kernel's sums cannot be read: {error}"))
}
