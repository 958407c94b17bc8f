//! Waiters and holders of locks: mutexes, and reader-writer semaphores.
//!
//! A waiting task has a `mutex_waiter` or `rwsem_waiter` on its stack, which names the task, and is
//! a node of the list of the lock. The one node of that list that is on no stack is the list's
//! head, in the lock itself. The first word of the lock, without flags, is the task that holds it
//! (kernel/locking/mutex.h, rwsem.c).

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    error::Fault,
    format::u64_at,
    kernel::Kernel,
    stacks::{STACK_BYTES, Stacks},
    tasks::Task,
};

/// More waiters than any lock has that a kernel survives.
const MOST_WAITERS: usize = 1 << 20;

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// `struct mutex`.
    Mutex,
    /// `struct rw_semaphore`.
    ReadersAndWriters,
}

impl LockKind {
    /// Its name in the kernel's sources.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Mutex => "mutex",
            LockKind::ReadersAndWriters => "rwsem",
        }
    }
}

/// A task that waits for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    pub kind: LockKind,
    /// Address of the lock.
    pub lock: u64,
    /// Index of the waiting task in the list of tasks.
    pub waiter: usize,
    /// Index of the holding task; `None`: no task holds it, or readers do, or a task that is in no
    /// list.
    pub holder: Option<usize>,
    /// Whether readers hold it: `holder` is then the last reader that acquired it, and may have
    /// released it.
    pub is_of_readers: bool,
    /// Number of locks up to a task that waits for none; `None`: the tasks wait for each other.
    pub depth: Option<u32>,
    /// Index of that task, if it is known.
    pub root: Option<usize>,
}

/// Offsets in a kind of lock and its waiters.
struct Layout {
    kind: LockKind,
    /// Offset of the node in the waiter.
    node: u64,
    /// Offset of the task in the waiter.
    task: u64,
    /// Offset of the head of the list in the lock.
    list: u64,
    /// Offset of the holder in the lock.
    owner: u64,
    /// Bits of the holder that are flags.
    flags: u64,
    /// Names of the functions that wait for it.
    functions: &'static [&'static str],
}

impl Layout {
    fn all(kernel: &Kernel) -> Vec<Layout> {
        let layout = |kind, waiter: &str, lock: &str, flags, functions| {
            let offset = |structure: &str, member: &str| kernel.field(structure, member).ok().map(|field| field.offset);
            Some(Layout {
                kind,
                node: offset(waiter, "list")?,
                task: offset(waiter, "task")?,
                list: offset(lock, "wait_list")?,
                owner: offset(lock, "owner")?,
                flags,
                functions,
            })
        };
        let mutex = layout(LockKind::Mutex, "mutex_waiter", "mutex", 7, &["__mutex_lock", "__ww_mutex_lock"]);
        let rwsem =
            layout(LockKind::ReadersAndWriters, "rwsem_waiter", "rw_semaphore", 3, &["rwsem_down_", "down_read", "down_write"]);
        [mutex, rwsem].into_iter().flatten().collect()
    }
}

/// The tasks by address, and by the pages of their stacks.
struct Index {
    by_address: FxHashMap<u64, usize>,
    by_stack: FxHashMap<u64, usize>,
}

impl Kernel {
    /// The tasks that wait for a lock, among these tasks with these stacks.
    #[must_use]
    pub fn locks(&self, tasks: &[Task], stacks: &Stacks) -> Vec<LockWait> {
        let layouts = Layout::all(self);
        let index = Index {
            by_address: tasks.iter().enumerate().map(|(number, task)| (task.address, number)).collect(),
            by_stack: tasks.iter().enumerate().map(|(number, task)| (task.stack / STACK_BYTES, number)).collect(),
        };
        // Tasks with the same stack wait for the same kind of lock.
        let kinds: Vec<Option<&Layout>> = stacks.stacks.iter().map(|(frames, _)| kind_of(frames, &layouts)).collect();
        let mut found = Vec::new();
        for (number, stack) in stacks.of_tasks.iter().enumerate() {
            let layout = stack.and_then(|stack| *kinds.get(stack)?);
            let (Some(layout), Some(task)) = (layout, tasks.get(number)) else { continue };
            if let Ok(Some((lock, holder, is_of_readers))) = self.lock_of(task, layout, &index) {
                found.push(LockWait { kind: layout.kind, lock, waiter: number, holder, is_of_readers, depth: None, root: None });
            }
        }
        add_depths(&mut found);
        found
    }

    /// The lock that a task waits for, its holder, and whether readers hold it.
    fn lock_of(&self, task: &Task, layout: &Layout, index: &Index) -> Result<Option<(u64, Option<usize>, bool)>, Fault> {
        const READERS: u64 = 1;
        let sp = self.member(task.address, "task_struct", "thread.sp")?;
        let stack = self.memory.bytes(sp, task.stack.wrapping_add(STACK_BYTES).wrapping_sub(sp))?;
        for (place, word) in stack.chunks_exact(8).enumerate() {
            if u64_at(word, 0) != task.address {
                continue;
            }
            let waiter = sp.wrapping_add(8 * place as u64).wrapping_sub(layout.task);
            let Some(head) = self.head_of(waiter.wrapping_add(layout.node), layout, index) else { continue };
            let lock = head.wrapping_sub(layout.list);
            let owner = self.memory.u64(lock.wrapping_add(layout.owner))?;
            let is_of_readers = layout.kind == LockKind::ReadersAndWriters && owner & READERS != 0;
            return Ok(Some((lock, index.by_address.get(&(owner & !layout.flags)).copied(), is_of_readers)));
        }
        Ok(None)
    }

    /// The head of the list that contains this node: the one that belongs to no waiter. `None`: it
    /// is no node.
    fn head_of(&self, node: u64, layout: &Layout, index: &Index) -> Option<u64> {
        let (mut seen, mut at, mut head) = (FxHashSet::default(), node, None);
        loop {
            let next = self.memory.u64(at).ok()?;
            // Both neighbours must point at each other, or this is no list.
            if self.memory.u64(next.wrapping_add(8)).ok()? != at || !seen.insert(at) || seen.len() > MOST_WAITERS {
                return None;
            }
            if next == node {
                return head;
            }
            if !self.is_waiter(next, layout, index) && head.replace(next).is_some() {
                return None;
            }
            at = next;
        }
    }

    /// Whether a node is on the stack of the task that it names.
    fn is_waiter(&self, node: u64, layout: &Layout, index: &Index) -> bool {
        let Some(of_stack) = index.by_stack.get(&(node / STACK_BYTES)) else { return false };
        let task = self.memory.u64(node.wrapping_sub(layout.node).wrapping_add(layout.task));
        task.is_ok_and(|task| index.by_address.get(&task) == Some(of_stack))
    }
}

/// The kind of lock for which a stack waits.
fn kind_of<'l>(frames: &[crate::Frame], layouts: &'l [Layout]) -> Option<&'l Layout> {
    const NEAREST: usize = 8;
    let names = || frames.iter().take(NEAREST).filter_map(|frame| Some(frame.function.as_ref()?.0.as_str()));
    names().find_map(|name| layouts.iter().find(|layout| layout.functions.iter().any(|start| name.starts_with(start))))
}

/// Set the number of locks between each waiter and a task that waits for none, and that task.
fn add_depths(waits: &mut [LockWait]) {
    let by_waiter: FxHashMap<usize, usize> = waits.iter().enumerate().map(|(number, wait)| (wait.waiter, number)).collect();
    let ends: Vec<Option<(u32, Option<usize>)>> = waits
        .iter()
        .map(|wait| {
            let (mut depth, mut seen, mut at) = (1, FxHashSet::from_iter([wait.waiter]), wait.holder);
            while let Some(next) = at.and_then(|holder| waits.get(*by_waiter.get(&holder)?)) {
                if !seen.insert(next.waiter) {
                    return None;
                }
                depth += 1;
                at = next.holder;
            }
            Some((depth, at))
        })
        .collect();
    for (wait, end) in waits.iter_mut().zip(ends) {
        wait.depth = end.map(|(depth, _)| depth);
        wait.root = end.and_then(|(_, root)| root);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(waiter: usize, holder: Option<usize>) -> LockWait {
        LockWait { kind: LockKind::Mutex, lock: 0, waiter, holder, is_of_readers: false, depth: None, root: None }
    }

    #[test]
    fn depths_end_at_who_waits_for_none_and_deadlocks_have_none() {
        let mut waits = vec![
            wait(1, Some(0)),
            wait(2, Some(1)),
            wait(3, Some(2)),
            wait(4, None),
            wait(5, Some(6)),
            wait(6, Some(5)),
            wait(7, Some(6)),
        ];
        add_depths(&mut waits);
        let ends: Vec<(Option<u32>, Option<usize>)> = waits.iter().map(|wait| (wait.depth, wait.root)).collect();
        let chain = [(Some(1), Some(0)), (Some(2), Some(0)), (Some(3), Some(0)), (Some(1), None)];
        assert_eq!(ends, [&chain[..], &[(None, None); 3]].concat());
    }
}
