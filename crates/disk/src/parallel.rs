//! Parallel work whose results are taken in order.

use std::{
    collections::BTreeMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

struct State<R> {
    next: u64,
    /// Results before this one were taken.
    taken: u64,
    done: BTreeMap<u64, R>,
    is_over: bool,
}

struct Shared<R> {
    state: Mutex<State<R>>,
    change: Condvar,
}

impl<R> Shared<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<R>>) -> MutexGuard<'a, State<R>> {
        self.change.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.change.notify_all();
    }
}

/// Wakes all threads, also when a thread panics: the panic continues when the threads are joined.
struct EndOnDrop<'a, R>(&'a Shared<R>, bool);

impl<R> Drop for EndOnDrop<'_, R> {
    fn drop(&mut self) {
        if self.1 {
            self.0.end();
        }
    }
}

/// Do `count` units of work in `threads` threads. `take` gets the results in order; its error ends
/// everything. At most eight results for each thread wait to be taken: with fewer, all would wait
/// for one whose thread lost its core.
pub(crate) fn in_order<R: Send, E>(
    count: u64,
    threads: usize,
    work: impl Fn(u64) -> R + Sync,
    mut take: impl FnMut(R) -> Result<(), E>,
) -> Result<(), E> {
    let shared =
        Shared { state: Mutex::new(State { next: 0, taken: 0, done: BTreeMap::new(), is_over: false }), change: Condvar::new() };
    let ahead = 8 * threads as u64;
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut guard = EndOnDrop(&shared, true);
                loop {
                    let mut state = shared.lock();
                    while !state.is_over && state.next < count && state.next >= state.taken + ahead {
                        state = shared.wait(state);
                    }
                    if state.is_over || state.next >= count {
                        break;
                    }
                    let number = state.next;
                    state.next += 1;
                    drop(state);
                    let result = work(number);
                    shared.lock().done.insert(number, result);
                    shared.change.notify_all();
                }
                guard.1 = false;
            });
        }
        let _end = EndOnDrop(&shared, true);
        for number in 0..count {
            let mut state = shared.lock();
            let result = loop {
                if let Some(result) = state.done.remove(&number) {
                    break result;
                }
                if state.is_over {
                    return Ok(());
                }
                state = shared.wait(state);
            };
            state.taken = number + 1;
            drop(state);
            shared.change.notify_all();
            take(result)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_an_error_ends_it() {
        let mut seen = Vec::new();
        let outcome = in_order(
            1000,
            7,
            |number| number * 3,
            |result| {
                seen.push(result);
                if result == 1500 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!(outcome, Err("enough"));
        assert_eq!(seen, (0..=500).map(|number| number * 3).collect::<Vec<_>>());
    }
}
