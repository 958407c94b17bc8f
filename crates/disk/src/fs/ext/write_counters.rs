//! Whether anything was written to the file system while it was read.

use std::{fs::File, io, os::unix::fs::MetadataExt, path::Path};

use super::{
    bytes::{le32, le64},
    groups,
    issues::Issues,
    source::Source,
    super_block::{self, SuperBlock},
};

/// Counters that grow with each write. If two readings are equal, nothing was written.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WriteCounters {
    /// Free blocks and inodes, flags and checksums of all groups. A mounted file system keeps them
    /// up to date in the page cache, which we read.
    descriptors: u64,
    /// Time when the super block was written, and total written to the file system ever [s, KiB].
    super_block: (u32, u64),
    /// The kernel's counters of a mounted file system: KiB written ever and since mounting, delayed
    /// blocks.
    kernel: [Option<u64>; 3],
    /// When an image file was changed.
    changed: (i64, i64),
}

impl WriteCounters {
    pub(super) fn now(file: &File, source: &Source, super_block: &SuperBlock, device_name: Option<&str>) -> io::Result<Self> {
        let (_, descriptors) = groups::read(source, super_block, &mut Issues::default());
        let bytes = source.read_bytes(super_block::PLACE, super_block::BYTES)?;
        let status = file.metadata()?;
        Ok(WriteCounters {
            descriptors,
            super_block: (le32(&bytes, 0x30), le64(&bytes, 0x178)),
            kernel: ["lifetime_write_kbytes", "session_write_kbytes", "delayed_allocation_blocks"]
                .map(|name| counter(device_name?, name)),
            changed: (status.mtime(), status.mtime_nsec()),
        })
    }

    /// Number of blocks of files that have no location yet.
    pub(super) fn delayed_blocks(&self) -> Option<u64> {
        self.kernel[2]
    }
}

fn counter(device_name: &str, name: &str) -> Option<u64> {
    let path = Path::new("/sys/fs/ext4").join(device_name).join(name);
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}
