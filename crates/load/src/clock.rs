//! The monotonic clock, which is independent of changes of the wall clock, and its offset to the
//! wall clock.

use rustix::time::{ClockId, Timespec};

/// Time of the monotonic clock [ns].
#[inline]
pub(crate) fn now_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Offset of the Unix time to the monotonic clock [ns].
pub(crate) fn to_epoch_ns() -> i64 {
    // The attempt with the least time between its readings of the monotonic clock.
    let reading = |_| {
        let (before, wall, after) = (now_ns(), read(ClockId::Realtime), now_ns());
        (after - before, wall as i64 - (before + (after - before) / 2) as i64)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}

/// Sleep until this time.
pub(crate) fn sleep_until(ns: u64) {
    // A signal may interrupt it: the start is then early, and counted from there.
    let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec(ns));
}

/// The time of a clock, for the kernel.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 }
}

fn read(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
