//! Descriptor tables and open files, as the kernel keeps them.
//!
//! A descriptor is a slot in a table; the slot points to an open file (POSIX: open file description) that holds the position.
//! `dup` and `fork` share the open file; threads (`CLONE_FILES`) share the whole table.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use rustc_hash::FxHashMap;

use sysdock_calls::ObjectId;

/// An open file: object, position, append mode.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// What is open. A rename changes it. `None`: the log does not tell.
    pub(crate) object: Cell<Option<ObjectId>>,
    /// Position of the next read or write. `None`: not known.
    pub(crate) position: Cell<Option<i64>>,
    /// Whether each write goes to the end.
    pub(crate) append: Cell<bool>,
    /// Calls under way that will move the position.
    moving: Cell<u32>,
    /// How often the position was moved.
    pub(crate) moves: Cell<u32>,
    /// End of the last call that moved the position, its thread, and the serial number of its row. Kept for merged logs only.
    pub(crate) last_move: Cell<(i64, usize, u64)>,
}

impl OpenFile {
    pub(crate) fn new(object: Option<ObjectId>, position: Option<i64>, append: bool) -> Rc<Self> {
        Rc::new(OpenFile {
            object: Cell::new(object),
            position: Cell::new(position),
            append: Cell::new(append),
            moving: Cell::new(0),
            moves: Cell::new(0),
            last_move: Cell::new((i64::MIN, usize::MAX, u64::MAX)),
        })
    }

    /// Whether a call that was printed in one piece ran while another one was under way.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving.get() > 0
    }
}

/// The open file that a call in progress works on: another thread may close or reuse the number meanwhile.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) file: Rc<OpenFile>,
    moves: bool,
    moves_before: u32,
}

impl Held {
    /// `moves`: the call will move the position.
    pub(crate) fn new(file: Rc<OpenFile>, moves: bool) -> Self {
        if moves {
            file.moving.set(file.moving.get() + 1);
        }
        Held { moves_before: file.moves.get(), moves, file }
    }

    /// Whether other calls moved the position, or were about to, between start and end of this one.
    pub(crate) fn was_disturbed(&self) -> bool {
        self.file.moves.get() != self.moves_before || self.file.moving.get() > u32::from(self.moves)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.moves {
            self.file.moving.set(self.file.moving.get() - 1);
        }
    }
}

#[derive(Clone, Debug)]
struct Slot {
    file: Rc<OpenFile>,
    close_on_exec: bool,
}

/// One process's descriptors. Numbers are small: the kernel gives the lowest free one.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdTable {
    slots: Vec<Option<Slot>>,
    /// Those above [`FdTable::DENSE`].
    high: FxHashMap<i32, Slot>,
}

/// A table that threads may share.
pub(crate) type SharedFds = Rc<RefCell<FdTable>>;

impl FdTable {
    const DENSE: usize = 4096;

    fn dense(fd: i32) -> Option<usize> {
        usize::try_from(fd).ok().filter(|index| *index < Self::DENSE)
    }

    fn slot_mut(&mut self, fd: i32) -> Option<&mut Slot> {
        match Self::dense(fd) {
            Some(index) => self.slots.get_mut(index)?.as_mut(),
            None => self.high.get_mut(&fd),
        }
    }

    pub(crate) fn get(&self, fd: i32) -> Option<&Rc<OpenFile>> {
        let slot = match Self::dense(fd) {
            Some(index) => self.slots.get(index)?.as_ref(),
            None => self.high.get(&fd),
        };
        slot.map(|slot| &slot.file)
    }

    pub(crate) fn set(&mut self, fd: i32, file: Rc<OpenFile>, close_on_exec: bool) {
        let slot = Slot { file, close_on_exec };
        match Self::dense(fd) {
            Some(index) => {
                if index >= self.slots.len() {
                    self.slots.resize(index + 1, None);
                }
                self.slots[index] = Some(slot);
            }
            None => {
                self.high.insert(fd, slot);
            }
        }
    }

    pub(crate) fn remove(&mut self, fd: i32) -> Option<Rc<OpenFile>> {
        let slot = match Self::dense(fd) {
            Some(index) => self.slots.get_mut(index)?.take(),
            None => self.high.remove(&fd),
        };
        slot.map(|slot| slot.file)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        if let Some(slot) = self.slot_mut(fd) {
            slot.close_on_exec = on;
        }
    }

    /// `close_range`: close, or mark, everything from `first` to `last`.
    pub(crate) fn close_range(&mut self, first: i64, last: i64, mark_only: bool) {
        let inside = |fd: i64| (first..=last).contains(&fd);
        self.retain(|fd, slot| {
            slot.close_on_exec |= mark_only && inside(fd);
            mark_only || !inside(fd)
        });
    }

    /// A file got a new name; open files go with it.
    pub(crate) fn rename(&self, old: ObjectId, new: ObjectId, swapped: bool) {
        // Descriptors may share an open file, which is looked at once: a swap is no swap if it is made twice.
        let mut renamed: Vec<*const OpenFile> = Vec::new();
        for slot in self.slots.iter().flatten().chain(self.high.values()) {
            let other = match slot.file.object.get() {
                Some(object) if object == old => new,
                Some(object) if swapped && object == new => old,
                _ => continue,
            };
            if !renamed.contains(&Rc::as_ptr(&slot.file)) {
                renamed.push(Rc::as_ptr(&slot.file));
                slot.file.object.set(Some(other));
            }
        }
    }

    /// What a successful exec does.
    pub(crate) fn exec(&mut self) {
        self.retain(|_, slot| !slot.close_on_exec);
    }

    fn retain(&mut self, mut keep: impl FnMut(i64, &mut Slot) -> bool) {
        for (fd, place) in (0..).zip(&mut self.slots) {
            if place.as_mut().is_some_and(|slot| !keep(fd, slot)) {
                *place = None;
            }
        }
        self.high.retain(|fd, slot| keep(i64::from(*fd), slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dup_shares_the_position_and_exec_closes_what_is_marked() {
        let mut table = FdTable::default();
        table.set(3, OpenFile::new(Some(1), Some(0), false), true);
        let file = Rc::clone(table.get(3).unwrap());
        table.set(4, file, false);
        table.get(3).unwrap().position.set(Some(10));
        assert_eq!(table.get(4).unwrap().position.get(), Some(10));
        table.exec();
        assert!(table.get(3).is_none() && table.get(4).is_some());
    }

    #[test]
    fn close_range_closes_or_marks() {
        let mut table = FdTable::default();
        for fd in 0..6 {
            table.set(fd, OpenFile::new(None, None, false), false);
        }
        table.close_range(4, i64::from(u32::MAX), false);
        table.close_range(2, 2, true);
        assert!(table.get(4).is_none() && table.get(5).is_none());
        table.exec();
        assert!(table.get(2).is_none() && table.get(3).is_some());
    }
}
