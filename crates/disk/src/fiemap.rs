//! The extents of one file, as the kernel reports them (FIEMAP, include/uapi/linux/fiemap.h).

use std::{io, os::fd::RawFd};

use crate::{
    extent::{Extent, flag},
    ioctl,
};

/// The structure of the ioctl, without the extents after it.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved2: [u32; 3],
}

const FS_IOC_FIEMAP: libc::Ioctl = ioctl::read_write(b'f', 11, size_of::<Head>());

const LAST: u32 = 0x1;
/// Flags of the kernel, and ours. An extent at an unknown location (UNKNOWN) has no location yet.
const FLAGS: [(u32, u8); 7] = [
    (0x2 | 0x4, flag::DELAYED),
    (0x8, flag::COMPRESSED),
    (0x80, flag::ENCRYPTED),
    (0x200, flag::INLINE),
    (0x400, flag::PACKED),
    (0x800, flag::UNWRITTEN),
    (0x2000, flag::SHARED),
];

/// Number of extents requested at a time.
const ROOM: usize = 1024;

#[repr(C)]
struct Request {
    head: Head,
    extents: [Raw; ROOM],
}

// SAFETY: it contains numbers, and room for as many extents as it states.
unsafe impl ioctl::Request for Request {}

/// Requests the extents of one file after another.
pub(crate) struct Fiemap(Box<Request>);

impl Fiemap {
    pub(crate) fn new() -> Self {
        Fiemap(Box::new(Request { head: Head::default(), extents: [Raw::default(); ROOM] }))
    }

    /// The extents of an open file, in order. If the file changes meanwhile, each is reported as it
    /// was when requested.
    pub(crate) fn extents(&mut self, file: RawFd, found: &mut Vec<Extent>) -> io::Result<()> {
        found.clear();
        let mut start = 0;
        loop {
            self.0.head = Head { start, length: u64::MAX - start, extent_count: ROOM as u32, ..Head::default() };
            ioctl::query(file, FS_IOC_FIEMAP, &mut *self.0)?;
            let mapped = &self.0.extents[..(self.0.head.mapped_extents as usize).min(ROOM)];
            found.extend(mapped.iter().map(extent));
            let Some(last) = mapped.last() else { return Ok(()) };
            let next = last.logical.saturating_add(last.length);
            if last.flags & LAST != 0 || next <= start {
                return Ok(());
            }
            start = next;
        }
    }
}

fn extent(raw: &Raw) -> Extent {
    let flags = FLAGS.iter().filter(|(theirs, _)| raw.flags & theirs != 0).fold(0, |flags, (_, ours)| flags | ours);
    Extent { logical: raw.logical, physical: raw.physical, length: raw.length, stored: None, flags, device: 0 }
}
