//! The ring of a CPU, as the user side sees it: `bpf/ring.h`.

use std::{
    io,
    os::fd::RawFd,
    ptr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use crate::transport::spool::{FRAME_BYTES, LONGEST};

/// Size of the header before the events of a ring, and of the room after its end for the rest of
/// the last event [B].
const HEADER: usize = 4096;
const SLACK: usize = 16_384;
/// One for each number that `event_header.kind` can hold.
pub(crate) const KINDS: usize = 256;
/// Offsets of fields of `struct ring`.
const TAIL: usize = 64;
const DROPPED: usize = 128;
pub(crate) const FIRST_DROP: usize = DROPPED + 8 * KINDS;

/// Size of a ring with its header and the room after it [B].
pub(crate) fn stride(ring_bytes: u32) -> u32 {
    ring_bytes + (HEADER + SLACK) as u32
}

/// The rings of all CPUs: one array that the kernel and this process have mapped.
pub(crate) fn map(fd: RawFd, cpus: usize, ring_bytes: u32) -> io::Result<Vec<Ring>> {
    let stride = stride(ring_bytes) as usize;
    // SAFETY: a new mapping of a whole map; nothing else refers to its memory here. It stays until the process ends.
    let base = unsafe { libc::mmap(ptr::null_mut(), stride * cpus, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let rings: Vec<Ring> = (0..cpus)
        .map(|cpu| Ring { cpu: cpu as u32, base: base.cast::<u8>().wrapping_add(cpu * stride), mask: u64::from(ring_bytes) - 1 })
        .collect();
    for ring in &rings {
        ring.word(0).store(u64::from(ring_bytes), Ordering::Relaxed);
        ring.word(TAIL).store(u64::from(ring_bytes), Ordering::Relaxed);
    }
    Ok(rings)
}

/// The ring of one CPU.
#[derive(Debug)]
pub struct Ring {
    pub cpu: u32,
    base: *mut u8,
    mask: u64,
}

// SAFETY: the memory belongs to one reader at a time; what the kernel writes meanwhile is read through atomics first.
unsafe impl Send for Ring {}

impl Ring {
    /// Room for events [B].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.mask + 1
    }

    fn word(&self, offset: usize) -> &'static AtomicU64 {
        // SAFETY: within the mapping, which is never unmapped; aligned.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    /// Pass complete, contiguous events to `take`, and free their room. Returns whether there may
    /// be more.
    ///
    /// # Errors
    /// Those of `take`; the events then stay.
    pub fn read<E>(&mut self, take: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<bool, E> {
        let head = self.word(0).load(Ordering::Acquire);
        let tail = self.word(TAIL).load(Ordering::Relaxed);
        let start = tail & self.mask;
        let mut at = tail;
        // Up to the end of the ring; an event that begins before the end is contiguous. At most a
        // frame: on a disk that is nearly full, a smaller one may fit when the content of a full
        // ring does not.
        while at < head && (at & !self.mask) == (tail & !self.mask) && at - tail < FRAME_BYTES as u64 {
            let Some(length) = self.complete(at) else { break };
            at += u64::from(length);
        }
        if at == tail {
            return Ok(false);
        }
        // SAFETY: these bytes are in the mapping, and the kernel does not write them before the
        // tail has moved.
        let events = unsafe { std::slice::from_raw_parts(self.base.add(HEADER + start as usize), (at - tail) as usize) };
        take(events)?;
        self.word(TAIL).store(at, Ordering::Release);
        Ok(at < head)
    }

    /// Length of the event at this position, if it is complete.
    fn complete(&self, position: u64) -> Option<u16> {
        let offset = HEADER + (position & self.mask) as usize;
        // SAFETY: within the mapping; events are aligned to 8.
        let (written, rest) = unsafe {
            let place = self.base.add(offset);
            ((*place.cast::<AtomicU32>()).load(Ordering::Acquire), (*place.add(4).cast::<AtomicU32>()).load(Ordering::Relaxed))
        };
        let length = (rest & 0xffff) as u16;
        (written == position as u32 && length >= 8 && length.is_multiple_of(8)).then_some(length)
    }

    /// The fill level, for another thread.
    #[must_use]
    pub fn level(&self) -> Level {
        Level { head: self.word(0), tail: self.word(TAIL), bytes: self.bytes() }
    }

    /// Number of events that found no room, by kind.
    #[must_use]
    pub fn dropped(&self) -> [u64; KINDS] {
        std::array::from_fn(|kind| self.word(DROPPED + 8 * kind).load(Ordering::Relaxed))
    }

    /// When events were dropped first and last, `CLOCK_MONOTONIC` [ns].
    #[must_use]
    pub fn drop_times(&self) -> Option<(u64, u64)> {
        let first = self.word(FIRST_DROP).load(Ordering::Relaxed);
        (first > 0).then(|| (first, self.word(FIRST_DROP + 8).load(Ordering::Relaxed)))
    }
}

/// The events in a ring of a kernel that has stopped, from a position on (by default, those that
/// were not read); their position; and the number of bytes after them that belong to no complete
/// event. Events that were read stay in memory until they are overwritten. `number` and `read`
/// return what is at an offset of the ring.
pub(crate) fn left_in(
    stride: u64,
    from: Option<u64>,
    number: impl Fn(u64) -> u64,
    read: impl Fn(u64, &mut [u8]),
) -> (u64, Vec<u8>, u64) {
    let bytes = stride.saturating_sub((HEADER + SLACK) as u64);
    let (head, tail) = (number(0), number(TAIL as u64));
    let makes_sense = bytes.is_power_of_two() && bytes <= u64::from(LONGEST) && head >= tail && head - tail <= bytes;
    let start = from.filter(|from| *from <= head && head - from <= bytes).unwrap_or(tail);
    let mut events = Vec::new();
    let mut at = start;
    while makes_sense && at < head {
        let place = HEADER as u64 + (at & (bytes - 1));
        let mut first = [0; 8];
        read(place, &mut first);
        let first = u64::from_le_bytes(first);
        let length = usize::from((first >> 32) as u16);
        if first as u32 != at as u32 || length < 8 || !length.is_multiple_of(8) {
            break;
        }
        let held = events.len();
        events.resize(held + length, 0);
        read(place, &mut events[held..]);
        at += length as u64;
    }
    (start, events, if makes_sense { head.saturating_sub(at) } else { 0 })
}

/// For a ring of a kernel that has stopped: the number of events by kind that found no room since
/// the recorder was started, and the times of the first and the last. `None`: all found room.
pub(crate) fn dropped_in(number: impl Fn(u64) -> u64) -> Option<([u64; KINDS], u64, u64)> {
    let (first, last) = (number(FIRST_DROP as u64), number(FIRST_DROP as u64 + 8));
    (first > 0).then(|| (std::array::from_fn(|kind| number((DROPPED + 8 * kind) as u64)), first, last))
}

/// The fill level of a ring. The memory that it refers to stays mapped until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    head: &'static AtomicU64,
    tail: &'static AtomicU64,
    bytes: u64,
}

impl Level {
    /// Whether more than this many eighths of the ring contain unread events.
    #[must_use]
    pub fn is_above(&self, eighths: u64) -> bool {
        let taken = self.head.load(Ordering::Relaxed).saturating_sub(self.tail.load(Ordering::Relaxed));
        taken > self.bytes / 8 * eighths
    }
}
