//! Writes what was read as rows.

mod counts;
mod panic;
mod requests;
mod sockets;

use std::{cell::RefCell, path::Path};

use rustc_hash::FxHashMap;
use sysdock_table::{
    Recording, TableError, readable,
    rows::{self, Row},
};

use sysdock_table::{Fact, facts::dump as facts};

use crate::{
    Clock, Fault, Frame, Kernel, LockWait, Log, MemoryUse, OpenFile, OpenFiles, Processor, Stacks, Task, Tasks,
    debug_info::Line,
    panic::{STOPS, stop_of},
};

/// A part of what is read of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Tasks with their times: `dump_tasks`.
    Tasks,
    /// Stacks of tasks: `dump_stacks`, `dump_frames`, and two columns of `dump_tasks`.
    Stacks,
    /// Locks for which tasks wait: `dump_locks`.
    Locks,
    /// The log: `dump_log`.
    Log,
    /// Use of memory: `dump_memory` and `dump_slabs`.
    Memory,
    /// Open files: `dump_files`.
    Files,
    /// Mounts: `dump_mounts`.
    Mounts,
    /// Modules: `dump_modules`.
    Modules,
    /// Processors: `dump_cpus`.
    Processors,
    /// Where and why the kernel stopped: `dump_panic` and `dump_registers`.
    Panic,
    /// Requests that disks had not completed: `dump_requests`.
    Requests,
    /// Sockets: `dump_sockets`.
    Sockets,
    /// Numbers that the kernel keeps twice: `dump_counts`.
    Counts,
    /// The content of a flight recorder; the caller makes its tables: see [`Kernel::bpf_arrays`].
    Flight,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 14] = [
        Part::Tasks,
        Part::Stacks,
        Part::Locks,
        Part::Log,
        Part::Memory,
        Part::Files,
        Part::Mounts,
        Part::Modules,
        Part::Processors,
        Part::Panic,
        Part::Requests,
        Part::Sockets,
        Part::Counts,
        Part::Flight,
    ];

    /// Name in commands and scripts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Tasks => "tasks",
            Part::Stacks => "stacks",
            Part::Locks => "locks",
            Part::Log => "log",
            Part::Memory => "memory",
            Part::Files => "files",
            Part::Mounts => "mounts",
            Part::Modules => "modules",
            Part::Processors => "processors",
            Part::Panic => "panic",
            Part::Requests => "requests",
            Part::Sockets => "sockets",
            Part::Counts => "counts",
            Part::Flight => "flight",
        }
    }

    /// The part with this name.
    #[must_use]
    pub fn named(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.name() == word)
    }

    /// The tables that it writes.
    #[must_use]
    pub fn tables(self) -> &'static [&'static str] {
        match self {
            Part::Tasks => &["dump_tasks"],
            Part::Stacks => &["dump_tasks", "dump_stacks", "dump_frames"],
            Part::Locks => &["dump_locks"],
            Part::Log => &["dump_log"],
            Part::Memory => &["dump_memory", "dump_slabs"],
            Part::Files => &["dump_files"],
            Part::Mounts => &["dump_mounts"],
            Part::Modules => &["dump_modules"],
            Part::Processors => &["dump_cpus"],
            Part::Panic => &["dump_panic", "dump_registers"],
            Part::Requests => &["dump_requests"],
            Part::Sockets => &["dump_sockets"],
            Part::Counts => &["dump_counts"],
            Part::Flight => &[],
        }
    }
}

impl Part {
    /// Whether it is found through tasks.
    fn needs_tasks(self) -> bool {
        !matches!(self, Part::Log | Part::Memory | Part::Modules | Part::Processors | Part::Panic | Part::Requests)
    }
}

/// The parts to read, and those that were begun.
struct Selection<'a> {
    kernel: &'a Kernel,
    parts: &'a [Part],
    begins: &'a dyn Fn(Part),
    begun: RefCell<Vec<Part>>,
}

impl Selection<'_> {
    /// Whether to read a part now: it was requested, and reading was not cancelled.
    fn begin(&self, part: Part) -> bool {
        let is_wanted = self.parts.contains(&part) && !self.kernel.memory.is_cancelled();
        if is_wanted {
            (self.begins)(part);
            self.begun.borrow_mut().push(part);
        }
        is_wanted
    }
}

/// Outcome of reading a dump.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks that were read completely.
    pub whole_tasks: u64,
    /// Why the kernel stopped, in its own words.
    pub panic: Option<String>,
    /// Name of the machine, if it had one.
    pub host: Option<String>,
    /// The clocks; `None`: they cannot be read, and times are known since boot only.
    pub clock: Option<Clock>,
    /// When the kernel stopped, by the log clock.
    pub stopped_ns: Option<u64>,
    /// Whether reading was cancelled.
    pub interrupted: bool,
    /// Values of `import_issues.issue`, and details.
    pub issues: Vec<(&'static str, Fact)>,
}

/// Value of `import_issues.issue`: a part of the dump is missing or damaged. Explained in
/// docs/reference/import-issues.md, as is the next one.
pub const UNREADABLE: &str = "dump_unreadable";
const REMARK: &str = "dump_remark";

/// Destination of rows.
pub trait Sink {
    /// Write rows of one table.
    ///
    /// # Errors
    /// [`TableError`]: they cannot be written.
    fn write_rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TableError>;

    /// Record that this table was read, even if it has no rows.
    fn has(&mut self, table: &'static str);
}

impl Sink for Recording {
    fn write_rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TableError> {
        Recording::write_rows(self, rows)
    }

    fn has(&mut self, table: &'static str) {
        self.manifest.tables.entry(table.into()).or_default();
    }
}

/// Read these parts of a kernel into a recording; `begins` is called with the part that comes next.
/// Parts that had not begun when reading was cancelled ([`Kernel::cancel_by`]) have no tables.
///
/// # Errors
/// [`TableError`]: the recording cannot be written. What cannot be read of the dump is in the
/// outcome, and in `import_issues`.
pub fn write(
    kernel: &Kernel,
    path: &Path,
    parts: &[Part],
    out: &mut impl Sink,
    begins: &dyn Fn(Part),
) -> Result<Outcome, TableError> {
    let selection = Selection { kernel, parts, begins, begun: RefCell::default() };
    let mut outcome = write_selected(&selection, out)?;
    let remarks = kernel.description().remarks.iter();
    outcome.issues.splice(..0, remarks.map(|remark| (REMARK, remark.clone())));
    // This is the name of a machine without a name.
    let host = kernel.host().ok().filter(|host| !host.is_empty() && host != "(none)");
    outcome.host = host.map(|host| readable(host.as_bytes()).into_owned());
    let source = path.to_string_lossy();
    out.write_rows(outcome.issues.iter().map(|(issue, detail)| rows::ImportIssues {
        source: source.as_ref().into(),
        line: 0,
        issue: (*issue).into(),
        understood: *issue == REMARK,
        detail: detail.clone().into(),
        excerpt: None,
    }))?;
    write_description(kernel, path, &outcome, out)?;
    for table in selection.begun.borrow().iter().flat_map(|part| part.tables()) {
        out.has(table);
    }
    Ok(outcome)
}

/// Write the tables of these parts, and nothing about the dump itself.
pub(crate) fn write_parts(kernel: &Kernel, parts: &[Part], out: &mut impl Sink) -> Result<Outcome, TableError> {
    write_selected(&Selection { kernel, parts, begins: &|_| {}, begun: RefCell::default() }, out)
}

fn write_selected(selection: &Selection<'_>, out: &mut impl Sink) -> Result<Outcome, TableError> {
    let kernel = selection.kernel;
    let mut outcome = Outcome::default();
    let clock = kernel.clock();
    note(&mut outcome, "the clocks", clock.as_ref().err());
    outcome.clock = clock.ok();
    let log = kernel.log();
    if let Ok(log) = &log {
        outcome.panic = panic_of(log);
        if selection.begin(Part::Log) {
            write_log(log, outcome.clock.as_ref(), out)?;
        }
        if log.unread > 0 {
            outcome.issues.push((UNREADABLE, facts::log_records_unread(log.unread)));
        }
    }
    note(&mut outcome, "the log", log.as_ref().err());
    outcome.stopped_ns = kernel.stopped_ns(log.as_ref().ok());
    if selection.begin(Part::Panic) {
        panic::write(kernel, log.as_ref().ok(), &outcome, out)?;
    }
    write_tasks(selection, log.as_ref().ok(), out, &mut outcome)?;
    if selection.begin(Part::Requests) {
        requests::write(kernel, out, &mut outcome)?;
    }
    if selection.begin(Part::Memory) {
        write_memory(kernel, out, &mut outcome)?;
    }
    if selection.begin(Part::Processors) {
        let found = kernel.processors();
        note(&mut outcome, "processors", found.as_ref().err());
        out.write_rows(found.unwrap_or_default().iter().map(processor_row))?;
    }
    if selection.begin(Part::Modules) {
        write_modules(kernel, out, &mut outcome)?;
    }
    outcome.interrupted = kernel.memory.is_cancelled();
    Ok(outcome)
}

fn note(outcome: &mut Outcome, what: &str, fault: Option<&Fault>) {
    outcome.issues.extend(fault.map(|fault| (UNREADABLE, facts::unread(what, fault.name()))));
}

/// Write tasks, stacks and locks: each needs the one before.
fn write_tasks(
    selection: &Selection<'_>,
    log: Option<&Log>,
    out: &mut impl Sink,
    outcome: &mut Outcome,
) -> Result<(), TableError> {
    let Selection { kernel, parts, .. } = *selection;
    if !parts.iter().any(|part| part.needs_tasks()) || kernel.memory.is_cancelled() {
        return Ok(());
    }
    let wants_rows = selection.begin(Part::Tasks);
    let found = kernel.tasks();
    note(outcome, "the tasks", found.as_ref().err());
    let found = found.unwrap_or_default();
    if selection.begin(Part::Counts) {
        counts::write(kernel, &found, log, out)?;
    }
    let Tasks { tasks, broken } = found;
    outcome.issues.extend(broken.iter().map(|(what, fault)| (UNREADABLE, facts::unread(what.as_str(), fault.name()))));
    write_of_tasks(selection, &tasks, out, outcome)?;
    outcome.tasks = tasks.len() as u64;
    outcome.whole_tasks = tasks.iter().filter(|task| task.fault.is_none()).count() as u64;
    let (wants_stacks, wants_locks) = (selection.begin(Part::Stacks), selection.begin(Part::Locks));
    let mut stacks = Stacks::default();
    if wants_stacks || wants_locks {
        match kernel.stacks(&tasks) {
            Ok(found) => stacks = found,
            Err(fault) => note(outcome, "the stacks", Some(&fault)),
        }
    }
    if wants_rows || wants_stacks {
        let row = |(number, task)| task_row(task, outcome, stacks.of_tasks.get(number), stacks.waits.get(number));
        out.write_rows(tasks.iter().enumerate().map(row))?;
    }
    if wants_stacks {
        out.write_rows(stack_rows(&stacks))?;
        let lines = &lines_of(kernel, &stacks);
        let each = stacks.stacks.iter().enumerate();
        out.write_rows(each.flat_map(|(number, (frames, fault))| frame_rows(number, frames, *fault, lines)))?;
    }
    if wants_locks {
        let locks = kernel.locks(&tasks, &stacks);
        out.write_rows(locks.iter().map(|lock| lock_row(lock, &tasks, &stacks)))?;
    }
    Ok(())
}

/// Write what is found through tasks: open files, mounts.
fn write_of_tasks(
    selection: &Selection<'_>,
    tasks: &[Task],
    out: &mut impl Sink,
    outcome: &mut Outcome,
) -> Result<(), TableError> {
    let kernel = selection.kernel;
    let (wants_files, wants_sockets) = (selection.begin(Part::Files), selection.begin(Part::Sockets));
    if wants_files || wants_sockets {
        let found = kernel.files(tasks);
        note(outcome, "open files", found.as_ref().err());
        let OpenFiles { files, broken } = found.unwrap_or_default();
        for (task, fault) in broken {
            let pid = tasks.get(task).and_then(|task| task.pid).unwrap_or(0);
            note(outcome, &format!("open files of process {pid}"), Some(&fault));
        }
        if wants_files {
            out.write_rows(files.iter().map(|file| file_row(file, tasks)))?;
        }
        if wants_sockets {
            sockets::write(kernel, (&files, tasks), out, outcome)?;
        }
    }
    if selection.begin(Part::Mounts) {
        let found = kernel.mounts(tasks);
        note(outcome, "mounts", found.as_ref().err());
        let (mounts, broken) = found.unwrap_or_default();
        note(outcome, "the list of mounts", broken.as_ref());
        out.write_rows(mounts.iter().map(|mount| rows::DumpMounts {
            path: readable(mount.path.as_bytes()),
            fs_type: readable(mount.fs_type.as_bytes()),
            source: readable(mount.source.as_bytes()),
            read_only: mount.is_read_only,
            status: mount.fault.map_or("ok", Fault::name).into(),
        }))?;
    }
    Ok(())
}

fn file_row<'f>(file: &'f OpenFile, tasks: &[Task]) -> rows::DumpFiles<'f> {
    let signed = |value: Option<u64>| value.map(u64::cast_signed);
    rows::DumpFiles {
        pid: tasks.get(file.task).and_then(|task| task.tgid).map(u32::cast_signed),
        fd: i32::try_from(file.descriptor).unwrap_or(i32::MAX),
        path: file.path.as_deref().map(|path| readable(path.as_bytes())),
        kind: file.mode.map(|mode| kind_of(mode).into()),
        position_bytes: signed(file.position),
        size_bytes: signed(file.size),
        inode: signed(file.inode),
        status: file.fault.map_or("ok", Fault::name).into(),
    }
}

/// Kind of a file, by its mode.
fn kind_of(mode: u64) -> &'static str {
    match mode >> 12 & 15 {
        1 => "pipe",
        2 => "device",
        4 => "directory",
        6 => "block device",
        8 => "file",
        10 => "link",
        12 => "socket",
        _ => "other",
    }
}

fn processor_row(processor: &Processor) -> rows::DumpCpus<'static> {
    let time = |kind: &str| processor.time(kind).map(u64::cast_signed);
    rows::DumpCpus {
        cpu: processor.cpu as i32,
        current_pid: processor.current_pid.map(u32::cast_signed),
        ready_tasks: i32::try_from(processor.ready).unwrap_or(i32::MAX),
        clock_ns: processor.clock_ns.cast_signed(),
        user_ns: time("CPUTIME_USER"),
        nice_ns: time("CPUTIME_NICE"),
        system_ns: time("CPUTIME_SYSTEM"),
        irq_ns: time("CPUTIME_IRQ"),
        softirq_ns: time("CPUTIME_SOFTIRQ"),
        idle_ns: time("CPUTIME_IDLE"),
        iowait_ns: time("CPUTIME_IOWAIT"),
        steal_ns: time("CPUTIME_STEAL"),
        status: processor.fault.map_or("ok", Fault::name).into(),
    }
}

fn write_modules(kernel: &Kernel, out: &mut impl Sink, outcome: &mut Outcome) -> Result<(), TableError> {
    let found = kernel.modules();
    note(outcome, "modules", found.as_ref().err());
    let (modules, broken) = found.unwrap_or_default();
    note(outcome, "the list of modules", broken.as_ref());
    out.write_rows(modules.iter().map(|module| rows::DumpModules {
        name: readable(module.name.as_bytes()),
        bytes: module.bytes.cast_signed(),
        users: module.users.cast_signed(),
        taints: module.taints.cast_signed(),
        status: module.fault.map_or("ok", Fault::name).into(),
    }))
}

fn task_row<'t>(
    task: &'t Task,
    outcome: &Outcome,
    stack: Option<&Option<usize>>,
    wait: Option<&'t Option<String>>,
) -> rows::DumpTasks<'t> {
    let signed = |value: Option<u64>| value.map(u64::cast_signed);
    let clock = outcome.clock;
    rows::DumpTasks {
        pid: task.pid.map(u32::cast_signed),
        tgid: task.tgid.map(u32::cast_signed),
        ppid: task.ppid.map(u32::cast_signed),
        comm: task.comm.as_deref().map(|comm| readable(comm.as_bytes())),
        full_name: task.name().map(|name| readable(name.as_bytes())),
        state: task.letter().map(|letter| letter.to_string().into()),
        cpu: task.cpu.map(u32::cast_signed),
        user_ns: signed(task.user_ns),
        system_ns: signed(task.system_ns),
        run_ns: signed(task.run_ns),
        queue_ns: signed(task.queue_ns),
        start_ns: signed(task.start_ns),
        start_ts_ns: clock.zip(task.start_ns).map(|(clock, start)| clock.epoch_of_boot(start.cast_signed())),
        arrived_ts_ns: clock.zip(task.arrived_ns).map(|(clock, arrived)| clock.epoch_of_log(arrived)),
        wait_ns: outcome.stopped_ns.zip(task.left_ns).map(|(stopped, left)| stopped.saturating_sub(left).cast_signed()),
        rss_bytes: signed(task.rss_bytes),
        read_bytes: signed(task.read_bytes),
        write_bytes: signed(task.write_bytes),
        stack_id: stack.copied().flatten().map(|stack| stack as i32),
        wait_function: wait.and_then(|wait| wait.as_deref()).map(Into::into),
        address: task.address.cast_signed(),
        status: task.fault.map_or("ok", Fault::name).into(),
    }
}

fn stack_rows(stacks: &Stacks) -> impl Iterator<Item = rows::DumpStacks<'_>> {
    let mut tasks = vec![0; stacks.stacks.len()];
    for stack in stacks.of_tasks.iter().flatten() {
        tasks.get_mut(*stack).into_iter().for_each(|number| *number += 1);
    }
    stacks.stacks.iter().zip(tasks).enumerate().map(|(number, ((frames, fault), tasks))| {
        let name = |frame: &Frame| match (&frame.function, &frame.module) {
            (Some((name, _)), Some(module)) => format!("{name} [{module}]"),
            (Some((name, _)), None) => name.clone(),
            (None, _) => "?".into(),
        };
        let names: Vec<String> = frames.iter().map(name).collect();
        rows::DumpStacks {
            stack_id: number as i32,
            tasks,
            frames: names.join(" < ").into(),
            status: fault.map_or("ok", Fault::name).into(),
        }
    })
}

/// Source lines of the frames of the kernel itself, by the address of the instruction: that of a
/// call, not the one after it. Empty without debug information.
fn lines_of(kernel: &Kernel, stacks: &Stacks) -> FxHashMap<u64, Line> {
    let Some(debug_info) = &kernel.debug_info else { return FxHashMap::default() };
    let frames = stacks.stacks.iter().flat_map(|(frames, _)| frames);
    let mut addresses: Vec<u64> = frames.filter(|frame| frame.module.is_none()).map(|frame| frame.instruction).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let lines = debug_info.lines(&addresses);
    addresses.into_iter().zip(lines).collect()
}

fn frame_rows<'f>(
    number: usize,
    frames: &'f [Frame],
    fault: Option<Fault>,
    lines: &'f FxHashMap<u64, Line>,
) -> impl Iterator<Item = rows::DumpFrames<'f>> {
    let why = fault.map_or("ok", Fault::name);
    let line = |frame: Option<&Frame>| frame.and_then(|frame| lines.get(&frame.instruction));
    let row = move |place: usize, frame: Option<&'_ Frame>, status: &'static str| rows::DumpFrames {
        stack_id: number as i32,
        frame: place as i32,
        function: frame.and_then(|frame| frame.function.as_ref()).map(|(name, _)| name.clone().into()),
        module: frame.and_then(|frame| frame.module.as_deref()).map(|name| readable(name.as_bytes()).into_owned().into()),
        offset: frame.and_then(|frame| frame.function.as_ref()).map(|(_, offset)| offset.cast_signed()),
        address: frame.map(|frame| frame.address.cast_signed()),
        source: line(frame).and_then(|line| line.place.as_deref()).map(|place| readable(place.as_bytes())),
        inlined: line(frame).filter(|line| !line.inlined.is_empty()).map(|line| line.inlined.join(" < ").into()),
        status: status.into(),
    };
    let last = frames.len().saturating_sub(1);
    let none = frames.is_empty().then(|| row(0, None, why));
    let known =
        frames.iter().enumerate().map(move |(place, frame)| row(place, Some(frame), if place == last { why } else { "ok" }));
    none.into_iter().chain(known)
}

fn lock_row<'l>(lock: &LockWait, tasks: &[Task], stacks: &'l Stacks) -> rows::DumpLocks<'l> {
    let pid = |task: usize| tasks.get(task).and_then(|task| task.pid).map(u32::cast_signed);
    let status = match lock {
        LockWait { depth: None, .. } => "deadlock",
        LockWait { is_of_readers: true, .. } => "held by readers",
        LockWait { holder: None, .. } => "no holder",
        _ => "ok",
    };
    rows::DumpLocks {
        kind: lock.kind.name().into(),
        lock: format!("{:016x}", lock.lock).into(),
        holder_pid: lock.holder.and_then(pid),
        waiter_pid: pid(lock.waiter),
        wait_function: stacks.waits.get(lock.waiter).and_then(|wait| wait.as_deref()).map(Into::into),
        depth: lock.depth.map(u32::cast_signed),
        root_pid: lock.root.and_then(pid),
        status: status.into(),
    }
}

fn write_memory(kernel: &Kernel, out: &mut impl Sink, outcome: &mut Outcome) -> Result<(), TableError> {
    let used = kernel.memory_use();
    note(outcome, "the counters of memory", used.as_ref().err());
    let row = |used: MemoryUse| rows::DumpMemory { name: used.name.into(), bytes: used.bytes.cast_signed() };
    out.write_rows(used.unwrap_or_default().into_iter().map(row))?;
    let slabs = kernel.slabs();
    note(outcome, "the caches of objects", slabs.as_ref().err());
    let (slabs, broken) = slabs.unwrap_or_default();
    note(outcome, "the list of caches of objects", broken.as_ref());
    out.write_rows(slabs.iter().map(|slab| rows::DumpSlabs {
        name: readable(slab.name.as_bytes()),
        object_bytes: slab.object_bytes.cast_signed(),
        objects: slab.objects.cast_signed(),
        slabs: slab.slabs.cast_signed(),
        bytes: slab.bytes.cast_signed(),
        status: slab.fault.map_or("ok", Fault::name).into(),
    }))
}

fn write_log(log: &Log, clock: Option<&Clock>, out: &mut impl Sink) -> Result<(), TableError> {
    out.write_rows(log.records.iter().map(|record| rows::DumpLog {
        ts_ns: clock.map(|clock| clock.epoch_of_log(record.after_boot_ns)),
        sequence: record.sequence.cast_signed(),
        after_boot_ns: record.after_boot_ns.cast_signed(),
        level: i32::from(record.level),
        text: readable(record.text.as_bytes()),
    }))
}

/// The message with which the kernel stopped.
fn panic_of(log: &Log) -> Option<String> {
    let found = stop_of(log)?.text.strip_prefix(STOPS)?;
    Some(readable(found.as_bytes()).into_owned())
}

fn write_description(kernel: &Kernel, path: &Path, outcome: &Outcome, out: &mut impl Sink) -> Result<(), TableError> {
    let about = kernel.description();
    out.write_rows([rows::CrashDumps {
        path: readable(path.as_os_str().as_encoded_bytes()),
        format: about.format.into(),
        release: about.release.as_deref().map(|text| readable(text.as_bytes())),
        build_id: about.build_id.as_deref().map(|text| readable(text.as_bytes())),
        pages_bytes: about.bytes.cast_signed(),
        level: about.level,
        processors: about.processors as i32,
        symbols: about.symbols as i32,
        types: about.types as i32,
        panic: outcome.panic.as_deref().map(Into::into),
    }])
}
