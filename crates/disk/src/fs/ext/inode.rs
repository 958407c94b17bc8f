//! Inodes (kernel: Documentation/filesystems/ext4/inodes.rst).

use super::{
    bytes::{le16, le32, wide},
    super_block::{SuperBlock, incompat},
};
use crate::batch::Kind;

const EXTENTS: u32 = 0x8_0000;
const INLINE: u32 = 0x1000_0000;
const OF_ATTRIBUTES: u32 = 0x20_0000;
const ENCRYPTED: u32 = 0x800;

/// The root of the directory tree.
pub(super) const ROOT: u32 = 2;
/// `resize_inode`: owns the reserved descriptors.
pub(super) const RESIZE: u32 = 7;

/// Where the content of an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// No blocks: devices, pipes, short symbolic links.
    None,
    /// In the inode itself.
    Inline,
    Extents,
    Indirect,
}

/// The bytes of an inode, at least 128.
#[derive(Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) number: u32,
    pub(super) bytes: &'a [u8],
}

impl<'a> Raw<'a> {
    fn mode(self) -> u32 {
        u32::from(le16(self.bytes, 0x0))
    }

    fn format(self) -> u32 {
        self.mode() & libc::S_IFMT
    }

    pub(super) fn is_directory(self) -> bool {
        self.format() == libc::S_IFDIR
    }

    fn flags(self) -> u32 {
        le32(self.bytes, 0x20)
    }

    pub(super) fn is_encrypted(self) -> bool {
        self.flags() & ENCRYPTED != 0
    }

    /// Whether it contains a large attribute of other inodes.
    pub(super) fn is_of_attributes(self) -> bool {
        self.flags() & OF_ATTRIBUTES != 0
    }

    /// The kind that users see. Whether the file system uses the inode itself is known to the
    /// caller.
    pub(super) fn kind(self) -> Kind {
        Kind::of_mode(self.mode())
    }

    /// Whether nothing was ever written to it.
    pub(super) fn is_blank(self) -> bool {
        self.mode() == 0 && self.i_block().iter().all(|byte| *byte == 0)
    }

    pub(super) fn has_known_format(self) -> bool {
        let known = [libc::S_IFREG, libc::S_IFDIR, libc::S_IFLNK, libc::S_IFCHR, libc::S_IFBLK, libc::S_IFIFO, libc::S_IFSOCK];
        known.contains(&self.format())
    }

    pub(super) fn links(self) -> u16 {
        le16(self.bytes, 0x1a)
    }

    pub(super) fn size(self, super_block: &SuperBlock) -> u64 {
        let is_wide = self.format() == libc::S_IFREG || super_block.has_incompat(incompat::LARGE_DIR);
        wide(if is_wide { le32(self.bytes, 0x6c) } else { 0 }, le32(self.bytes, 0x4))
    }

    /// The block of attributes that did not fit into the inode, if any.
    pub(super) fn attribute_block(self) -> Option<u64> {
        let block = wide(u32::from(le16(self.bytes, 0x76)), le32(self.bytes, 0x68));
        (block != 0).then_some(block)
    }

    /// Time of the last modification [ns, Unix time]. `None`: beyond 64 bits, the year 2262.
    pub(super) fn modified_ns(self) -> Option<i64> {
        let has_extra = usize::from(le16(self.bytes, 0x80)) >= 12 && self.bytes.len() >= 0x8c;
        let extra = if has_extra { le32(self.bytes, 0x88) } else { 0 };
        let seconds = i64::from(le32(self.bytes, 0x10).cast_signed()) + (i64::from(extra & 3) << 32);
        seconds.checked_mul(1_000_000_000)?.checked_add(i64::from(extra >> 2))
    }

    /// 60 bytes: the root of the extent tree, or pointers to blocks, or content.
    pub(super) fn i_block(self) -> &'a [u8] {
        &self.bytes[0x28..0x64]
    }

    pub(super) fn content(self, super_block: &SuperBlock) -> Content {
        let flags = self.flags();
        let is_short_link = || self.size(super_block) < 60 && flags & EXTENTS == 0;
        match self.format() {
            // The inode of bad blocks has no format.
            libc::S_IFREG | libc::S_IFDIR | 0 => {}
            libc::S_IFLNK if flags & INLINE == 0 && is_short_link() => return Content::None,
            libc::S_IFLNK => {}
            _ => return Content::None,
        }
        if flags & INLINE != 0 {
            Content::Inline
        } else if flags & EXTENTS != 0 {
            Content::Extents
        } else {
            Content::Indirect
        }
    }

    /// The part of inline content beyond the 60 bytes: the value of the attribute `system.data`
    /// (kernel: Documentation/filesystems/ext4/attributes.rst).
    pub(super) fn inline_rest(self) -> Option<&'a [u8]> {
        const MAGIC: u32 = 0xea02_0000;
        const INDEX_SYSTEM: u8 = 7;
        let start = 128 + usize::from(le16(self.bytes, 0x80));
        let attributes = self.bytes.get(start..)?;
        if le32(attributes, 0) != MAGIC {
            return None;
        }
        // Offsets of values count from the first entry.
        let entries = attributes.get(4..)?;
        let mut at = 0;
        while le32(entries, at) != 0 {
            let entry = entries.get(at..at + 16)?;
            let name = entries.get(at + 16..at + 16 + usize::from(entry[0]))?;
            if entry[1] == INDEX_SYSTEM && name == b"data" {
                let (from, length) = (usize::from(le16(entry, 2)), le32(entry, 8) as usize);
                return entries.get(from..from.checked_add(length)?);
            }
            at += (16 + usize::from(entry[0])).next_multiple_of(4);
        }
        None
    }
}
