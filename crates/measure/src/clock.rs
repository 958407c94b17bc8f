//! Clocks.

use rustix::time::{ClockId, clock_gettime};

/// Time of the monotonic clock [ns].
pub(crate) fn monotonic_ns() -> u64 {
    read(ClockId::Monotonic)
}

/// Time since the Unix epoch [ns].
pub(crate) fn epoch_ns() -> u64 {
    read(ClockId::Realtime)
}

/// CPU time that this process has used [ns].
pub(crate) fn own_cpu_ns() -> u64 {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
