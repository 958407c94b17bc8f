//! Processes and LWPs as a truss log shows them.
//!
//! LWPs are numbered from 1 in every process, so a thread is named by process and LWP, and has a
//! separate id in `crate::threads`. Calls are printed when they return: a child may print its first
//! line, or its last, before the call that made it. `-f` prints the child's return from fork as a
//! line of the child, with the parent's id (actions.c:sysexit).

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::{system::System, threads::Birth};

/// LWPs share everything.
const LWP: Birth = Birth { same_process: true, same_files: true, same_cwd: true, other_ids: false };

/// Log, process and LWP, as printed. Process 0: the log is of one process and does not name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(super) session: u32,
    pub(super) pid: i32,
    pub(super) lwp: i32,
}

/// Ids of running threads by name.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: FxHashMap<Name, i32>,
    /// Indices of the threads of each process, by log and process id.
    lwps: FxHashMap<(u32, i32), BTreeSet<usize>>,
    last: Option<(Name, i32)>,
    /// Number of ids assigned so far.
    given: i32,
}

impl Names {
    /// The id of a running thread for [`crate::threads::Threads::find`].
    fn find(&mut self, name: Name) -> Option<i32> {
        if let Some((last, id)) = self.last
            && last == name
        {
            return Some(id);
        }
        let id = *self.ids.get(&name)?;
        self.last = Some((name, id));
        Some(id)
    }

    /// Assign a new id.
    fn give(&mut self, name: Name) -> i32 {
        self.given += 1;
        self.ids.insert(name, self.given);
        self.last = None;
        self.given
    }

    fn forget(&mut self, name: Name) -> Option<i32> {
        self.last = None;
        self.ids.remove(&name)
    }
}

impl System {
    fn find_lwp(&mut self, name: Name) -> Option<usize> {
        let id = self.names.find(name)?;
        self.threads.find(name.session, id)
    }

    /// The thread of a line. The second value: whether its parent is a guess.
    pub(super) fn thread_of_truss(&mut self, name: Name, now_ns: i64) -> (usize, bool) {
        if let Some(index) = self.find_lwp(name) {
            return (index, false);
        }
        if let Some(index) = self.first_lwp(name.session, name.pid) {
            let task = self.threads.get(index).task;
            let row = &self.threads.tasks[task];
            // It was created by fork, which does not return the LWP of the child.
            let is_first = row.parent.is_none_or(|parent| self.threads.tasks[parent].pid != name.pid);
            if row.calls == 0 && is_first && self.threads.get(index).half().is_none() {
                self.rename_lwp(index, name);
                return (index, false);
            }
            return (self.spawn_lwp(index, name, now_ns), false);
        }
        match self.threads.in_fork(name.session) {
            Some((parent, guessed)) => (self.spawn_process(parent, name, now_ns), guessed),
            None => {
                let id = self.names.give(name);
                let index = self.threads.appear(name.session, id, now_ns, None);
                self.named(index, name);
                (index, false)
            }
        }
    }

    fn spawn_process(&mut self, parent: usize, name: Name, now_ns: i64) -> usize {
        let id = self.names.give(name);
        let index = self.threads.spawn(parent, id, Birth::default(), now_ns);
        self.named(index, name);
        index
    }

    /// Name a new thread.
    fn named(&mut self, index: usize, name: Name) {
        self.threads.set_ids(index, name.pid, name.lwp);
        self.names.lwps.entry((name.session, name.pid)).or_default().insert(index);
    }

    /// Add an LWP below the first one of its process that was seen.
    fn spawn_lwp(&mut self, maker: usize, name: Name, now_ns: i64) -> usize {
        let id = self.names.give(name);
        let index = self.threads.spawn(maker, id, LWP, now_ns);
        self.named(index, name);
        let maker = self.threads.get(maker).task;
        let row = &self.threads.tasks[maker];
        let first = row.parent.filter(|parent| self.threads.tasks[*parent].pid == name.pid).unwrap_or(maker);
        let task = self.threads.get(index).task;
        self.threads.tasks[task].parent = Some(first);
        index
    }

    /// Change the number of a running thread.
    pub(super) fn rename_lwp(&mut self, index: usize, name: Name) {
        let row = &self.threads.tasks[self.threads.get(index).task];
        if let Some(id) = self.names.forget(Name { session: name.session, pid: row.pid, lwp: row.tid }) {
            self.names.ids.insert(name, id);
        }
        self.threads.set_ids(index, name.pid, name.lwp);
    }

    /// `lwp_create` returned, in the thread that called it or in the new one.
    pub(super) fn new_lwp(&mut self, maker: usize, lwp: i32, now_ns: i64) {
        let thread = self.threads.get(maker);
        let name = Name { session: thread.session, pid: thread.pid, lwp };
        if self.find_lwp(name).is_none() {
            self.spawn_lwp(maker, name, now_ns);
        }
    }

    /// The child returned from fork.
    pub(super) fn child_returns(&mut self, name: Name, parent_pid: i32, now_ns: i64) {
        /// Number of LWPs that are searched for the one that forks.
        const LOOKED_AT: usize = 64;
        if self.first_lwp(name.session, name.pid).is_some() {
            return;
        }
        // Prefer the LWP that waits in vfork; all others share the same descriptors anyway.
        let lwps = self.names.lwps.get(&(name.session, parent_pid));
        let waiting = lwps.and_then(|lwps| lwps.iter().take(LOOKED_AT).find(|index| self.threads.get(**index).is_in_fork()));
        let parent = waiting.or_else(|| lwps?.first()).copied();
        if let Some(parent) = parent {
            self.spawn_process(parent, name, now_ns);
        }
    }

    /// Fork returned in the parent. The child's lines may have come before.
    pub(crate) fn created_by_truss(&mut self, parent: usize, pid: i32, now_ns: i64) {
        /// Number of tasks that are searched for one that has ended already.
        const RECENT: usize = 64;
        let session = self.threads.get(parent).session;
        if let Some(index) = self.first_lwp(session, pid) {
            let row = &self.threads.tasks[self.threads.get(index).task];
            if row.parent.is_none() {
                let (lwp, start_ns) = (row.tid, row.start_ns);
                self.threads.adopt(parent, index, Birth::default(), start_ns);
                self.threads.set_ids(index, pid, lwp);
            }
            return;
        }
        let parent_pid = self.threads.get(parent).pid;
        let mut recent = self.threads.tasks.iter().rev().take(RECENT);
        if !recent.any(|task| task.session == session && task.pid == pid && task.ppid == Some(parent_pid)) {
            self.spawn_process(parent, Name { session, pid, lwp: 1 }, now_ns);
        }
    }

    /// Running threads of a process.
    pub(super) fn lwps(&self, session: u32, pid: i32) -> Vec<usize> {
        self.names.lwps.get(&(session, pid)).map_or_else(Vec::new, |lwps| lwps.iter().copied().collect())
    }

    fn first_lwp(&self, session: u32, pid: i32) -> Option<usize> {
        self.names.lwps.get(&(session, pid))?.first().copied()
    }

    /// End a thread. Returns its row in `processes`.
    pub(super) fn end_lwp(&mut self, index: usize, now_ns: i64) -> usize {
        let ended = self.threads.end(index, now_ns);
        let task = ended.task;
        let row = &self.threads.tasks[task];
        let process = (ended.session, ended.pid);
        if let Some(lwps) = self.names.lwps.get_mut(&process) {
            lwps.remove(&index);
            if lwps.is_empty() {
                self.names.lwps.remove(&process);
            }
        }
        self.names.forget(Name { session: row.session, pid: row.pid, lwp: row.tid });
        task
    }
}
