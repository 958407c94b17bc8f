//! Descriptor tables and open files, as the kernel keeps them.
//!
//! A descriptor is a slot in a table; the slot points to an open file (POSIX: open file
//! description), which has the position. `dup` and `fork` share the open file; threads
//! (`CLONE_FILES`) share the whole table.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
};

use rustc_hash::FxHashSet;

use sysdock_calls::ObjectId;

/// An open file: object, position, append mode.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The object that is open; a rename changes it. `None`: not in the log.
    pub(crate) object: Cell<Option<ObjectId>>,
    /// Position of the next read or write. `None`: unknown.
    pub(crate) position: Cell<Option<i64>>,
    /// Whether each write goes to the end.
    pub(crate) append: Cell<bool>,
    /// Number of calls in progress that will move the position.
    moving: Cell<u32>,
    /// Number of times that the position was moved.
    pub(crate) moves: Cell<u32>,
    /// End of the last call that moved the position, its thread, and the serial number of its row.
    /// Kept for merged logs only.
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

    /// Whether another call is in progress that moves the position.
    pub(crate) fn is_moving(&self) -> bool {
        self.moving.get() > 0
    }
}

/// The open file of a call in progress: meanwhile another thread may close or reuse the number.
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

    /// Whether other calls moved the position, or were about to, during this one.
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

/// An open descriptor.
#[derive(Clone, Debug)]
struct Slot {
    file: Rc<OpenFile>,
    closes: ExecNumber,
}

/// Number of the exec of the table that closes a descriptor, counted from 0; [`NEVER`]: none does.
type ExecNumber = u32;

const NEVER: ExecNumber = ExecNumber::MAX;

/// Bits of the descriptor number per level of the tree.
const BITS: u32 = 4;
const WIDTH: usize = 1 << BITS;

/// A node of the tree: the descriptors with a common prefix of their numbers.
#[derive(Clone, Debug)]
enum Node {
    Slots([Option<Slot>; WIDTH]),
    Inner([Option<Branch>; WIDTH]),
}

/// A child node, and the exec that closes everything that is in it now.
#[derive(Clone, Debug)]
struct Branch {
    node: Rc<Node>,
    closes: ExecNumber,
}

impl Node {
    /// An empty node with `level` levels below it.
    fn new(level: u32) -> Self {
        if level == 0 { Node::Slots(Default::default()) } else { Node::Inner(Default::default()) }
    }

    /// Close all descriptors below at this exec, unless they close earlier.
    fn close_at(&mut self, exec: ExecNumber) {
        match self {
            Node::Slots(slots) => slots.iter_mut().flatten().for_each(|slot| slot.closes = slot.closes.min(exec)),
            Node::Inner(branches) => branches.iter_mut().flatten().for_each(|branch| branch.closes = branch.closes.min(exec)),
        }
    }

    /// Remove or mark the descriptors from `first` to `last`, counted from the start of this node.
    fn cut(&mut self, level: u32, first: u64, last: u64, mark: Option<ExecNumber>) {
        let each = 1 << (level * BITS);
        for (start, at) in (0..).step_by(1 << (level * BITS)).zip(0..WIDTH) {
            let end: u64 = start + each - 1;
            if end < first || start > last {
                continue;
            }
            match (&mut *self, mark) {
                (Node::Slots(slots), None) => slots[at] = None,
                (Node::Slots(slots), Some(exec)) => {
                    if let Some(slot) = &mut slots[at] {
                        slot.closes = slot.closes.min(exec);
                    }
                }
                (Node::Inner(branches), _) if first > start || last < end => {
                    if let Some(branch) = &mut branches[at] {
                        branch.own().cut(level - 1, first.saturating_sub(start), last - start, mark);
                    }
                }
                (Node::Inner(branches), None) => branches[at] = None,
                (Node::Inner(branches), Some(exec)) => {
                    if let Some(branch) = &mut branches[at] {
                        branch.closes = branch.closes.min(exec);
                    }
                }
            }
        }
    }

    /// Visit open files as they are after `execs` execs, using at most `left` steps.
    fn walk(&self, execs: ExecNumber, left: &mut u64, look: &mut impl FnMut(&OpenFile)) {
        *left = left.saturating_sub(WIDTH as u64);
        match self {
            _ if *left == 0 => {}
            Node::Slots(slots) => slots.iter().flatten().filter(|slot| slot.closes >= execs).for_each(|slot| look(&slot.file)),
            Node::Inner(branches) => {
                branches
                    .iter()
                    .flatten()
                    .filter(|branch| branch.closes >= execs)
                    .for_each(|branch| branch.node.walk(execs, left, look));
            }
        }
    }
}

impl Branch {
    /// The node for modification: unshared from now on, with the mark applied to its contents.
    fn own(&mut self) -> &mut Node {
        let node = Rc::make_mut(&mut self.node);
        if self.closes != NEVER {
            node.close_at(std::mem::replace(&mut self.closes, NEVER));
        }
        node
    }
}

/// The descriptors of one process: a tree; tables share the parts that are equal.
///
/// A fork copies one pointer; a later change copies the nodes on the way to one descriptor. No
/// operation takes longer because a table is large: a log can name any number of descriptors and
/// processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct FdTable {
    root: Option<Rc<Node>>,
    /// Number of levels above the nodes with descriptors.
    level: u32,
    /// Number of execs so far. Descriptors that they closed are still in the tree.
    execs: ExecNumber,
}

/// A table that threads may share.
pub(crate) type SharedFds = Rc<RefCell<FdTable>>;

impl FdTable {
    /// Whether the tree is high enough for a number.
    fn has_room(&self, number: u32) -> bool {
        u64::from(number) >> ((self.level + 1) * BITS) == 0
    }

    pub(crate) fn get(&self, fd: i32) -> Option<&Rc<OpenFile>> {
        let number = u32::try_from(fd).ok().filter(|number| self.has_room(*number))?;
        let mut node = self.root.as_ref()?;
        let mut shift = self.level * BITS;
        loop {
            let at = (number >> shift) as usize % WIDTH;
            match &**node {
                Node::Slots(slots) => return slots[at].as_ref().filter(|slot| slot.closes >= self.execs).map(|slot| &slot.file),
                Node::Inner(branches) => {
                    let branch = branches[at].as_ref().filter(|branch| branch.closes >= self.execs)?;
                    (node, shift) = (&branch.node, shift - BITS);
                }
            }
        }
    }

    /// The slot of a number, in nodes that no other table shares.
    fn place(&mut self, number: u32) -> &mut Option<Slot> {
        while !self.has_room(number) {
            self.level += 1;
            if let Some(node) = self.root.take() {
                let mut branches: [Option<Branch>; WIDTH] = Default::default();
                branches[0] = Some(Branch { node, closes: NEVER });
                self.root = Some(Rc::new(Node::Inner(branches)));
            }
        }
        let mut level = self.level;
        let mut node = Rc::make_mut(self.root.get_or_insert_with(|| Rc::new(Node::new(level))));
        loop {
            let at = (number >> (level * BITS)) as usize % WIDTH;
            match node {
                Node::Slots(slots) => return &mut slots[at],
                Node::Inner(branches) => {
                    level -= 1;
                    let new = || Branch { node: Rc::new(Node::new(level)), closes: NEVER };
                    node = branches[at].get_or_insert_with(new).own();
                }
            }
        }
    }

    pub(crate) fn set(&mut self, fd: i32, file: Rc<OpenFile>, close_on_exec: bool) {
        let Ok(number) = u32::try_from(fd) else { return };
        let closes = if close_on_exec { self.execs } else { NEVER };
        *self.place(number) = Some(Slot { file, closes });
    }

    pub(crate) fn remove(&mut self, fd: i32) -> Option<Rc<OpenFile>> {
        self.get(fd)?;
        self.place(u32::try_from(fd).ok()?).take().map(|slot| slot.file)
    }

    pub(crate) fn set_close_on_exec(&mut self, fd: i32, on: bool) {
        let closes = if on { self.execs } else { NEVER };
        if self.get(fd).is_some()
            && let Some(slot) = u32::try_from(fd).ok().and_then(|number| self.place(number).as_mut())
        {
            slot.closes = closes;
        }
    }

    /// `close_range`: close or mark all descriptors from `first` to `last`.
    pub(crate) fn close_range(&mut self, first: i64, last: i64, mark_only: bool) {
        let (Ok(first), Ok(last)) = (u64::try_from(first.max(0)), u64::try_from(last)) else { return };
        if let Some(root) = self.root.as_mut().filter(|_| first <= last) {
            Rc::make_mut(root).cut(self.level, first, last, mark_only.then_some(self.execs));
        }
    }

    /// Apply the renaming of a file to open files, as far as they are found within `left` steps.
    pub(crate) fn rename(&self, old: ObjectId, new: ObjectId, swapped: bool, left: &mut u64) {
        // Descriptors may share an open file, which is visited once: swapping twice would undo the
        // swap.
        let mut renamed: FxHashSet<*const OpenFile> = FxHashSet::default();
        let mut look = |file: &OpenFile| {
            let other = match file.object.get() {
                Some(object) if object == old => new,
                Some(object) if swapped && object == new => old,
                _ => return,
            };
            if !swapped || renamed.insert(file) {
                file.object.set(Some(other));
            }
        };
        if let Some(root) = &self.root {
            root.walk(self.execs, left, &mut look);
        }
    }

    /// A successful exec.
    pub(crate) fn exec(&mut self) {
        self.execs = self.execs.saturating_add(1).min(NEVER - 1);
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

    /// Reference model of the tree: a plain map.
    type List = std::collections::BTreeMap<i32, (usize, bool)>;

    fn compare(table: &FdTable, list: &List, files: &[Rc<OpenFile>], numbers: &[i32]) {
        for fd in numbers {
            let found = table.get(*fd).map(|file| files.iter().position(|other| Rc::ptr_eq(file, other)).unwrap());
            assert_eq!(found, list.get(fd).map(|(file, _)| *file), "descriptor {fd}");
        }
    }

    #[test]
    fn tables_that_share_their_nodes_do_what_tables_of_their_own_do() {
        let mut state = 1u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let files: Vec<Rc<OpenFile>> = (0..40).map(|_| OpenFile::new(None, None, false)).collect();
        let numbers: Vec<i32> = (0..40).chain([255, 256, 257, 4095, 4096, 70_000, i32::MAX - 1, i32::MAX]).collect();
        let mut tables = vec![(FdTable::default(), List::default())];
        for _ in 0..20_000 {
            let (fd, other, at) = (numbers[random(numbers.len())], numbers[random(numbers.len())], random(tables.len()));
            let (table, list) = &mut tables[at];
            match random(10) {
                0..5 => {
                    let (file, close_on_exec) = (random(files.len()), random(2) == 0);
                    table.set(fd, Rc::clone(&files[file]), close_on_exec);
                    list.insert(fd, (file, close_on_exec));
                }
                5 => assert_eq!(table.remove(fd).is_some(), list.remove(&fd).is_some()),
                6 => {
                    let on = random(2) == 0;
                    table.set_close_on_exec(fd, on);
                    list.entry(fd).and_modify(|slot| slot.1 = on);
                }
                7 => {
                    let mark_only = random(3) > 0;
                    table.close_range(i64::from(fd), i64::from(other), mark_only);
                    list.iter_mut().filter(|(number, _)| (fd..=other).contains(number)).for_each(|(_, slot)| slot.1 |= mark_only);
                    list.retain(|number, _| mark_only || !(fd..=other).contains(number));
                }
                8 => {
                    table.exec();
                    list.retain(|_, slot| !slot.1);
                }
                _ if tables.len() < 8 => {
                    let copy = tables[at].clone();
                    tables.push(copy);
                }
                _ => drop(tables.swap_remove(at)),
            }
            if tables.is_empty() {
                tables.push(Default::default());
            }
            tables.iter().for_each(|(table, list)| compare(table, list, &files, &numbers));
        }
    }

    #[test]
    fn a_rename_takes_the_steps_it_may_and_swaps_once() {
        let mut table = FdTable::default();
        let files = [OpenFile::new(Some(1), None, false), OpenFile::new(Some(1), None, false)];
        (0..1000).for_each(|fd| table.set(fd, Rc::clone(&files[usize::from(fd >= 500)]), false));
        let names = || files.each_ref().map(|file| file.object.get());
        table.rename(1, 2, true, &mut 10_000);
        assert_eq!(names(), [Some(2), Some(2)]);
        let mut left = 200;
        table.rename(2, 3, false, &mut left);
        assert_eq!((names(), left), ([Some(3), Some(2)], 0));
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
