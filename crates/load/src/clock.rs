//! The monotonic clock, which is independent of changes of the wall clock, and its offset to the
//! wall clock.

/// Time of the monotonic clock [ns].
#[inline]
pub(crate) fn now_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Offset of the Unix time to the monotonic clock [ns].
pub(crate) fn to_epoch_ns() -> i64 {
    // The attempt with the least time between its readings of the monotonic clock.
    let reading = |_| {
        let (before, wall, after) = (now_ns(), read(libc::CLOCK_REALTIME), now_ns());
        (after - before, wall as i64 - (before + (after - before) / 2) as i64)
    };
    (0..5).map(reading).min().map_or(0, |(_, offset)| offset)
}

/// Sleep until this time.
pub(crate) fn sleep_until(ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    // SAFETY: the time lives through the call, which a signal may interrupt: the start is then
    // early, and counted from there.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut()) };
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives through the call, which cannot fail with these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
