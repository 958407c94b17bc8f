//! Counts the work of a worker, with one reading of the clock for each operation.

use std::{io, sync::atomic::Ordering::Relaxed};

use nix::sys::resource::{UsageWho, getrusage};

use crate::{
    board::{Header, Interval, Slot},
    clock::now_ns,
    histogram::class_of,
};

/// Length of the intervals of progress [ns].
pub(crate) const INTERVAL_NS: u64 = 100_000_000;
/// Number of errors after which a worker ends its phase.
const MOST_ERRORS: u64 = 100;

/// Result of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
}

impl Done {
    /// One operation on this many bytes.
    pub(crate) fn bytes(bytes: u64) -> Self {
        Done { bytes, operations: 1 }
    }

    /// One operation that transfers nothing.
    pub(crate) const ONE: Self = Done { bytes: 0, operations: 1 };
}

/// Counts one phase of one worker.
pub(crate) struct Meter<'a> {
    header: &'a Header,
    slot: &'a Slot,
    intervals: &'a [Interval],
    /// Operations count only after this time; 0: counting has begun.
    warm_until: u64,
    deadline: u64,
    /// When the current operation began.
    began: u64,
    /// The current interval: its start, and the work in it.
    interval: (u64, u64, u64),
    errors: u64,
    device_read: u64,
}

impl<'a> Meter<'a> {
    /// Sleep until the start of a phase, and count after `warm_ns`. The phase ends `time_ns` after
    /// that.
    pub(crate) fn start(
        (header, slot, intervals): (&'a Header, &'a Slot, &'a [Interval]),
        start_ns: u64,
        warm_ns: u64,
        time_ns: Option<u64>,
    ) -> Self {
        crate::clock::sleep_until(start_ns);
        let now = now_ns();
        // All end at the same time, whenever each of them got a processor.
        let deadline = time_ns.map_or(u64::MAX, |time| start_ns.max(1).saturating_add(warm_ns).saturating_add(time));
        let warm_until = if warm_ns > 0 { start_ns + warm_ns } else { 0 };
        if warm_ns == 0 {
            slot.start_ns.store(now, Relaxed);
        }
        Meter {
            header,
            slot,
            intervals,
            warm_until,
            deadline,
            began: now,
            interval: (now, 0, 0),
            errors: 0,
            device_read: device_read(),
        }
    }

    /// Begin the next operation now, rather than at the end of the last one.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.began = now_ns();
    }

    /// When the current operation began.
    pub(crate) fn began(&self) -> u64 {
        self.began
    }

    /// Count the end of the operation. False: the phase is to end.
    #[inline]
    pub(crate) fn end(&mut self, lane: usize, outcome: io::Result<Done>) -> bool {
        let began = self.began;
        self.end_of(lane, began, outcome)
    }

    /// Count the end of an operation that began at this time. False: the phase is to end.
    #[inline]
    pub(crate) fn end_of(&mut self, lane: usize, began: u64, outcome: io::Result<Done>) -> bool {
        let now = now_ns();
        self.began = now;
        if self.warm_until > 0 {
            if now >= self.warm_until {
                self.count_from(now);
            }
            return match outcome {
                Ok(_) => !self.header.stopped(),
                Err(error) => self.failed(lane, &error),
            };
        }
        match outcome {
            Ok(done) => {
                self.succeeded(lane, done, now - began);
                if now - self.interval.0 >= INTERVAL_NS {
                    self.end_interval(now);
                }
                now < self.deadline && !self.header.stopped()
            }
            Err(error) => self.failed(lane, &error) && now < self.deadline,
        }
    }

    /// Drop all earlier counts.
    #[cold]
    fn count_from(&mut self, now: u64) {
        self.warm_until = 0;
        self.slot.start_ns.store(now, Relaxed);
        self.interval = (now, 0, 0);
        self.device_read = device_read();
    }

    #[inline]
    fn succeeded(&mut self, lane: usize, done: Done, ns: u64) {
        let lane = &self.slot.lanes[lane];
        // There is one writer, so no atomic addition is needed.
        lane.bytes.store(lane.bytes.load(Relaxed) + done.bytes, Relaxed);
        lane.operations.store(lane.operations.load(Relaxed) + done.operations, Relaxed);
        let count = &lane.latencies[class_of(ns)];
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        if ns > lane.max_ns.load(Relaxed) {
            lane.max_ns.store(ns, Relaxed);
        }
        self.interval.1 += done.bytes;
        self.interval.2 += done.operations;
    }

    /// Count an error. Returns whether to continue.
    #[cold]
    fn failed(&mut self, lane: usize, error: &io::Error) -> bool {
        self.errors += 1;
        self.slot.lanes[lane].errors.fetch_add(1, Relaxed);
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        self.slot.errno.store(errno, Relaxed);
        let hopeless = matches!(errno, libc::ENOSPC | libc::EDQUOT | libc::EROFS | libc::ENODEV | libc::ENXIO | libc::EFBIG);
        !hopeless && self.errors < MOST_ERRORS && !self.header.stopped()
    }

    /// Count a block without the contents that were written.
    #[cold]
    pub(crate) fn damaged(&self) {
        self.slot.damaged.fetch_add(1, Relaxed);
    }

    /// Whether the phase is to end.
    pub(crate) fn is_over(&self) -> bool {
        self.header.stopped() || now_ns() >= self.deadline
    }

    #[cold]
    fn end_interval(&mut self, now: u64) {
        let (start, bytes, operations) = self.interval;
        let used = self.slot.intervals.load(Relaxed) as usize;
        // Without room for more, the last one grows.
        let place = used.min(self.intervals.len() - 1);
        let interval = &self.intervals[place];
        if used == place {
            interval.start_ns.store(start, Relaxed);
            interval.bytes.store(bytes, Relaxed);
            interval.operations.store(operations, Relaxed);
            self.slot.intervals.store(used as u32 + 1, Relaxed);
        } else {
            interval.bytes.fetch_add(bytes, Relaxed);
            interval.operations.fetch_add(operations, Relaxed);
        }
        interval.dur_ns.store(now - interval.start_ns.load(Relaxed), Relaxed);
        self.interval = (now, 0, 0);
    }

    /// The phase is done for this worker.
    pub(crate) fn finish(mut self) {
        let now = now_ns();
        if self.warm_until > 0 {
            self.count_from(now);
        }
        if self.interval.1 + self.interval.2 > 0 {
            self.end_interval(now);
        }
        self.slot.end_ns.store(now, Relaxed);
        self.slot.device_read.store(device_read().saturating_sub(self.device_read), Relaxed);
    }
}

/// Bytes that the kernel has read from devices for this process so far (`ru_inblock` of
/// getrusage(2), in units of 512).
fn device_read() -> u64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0, |usage| usage.block_reads() as u64 * 512)
}
