//! Waits for locks that were just over: what a thread was on no CPU for meanwhile. The family of locks says it to that of the scheduler.

use rustc_hash::FxHashMap;

/// Of one thread; of more the earliest are forgotten, which may only have been spent spinning.
const MOST: usize = 64;

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
struct Over {
    from_ns: i64,
    until_ns: i64,
    lock: i32,
}

/// The last ones of each thread, by its life.
#[derive(Debug, Default)]
pub(crate) struct LockWaits(FxHashMap<u32, Vec<Over>>);

impl LockWaits {
    /// A thread has a lock, by its number in `locks`, that it waited for.
    pub(crate) fn add(&mut self, life: u32, (from_ns, until_ns): (i64, i64), lock: i32) {
        let waits = self.0.entry(life).or_default();
        if waits.len() >= MOST {
            waits.drain(..MOST / 2);
        }
        waits.push(Over { from_ns, until_ns, lock });
    }

    /// The lock that a thread waited for all this time.
    pub(crate) fn lock_of(&self, life: u32, from_ns: i64, until_ns: i64) -> Option<i32> {
        let is_within = |wait: &&Over| wait.from_ns <= from_ns && until_ns <= wait.until_ns;
        self.0.get(&life)?.iter().find(is_within).map(|wait| wait.lock)
    }

    /// Nobody asks for those of this thread any more.
    pub(crate) fn forget(&mut self, life: u32) {
        if let Some(waits) = self.0.get_mut(&life) {
            waits.clear();
        }
    }
}
