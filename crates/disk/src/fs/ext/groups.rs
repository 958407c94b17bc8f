//! Block groups (kernel: Documentation/filesystems/ext4/group_descr.rst), and the parts of the
//! device at fixed locations.

use sysdock_table::facts::disk as facts;

use super::{
    FileSystem,
    bytes::{le16, le32, wide},
    issues::{Issues, word},
    source::Source,
    super_block::SuperBlock,
};

const INODE_UNINIT: u16 = 1;
const BLOCK_UNINIT: u16 = 2;

/// Content of a group descriptor. Impossible block numbers are `None`, and counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) block_bitmap: Option<u64>,
    pub(super) inode_bitmap: Option<u64>,
    pub(super) inode_table: Option<u64>,
    pub(super) free_clusters: u32,
    /// Inodes in use have indices in the table below this.
    pub(super) used_inodes: u32,
    /// Whether its block bitmap was never written: only the fixed parts are in use.
    pub(super) has_no_bitmap: bool,
    /// Whether its inode bitmap was never written.
    pub(super) has_no_inode_bitmap: bool,
    /// Checksums of both bitmaps: the lower half, and the upper one if there is room for it.
    pub(super) block_bitmap_sum: (u16, Option<u16>),
    pub(super) inode_bitmap_sum: (u16, Option<u16>),
}

/// Report descriptors with wrong checksums.
pub(super) fn check(fs: &FileSystem, issues: &mut Issues) {
    let mut wrong = 0;
    let mut example = 0;
    let per_block = fs.super_block.block_bytes as usize / fs.super_block.descriptor_bytes;
    let mut buffer = vec![0; fs.super_block.block_bytes as usize];
    for first in (0..fs.super_block.groups).step_by(per_block) {
        fs.source.read_what_can_be(fs.super_block.descriptor_block(first / per_block as u64), &mut buffer);
        let groups = first..fs.super_block.groups.min(first + per_block as u64);
        for (number, bytes) in groups.zip(buffer.chunks_exact(fs.super_block.descriptor_bytes)) {
            let holds = |bytes: &[u8]| fs.sums.group_holds(number as u32, bytes);
            if !holds(bytes) && fs.sums.stays_wrong(|| descriptor(fs, number).is_some_and(|bytes| holds(&bytes))) {
                (wrong, example) = (wrong + 1, number);
            }
        }
    }
    issues.add(word::BROKEN_GROUP, wrong, || facts::descriptor_checksum(example));
}

/// The descriptor of a group, read again.
fn descriptor(fs: &FileSystem, number: u64) -> Option<Vec<u8>> {
    let per_block = fs.super_block.block_bytes / fs.super_block.descriptor_bytes as u64;
    let block = fs.source.block(fs.super_block.descriptor_block(number / per_block)).ok()?;
    let at = (number % per_block) as usize * fs.super_block.descriptor_bytes;
    Some(block[at..at + fs.super_block.descriptor_bytes].to_vec())
}

/// Whether a bitmap of a group matches its descriptor. Of a mounted file system both change
/// together, and are read again together.
pub(super) fn bitmap_holds(fs: &FileSystem, number: u64, is_of_inodes: bool, bitmap: &[u8]) -> bool {
    let bits = match is_of_inodes {
        true => u64::from(fs.super_block.inodes_per_group),
        false => fs.super_block.blocks_per_group / fs.super_block.cluster_blocks,
    };
    let holds = |group: &Group, bitmap: &[u8]| match is_of_inodes {
        true => group.has_no_inode_bitmap || fs.sums.bitmap_holds(bitmap, bits, group.inode_bitmap_sum),
        false => group.has_no_bitmap || fs.sums.bitmap_holds(bitmap, bits, group.block_bitmap_sum),
    };
    let again = || {
        let group = Group::parse(&descriptor(fs, number)?, &fs.super_block, number as usize, &mut Issues::default());
        let place = if is_of_inodes { group.inode_bitmap } else { group.block_bitmap };
        Some(holds(&group, &fs.source.block(place?).ok()?))
    };
    holds(&fs.groups[number as usize], bitmap) || !fs.sums.stays_wrong(|| again().unwrap_or(false))
}

/// Read all descriptors. Also returns a checksum, with which a later reading is compared.
pub(super) fn read(source: &Source, super_block: &SuperBlock, issues: &mut Issues) -> (Vec<Group>, u64) {
    let mut groups = Vec::new();
    let mut sum = 0_u64;
    let mut buffer = vec![0; super_block.block_bytes as usize];
    for number in 0..super_block.descriptor_blocks() {
        let place = super_block.descriptor_block(number);
        if place < super_block.blocks {
            source.read_what_can_be(place, &mut buffer);
        } else {
            buffer.fill(0);
        }
        for bytes in buffer.chunks_exact(super_block.descriptor_bytes) {
            if groups.len() as u64 == super_block.groups {
                break;
            }
            sum =
                bytes.chunks(8).fold(sum, |sum, eight| (sum ^ super::bytes::le64(eight, 0)).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            groups.push(Group::parse(bytes, super_block, groups.len(), issues));
        }
    }
    (groups, sum)
}

impl Group {
    fn parse(bytes: &[u8], super_block: &SuperBlock, number: usize, issues: &mut Issues) -> Self {
        let high = |at: usize| if bytes.len() >= 64 { at } else { usize::MAX - 8 };
        let block = |low, high_at| wide(le32(bytes, high(high_at)), le32(bytes, low));
        let count = |low, high_at| u32::from(le16(bytes, high(high_at))) << 16 | u32::from(le16(bytes, low));
        let flags = if super_block.has_uninitialized() { le16(bytes, 0x12) } else { 0 };
        let unused = if super_block.has_uninitialized() { count(0x1c, 0x32) } else { 0 };
        let mut inside = |first: u64, blocks: u64| {
            let fits = first >= super_block.first_block && first.checked_add(blocks).is_some_and(|end| end <= super_block.blocks);
            issues.add(word::BROKEN_GROUP, u64::from(!fits), || facts::group_block_outside(number, first));
            fits.then_some(first)
        };
        Group {
            block_bitmap: inside(block(0x0, 0x20), 1),
            inode_bitmap: inside(block(0x4, 0x24), 1),
            inode_table: inside(block(0x8, 0x28), super_block.inode_table_blocks()),
            free_clusters: count(0xc, 0x2c),
            used_inodes: if flags & INODE_UNINIT != 0 { 0 } else { super_block.inodes_per_group.saturating_sub(unused) },
            has_no_bitmap: flags & BLOCK_UNINIT != 0,
            has_no_inode_bitmap: flags & INODE_UNINIT != 0,
            block_bitmap_sum: (le16(bytes, 0x18), (bytes.len() >= 64).then(|| le16(bytes, 0x38))),
            inode_bitmap_sum: (le16(bytes, 0x1a), (bytes.len() >= 64).then(|| le16(bytes, 0x3a))),
        }
    }
}

/// A part of the device that never moves, in blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    pub(super) part: &'static str,
    pub(super) group: Option<u64>,
    pub(super) first: u64,
    pub(super) count: u64,
}

/// Pass every fixed part, by group.
pub(super) fn fixed(super_block: &SuperBlock, groups: &[Group], mut take: impl FnMut(Fixed)) {
    if super_block.block_bytes == 1024 {
        take(Fixed { part: "boot block", group: None, first: 0, count: 1 });
    }
    for (number, group) in (0..).zip(groups) {
        let end = super_block.group_first_block(number) + super_block.group_blocks(number);
        let mut part = |part, first: u64, count: u64, end: u64| {
            let count = count.min(end.saturating_sub(first));
            if count > 0 {
                take(Fixed { part, group: Some(number), first, count });
            }
        };
        if super_block.group_has_super(number) {
            part("super block", super_block.super_block_of(number), 1, end);
        }
        if let Some((first, count, reserved)) = super_block.descriptors_in(number) {
            part("descriptors", first, count, end);
            part("reserved descriptors", first.saturating_add(count), reserved, end);
        }
        // These may be in other groups.
        let places = [
            ("block bitmap", group.block_bitmap, 1),
            ("inode bitmap", group.inode_bitmap, 1),
            ("inode table", group.inode_table, super_block.inode_table_blocks()),
        ];
        for (name, place, count) in places {
            if let Some(first) = place {
                part(name, first, count, super_block.blocks);
            }
        }
    }
    if let Some(first) = super_block.mmp_block().filter(|block| *block < super_block.blocks) {
        take(Fixed { part: "multiple mount protection", group: None, first, count: 1 });
    }
}
