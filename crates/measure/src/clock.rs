//! Clocks.

/// Time of the monotonic clock [ns].
pub(crate) fn monotonic_ns() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Time since the Unix epoch [ns].
pub(crate) fn epoch_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time that this process has used [ns].
pub(crate) fn own_cpu_ns() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct lives through the call, which cannot fail with these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
