//! Whose a sum is that names a process by its number only.

use rustc_hash::FxHashMap;

use super::threads::Threads;

/// Processes by their numbers, each with the times at which lives of its first thread began.
pub(crate) struct Owners(FxHashMap<i32, Vec<(i64, i32)>>);

impl Owners {
    pub(crate) fn of(threads: &Threads) -> Owners {
        let mut owners: FxHashMap<i32, Vec<(i64, i32)>> = FxHashMap::default();
        for (life, number) in threads.lives.iter().zip(0..) {
            if life.pid == life.tid {
                owners.entry(life.pid).or_default().push((life.start_ns, number));
            }
        }
        owners.values_mut().for_each(|lives| lives.sort_unstable());
        Owners(owners)
    }

    /// Who had a number at a time. An event of the process may come after the first that is added up.
    pub(crate) fn life(&self, pid: u32, at_ns: i64) -> Option<i32> {
        let lives = self.0.get(&pid.cast_signed())?;
        let after = lives.partition_point(|(start_ns, _)| *start_ns <= at_ns);
        Some(lives[after.saturating_sub(1)].1)
    }
}
