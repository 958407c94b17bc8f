//! Memory shared by the workers of a step and their parent: the barriers, and the progress of each
//! worker.
//!
//! In each phase, every worker prepares and passes the barrier `Ready`; the parent sets `start_ns`
//! and raises `phase`; each worker begins at that time, does its part, and passes `Finished`. Once
//! the parent has read the results, it raises `collected`. The results of a worker that dies are
//! kept up to that moment.

use std::{
    io, ptr, slice,
    sync::atomic::{
        AtomicI32, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
    time::Duration,
};

use rustix::thread::futex;

use crate::{clock::timespec, histogram::CLASSES};

/// Number of operations that may be measured at the same time.
pub(crate) const LANES: usize = 3;

/// A point at which workers are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    Ready = 0,
    Finished = 1,
}

/// State of all workers.
#[repr(C)]
pub(crate) struct Header {
    /// Number of phases that have begun.
    phase: AtomicU32,
    /// Number of times that workers passed each barrier, in all phases together.
    passed: [AtomicU32; 2],
    /// Number of phases whose results the parent has read.
    collected: AtomicU32,
    /// Nonzero: all workers end at once.
    stop: AtomicU32,
    /// When the phase begins, by the monotonic clock [ns].
    start_ns: AtomicU64,
}

/// Results of a worker for one operation in this phase.
#[repr(C)]
pub(crate) struct Lane {
    pub(crate) bytes: AtomicU64,
    pub(crate) operations: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) max_ns: AtomicU64,
    pub(crate) latencies: [AtomicU32; CLASSES],
}

/// Work of a worker in an interval, by the monotonic clock.
#[repr(C)]
pub(crate) struct Interval {
    pub(crate) start_ns: AtomicU64,
    pub(crate) dur_ns: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) operations: AtomicU64,
}

/// State of one worker.
#[repr(C)]
pub(crate) struct Slot {
    /// When it began and ended the phase, by the monotonic clock [ns]; 0: not yet.
    pub(crate) start_ns: AtomicU64,
    pub(crate) end_ns: AtomicU64,
    /// Error number of the last operation that failed.
    pub(crate) errno: AtomicI32,
    /// Number of blocks with wrong contents.
    pub(crate) damaged: AtomicU64,
    /// Size of its part of the file that can be read [B]. Kept from phase to phase.
    pub(crate) prepared: AtomicU64,
    /// Bytes that the kernel read from devices for this process.
    pub(crate) device_read: AtomicU64,
    pub(crate) intervals: AtomicU32,
    /// The last phase in which it passed each barrier.
    passed: [AtomicU32; 2],
    pub(crate) lanes: [Lane; LANES],
}

impl Slot {
    /// Clear the results of the last phase.
    pub(crate) fn reset(&self) {
        for number in [&self.start_ns, &self.end_ns, &self.damaged, &self.device_read] {
            number.store(0, Relaxed);
        }
        self.errno.store(0, Relaxed);
        self.intervals.store(0, Relaxed);
        for lane in &self.lanes {
            for number in [&lane.bytes, &lane.operations, &lane.errors, &lane.max_ns] {
                number.store(0, Relaxed);
            }
            lane.latencies.iter().filter(|count| count.load(Relaxed) > 0).for_each(|count| count.store(0, Relaxed));
        }
    }

    /// The last phase in which it passed this barrier.
    pub(crate) fn passed(&self, barrier: Barrier) -> u32 {
        self.passed[barrier as usize].load(Acquire)
    }

    /// A number that grows while the worker makes progress.
    pub(crate) fn advance(&self) -> u64 {
        let done: u64 = self.lanes.iter().map(|lane| lane.operations.load(Relaxed) + lane.errors.load(Relaxed)).sum();
        done + self.prepared.load(Relaxed)
    }
}

/// The shared memory.
pub(crate) struct Board {
    memory: *mut u8,
    bytes: usize,
    workers: usize,
    intervals: usize,
}

impl Board {
    /// Room for this many workers, and intervals of each. Only used pages take memory.
    pub(crate) fn new(workers: usize, intervals: usize) -> io::Result<Self> {
        let bytes = size_of::<Header>() + workers * (size_of::<Slot>() + intervals * size_of::<Interval>());
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        // SAFETY: a new mapping; no other memory is affected.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Board { memory: memory.cast(), bytes, workers, intervals })
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the mapping begins with it and is aligned to pages, and zero is a value of every
        // atomic.
        unsafe { &*self.memory.cast::<Header>() }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        // SAFETY: they are after the header, whose size is a multiple of 8.
        unsafe { slice::from_raw_parts(self.memory.add(size_of::<Header>()).cast(), self.workers) }
    }

    /// The intervals of a worker.
    pub(crate) fn intervals(&self, worker: usize) -> &[Interval] {
        assert!(worker < self.workers);
        let before = size_of::<Header>() + self.workers * size_of::<Slot>() + worker * self.intervals * size_of::<Interval>();
        // SAFETY: within the mapping, because the worker is one of those that it was made for.
        unsafe { slice::from_raw_parts(self.memory.add(before).cast(), self.intervals) }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // SAFETY: references to it live no longer than the board.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

impl Header {
    /// Called by a worker: wait until this phase begins; the first is 1. Returns its start [ns];
    /// `None`: all workers are to end.
    pub(crate) fn wait_for_start(&self, slot: &Slot, phase: u32) -> Option<u64> {
        self.pass(Barrier::Ready, slot, phase);
        self.wait_until(&self.phase, phase).then(|| self.start_ns.load(Relaxed))
    }

    /// Called by a worker: this phase is done.
    pub(crate) fn finish(&self, slot: &Slot, phase: u32) {
        self.pass(Barrier::Finished, slot, phase);
    }

    /// Called by a worker: sleep until the results have been read. False: all workers are to end.
    pub(crate) fn wait_until_collected(&self, phase: u32) -> bool {
        self.wait_until(&self.collected, phase)
    }

    fn pass(&self, barrier: Barrier, slot: &Slot, phase: u32) {
        slot.passed[barrier as usize].store(phase, SeqCst);
        self.passed[barrier as usize].fetch_add(1, SeqCst);
        wake(&self.passed[barrier as usize]);
    }

    fn wait_until(&self, word: &AtomicU32, phase: u32) -> bool {
        loop {
            let seen = word.load(Acquire);
            if seen >= phase {
                return true;
            }
            if self.stopped() {
                return false;
            }
            wait(word, seen, None);
        }
    }

    /// Begin the next phase at this time.
    pub(crate) fn begin(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Relaxed);
        self.phase.fetch_add(1, Release);
        wake(&self.phase);
    }

    /// Whether all workers are to end.
    #[inline]
    pub(crate) fn stopped(&self) -> bool {
        self.stop.load(Relaxed) != 0
    }

    /// Make all workers end.
    pub(crate) fn stop(&self) {
        self.stop.store(1, SeqCst);
        wake(&self.phase);
        wake(&self.collected);
    }

    /// Record that the results of this phase were read.
    pub(crate) fn collected(&self, phase: u32) {
        self.collected.store(phase, SeqCst);
        wake(&self.collected);
    }

    /// Number of times that workers passed this barrier, in all phases.
    pub(crate) fn passed(&self, barrier: Barrier) -> u32 {
        self.passed[barrier as usize].load(Acquire)
    }

    /// Sleep until it was passed more often than this, at most this long.
    pub(crate) fn wait_for(&self, barrier: Barrier, seen: u32, at_most: Duration) {
        wait(&self.passed[barrier as usize], seen, Some(at_most));
    }
}

/// Sleep while the word has this value (futex(2), between processes).
fn wait(word: &AtomicU32, value: u32, at_most: Option<Duration>) {
    let limit = at_most.map(|time| timespec(time.as_nanos() as u64));
    // Callers look at the word again, whatever ended the wait.
    let _ = futex::wait(word, futex::Flags::empty(), value, limit.as_ref());
}

fn wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}
