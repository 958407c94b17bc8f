//! Finds the task to which a sum belongs that names a process by its number only.

use rustc_hash::FxHashMap;

use super::threads::Threads;

/// Processes by their numbers, each with the start times of the tasks of its first thread.
pub(crate) struct Owners(FxHashMap<i32, Vec<(i64, i32)>>);

impl Owners {
    pub(crate) fn of(threads: &Threads) -> Owners {
        let mut owners: FxHashMap<i32, Vec<(i64, i32)>> = FxHashMap::default();
        for (task, number) in threads.tasks.iter().zip(0..) {
            if task.pid == task.tid {
                owners.entry(task.pid).or_default().push((task.start_ns, number));
            }
        }
        owners.values_mut().for_each(|tasks| tasks.sort_unstable());
        Owners(owners)
    }

    /// The task that had a process number at a time. An event of the process may come after the
    /// first one that is added up.
    pub(crate) fn task(&self, pid: u32, at_ns: i64) -> Option<i32> {
        let tasks = self.0.get(&pid.cast_signed())?;
        let after = tasks.partition_point(|(start_ns, _)| *start_ns <= at_ns);
        Some(tasks[after.saturating_sub(1)].1)
    }
}
