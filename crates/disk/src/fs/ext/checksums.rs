//! Checksums of structures, if a file system has them: `metadata_csum` of nearly all, `gdt_csum` of
//! group descriptors (kernel: Documentation/filesystems/ext4/checksums.rst).
//!
//! A structure with a wrong checksum is counted, and used all the same. A structure of a mounted
//! file system may be read while the kernel changes it: then it is read again, a while later,
//! before anything is reported.

use std::{thread, time::Duration};

use super::{
    bytes::{le16, le32, wide},
    crc::{crc16, crc32c},
    inode::Raw,
    super_block::{SuperBlock, incompat, ro_compat},
};

/// Offset of the checksum in a group descriptor. `metadata_csum` counts it as zeros, `gdt_csum`
/// ends before it.
const OF_GROUP: usize = 0x1e;
/// Offsets of the halves of the checksum in an inode.
const OF_INODE: [usize; 2] = [0x7c, 0x82];

/// How the checksums of a file system are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checksums {
    seed: Option<u32>,
    /// Seed of the older checksums of group descriptors.
    old_seed: Option<u16>,
    /// Whether it is mounted, and may change while it is read.
    is_live: bool,
}

impl Checksums {
    pub(super) fn of(super_block: &SuperBlock, is_live: bool) -> Self {
        let uuid = &super_block.bytes[0x68..0x78];
        let seed = || match super_block.has_incompat(incompat::CSUM_SEED) {
            true => le32(&super_block.bytes, 0x270),
            false => crc32c(u32::MAX, uuid),
        };
        let seed = super_block.has_ro_compat(ro_compat::METADATA_CSUM).then(seed);
        let is_old = seed.is_none() && super_block.has_ro_compat(ro_compat::GDT_CSUM);
        Checksums { seed, old_seed: is_old.then(|| crc16(u16::MAX, uuid)), is_live }
    }

    /// Whether a wrong checksum is still wrong after several attempts; after one, if the file
    /// system cannot change. `holds` reads and checks again.
    pub(super) fn stays_wrong(self, holds: impl FnMut() -> bool) -> bool {
        const PAUSES_MS: [u64; 5] = [1, 2, 8, 30, 120];
        let mut holds = holds;
        !self.is_live
            || !PAUSES_MS.into_iter().any(|pause| {
                thread::sleep(Duration::from_millis(pause));
                holds()
            })
    }

    /// Whether the checksum of the super block is right.
    pub(super) fn super_block_holds(self, bytes: &[u8]) -> bool {
        const SUM: usize = 0x3fc;
        self.seed.is_none() || bytes.len() < SUM + 4 || crc32c(u32::MAX, &bytes[..SUM]) == le32(bytes, SUM)
    }

    /// Whether the checksum of a group descriptor is right.
    pub(super) fn group_holds(self, number: u32, bytes: &[u8]) -> bool {
        let (head, rest) = (&bytes[..OF_GROUP], &bytes[OF_GROUP + 2..]);
        let sum = if let Some(seed) = self.seed {
            let before = crc32c(crc32c(seed, &number.to_le_bytes()), head);
            crc32c(crc32c(before, &[0; 2]), rest) as u16
        } else if let Some(seed) = self.old_seed {
            crc16(crc16(crc16(seed, &number.to_le_bytes()), head), rest)
        } else {
            return true;
        };
        sum == le16(bytes, OF_GROUP)
    }

    /// Whether the checksum of a bitmap of `bits` bits is right; its group's descriptor contains
    /// it: the low half, and the high half if there is one.
    pub(super) fn bitmap_holds(self, bitmap: &[u8], bits: u64, sum: (u16, Option<u16>)) -> bool {
        let Some(seed) = self.seed else { return true };
        let Some(bytes) = bitmap.get(..(bits / 8) as usize) else { return true };
        same(crc32c(seed, bytes), sum)
    }

    /// Seed for the checksums of everything that belongs to an inode.
    pub(super) fn of_inode(self, raw: Raw<'_>) -> Option<u32> {
        let seed = crc32c(self.seed?, &raw.number.to_le_bytes());
        Some(crc32c(seed, &raw.bytes[0x64..0x68]))
    }

    /// Whether the checksum of an inode is right. One that was never written has none.
    pub(super) fn inode_holds(self, raw: Raw<'_>) -> bool {
        let Some(seed) = self.of_inode(raw) else { return true };
        let bytes = raw.bytes;
        // The upper half is in the additional part of larger inodes.
        let is_wide = bytes.len() > 128 && usize::from(le16(bytes, 0x80)) >= OF_INODE[1] + 2 - 128;
        let mut sum = crc32c(crc32c(seed, &bytes[..OF_INODE[0]]), &[0; 2]);
        sum = crc32c(sum, &bytes[OF_INODE[0] + 2..bytes.len().min(OF_INODE[1])]);
        if bytes.len() > 128 {
            let from = if is_wide { OF_INODE[1] + 2 } else { OF_INODE[1] };
            sum = if is_wide { crc32c(sum, &[0; 2]) } else { sum };
            sum = crc32c(sum, &bytes[from..]);
        }
        let stated = (le16(bytes, OF_INODE[0]), is_wide.then(|| le16(bytes, OF_INODE[1])));
        same(sum, stated) || bytes.iter().all(|byte| *byte == 0)
    }
}

fn same(sum: u32, (low, high): (u16, Option<u16>)) -> bool {
    match high {
        Some(high) => sum == wide(0, u32::from(high) << 16 | u32::from(low)) as u32,
        None => sum as u16 == low,
    }
}

/// Whether the checksum after the last entry of an extent tree's node is right. `seed` is that of
/// [`Checksums::of_inode`].
pub(super) fn extent_node_holds(seed: u32, bytes: &[u8]) -> bool {
    let end = 12 * (usize::from(le16(bytes, 4)) + 1);
    end + 4 > bytes.len() || crc32c(seed, &bytes[..end]) == le32(bytes, end)
}

/// Whether the checksum of a block of a directory is right: of names, whose checksum looks like a
/// last entry, or of its index, whose checksum follows the room for entries.
pub(super) fn directory_block_holds(seed: u32, bytes: &[u8]) -> bool {
    let fills = |at: usize, length: usize| {
        let stated = usize::from(le16(bytes, at));
        stated == length || length >= 65536 && matches!(stated, 0 | 65535)
    };
    // The root begins with `.` and `..` and a header of its own, other nodes with one unused entry.
    // A root that was a block of names before keeps that block's last entry, whose checksum is out
    // of date: so the form is checked first.
    let counts = if fills(4, bytes.len()) {
        8
    } else if le16(bytes, 4) == 12 && bytes.len() > 12 && fills(16, bytes.len() - 12) {
        32
    } else {
        const TAIL: [u8; 8] = [0, 0, 0, 0, 12, 0, 0, 0xde];
        let end = bytes.len().saturating_sub(12);
        return bytes[end..].starts_with(&TAIL) && crc32c(seed, &bytes[..end]) == le32(bytes, end + 8);
    };
    let (limit, count) = (usize::from(le16(bytes, counts)), usize::from(le16(bytes, counts + 2)));
    let (used, tail) = (counts + 8 * count, counts + 8 * limit);
    if count > limit || tail + 8 > bytes.len() {
        return false;
    }
    let sum = crc32c(crc32c(seed, &bytes[..used]), &bytes[tail..tail + 4]);
    crc32c(sum, &[0; 4]) == le32(bytes, tail + 4)
}
