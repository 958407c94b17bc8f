//! What threads did in the kernel while they were on no CPU: waits for locks, and page faults.
//! Their families see the end of these a moment after the scheduler's family has seen the end of
//! the time on no CPU.

use rustc_hash::FxHashMap;

/// Limit for each thread; above it the earliest are forgotten.
const MOST: usize = 4096;

/// What a thread waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    /// A lock of the kernel: its row in `locks`.
    Lock(i32),
    /// A page of a file: the file's row in `paths` (below 0: unknown); `from_disk`: the page was
    /// not in memory.
    Page { object: i32, from_disk: bool },
}

/// A time on no CPU that has ended.
#[derive(Clone, Copy, Debug)]
struct Away {
    from_ns: i64,
    until_ns: i64,
    waited_for: Option<WaitedFor>,
}

/// The last ones of each thread, by its task, ordered by time.
#[derive(Debug, Default)]
pub(crate) struct Waits(FxHashMap<u32, Vec<Away>>);

impl Waits {
    /// Record that a thread was on no CPU.
    pub(crate) fn away(&mut self, task: u32, from_ns: i64, until_ns: i64) {
        let all = self.0.entry(task).or_default();
        if all.len() >= MOST {
            all.drain(..MOST / 2);
        }
        all.push(Away { from_ns, until_ns, waited_for: None });
    }

    /// Record what a thread was waiting for between two recent times. A lock that it waited for
    /// within a page fault is more specific than the fault.
    pub(crate) fn was_at(&mut self, task: u32, (from_ns, until_ns): (i64, i64), waited_for: WaitedFor) {
        let Some(all) = self.0.get_mut(&task) else { return };
        for away in all.iter_mut().rev().take_while(|away| away.from_ns >= from_ns) {
            let is_new = away.waited_for.is_none() || matches!(waited_for, WaitedFor::Lock(_));
            if is_new && away.until_ns <= until_ns {
                away.waited_for = Some(waited_for);
            }
        }
    }

    /// What a thread waited for when it left its CPU at this time.
    pub(crate) fn of(&self, task: u32, from_ns: i64) -> Option<WaitedFor> {
        let all = self.0.get(&task)?;
        let place = all.binary_search_by_key(&from_ns, |away| away.from_ns).ok()?;
        all[place].waited_for
    }

    /// Forget the times of a thread, which are no longer needed.
    pub(crate) fn forget(&mut self, task: u32) {
        if let Some(all) = self.0.get_mut(&task) {
            all.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_says_more_than_the_fault_around_it() {
        let page = WaitedFor::Page { object: 3, from_disk: true };
        let mut waits = Waits::default();
        waits.was_at(7, (0, 100), page);
        waits.away(7, 10, 20);
        waits.away(7, 30, 40);
        waits.was_at(7, (29, 41), WaitedFor::Lock(5));
        waits.was_at(7, (9, 50), page);
        waits.away(7, 60, 70);
        // The thread's time on no CPU ended before.
        waits.was_at(7, (55, 65), page);
        assert_eq!([10, 30, 60, 61].map(|from_ns| waits.of(7, from_ns)), [Some(page), Some(WaitedFor::Lock(5)), None, None]);
        (0..10_000).for_each(|at| waits.away(8, at, at + 1));
        waits.was_at(8, (9_999, 10_000), page);
        assert_eq!((waits.of(8, 9_999), waits.0[&8].len() <= MOST), (Some(page), true));
        waits.forget(7);
        assert_eq!(waits.of(7, 10), None);
    }
}
