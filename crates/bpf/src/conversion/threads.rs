//! Threads and processes as forks, execs and exits report them: the rows of `processes`.
//!
//! States of a thread: *unknown* -> *running* (created, there before, or first seen in a call) ->
//! *ended* -> *gone* (only if switches are recorded). If a thread id is created again without an
//! end in between, that end was lost: the older task stays open.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use sysdock_calls::{Commands, Interrupted, Program, Task};

use crate::{
    events::{ExitEvent, ForkEvent, until_nul},
    families::processes::{
        events::{Exec, FoundTask, usage},
        signals,
        tasks::NO_USER,
    },
};

/// Times in /proc are counted in ticks of 10 ms: a thread that was created and one that was found
/// in /proc may be the same.
const SAME_START_NS: i64 = 20_000_000;
/// Bytes of the arguments of a program that `families/processes/processes.bpf.c` keeps; longer ones
/// are cut.
const ARGUMENT_BYTES: usize = 1024;

/// A running thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Index of its task: its row in `processes`.
    pub(crate) task: usize,
    /// Number of its program's name; -1: unknown.
    pub(crate) comm: i32,
    /// Calls that a signal interrupted.
    pub(crate) interrupted: Interrupted<()>,
    /// The exec that it is in: its path, and the program before.
    pub(crate) exec: Option<Started>,
    /// The task that it created last, by a call that may still be in progress.
    pub(crate) child: Option<usize>,
}

/// A program that was started. The return of the call follows later.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) comm_before: i32,
    pub(crate) filename: Box<[u8]>,
}

/// All threads of a recording.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    running: Vec<Option<Thread>>,
    free: Vec<usize>,
    by_tid: FxHashMap<u32, usize>,
    /// First threads that ended before their process: an exec by another thread continues their
    /// task.
    ended_first: FxHashMap<u32, usize>,
    /// Tasks that have ended, by thread id until the id is used again: they still release memory and may still wait.
    ended: FxHashMap<u32, usize>,
    pub(crate) tasks: Vec<Task>,
    /// Whether any process has more than one thread.
    pub(crate) have_threads: bool,
    pub(crate) commands: Commands,
}

fn id(number: u32) -> i32 {
    number.cast_signed()
}

impl Threads {
    #[inline]
    pub(crate) fn find(&self, tid: u32) -> Option<usize> {
        self.by_tid.get(&tid).copied()
    }

    /// The task of a running thread, or of the last one with this id.
    #[inline]
    pub(crate) fn task_of(&self, tid: u32) -> Option<usize> {
        let running = self.find(tid).and_then(|index| self.running[index].as_ref()).map(|thread| thread.task);
        running.or_else(|| self.ended.get(&tid).copied())
    }

    /// A thread that has ended leaves its CPU for the last time: its task ends then.
    pub(crate) fn is_gone(&mut self, tid: u32, at_ns: i64) {
        if let Some(task) = self.ended.get(&tid) {
            self.tasks[*task].end_ns = self.tasks[*task].end_ns.max(Some(at_ns));
        }
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Thread {
        self.running[index].as_mut().expect("indices are of running threads")
    }

    /// Process id of a thread.
    pub(crate) fn process_of(&mut self, thread: usize) -> i32 {
        let task = self.get_mut(thread).task;
        self.tasks[task].pid
    }

    /// Process id of a task.
    pub(crate) fn process(&self, task: u32) -> i32 {
        self.tasks[task as usize].pid
    }

    /// Threads that have not ended.
    pub(crate) fn running(&self) -> Vec<usize> {
        (0..self.running.len()).filter(|index| self.running[*index].is_some()).collect()
    }

    /// The thread with this id, in the process `pid` if that is known. A new task begins for a
    /// thread that was not seen before.
    pub(crate) fn thread(&mut self, tid: u32, pid: Option<u32>, now_ns: i64) -> usize {
        let found = self.find(tid);
        if let (Some(index), None) = (found, pid) {
            return index;
        }
        let index = found.unwrap_or_else(|| self.begin(tid, pid.unwrap_or(tid), now_ns));
        if let Some(pid) = pid {
            let task = self.get_mut(index).task;
            self.tasks[task].pid = id(pid);
        }
        index
    }

    /// Begin a task. A further thread of a process runs the program of that process.
    fn begin(&mut self, tid: u32, pid: u32, start_ns: i64) -> usize {
        self.have_threads |= pid != tid;
        let first = self.find(pid).filter(|_| pid != tid).map(|index| self.get_mut(index).task);
        let (program, ppid) = first.map_or((None, None), |first| (self.tasks[first].program.clone(), self.tasks[first].ppid));
        self.tasks.push(Task {
            session: 0,
            pid: id(pid),
            tid: id(tid),
            ppid,
            parent: first,
            start_ns,
            end_ns: None,
            program,
            name: None,
            execs: 0,
            calls: 0,
            exit_code: None,
            exit_signal: None,
            user_id: None,
            usage: None,
        });
        self.add(tid, self.tasks.len() - 1)
    }

    /// Add a running thread with this task.
    fn add(&mut self, tid: u32, task: usize) -> usize {
        let program = self.tasks[task].program.as_ref();
        let comm = program.map_or(-1, |program| program.comm_id);
        let thread = Thread { task, comm, interrupted: Interrupted::default(), exec: None, child: None };
        let index = self.free.pop().unwrap_or_else(|| {
            self.running.push(None);
            self.running.len() - 1
        });
        self.running[index] = Some(thread);
        self.by_tid.insert(tid, index);
        self.ended.remove(&tid);
        index
    }

    /// Remove a thread that has ended, and return it.
    fn remove(&mut self, tid: u32) -> Option<Thread> {
        let index = self.by_tid.remove(&tid)?;
        self.free.push(index);
        self.running[index].take()
    }

    fn set_program(&mut self, index: usize, program: Rc<Program>) {
        let thread = self.get_mut(index);
        thread.comm = program.comm_id;
        let task = thread.task;
        self.tasks[task].program = Some(program);
    }

    /// A thread was created. Returns an earlier thread with the same id.
    pub(crate) fn fork(&mut self, event: &ForkEvent, at_ns: i64) -> Option<Thread> {
        self.ended_first.remove(&event.tid);
        self.have_threads |= event.pid != event.tid;
        let parent = self.thread(event.parent_tid, Some(event.parent_pid), at_ns);
        let maker = self.get_mut(parent).task;
        let same_process = event.pid == event.parent_pid;
        let before = self.found_before(event.tid, at_ns);
        let replaced = if before.is_some() { None } else { self.remove(event.tid) };
        let child = before.unwrap_or_else(|| self.begin(event.tid, event.pid, at_ns));
        let child_task = self.get_mut(child).task;
        // Threads are children of the first thread of their process.
        let above = if same_process && self.tasks[maker].tid != self.tasks[maker].pid { self.tasks[maker].parent } else { None };
        let (ppid, program) = (self.tasks[maker].ppid, self.tasks[maker].program.clone());
        let task = &mut self.tasks[child_task];
        (task.pid, task.start_ns, task.user_id) = (id(event.pid), at_ns, Some(event.user_id));
        task.ppid = if same_process { ppid } else { Some(id(event.parent_pid)) };
        // A task has an earlier one as parent, so there is no cycle.
        task.parent = Some(above.unwrap_or(maker)).filter(|parent| *parent < child_task);
        if task.program.is_none() {
            let program = program.unwrap_or_else(|| self.only_named(until_nul(&event.comm)));
            self.set_program(child, program);
        }
        self.get_mut(parent).child = Some(child_task);
        replaced
    }

    /// A running thread of this id that was found in /proc when it was being created.
    fn found_before(&self, tid: u32, at_ns: i64) -> Option<usize> {
        let index = self.find(tid)?;
        let task = self.running[index].as_ref().map(|thread| &self.tasks[thread.task])?;
        (task.start_ns.abs_diff(at_ns) <= SAME_START_NS.unsigned_abs() && task.parent.is_none() && task.calls == 0)
            .then_some(index)
    }

    /// A program of which only the name is known.
    fn only_named(&mut self, comm: &[u8]) -> Rc<Program> {
        let command = sysdock_table::readable(comm).into_owned();
        Rc::new(Program { comm_id: self.commands.intern(comm), command })
    }

    /// A thread existed when recording began, at `begun_ns`. Returns an earlier thread with the
    /// same id.
    pub(crate) fn task(&mut self, event: &FoundTask<'_>, started_ns: i64, begun_ns: i64) -> Option<Thread> {
        let (fixed, name) = (&event.fixed, until_nul(&event.fixed.comm));
        let known = self.find(fixed.tid);
        let same = known.filter(|index| {
            let task = self.running[*index].as_ref().map_or(0, |thread| self.tasks[thread.task].start_ns);
            started_ns <= task.saturating_add(SAME_START_NS)
        });
        let replaced = if known.is_some() && same.is_none() { self.remove(fixed.tid) } else { None };
        let index = same.unwrap_or_else(|| self.begin(fixed.tid, fixed.pid, started_ns.max(begun_ns)));
        let task = self.get_mut(index).task;
        let above = self.find(fixed.parent_pid).map(|parent| self.get_mut(parent).task).filter(|parent| *parent < task);
        let row = &mut self.tasks[task];
        row.pid = id(fixed.pid);
        row.name = name_of(name);
        row.user_id = row.user_id.or(Some(fixed.user_id).filter(|user| *user != NO_USER));
        if fixed.pid == fixed.tid {
            row.ppid = row.ppid.or(Some(id(fixed.parent_pid)).filter(|pid| *pid != 0));
            row.parent = row.parent.or(above);
        }
        // The command itself runs nothing yet, and has no name.
        if row.program.is_none() && !name.is_empty() {
            let mut command = command_line(event.arguments, event.arguments.len() >= ARGUMENT_BYTES);
            if command.is_empty() {
                // A thread of the kernel, in the notation of ps.
                command = format!("[{}]", sysdock_table::readable(name));
            }
            let comm_id = self.commands.intern(name);
            self.set_program(index, Rc::new(Program { comm_id, command }));
        }
        replaced
    }

    /// A program was started. If the thread that called exec was not the first of its process, that
    /// thread is gone and is returned.
    pub(crate) fn exec(&mut self, event: &Exec<'_>, at_ns: i64) -> Option<Thread> {
        let (fixed, name) = (&event.fixed, until_nul(&event.fixed.comm));
        let superseded = if fixed.old_tid == fixed.tid { None } else { self.remove(fixed.old_tid) };
        if let Some(thread) = &superseded {
            self.tasks[thread.task].end_ns = Some(at_ns);
        }
        let again = self.ended_first.remove(&fixed.tid);
        let index = match (self.find(fixed.tid), again) {
            (None, Some(task)) => self.reopen(fixed.tid, task),
            _ => self.thread(fixed.tid, Some(fixed.pid), at_ns),
        };
        let thread = self.get_mut(index);
        let comm_before = superseded.as_ref().map_or(thread.comm, |thread| thread.comm);
        thread.exec = Some(Started { comm_before, filename: event.filename.into() });
        let task = thread.task;
        self.tasks[task].execs += 1;
        self.tasks[task].user_id = Some(event.fixed.user_id);
        let command = command_line(event.arguments, event.arguments.len() >= ARGUMENT_BYTES);
        let comm = if name.is_empty() { sysdock_calls::comm(event.filename) } else { name };
        let comm_id = self.commands.intern(comm);
        self.set_program(index, Rc::new(Program { comm_id, command }));
        superseded
    }

    /// The call that created a thread returned: the task began when the call did.
    pub(crate) fn forked(&mut self, thread: usize, ts_ns: i64) {
        if let Some(child) = self.get_mut(thread).child.take() {
            let task = &mut self.tasks[child];
            task.start_ns = task.start_ns.min(ts_ns);
        }
    }

    /// Continue the ended first thread of a process under the program that another thread started.
    fn reopen(&mut self, tid: u32, task: usize) -> usize {
        let row = &mut self.tasks[task];
        (row.end_ns, row.exit_code, row.exit_signal) = (None, None, None);
        self.add(tid, task)
    }

    /// A thread ended. Returns it.
    pub(crate) fn exit(&mut self, event: &ExitEvent, at_ns: i64) -> Option<Thread> {
        self.thread(event.tid, Some(event.pid), at_ns);
        let thread = self.remove(event.tid)?;
        let row = &mut self.tasks[thread.task];
        row.end_ns = Some(at_ns);
        self.ended.insert(event.tid, thread.task);
        (row.usage, row.user_id) = (Some(usage(event)), Some(event.user_id));
        row.name = name_of(until_nul(&event.comm)).or(row.name.take());
        match event.status & 0x7f {
            0 => row.exit_code = Some(id(event.status >> 8 & 0xff)),
            signal => row.exit_signal = Some(signals::name(id(signal))),
        }
        if event.tid == event.pid && event.last == 0 {
            self.ended_first.insert(event.tid, thread.task);
        }
        Some(thread)
    }
}

/// A thread's own name; `None`: it has none yet.
fn name_of(comm: &[u8]) -> Option<Box<str>> {
    (!comm.is_empty()).then(|| sysdock_table::readable(comm).to_string().into())
}

/// Arguments that end with NUL as one line, joined by blanks, with `...` if they were cut.
fn command_line(arguments: &[u8], cut: bool) -> String {
    let whole = arguments.strip_suffix(b"\0");
    let words: Vec<_> = whole.unwrap_or(arguments).split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mark = if cut && whole.is_none() { "..." } else { "" };
    words.join(" ") + mark
}
