//! Passes events to another process through shared memory ([`Ring`]).
//!
//! A program under qemu-user may close any file, create children and threads, and end at any
//! instruction. So there is no open file and no thread here. A child has the memory, too, and must
//! not access it: its work is not recorded.

use std::os::raw::c_int;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sysdock_itrace_file::ring::{RING_BYTES, Ring, Why};

use crate::{messages::PluginError, words::Words};

/// Interval between checks for an empty slot: short compared with the time for encoding one.
const PAUSE: Duration = Duration::from_micros(200);

pub(crate) struct Shared {
    pub(crate) ring: Ring,
    reader: libc::pid_t,
}

impl Shared {
    /// Map the file behind a descriptor, and close it, so that the program does not find it.
    pub(crate) fn map(descriptor: c_int) -> Result<Shared, PluginError> {
        // Safe: new memory, and a descriptor that is ours.
        let start = unsafe {
            let both = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(std::ptr::null_mut(), RING_BYTES, both, libc::MAP_SHARED, descriptor, 0);
            libc::close(descriptor);
            start
        };
        if start == libc::MAP_FAILED {
            return Err(PluginError::Memory(descriptor, std::io::Error::last_os_error()));
        }
        // Safe: mapped for as long as the process lives.
        Ok(Shared { ring: unsafe { Ring::at(start.cast()) }, reader: unsafe { libc::getppid() } })
    }

    /// Publish the current slot, and return the next one. `None`: the reader has ended.
    pub(crate) fn next(&self) -> Option<Words> {
        let head = self.ring.head();
        let filled = head.filled.load(Ordering::Relaxed).wrapping_add(1);
        // The next slot still has the length of its last use; the other process reads it only once
        // the slot is published below.
        while !self.is_free(filled) {
            if unsafe { libc::getppid() } != self.reader {
                return None;
            }
            std::thread::sleep(PAUSE);
        }
        self.ring.length(filled).store(0, Ordering::Relaxed);
        head.filled.store(filled, Ordering::Release);
        Some(Words::shared(self.ring))
    }

    fn is_free(&self, slot: u32) -> bool {
        slot.wrapping_sub(self.ring.head().emptied.load(Ordering::Acquire)) < sysdock_itrace_file::ring::SLOTS
    }

    pub(crate) fn end(&self, why: Why) {
        self.ring.head().ended.store(why.number(), Ordering::Release);
    }
}
