//! Freezes processes while the rings are so full that events could be lost.
//!
//! A separate thread checks the rings, because the one that empties them may wait for a disk. It
//! freezes the control group; the other thread thaws it after emptying them.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crate::{Freezer, transport::ring::Level};

/// Level at which processes are frozen, in eighths of a ring.
const HOLD_ABOVE: u64 = 3;

/// The group, and whether it is frozen.
struct Held {
    group: Freezer,
    still: bool,
}

/// Checks the rings until it is dropped; the processes continue then.
pub(crate) struct Hold {
    held: Arc<Mutex<Held>>,
    stop: Arc<AtomicBool>,
    watcher: Option<thread::JoinHandle<()>>,
}

impl Hold {
    /// Check the rings after every `pause`.
    pub(crate) fn new(group: Freezer, levels: Vec<Level>, pause: Duration) -> Hold {
        let held = Arc::new(Mutex::new(Held { group, still: false }));
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (Arc::clone(&held), Arc::clone(&stop));
        let watcher = thread::spawn(move || {
            run_before_others();
            while !stopped.load(Ordering::Relaxed) {
                if levels.iter().any(|level| level.is_above(HOLD_ABOVE)) {
                    set(&shared, true);
                }
                thread::sleep(pause);
            }
        });
        Hold { held, stop, watcher: Some(watcher) }
    }

    /// The rings are empty: let the processes continue.
    pub(crate) fn release(&self) {
        set(&self.held, false);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
        self.release();
    }
}

/// Both threads do this under the lock: neither undoes what the other has just done for another
/// reason.
fn set(held: &Mutex<Held>, still: bool) {
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    if held.still != still && held.group.freeze(still).is_ok() {
        held.still = still;
    }
}

/// A promise to lose nothing requires checks in time, also on a busy machine. Without permission
/// for real-time priority, the thread runs like all others.
fn run_before_others() {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure outlives the call; 0 is this thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) };
}
