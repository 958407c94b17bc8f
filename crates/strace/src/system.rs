//! The state of the traced system, rebuilt from the log so far.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    files::Held,
    resolve,
    threads::{Birth, Threads},
    truss::Names,
};
use sysdock_calls::{Commands, ObjectId, Objects, syscalls::Shape};

/// Threads, descriptors, objects.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub(crate) threads: Threads,
    pub(crate) objects: Objects,
    pub(crate) commands: Commands,
    /// New name -> old name of renamed files: with `-y`, the printed name of an open file changes
    /// during the log.
    pub(crate) renamed: FxHashMap<ObjectId, ObjectId>,
    /// Buffer for paths that are joined.
    pub(crate) full_path: Vec<u8>,
    /// Several logs are merged by time: overlapping calls are recognized by their times, since they
    /// are not printed in halves.
    pub(crate) merged: bool,
    /// The logs have no clock.
    pub(crate) no_clock: bool,
    /// Serial number of the next row of `calls`.
    pub(crate) next_row: u64,
    /// Names of threads in truss logs.
    pub(crate) names: Names,
    /// Working directory of the first process, if the recorder knows it.
    pub(crate) first_cwd: Option<Vec<u8>>,
    /// Files with names that end in ` (deleted)` by themselves.
    pub(crate) named_deleted: FxHashSet<ObjectId>,
    /// Steps in descriptor tables that renames may still use.
    pub(crate) rename_steps: u64,
}

impl System {
    /// The thread of a line. A new thread is the child of a thread that is in fork now, if there is
    /// one.
    ///
    /// The second value: whether the parent is a guess, because several threads are in fork.
    pub(crate) fn thread(&mut self, session: u32, tid: i32, now_ns: i64) -> (usize, bool) {
        if let Some(index) = self.threads.find(session, tid) {
            return (index, false);
        }
        // The most recent fork is the most likely one.
        let (index, guessed) = match self.threads.in_fork(session) {
            Some((parent, guessed)) => {
                let half = self.threads.get(parent).half().expect("it is in a call");
                let (birth, started_ns) = (Birth::of(&half.text), half.started_ns);
                (self.threads.spawn(parent, tid, birth, started_ns), guessed)
            }
            None => match self.threads.name_one(session, tid) {
                Some(index) => return (index, false),
                None => {
                    let cwd = if self.threads.tasks.is_empty() { self.first_cwd.clone() } else { None };
                    (self.threads.appear(session, tid, now_ns, cwd), false)
                }
            },
        };
        self.threads.await_birth(index);
        (index, guessed)
    }

    /// `parent` returned from fork with this child, which may have printed lines before.
    pub(crate) fn forked(&mut self, parent: usize, child: i32, birth: Birth, started_ns: i64) {
        let parent_row = self.threads.parent_of(self.threads.get(parent).task, birth);
        let session = self.threads.get(parent).session;
        if self.threads.get(parent).has_other_ids {
            if self.threads.take_awaited_of(session, parent_row, started_ns).is_none() {
                self.threads.spawn_unnamed(parent, child, birth, started_ns);
            }
            return;
        }
        let awaited = self.threads.take_awaited(session, child);
        match self.threads.find(session, child) {
            Some(index) => {
                let row = &self.threads.tasks[self.threads.get(index).task];
                // The parent's line is authoritative and corrects a wrong guess. Without a clock,
                // times are no evidence.
                let after = row.start_ns >= started_ns || (self.no_clock && row.parent.is_none());
                if row.parent != parent_row && after {
                    self.threads.adopt(parent, index, birth, started_ns);
                }
            }
            None => match awaited.filter(|task| self.threads.tasks[*task].start_ns >= started_ns) {
                // The child ended before its parent's line did.
                Some(task) if self.threads.tasks[task].parent != parent_row => {
                    self.threads.adopt_ended(parent, task, birth, started_ns);
                }
                Some(_) => {}
                None => {
                    self.threads.spawn(parent, child, birth, started_ns);
                }
            },
        }
    }

    /// Keep the open file of argument 0 until the call's second half; a close takes effect at once.
    ///
    /// The kernel frees the number at the start of close, and may give it to another thread before
    /// the close's second half is printed.
    pub(crate) fn hold(&mut self, thread: usize, shape: &Shape, argument: &[u8]) -> Option<Held> {
        if matches!(shape, Shape::Plain | Shape::Path(_) | Shape::Fork | Shape::Exec) {
            return None;
        }
        let fd = resolve::descriptor(argument).and_then(|(fd, _)| resolve::shown(fd))?;
        let fds = Rc::clone(&self.threads.get(thread).fds);
        let mut fds = fds.borrow_mut();
        let file = if *shape == Shape::Close { fds.remove(fd) } else { fds.get(fd).cloned() };
        file.map(|file| Held::new(file, shape.moves_position()))
    }
}
