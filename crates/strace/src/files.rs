//! Descriptor tables and open files, as the kernel keeps them.
//!
//! A descriptor is a slot in a table; the slot points to an open file (POSIX: open file description) that holds the position.
//! `dup` and `fork` share the open file; threads (`CLONE_FILES`) share the whole table.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use rustc_hash::FxHashMap;

use crate::objects::ObjectId;

/// An open file: object, position, append mode.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// What is open. A rename changes it. `None`: the log does not tell.
    pub(crate) object: Cell<Option<ObjectId>>,
    /// Position of the next read or write. `None`: not known.
    pub(crate) position: Cell<Option<i64>>,
    /// Whether each write goes to the end.
    pub(crate) append: Cell<bool>,
}

impl OpenFile {
    pub(crate) fn new(object: Option<ObjectId>, position: Option<i64>, append: bool) -> Rc<Self> {
        Rc::new(OpenFile { object: Cell::new(object), position: Cell::new(position), append: Cell::new(append) })
    }
}

#[derive(Clone, Debug)]
struct Slot {
    file: Rc<OpenFile>,
    close_on_exec: bool,
}

/// One process's descriptors.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdTable {
    slots: FxHashMap<i32, Slot>,
}

/// A table that threads may share.
pub(crate) type SharedFds = Rc<RefCell<FdTable>>;

impl FdTable {
    pub(crate) fn get(&self, fd: i32) -> Option<&Rc<OpenFile>> {
        self.slots.get(&fd).map(|slot| &slot.file)
    }

    pub(crate) fn set(&mut self, fd: i32, file: Rc<OpenFile>, close_on_exec: bool) {
        self.slots.insert(fd, Slot { file, close_on_exec });
    }

    pub(crate) fn remove(&mut self, fd: i32) -> Option<Rc<OpenFile>> {
        self.slots.remove(&fd).map(|slot| slot.file)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        if let Some(slot) = self.slots.get_mut(&fd) {
            slot.close_on_exec = on;
        }
    }

    /// `close_range`: close, or mark, everything from `first` to `last`.
    pub(crate) fn close_range(&mut self, first: i64, last: i64, mark_only: bool) {
        let inside = |fd: i32| (first..=last).contains(&i64::from(fd));
        if mark_only {
            self.slots.iter_mut().filter(|(fd, _)| inside(**fd)).for_each(|(_, slot)| slot.close_on_exec = true);
        } else {
            self.slots.retain(|fd, _| !inside(*fd));
        }
    }

    /// A file got a new name; open files go with it.
    pub(crate) fn rename(&self, old: ObjectId, new: ObjectId) {
        let open = self.slots.values().filter(|slot| slot.file.object.get() == Some(old));
        open.for_each(|slot| slot.file.object.set(Some(new)));
    }

    /// What a successful exec does.
    pub(crate) fn exec(&mut self) {
        self.slots.retain(|_, slot| !slot.close_on_exec);
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
