//! Processes and LWPs as a truss log shows them.
//!
//! The numbers of LWPs begin at 1 in every process, so a thread is named by both numbers, and has an id of its own in
//! `crate::threads`. Calls are printed when they return: a child may have printed its first line, or its last, before the call that
//! made it. `-f` prints the child's return from fork as a line of the child, with the parent's id (actions.c:sysexit).

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::{
    fields,
    system::System,
    threads::{Birth, Thread},
};

/// LWPs share everything.
const LWP: Birth = Birth { same_process: true, same_files: true, same_cwd: true };

/// Log, process and LWP, as printed. Process 0: the log is of one process, and does not say which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    pub(super) session: u32,
    pub(super) pid: i32,
    pub(super) lwp: i32,
}

/// Running threads by their names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    ids: FxHashMap<Name, i32>,
    last: Option<(Name, i32)>,
    /// Ids given so far.
    given: i32,
}

impl Names {
    /// The id of a running thread, as [`crate::threads::Threads::find`] knows it.
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

    /// A new id.
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

fn is_in_fork(thread: &Thread) -> bool {
    let name = thread.half.as_ref().map(|half| fields::name(&half.text)).unwrap_or_default();
    name.starts_with(b"fork") || name.starts_with(b"vfork")
}

impl System {
    fn find_lwp(&mut self, name: Name) -> Option<usize> {
        let id = self.names.find(name)?;
        self.threads.find(name.session, id)
    }

    /// The thread of a line. The second value tells that its parent is a guess.
    pub(super) fn thread_of_truss(&mut self, name: Name, now_ns: i64) -> (usize, bool) {
        if let Some(index) = self.find_lwp(name) {
            return (index, false);
        }
        if let Some(&index) = self.lwps(name.session, name.pid).first() {
            let life = self.threads.get(index).life;
            let row = &self.threads.lives[life];
            // Made by fork, whose return does not say which LWP the child has.
            let is_first = row.parent.is_none_or(|parent| self.threads.lives[parent].pid != name.pid);
            if row.calls == 0 && is_first && self.threads.get(index).half.is_none() {
                self.rename_lwp(index, name);
                return (index, false);
            }
            return (self.spawn_lwp(index, name, now_ns), false);
        }
        let forks = |thread: &Thread| thread.session == name.session && is_in_fork(thread);
        let forking: Vec<usize> = self.threads.running().filter(|(_, thread)| forks(thread)).map(|(index, _)| index).collect();
        match forking.last() {
            Some(parent) => (self.spawn_process(*parent, name, now_ns), forking.len() > 1),
            None => {
                let id = self.names.give(name);
                let index = self.threads.appear(name.session, id, now_ns, None);
                self.threads.set_ids(index, name.pid, name.lwp);
                (index, false)
            }
        }
    }

    fn spawn_process(&mut self, parent: usize, name: Name, now_ns: i64) -> usize {
        let id = self.names.give(name);
        let index = self.threads.spawn(parent, id, Birth::default(), now_ns);
        self.threads.set_ids(index, name.pid, name.lwp);
        index
    }

    /// LWPs stand below the first one of their process that was seen.
    fn spawn_lwp(&mut self, maker: usize, name: Name, now_ns: i64) -> usize {
        let id = self.names.give(name);
        let index = self.threads.spawn(maker, id, LWP, now_ns);
        self.threads.set_ids(index, name.pid, name.lwp);
        let maker = self.threads.get(maker).life;
        let row = &self.threads.lives[maker];
        let first = row.parent.filter(|parent| self.threads.lives[*parent].pid == name.pid).unwrap_or(maker);
        let life = self.threads.get(index).life;
        self.threads.lives[life].parent = Some(first);
        index
    }

    /// A running thread has another number than was thought, or has it from now on.
    pub(super) fn rename_lwp(&mut self, index: usize, name: Name) {
        let row = &self.threads.lives[self.threads.get(index).life];
        if let Some(id) = self.names.forget(Name { session: name.session, pid: row.pid, lwp: row.tid }) {
            self.names.ids.insert(name, id);
        }
        self.threads.set_ids(index, name.pid, name.lwp);
    }

    /// `lwp_create` returned, in the thread that called it, or in the one that it made.
    pub(super) fn new_lwp(&mut self, maker: usize, lwp: i32, now_ns: i64) {
        let thread = self.threads.get(maker);
        let name = Name { session: thread.session, pid: thread.pid, lwp };
        if self.find_lwp(name).is_none() {
            self.spawn_lwp(maker, name, now_ns);
        }
    }

    /// The child's return from fork.
    pub(super) fn child_returns(&mut self, name: Name, parent_pid: i32, now_ns: i64) {
        if !self.lwps(name.session, name.pid).is_empty() {
            return;
        }
        // The LWP that waits in vfork is the one; else they have the same descriptors.
        let parents = self.lwps(name.session, parent_pid).into_iter();
        let parent = parents.max_by_key(|index| (is_in_fork(self.threads.get(*index)), Reverse(*index)));
        if let Some(parent) = parent {
            self.spawn_process(parent, name, now_ns);
        }
    }

    /// Fork returned in the parent. The child's lines may have come before.
    pub(crate) fn born_of_truss(&mut self, parent: usize, pid: i32, now_ns: i64) {
        /// Lives among which one is looked for that has ended already.
        const RECENT: usize = 64;
        let session = self.threads.get(parent).session;
        if let Some(&index) = self.lwps(session, pid).first() {
            let row = &self.threads.lives[self.threads.get(index).life];
            if row.parent.is_none() {
                let (lwp, start_ns) = (row.tid, row.start_ns);
                self.threads.adopt(parent, index, Birth::default(), start_ns);
                self.threads.set_ids(index, pid, lwp);
            }
            return;
        }
        let parent_pid = self.threads.get(parent).pid;
        let mut recent = self.threads.lives.iter().rev().take(RECENT);
        if !recent.any(|life| life.session == session && life.pid == pid && life.ppid == Some(parent_pid)) {
            self.spawn_process(parent, Name { session, pid, lwp: 1 }, now_ns);
        }
    }

    /// Running threads of a process.
    pub(super) fn lwps(&self, session: u32, pid: i32) -> Vec<usize> {
        let is_of = |thread: &Thread| thread.session == session && thread.pid == pid;
        self.threads.running().filter(|(_, thread)| is_of(thread)).map(|(index, _)| index).collect()
    }

    /// A thread has ended. Returns its row in `processes`.
    pub(super) fn end_lwp(&mut self, index: usize, now_ns: i64) -> usize {
        let life = self.threads.end(index, now_ns).life;
        let row = &self.threads.lives[life];
        self.names.forget(Name { session: row.session, pid: row.pid, lwp: row.tid });
        life
    }
}
