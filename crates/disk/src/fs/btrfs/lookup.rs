//! Finds the subvolume of a file that can be opened.

use std::{io, os::fd::RawFd};

use crate::ioctl;

/// `BTRFS_FIRST_FREE_OBJECTID`: for this number the kernel returns the tree of the file that was
/// opened.
const ASKED: u64 = 256;
const BTRFS_IOC_INO_LOOKUP: libc::Ioctl = ioctl::read_write(0x94, 18, size_of::<Lookup>());

/// `struct btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct Lookup {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

// SAFETY: it contains numbers, and has the size that the number of the ioctl states.
unsafe impl ioctl::Request for Lookup {}

/// The subvolume of an open file.
pub(crate) fn tree_of(file: RawFd) -> io::Result<u64> {
    let mut lookup = Lookup { tree: 0, object: ASKED, name: [0; 4080] };
    ioctl::query(file, BTRFS_IOC_INO_LOOKUP, &mut lookup)?;
    Ok(lookup.tree)
}
