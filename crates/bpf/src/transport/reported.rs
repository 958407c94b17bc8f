//! Maps in which the kernel side remembers what it has reported. They have one entry each, which is
//! mapped here.

use std::{io, os::fd::RawFd, ptr};

/// Maps that contain ids that were reported once, each with the number of bytes before those.
pub(crate) const REPORTED: [(&str, usize); 3] = [("reported", 8), ("known_stacks", 0), ("reported_codes", 0)];

/// One of these maps.
#[derive(Debug)]
pub(crate) struct Reported {
    base: *mut u8,
    bytes: usize,
    from: usize,
}

// SAFETY: the memory is only written here, and each value is valid for the kernel side.
unsafe impl Send for Reported {}

impl Reported {
    /// Map the entry of the map with this descriptor, which has this many bytes.
    pub(crate) fn map(fd: RawFd, bytes: usize, from: usize) -> io::Result<Reported> {
        // SAFETY: a new mapping of a whole map; nothing else refers to its memory here.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Reported { base: base.cast(), bytes, from }) }
    }

    /// Clear all ids, so that they are reported again.
    pub(crate) fn forget(&self) {
        // SAFETY: within the mapping. An id that the kernel side writes meanwhile was reported.
        unsafe { ptr::write_bytes(self.base.add(self.from), 0, self.bytes - self.from) };
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any longer.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}
