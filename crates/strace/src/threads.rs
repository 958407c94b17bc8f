//! Threads and processes as the log shows them: births, execs, ends.
//!
//! States of a thread: *running* -> *in a call* (it has an open half) -> *running* ... -> *ended*.
//! Invariant: a thread has at most one open half. Exception: an exec by a thread other than the
//! first ends under the first one's id, which the log announces by `+++ superseded by execve in pid
//! N +++`.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use rustc_hash::FxHashMap;

use crate::{
    fields::TextRanges,
    files::{FdTable, Held, SharedFds},
};
use sysdock_calls::{Interrupted, Program, Task};

/// First half of a call without its second half so far.
#[derive(Debug, Default)]
pub(crate) struct Half {
    /// The text before `<unfinished ...>`.
    pub(crate) text: Vec<u8>,
    /// Its name and arguments, as ranges of `text`.
    pub(crate) places: TextRanges,
    pub(crate) started_ns: i64,
    /// Source and line, for messages.
    pub(crate) place: (usize, u64),
    /// The open file of argument 0 when the call began.
    pub(crate) held: Option<Held>,
    /// The call creates a thread or a process.
    pub(crate) forks: bool,
    /// The text that it writes was found on the terminal.
    pub(crate) shown: bool,
}

/// A working directory, which threads may share; `None`: unknown.
pub(crate) type SharedCwd = Rc<RefCell<Option<Rc<[u8]>>>>;

/// The arguments of a call, as printed.
pub(crate) type Printed = Vec<Box<[u8]>>;

/// A running thread.
#[derive(Debug)]
pub(crate) struct Thread {
    /// Its log, or set of logs. Ids are unique within one only.
    pub(crate) session: u32,
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    pub(crate) fds: SharedFds,
    pub(crate) cwd: SharedCwd,
    pub(crate) program: Option<Rc<Program>>,
    /// Ids that its calls return are those of another PID namespace than in the log.
    pub(crate) has_other_ids: bool,
    /// The same of its next children: `unshare(CLONE_NEWPID)`.
    pub(crate) children_have_other_ids: bool,
    half: Option<Box<Half>>,
    /// Interrupted calls, which the kernel may start again with the same arguments.
    pub(crate) interrupted: Interrupted<Printed>,
    /// Serial number of its last row in `calls`.
    pub(crate) last_row: u64,
    /// Its row in `processes`.
    pub(crate) task: usize,
}

impl Thread {
    /// The call in progress.
    pub(crate) fn half(&self) -> Option<&Half> {
        self.half.as_deref()
    }

    /// Whether it is in a call that creates a thread or a process.
    pub(crate) fn is_in_fork(&self) -> bool {
        self.half.as_ref().is_some_and(|half| half.forks)
    }
}

/// How a thread or process was made: the flags of `clone` that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Birth {
    pub(crate) same_process: bool,
    pub(crate) same_files: bool,
    pub(crate) same_cwd: bool,
    pub(crate) other_ids: bool,
}

impl Birth {
    /// From the text of `clone`, `clone3`, `fork` or `vfork`.
    pub(crate) fn of(call: &[u8]) -> Self {
        let has = |flag: &[u8]| memchr::memmem::find(call, flag).is_some();
        Birth {
            same_process: has(b"CLONE_THREAD"),
            same_files: has(b"CLONE_FILES"),
            same_cwd: has(b"CLONE_FS|") || has(b"CLONE_FS,") || has(b"CLONE_FS)"),
            other_ids: has(b"CLONE_NEWPID"),
        }
    }
}

/// What a new thread inherits from its parent.
struct Inherited {
    pid: i32,
    ppid: Option<i32>,
    parent_row: Option<usize>,
    fds: SharedFds,
    cwd: SharedCwd,
    program: Option<Rc<Program>>,
    has_other_ids: bool,
}

/// Cache of the threads with the most recent lines, found without hashing: session and id, and
/// index.
#[derive(Debug)]
struct Recent([(Option<(u32, i32)>, usize); Recent::SLOTS]);

impl Default for Recent {
    fn default() -> Self {
        Recent([(None, 0); Self::SLOTS])
    }
}

impl Recent {
    /// Consecutive ids have different slots.
    const SLOTS: usize = 64;

    #[inline]
    fn slot(&mut self, (_, tid): (u32, i32)) -> &mut (Option<(u32, i32)>, usize) {
        &mut self.0[tid as usize % Self::SLOTS]
    }

    fn forget(&mut self, key: (u32, i32)) {
        *self.slot(key) = (None, 0);
    }
}

/// All threads of a recording, running and ended.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    running: Vec<Option<Thread>>,
    free: Vec<usize>,
    /// Sessions and indices of running threads.
    in_session: BTreeSet<(u32, usize)>,
    /// Threads in a call that creates a thread or a process: session, start of the call, index.
    forking: BTreeSet<(u32, i64, usize)>,
    by_tid: FxHashMap<(u32, i32), usize>,
    recent: Recent,
    /// Rows of threads for which the parent's call has not returned yet; they may have ended.
    awaited: FxHashMap<(u32, i32), usize>,
    /// Threads whose id in the log is not known yet: session, index, id in their own PID namespace.
    unnamed: Vec<(u32, usize, i32)>,
    pub(crate) tasks: Vec<Task>,
}

impl Threads {
    /// Index of a running thread.
    #[inline]
    pub(crate) fn find(&mut self, session: u32, tid: i32) -> Option<usize> {
        let key = (session, tid);
        if let (found, index) = *self.recent.slot(key)
            && found == Some(key)
        {
            return Some(index);
        }
        let index = *self.by_tid.get(&key)?;
        *self.recent.slot(key) = (Some(key), index);
        Some(index)
    }

    pub(crate) fn get(&self, index: usize) -> &Thread {
        self.running[index].as_ref().expect("indices are of running threads")
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Thread {
        self.running[index].as_mut().expect("indices are of running threads")
    }

    /// Begin a call of a thread that ends later.
    pub(crate) fn begin_half(&mut self, index: usize, half: Box<Half>) {
        self.take_half(index);
        let (forks, started_ns) = (half.forks, half.started_ns);
        let thread = self.get_mut(index);
        thread.half = Some(half);
        if forks {
            let session = thread.session;
            self.forking.insert((session, started_ns, index));
        }
    }

    /// The call that a thread is in.
    pub(crate) fn half_of(&mut self, session: u32, tid: i32) -> Option<&mut Half> {
        let index = self.find(session, tid)?;
        self.get_mut(index).half.as_deref_mut()
    }

    /// Take the call that a thread is in.
    #[inline]
    pub(crate) fn take_half(&mut self, index: usize) -> Option<Box<Half>> {
        let thread = self.get_mut(index);
        let half = thread.half.take()?;
        if half.forks {
            let session = thread.session;
            self.forking.remove(&(session, half.started_ns, index));
        }
        Some(half)
    }

    /// The thread with the most recent fork in progress, and whether others are in fork too.
    pub(crate) fn in_fork(&self, session: u32) -> Option<(usize, bool)> {
        let mut latest_first = self.forking.range((session, i64::MIN, 0)..=(session, i64::MAX, usize::MAX)).rev();
        let (_, _, last) = *latest_first.next()?;
        Some((last, latest_first.next().is_some()))
    }

    /// Running threads of a session.
    pub(crate) fn of_session(&self, session: u32) -> impl Iterator<Item = usize> {
        self.in_session.range((session, 0)..=(session, usize::MAX)).map(|(_, index)| *index)
    }

    /// Whether no thread is running.
    pub(crate) fn all_ended(&self) -> bool {
        self.in_session.is_empty()
    }

    /// Add a thread without a birth in the log: the first of all, or one that the tracer was
    /// attached to.
    pub(crate) fn appear(&mut self, session: u32, tid: i32, now_ns: i64, cwd: Option<Vec<u8>>) -> usize {
        let task = self.begin_task(session, (tid, tid), None, now_ns, None);
        self.add(Thread {
            session,
            tid,
            pid: tid,
            fds: SharedFds::default(),
            cwd: Rc::new(RefCell::new(cwd.map(Into::into))),
            program: None,
            has_other_ids: false,
            children_have_other_ids: false,
            half: None,
            interrupted: Interrupted::default(),
            last_row: u64::MAX,
            task,
        })
    }

    /// Add a thread created by `parent`.
    pub(crate) fn spawn(&mut self, parent: usize, tid: i32, birth: Birth, now_ns: i64) -> usize {
        let inherited = self.inherit(parent, tid, birth);
        let session = self.get(parent).session;
        let task = self.begin_task(session, (inherited.pid, tid), inherited.ppid, now_ns, inherited.program.clone());
        self.tasks[task].parent = inherited.parent_row;
        let Inherited { pid, fds, cwd, program, has_other_ids, .. } = inherited;
        self.add(Thread {
            session,
            tid,
            pid,
            fds,
            cwd,
            program,
            has_other_ids,
            children_have_other_ids: false,
            half: None,
            interrupted: Interrupted::default(),
            last_row: u64::MAX,
            task,
        })
    }

    /// Note that the call that created this thread has not returned yet.
    pub(crate) fn await_birth(&mut self, index: usize) {
        let thread = self.get(index);
        let (key, task) = ((thread.session, thread.tid), thread.task);
        self.awaited.insert(key, task);
    }

    /// The row of a thread that had lines before the call that created it returned.
    pub(crate) fn take_awaited(&mut self, session: u32, tid: i32) -> Option<usize> {
        self.awaited.remove(&(session, tid))
    }

    /// Give a running thread, for which the wrong parent was guessed, the right one and what it
    /// inherits. Descriptors that it opened or closed since then are forgotten; there are few lines
    /// in between.
    pub(crate) fn adopt(&mut self, parent: usize, child: usize, birth: Birth, now_ns: i64) {
        let inherited = self.inherit(parent, self.get(child).tid, birth);
        let task = self.get(child).task;
        self.set_parent(task, &inherited, now_ns);
        let own_program = self.tasks[task].execs > 0;
        let thread = self.get_mut(child);
        (thread.pid, thread.fds, thread.cwd) = (inherited.pid, inherited.fds, inherited.cwd);
        if !own_program {
            thread.program = inherited.program;
        }
    }

    /// The same for a thread that has ended since.
    pub(crate) fn adopt_ended(&mut self, parent: usize, task: usize, birth: Birth, now_ns: i64) {
        let inherited = self.inherit(parent, self.tasks[task].tid, birth);
        self.set_parent(task, &inherited, now_ns);
    }

    fn set_parent(&mut self, task: usize, inherited: &Inherited, start_ns: i64) {
        let row = &mut self.tasks[task];
        (row.pid, row.ppid, row.parent, row.start_ns) = (inherited.pid, inherited.ppid, inherited.parent_row, start_ns);
        if row.execs == 0 {
            row.program.clone_from(&inherited.program);
        }
    }

    fn inherit(&self, parent: usize, tid: i32, birth: Birth) -> Inherited {
        let from = self.get(parent);
        let own = |fds: &SharedFds| Rc::new(RefCell::new(fds.borrow().clone()));
        let own_cwd = |cwd: &SharedCwd| Rc::new(RefCell::new(cwd.borrow().clone()));
        Inherited {
            pid: if birth.same_process { from.pid } else { tid },
            ppid: if birth.same_process { self.tasks[from.task].ppid } else { Some(from.pid) },
            parent_row: self.parent_of(from.task, birth),
            fds: if birth.same_files { Rc::clone(&from.fds) } else { own(&from.fds) },
            cwd: if birth.same_cwd { Rc::clone(&from.cwd) } else { own_cwd(&from.cwd) },
            program: from.program.clone(),
            has_other_ids: from.has_other_ids || from.children_have_other_ids || birth.other_ids,
        }
    }

    /// Add a thread created by `parent`, of which the log has only the id in another PID namespace,
    /// until its first line comes.
    pub(crate) fn spawn_unnamed(&mut self, parent: usize, id: i32, birth: Birth, now_ns: i64) {
        let session = self.get(parent).session;
        let is_taken = self.by_tid.contains_key(&(session, id));
        let tid = if is_taken { -id } else { id };
        let index = self.spawn(parent, tid, birth, now_ns);
        self.unnamed.push((session, index, tid));
    }

    /// Give the oldest thread without a line the id that the log has for it.
    pub(crate) fn name_one(&mut self, session: u32, tid: i32) -> Option<usize> {
        let is_it = |(of, index, old): &(u32, usize, i32)| *of == session && self.by_tid.get(&(session, *old)) == Some(index);
        let at = self.unnamed.iter().position(is_it)?;
        let (_, index, old) = self.unnamed.remove(at);
        self.by_tid.remove(&(session, old));
        self.recent.forget((session, old));
        self.by_tid.insert((session, tid), index);
        let thread = self.get_mut(index);
        let leads = thread.pid == thread.tid;
        thread.tid = tid;
        if leads {
            thread.pid = tid;
        }
        let (task, pid) = (thread.task, thread.pid);
        (self.tasks[task].tid, self.tasks[task].pid) = (tid, pid);
        Some(index)
    }

    /// The row of a child that had lines before the call of its parent, in another PID namespace,
    /// returned.
    pub(crate) fn take_awaited_of(&mut self, session: u32, parent: Option<usize>, started_ns: i64) -> Option<usize> {
        let is_it = |task: &usize| self.tasks[*task].parent == parent && self.tasks[*task].start_ns >= started_ns;
        let key = self.awaited.iter().filter(|((of, _), task)| *of == session && is_it(task)).map(|(key, _)| *key).min()?;
        self.awaited.remove(&key)
    }

    /// Row under which a child is listed in the process tree: threads are listed below the first
    /// thread of their process.
    pub(crate) fn parent_of(&self, maker: usize, birth: Birth) -> Option<usize> {
        let row = &self.tasks[maker];
        if birth.same_process && row.tid != row.pid { row.parent.or(Some(maker)) } else { Some(maker) }
    }

    /// Remove a thread that ended, and return its last state.
    pub(crate) fn end(&mut self, index: usize, now_ns: i64) -> Thread {
        self.take_half(index);
        let thread = self.running[index].take().expect("indices are of running threads");
        self.free.push(index);
        self.in_session.remove(&(thread.session, index));
        self.by_tid.remove(&(thread.session, thread.tid));
        self.recent.forget((thread.session, thread.tid));
        self.tasks[thread.task].end_ns = Some(now_ns);
        thread
    }

    /// Apply a successful exec by this thread: the other threads of its process die without a line
    /// of their own.
    pub(crate) fn exec(&mut self, index: usize, program: Rc<Program>) {
        let thread = self.get_mut(index);
        // Exec unshares the table of descriptors.
        let own: FdTable = thread.fds.borrow().clone();
        thread.fds = Rc::new(RefCell::new(own));
        thread.fds.borrow_mut().exec();
        thread.program = Some(Rc::clone(&program));
        let task = thread.task;
        self.tasks[task].program = Some(program);
        self.tasks[task].execs += 1;
    }

    /// `index` (the first thread of its process) is replaced by `winner`, which is in exec.
    pub(crate) fn supersede(&mut self, index: usize, winner: i32, now_ns: i64) {
        let session = self.get(index).session;
        let Some(winner) = self.find(session, winner).filter(|winner| *winner != index) else { return };
        let half = self.take_half(winner);
        let ended = self.end(winner, now_ns);
        self.take_half(index);
        if let Some(half) = half {
            self.begin_half(index, half);
        }
        self.get_mut(index).fds = ended.fds;
    }

    /// Set the id of a thread that the log did not name until now, and that of its process.
    pub(crate) fn name(&mut self, index: usize, tid: i32) {
        let thread = self.get(index);
        let (session, unnamed, task) = (thread.session, thread.tid, thread.task);
        self.by_tid.remove(&(session, unnamed));
        self.by_tid.insert((session, tid), index);
        self.recent.forget((session, unnamed));
        self.recent.forget((session, tid));
        let (children, own) = (unnamed, &mut self.tasks[task]);
        (own.pid, own.tid) = (tid, tid);
        // Its children come after it in the table.
        for task in self.tasks[task..].iter_mut().filter(|task| task.session == session) {
            if task.ppid == Some(children) {
                task.ppid = Some(tid);
            }
            if task.pid == children {
                task.pid = tid;
            }
        }
        for (_, index) in self.in_session.range((session, 0)..=(session, usize::MAX)) {
            if let Some(thread) = self.running[*index].as_mut().filter(|thread| thread.pid == children) {
                thread.pid = tid;
            }
        }
        self.get_mut(index).tid = tid;
    }

    /// Set the ids of a thread in `processes`, if they differ from the internal id.
    pub(crate) fn set_ids(&mut self, index: usize, pid: i32, tid: i32) {
        let thread = self.get_mut(index);
        thread.pid = pid;
        let task = thread.task;
        (self.tasks[task].pid, self.tasks[task].tid) = (pid, tid);
    }

    /// Update the program that a thread runs.
    pub(crate) fn set_program(&mut self, index: usize, program: Rc<Program>) {
        let thread = self.get_mut(index);
        thread.program = Some(Rc::clone(&program));
        let task = thread.task;
        self.tasks[task].program = Some(program);
    }

    /// Running threads, by index.
    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, &Thread)> {
        self.running.iter().enumerate().filter_map(|(index, thread)| thread.as_ref().map(|thread| (index, thread)))
    }

    fn begin_task(
        &mut self,
        session: u32,
        (pid, tid): (i32, i32),
        ppid: Option<i32>,
        start_ns: i64,
        program: Option<Rc<Program>>,
    ) -> usize {
        self.tasks.push(Task {
            session,
            pid,
            tid,
            ppid,
            parent: None,
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
        self.tasks.len() - 1
    }

    fn add(&mut self, thread: Thread) -> usize {
        let key = (thread.session, thread.tid);
        let index = self.free.pop().unwrap_or_else(|| {
            self.running.push(None);
            self.running.len() - 1
        });
        self.running[index] = Some(thread);
        self.in_session.insert((key.0, index));
        self.by_tid.insert(key, index);
        self.recent.forget(key);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_flags_say_what_is_shared() {
        let thread = Birth::of(b"clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD");
        assert_eq!(thread, Birth { same_process: true, same_files: true, same_cwd: true, other_ids: false });
        assert_eq!(Birth::of(b"clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD"), Birth::default());
    }

    #[test]
    fn ids_may_be_used_again() {
        let mut threads = Threads::default();
        let root = threads.appear(0, 1, 0, None);
        let child = threads.spawn(root, 2, Birth::default(), 1);
        assert_eq!(threads.find(0, 2), Some(child));
        assert_eq!(threads.find(1, 2), None, "another host may use the same ids");
        threads.end(child, 2);
        assert_eq!(threads.find(0, 2), None);
        let again = threads.spawn(root, 2, Birth::default(), 3);
        assert_ne!(threads.get(again).task, 1);
        assert_eq!(threads.tasks.len(), 3);
    }
}
