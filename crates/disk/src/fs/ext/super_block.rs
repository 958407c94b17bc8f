//! The super block (kernel: Documentation/filesystems/ext4/super.rst), and what follows from it
//! alone.

use sysdock_table::facts::disk as facts;

use super::{
    bytes::{le16, le32, le64, text, wide},
    refusal::Refusal,
};
use crate::error::Remedy;

/// Offset and size of the first one [B].
pub(super) const PLACE: u64 = 1024;
pub(super) const BYTES: usize = 1024;

/// Bits of `feature_compat`, with their names in mke2fs.
pub(super) mod compat {
    pub(in super::super) const HAS_JOURNAL: u32 = 0x4;
    pub(in super::super) const SPARSE_SUPER2: u32 = 0x200;
}

/// Bits of `feature_incompat`: features that a reader must support.
pub(super) mod incompat {
    pub(in super::super) const NEEDS_RECOVERY: u32 = 0x4;
    pub(in super::super) const JOURNAL_DEV: u32 = 0x8;
    pub(in super::super) const META_BG: u32 = 0x10;
    pub(in super::super) const BITS_64: u32 = 0x80;
    pub(in super::super) const MMP: u32 = 0x100;
    pub(in super::super) const CSUM_SEED: u32 = 0x2000;
    pub(in super::super) const LARGE_DIR: u32 = 0x4000;
}

/// Bits of `feature_ro_compat`: features that a writer must support.
pub(super) mod ro_compat {
    pub(in super::super) const SPARSE_SUPER: u32 = 0x1;
    pub(in super::super) const GDT_CSUM: u32 = 0x10;
    pub(in super::super) const BIGALLOC: u32 = 0x200;
    pub(in super::super) const METADATA_CSUM: u32 = 0x400;
}

/// Names of the bits of the three words of features, as in mke2fs and dumpe2fs.
const COMPAT: [(u32, &str); 11] = [
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x40, "lazy_bg"),
    (0x200, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];
const INCOMPAT: [(u32, &str); 17] = [
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x1_0000, "encrypt"),
    (0x2_0000, "casefold"),
    (0x20, "removed"),
];
const RO_COMPAT: [(u32, &str); 17] = [
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x4, "btree_dir"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x80, "has_snapshot"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x1_0000, "orphan_present"),
];
/// Features with which a map can be read: all except compression, a separate journal, and unknown
/// ones.
const UNDERSTOOD: u32 = 0x3_f7d6;
/// Features that ext3 has too; with any other one it is ext4.
const EXT3_INCOMPAT: u32 = 0x2 | 0x4 | 0x8 | 0x10;
const EXT3_RO_COMPAT: u32 = 0x1 | 0x2 | 0x4;

/// Limits for blocks (1 PiB of 4 KiB each) and groups. Larger numbers are wrong, or beyond this
/// method.
const MOST_BLOCKS: u64 = 1 << 38;
const MOST_GROUPS: u64 = 1 << 23;
const MOST_BLOCKS_PER_GROUP: u64 = 1 << 28;

/// Content of the super block, checked as far as possible without other structures.
#[derive(Clone, Debug)]
pub(super) struct SuperBlock {
    pub(super) bytes: Vec<u8>,
    pub(super) block_bytes: u64,
    /// Number of blocks of a cluster, the unit of allocation: 1 without bigalloc.
    pub(super) cluster_blocks: u64,
    pub(super) blocks: u64,
    /// The first block of the first group.
    pub(super) first_block: u64,
    pub(super) blocks_per_group: u64,
    pub(super) groups: u64,
    pub(super) inodes: u32,
    pub(super) inodes_per_group: u32,
    pub(super) inode_bytes: usize,
    /// The first inode that is not reserved.
    pub(super) first_inode: u32,
    pub(super) descriptor_bytes: usize,
    compat: u32,
    incompat: u32,
    ro_compat: u32,
}

impl SuperBlock {
    /// `bytes` begin at [`PLACE`]; `room` is the size of the device [B].
    pub(super) fn parse(bytes: &[u8], room: u64) -> Result<Self, Refusal> {
        if bytes.len() < BYTES || le16(bytes, 0x38) != 0xef53 {
            return Err(Refusal::NoFileSystem);
        }
        let incompat = le32(bytes, 0x60);
        if incompat & incompat::JOURNAL_DEV != 0 {
            return Err(Refusal::Because(facts::journal_device(), Remedy::ScanOwner));
        }
        if incompat & !UNDERSTOOD != 0 {
            let unknown = names(incompat & !UNDERSTOOD, &INCOMPAT);
            return Err(Refusal::Because(facts::features(unknown), Remedy::Mount));
        }
        let ro_compat = le32(bytes, 0x64);
        let bits_64 = incompat & incompat::BITS_64 != 0;
        let is_first_revision = le32(bytes, 0x4c) == 0;
        let log_block = le32(bytes, 0x18);
        let log_cluster = if ro_compat & ro_compat::BIGALLOC != 0 { le32(bytes, 0x1c) } else { log_block };
        // 64 KiB, and 512 MiB: the limits of e2fsprogs.
        if log_block > 6 || log_cluster < log_block || log_cluster > 19 {
            return Err(Refusal::damaged(facts::size_of_blocks()));
        }
        let super_block = SuperBlock {
            bytes: bytes[..BYTES].to_vec(),
            block_bytes: 1024 << log_block,
            cluster_blocks: 1 << (log_cluster - log_block),
            blocks: wide(if bits_64 { le32(bytes, 0x150) } else { 0 }, le32(bytes, 0x4)),
            first_block: u64::from(le32(bytes, 0x14)),
            blocks_per_group: u64::from(le32(bytes, 0x20)),
            groups: 0,
            inodes: le32(bytes, 0x0),
            inodes_per_group: le32(bytes, 0x28),
            inode_bytes: if is_first_revision { 128 } else { usize::from(le16(bytes, 0x58)) },
            first_inode: if is_first_revision { 11 } else { le32(bytes, 0x54) },
            descriptor_bytes: if bits_64 { usize::from(le16(bytes, 0xfe)) } else { 32 },
            compat: le32(bytes, 0x5c),
            incompat,
            ro_compat,
        };
        super_block.checked(room)
    }

    fn checked(mut self, room: u64) -> Result<Self, Refusal> {
        let bits = 8 * self.block_bytes;
        let most_per_group = bits * self.cluster_blocks;
        if self.blocks_per_group < 8
            || self.blocks_per_group > most_per_group
            || !self.blocks_per_group.is_multiple_of(8 * self.cluster_blocks)
        {
            return Err(Refusal::damaged(facts::blocks_per_group()));
        }
        if self.first_block > 1 || self.blocks <= self.first_block + 1 || self.blocks >= 1 << 48 {
            return Err(Refusal::damaged(facts::number_of_blocks()));
        }
        if self.inode_bytes < 128 || !self.inode_bytes.is_power_of_two() || self.inode_bytes as u64 > self.block_bytes {
            return Err(Refusal::damaged(facts::size_of_inodes()));
        }
        if !self.descriptor_bytes.is_power_of_two() || !(32..=1024).contains(&self.descriptor_bytes) {
            return Err(Refusal::damaged(facts::size_of_descriptors()));
        }
        self.groups = (self.blocks - self.first_block).div_ceil(self.blocks_per_group);
        if self.groups > MOST_GROUPS || self.blocks > MOST_BLOCKS || self.blocks_per_group > MOST_BLOCKS_PER_GROUP {
            return Err(Refusal::Because(facts::too_large(), Remedy::Mount));
        }
        let inodes = self.groups * u64::from(self.inodes_per_group);
        if self.inodes_per_group == 0 || u64::from(self.inodes_per_group) > bits || inodes != u64::from(self.inodes) {
            return Err(Refusal::damaged(facts::number_of_inodes()));
        }
        let size = self.blocks * self.block_bytes;
        if size > room {
            return Err(Refusal::Because(facts::cut_off(size, room), Remedy::CopyInFull));
        }
        if inodes * self.inode_bytes as u64 > size {
            return Err(Refusal::damaged(facts::number_of_inodes()));
        }
        Ok(self)
    }

    pub(super) fn has_compat(&self, bit: u32) -> bool {
        self.compat & bit != 0
    }

    pub(super) fn has_incompat(&self, bit: u32) -> bool {
        self.incompat & bit != 0
    }

    pub(super) fn has_ro_compat(&self, bit: u32) -> bool {
        self.ro_compat & bit != 0
    }

    /// Whether descriptors state which bitmaps and parts of inode tables were never written.
    pub(super) fn has_uninitialized(&self) -> bool {
        self.has_ro_compat(ro_compat::GDT_CSUM | ro_compat::METADATA_CSUM)
    }

    pub(super) fn size_bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// ext2, ext3 or ext4, by the rule of blkid.
    pub(super) fn fs_type(&self) -> &'static str {
        if self.incompat & !EXT3_INCOMPAT != 0 || self.ro_compat & !EXT3_RO_COMPAT != 0 {
            return "ext4";
        }
        if self.has_compat(compat::HAS_JOURNAL) { "ext3" } else { "ext2" }
    }

    /// Names of all features, as dumpe2fs lists them.
    pub(super) fn features(&self) -> String {
        let words = [names(self.compat, &COMPAT), names(self.incompat, &INCOMPAT), names(self.ro_compat, &RO_COMPAT)];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn label(&self) -> Option<String> {
        text(&self.bytes, 0x78, 16)
    }

    pub(super) fn uuid(&self) -> String {
        let hex: String = self.bytes[0x68..0x78].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The inode of the journal, if the journal is in this file system.
    pub(super) fn journal_inode(&self) -> Option<u32> {
        let number = le32(&self.bytes, 0xe0);
        (self.has_compat(compat::HAS_JOURNAL) && number != 0).then_some(number)
    }

    /// Inodes of user, group and project quota.
    pub(super) fn quota_inodes(&self) -> [u32; 3] {
        [0x240, 0x244, 0x26c].map(|at| le32(&self.bytes, at))
    }

    pub(super) fn orphan_file(&self) -> u32 {
        le32(&self.bytes, 0x280)
    }

    /// The block of multiple mount protection.
    pub(super) fn mmp_block(&self) -> Option<u64> {
        self.has_incompat(incompat::MMP).then(|| le64(&self.bytes, 0x168))
    }

    pub(super) fn reserved_descriptor_blocks(&self) -> u64 {
        u64::from(le16(&self.bytes, 0xce))
    }

    fn descriptors_per_block(&self) -> u64 {
        self.block_bytes / self.descriptor_bytes as u64
    }

    pub(super) fn descriptor_blocks(&self) -> u64 {
        self.groups.div_ceil(self.descriptors_per_block())
    }

    pub(super) fn group_first_block(&self, group: u64) -> u64 {
        self.first_block + group * self.blocks_per_group
    }

    /// Number of blocks of a group. The last one may be short.
    pub(super) fn group_blocks(&self, group: u64) -> u64 {
        self.blocks_per_group.min(self.blocks - self.group_first_block(group))
    }

    pub(super) fn inode_table_blocks(&self) -> u64 {
        (u64::from(self.inodes_per_group) * self.inode_bytes as u64).div_ceil(self.block_bytes)
    }

    /// Whether a group contains a super block.
    pub(super) fn group_has_super(&self, group: u64) -> bool {
        if group == 0 {
            return true;
        }
        if self.has_compat(compat::SPARSE_SUPER2) {
            return [0x24c, 0x250].iter().any(|at| u64::from(le32(&self.bytes, *at)) == group);
        }
        let is_power_of = |base: u64| (1..).map(|power| base.pow(power)).find(|power| *power >= group) == Some(group);
        group == 1 || !self.has_ro_compat(ro_compat::SPARSE_SUPER) || [3, 5, 7].into_iter().any(is_power_of)
    }

    /// The block with the super block of a group. With blocks of 1 KiB it is block 1 in group 0,
    /// which with bigalloc is not the first block of the group.
    pub(super) fn super_block_of(&self, group: u64) -> u64 {
        let first = self.group_first_block(group);
        if group == 0 && self.block_bytes == 1024 { 1 } else { first }
    }

    /// Groups from this one on have their descriptors in their own meta group.
    fn first_meta_block(&self) -> u64 {
        if self.has_incompat(incompat::META_BG) { u64::from(le32(&self.bytes, 0x104)) } else { u64::MAX }
    }

    /// Location of a block of descriptors.
    pub(super) fn descriptor_block(&self, number: u64) -> u64 {
        if number < self.first_meta_block() {
            return self.super_block_of(0) + 1 + number;
        }
        let group = number * self.descriptors_per_block();
        let place = if self.group_has_super(group) { self.super_block_of(group) + 1 } else { self.group_first_block(group) };
        place.min(self.blocks - 1)
    }

    /// Descriptors in a group, main or backup: first block, count, and count of reserved blocks
    /// after them.
    pub(super) fn descriptors_in(&self, group: u64) -> Option<(u64, u64, u64)> {
        let has_super = self.group_has_super(group);
        let after = if has_super { self.super_block_of(group) + 1 } else { self.group_first_block(group) };
        let per_block = self.descriptors_per_block();
        if group / per_block < self.first_meta_block() {
            let blocks = self.descriptor_blocks().min(self.first_meta_block());
            return has_super.then(|| (after, blocks, self.reserved_descriptor_blocks()));
        }
        let place = group % per_block;
        (place <= 1 || place == per_block - 1).then_some((after, 1, 0))
    }
}

fn names(bits: u32, of: &[(u32, &str)]) -> String {
    let bit_name =
        |bit: u32| of.iter().find(|(known, _)| *known == bit).map_or_else(|| format!("0x{bit:x}"), |(_, name)| (*name).into());
    let set = (0..32).map(|shift| 1_u32 << shift).filter(|bit| bits & bit != 0);
    set.map(bit_name).collect::<Vec<_>>().join(" ")
}
