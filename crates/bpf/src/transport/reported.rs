//! What the kernel side remembers to have reported: maps of one entry that are mapped here.

use std::{io, os::fd::RawFd, ptr};

/// Maps that hold ids that were reported once, each with the bytes before those.
pub(crate) const REPORTED: [(&str, usize); 3] = [("reported", 8), ("known_stacks", 0), ("reported_codes", 0)];

/// One of them.
#[derive(Debug)]
pub(crate) struct Reported {
    base: *mut u8,
    bytes: usize,
    from: usize,
}

// SAFETY: the memory is written only; the kernel side finds an id in it or does not.
unsafe impl Send for Reported {}

impl Reported {
    /// The map behind this descriptor, whose entry has so many bytes.
    pub(crate) fn map(fd: RawFd, bytes: usize, from: usize) -> io::Result<Reported> {
        // SAFETY: a new mapping of a whole map; nothing else refers to its memory here.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Reported { base: base.cast(), bytes, from }) }
    }

    /// All ids are to be reported again.
    pub(crate) fn forget(&self) {
        // SAFETY: within the mapping. The kernel side may write an id meanwhile, which it then has reported.
        unsafe { ptr::write_bytes(self.base.add(self.from), 0, self.bytes - self.from) };
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
