//! The traced system as rebuilt from the log so far.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::{
    fields,
    files::OpenFile,
    objects::{ObjectId, Objects},
    resolve,
    syscalls::Shape,
    threads::{Birth, Threads},
};

/// Names of programs: `commands`.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    ids: FxHashMap<Box<[u8]>, i32>,
    pub(crate) names: Vec<String>,
}

impl Commands {
    pub(crate) fn intern(&mut self, name: &[u8]) -> i32 {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = i32::try_from(self.names.len()).expect("fewer than 2^31 program names");
        self.names.push(crate::paths::readable(name).into_owned());
        self.ids.insert(name.into(), id);
        id
    }
}

/// Threads, descriptors, objects.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub(crate) threads: Threads,
    pub(crate) objects: Objects,
    pub(crate) commands: Commands,
    /// New name -> old name of files that were renamed: with `-y`, an open file changes its name in mid-log.
    pub(crate) renamed: FxHashMap<ObjectId, ObjectId>,
    /// Working directory of the first process, where the recorder knows it.
    pub(crate) first_cwd: Option<Vec<u8>>,
}

impl System {
    /// The thread a line belongs to; a thread not seen before is the child of a thread that is in fork now, if there is one.
    ///
    /// The second value tells that the parent is a guess: several threads are in fork, and the log cannot say which one it was.
    pub(crate) fn thread(&mut self, tid: i32, now_ns: i64) -> (usize, bool) {
        if let Some(index) = self.threads.find(tid) {
            return (index, false);
        }
        let forking: Vec<(usize, Birth, i64)> = self
            .threads
            .running()
            .filter_map(|(index, thread)| {
                let half = thread.half.as_ref()?;
                let name = fields::name(&half.text);
                let forks = matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork");
                forks.then(|| (index, Birth::of(&half.text), half.started_ns))
            })
            .collect();
        // The fork that began last is the most likely one.
        match forking.iter().max_by_key(|(_, _, started_ns)| *started_ns) {
            Some((parent, birth, started_ns)) => (self.threads.spawn(*parent, tid, *birth, *started_ns), forking.len() > 1),
            None => {
                let cwd = if self.threads.lives.is_empty() { self.first_cwd.clone() } else { None };
                (self.threads.appear(tid, now_ns, cwd), false)
            }
        }
    }

    /// `parent` returned from fork with this child, whose own lines may have come before.
    pub(crate) fn born(&mut self, parent: usize, child: i32, birth: Birth, started_ns: i64) {
        let parent_row = self.threads.parent_of(self.threads.get(parent).life, birth);
        match self.threads.find(child) {
            Some(index) => {
                let row = &self.threads.lives[self.threads.get(index).life];
                // Guessed wrong, or not at all: the parent's word is final.
                if row.parent != parent_row && row.start_ns >= started_ns {
                    self.threads.adopt(parent, index, birth, started_ns);
                }
            }
            // It may have lived and died before its parent's line ended.
            None if self.lived_since(child, parent_row, started_ns) => {}
            None => {
                self.threads.spawn(parent, child, birth, started_ns);
            }
        }
    }

    fn lived_since(&self, tid: i32, parent: Option<usize>, started_ns: i64) -> bool {
        let recent = self.threads.lives.iter().rev().take(64);
        recent.into_iter().any(|life| life.tid == tid && life.parent == parent && life.start_ns >= started_ns)
    }

    /// Note what argument 0 of a call means while its end is not there yet; a close takes effect at once.
    ///
    /// The kernel frees the number at the start of close, and another thread may be given it before the close's second half is printed.
    pub(crate) fn hold(&mut self, thread: usize, shape: Shape, body: &[u8]) -> Option<Rc<OpenFile>> {
        if matches!(shape, Shape::Plain | Shape::Path(_) | Shape::Fork | Shape::Exec) {
            return None;
        }
        let fd = resolve::first_descriptor(body)?;
        let fds = Rc::clone(&self.threads.get(thread).fds);
        let mut fds = fds.borrow_mut();
        if shape == Shape::Close { fds.remove(fd) } else { fds.get(fd).cloned() }
    }
}
