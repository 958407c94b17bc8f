//! A window of inode numbers: what one thread reads at a time. First its part of the inode tables,
//! then the nodes that point to blocks, then directories; each in order of location.

use std::{cell::Cell, ops::Range};

use sysdock_table::{NULL, facts::disk as facts};

use super::{
    FileSystem,
    bytes::{le64, runs},
    checksums::directory_block_holds,
    claimed_blocks::ClaimedBlocks,
    directory::{self, Entries},
    groups,
    inode::{Content, RESIZE, Raw},
    issues::{Issues, word},
    mapping::{Mapping, Reading},
};
use crate::{
    batch::Kind,
    extent::{Extent, flag},
    fragments::{Forgiving, Fragments},
};

/// Up to this many bytes of unused inodes are read rather than skipped.
const WORTH_READING: u64 = 1 << 16;

thread_local! {
    /// A part of an inode table. Each thread keeps the buffer, because memory that is new to the
    /// process costs more than reading into it.
    static TABLE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A file that will become a row of `inodes`. One is kept for every file, so it is small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) number: u32,
    pub(super) extents: u32,
    pub(super) fragments: u32,
    pub(super) forgiving: u32,
    pub(super) size: u64,
    pub(super) allocated: u64,
    /// Or [`NULL`].
    pub(super) modified_ns: i64,
    pub(super) links: u16,
    pub(super) kind: Kind,
}

/// Names as stored in directories.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Inode, its directory, and the offset of its name in the text.
    pub(super) entries: Vec<(u32, u32, u32)>,
    /// Each name after its length.
    pub(super) text: Vec<u8>,
    /// Number of names for which the text had no room.
    lost: u64,
}

impl Names {
    pub(super) fn add(&mut self, inode: u32, directory: u32, name: &[u8]) {
        let Ok(at) = u32::try_from(self.text.len()) else {
            self.lost += 1;
            return;
        };
        self.entries.push((inode, directory, at));
        self.text.extend_from_slice(&(name.len() as u16).to_le_bytes());
        self.text.extend_from_slice(name);
    }
}

/// Everything that was found in a window.
#[derive(Default)]
pub(super) struct Window {
    pub(super) rows: Vec<Row>,
    /// Extents of the files, as many of each as its row states.
    pub(super) extents: Vec<Extent>,
    /// Blocks that the file system keeps for a file: its inode, the value of `layout.part`, first
    /// and count.
    pub(super) parts: Vec<(u32, &'static str, u64, u64)>,
    /// Blocks with attributes, which files may share.
    pub(super) attributes: Vec<(u32, u64)>,
    pub(super) names: Names,
    pub(super) issues: Issues,
    /// Number of files of which blocks are missing.
    pub(super) unread: u64,
    /// Inode numbers of the files, and what is needed of them until their blocks are known.
    numbers: Vec<u32>,
    seeds: Vec<Option<u32>>,
    notes: Vec<Note>,
}

/// What to do with the extents of a file.
#[derive(Clone, Copy, Debug)]
struct Note {
    /// They belong to no user's file: the value of `layout.part` instead.
    part: Option<&'static str>,
    flags: u8,
    is_directory: bool,
    is_encrypted: bool,
    is_inline: bool,
}

/// A block of a directory that is to be read.
#[derive(Clone, Copy, Debug)]
struct DirectoryBlock {
    block: u64,
    directory: u32,
    is_encrypted: bool,
    /// Seed of its checksum, if it has one.
    seed: Option<u32>,
}

impl Window {
    /// Read the inodes of a range, their blocks and names. Their blocks are claimed in `space`.
    pub(super) fn read(fs: &FileSystem, numbers: Range<u32>, with_names: bool, space: &ClaimedBlocks) -> Self {
        let mut window = Window::default();
        let mut mapping = Mapping::default();
        window.inodes(fs, numbers, &mut mapping);
        let mut reading = Reading { fs, issues: &mut window.issues, numbers: &window.numbers, seeds: &window.seeds };
        mapping.read_nodes(&mut reading);
        let blocks = window.extents(fs, &mapping);
        if with_names {
            window.directories(fs, blocks);
        }
        window.unread = mapping.broken.len() as u64;
        window.claim(fs.super_block.block_bytes, space);
        window
    }

    /// Claim all blocks except those of attributes, which several files may share.
    fn claim(&mut self, block_bytes: u64, space: &ClaimedBlocks) {
        let mut extents = self.extents.iter();
        for row in &self.rows {
            for extent in extents.by_ref().take(row.extents as usize).filter(|extent| extent.flags & flag::NOWHERE == 0) {
                let whose = || format!("inode {}", row.number);
                space.claim(extent.physical / block_bytes, extent.length / block_bytes, &mut self.issues, whose);
            }
        }
        for (inode, part, first, count) in &self.parts {
            space.claim(*first, *count, &mut self.issues, || format!("{part} of inode {inode}"));
        }
    }

    /// Read the inodes in use of a range of numbers, which count from 1.
    fn inodes(&mut self, fs: &FileSystem, numbers: Range<u32>, mapping: &mut Mapping) {
        let per_group = fs.super_block.inodes_per_group;
        let (first, end) = (numbers.start - 1, numbers.end - 1);
        for group in first / per_group..end.div_ceil(per_group) {
            let begin = group * per_group;
            let state = &fs.groups[group as usize];
            let places = first.saturating_sub(begin)..(end - begin).min(state.used_inodes);
            let (Some(bitmap), Some(table)) = (state.inode_bitmap, state.inode_table) else { continue };
            if places.is_empty() {
                continue;
            }
            match fs.source.block(bitmap) {
                Ok(bits) => {
                    // Windows may share a group: the one that begins it reports.
                    let is_wrong = places.start == 0 && !groups::bitmap_holds(fs, u64::from(group), true, &bits);
                    let example = || facts::inode_bitmap_checksum(group);
                    self.issues.add(word::BROKEN_GROUP, u64::from(is_wrong), example);
                    self.table(fs, begin, places, &bits, table, mapping);
                }
                Err(error) => {
                    let lost = || facts::inode_bitmap_unreadable(group, error.to_string());
                    self.issues.add(word::UNREADABLE_BLOCK, 1, lost);
                }
            }
        }
    }

    /// Read the inodes of a table whose bits are set. `begin` is the number of the first inode of
    /// the table, from 0.
    fn table(&mut self, fs: &FileSystem, begin: u32, places: Range<u32>, bits: &[u8], table: u64, mapping: &mut Mapping) {
        let (block_bytes, inode_bytes) = (fs.super_block.block_bytes, fs.super_block.inode_bytes as u64);
        let is_used = |place: u32| bits[place as usize / 8] >> (place % 8) & 1 == 1;
        let mut pieces: Vec<Range<u64>> = Vec::new();
        runs(
            u64::from(places.end),
            |at| le64_of(bits, at),
            |from, count| {
                let end = (from + count).min(u64::from(places.end));
                let from = from.max(u64::from(places.start));
                match pieces.last_mut() {
                    _ if from >= end => {}
                    Some(last) if (from - last.end) * inode_bytes < WORTH_READING => last.end = end,
                    _ => pieces.push(from..end),
                }
            },
        );
        let mut buffer = TABLE.take();
        let blocks =
            |piece: &Range<u64>| (piece.start * inode_bytes / block_bytes, (piece.end * inode_bytes).div_ceil(block_bytes));
        for (from_block, end_block) in pieces.iter().map(blocks) {
            fs.source.request_ahead(table + from_block, end_block - from_block);
        }
        for piece in pieces {
            let (from_block, end_block) = blocks(&piece);
            buffer.resize(((end_block - from_block) * block_bytes) as usize, 0);
            fs.source.read_what_can_be(table + from_block, &mut buffer);
            for place in (piece.start as u32..piece.end as u32).filter(|place| is_used(*place)) {
                let at = (u64::from(place) * inode_bytes - from_block * block_bytes) as usize;
                let raw = Raw { number: begin + place + 1, bytes: &buffer[at..at + inode_bytes as usize] };
                self.check_inode(fs, raw, table, u64::from(place));
                self.inode(fs, raw, mapping);
            }
        }
        TABLE.set(buffer);
    }

    /// Report an inode with a wrong checksum. `table` is the first block of its table, `place` its
    /// index there.
    fn check_inode(&mut self, fs: &FileSystem, raw: Raw<'_>, table: u64, place: u64) {
        if fs.sums.inode_holds(raw) {
            return;
        }
        let (block_bytes, inode_bytes) = (fs.super_block.block_bytes, fs.super_block.inode_bytes as u64);
        let at = place * inode_bytes;
        let again = || {
            let block = fs.source.block(table + at / block_bytes);
            let from = (at % block_bytes) as usize;
            block.is_ok_and(|block| fs.sums.inode_holds(Raw { bytes: &block[from..from + inode_bytes as usize], ..raw }))
        };
        if fs.sums.stays_wrong(again) {
            let example = || facts::inode_checksum(raw.number);
            self.issues.add(word::BROKEN_INODE, 1, example);
        }
    }

    fn inode(&mut self, fs: &FileSystem, raw: Raw<'_>, mapping: &mut Mapping) {
        let part = fs.internal_part(raw.number).or_else(|| raw.is_of_attributes().then_some("attributes"));
        // Reserved numbers that are not used.
        if part.is_some() && raw.is_blank() {
            return;
        }
        if part.is_none() && !raw.has_known_format() {
            let example = || facts::inode_of_unknown_kind(raw.number);
            return self.issues.add(word::BROKEN_INODE, 1, example);
        }
        self.rows.push(Row {
            number: raw.number,
            extents: 0,
            fragments: 0,
            forgiving: 0,
            size: raw.size(&fs.super_block),
            allocated: 0,
            modified_ns: raw.modified_ns().unwrap_or(NULL),
            links: raw.links(),
            kind: if part.is_some() { Kind::Internal } else { raw.kind() },
        });
        self.numbers.push(raw.number);
        self.seeds.push(fs.sums.of_inode(raw));
        let content = raw.content(&fs.super_block);
        self.notes.push(Note {
            part,
            flags: if raw.is_encrypted() && raw.kind() == Kind::File { flag::ENCRYPTED } else { 0 },
            is_directory: part.is_none() && raw.is_directory(),
            is_encrypted: raw.is_encrypted(),
            is_inline: content == Content::Inline,
        });
        let mut reading = Reading { fs, issues: &mut self.issues, numbers: &self.numbers, seeds: &self.seeds };
        match content {
            // Its other pointers are to the reserved descriptors.
            _ if raw.number == RESIZE => mapping.add_none(),
            Content::None | Content::Inline => mapping.add_none(),
            Content::Extents => mapping.add_tree(raw.i_block(), &mut reading),
            Content::Indirect => mapping.add_pointers(raw.i_block(), &mut reading),
        }
        self.add_other_parts(fs, raw, content);
    }

    /// Add what a file has besides its blocks.
    fn add_other_parts(&mut self, fs: &FileSystem, raw: Raw<'_>, content: Content) {
        let is_inside = |block: u64| block >= fs.super_block.first_block && block < fs.super_block.blocks;
        if raw.number == RESIZE {
            let pointers = u64::from(super::bytes::le32(raw.i_block(), 4 * 13));
            if is_inside(pointers) {
                self.parts.push((raw.number, "indirect blocks", pointers, 1));
            }
        }
        if let Some(block) = raw.attribute_block() {
            if is_inside(block) {
                self.attributes.push((raw.number, block));
            } else {
                let example = || facts::attributes_outside(raw.number);
                self.issues.add(word::BROKEN_INODE, 1, example);
            }
        }
        if content == Content::Inline
            && raw.is_directory()
            && !directory::read_inline(raw, fs.super_block.inodes, &mut self.names)
        {
            self.issues.add(word::BROKEN_DIRECTORY, 1, || facts::inline_entry_broken(raw.number));
        }
    }

    /// Determine extents, fragments and own blocks of every file. Returns the blocks of
    /// directories.
    fn extents(&mut self, fs: &FileSystem, mapping: &Mapping) -> Vec<(u64, DirectoryBlock)> {
        let block_bytes = fs.super_block.block_bytes;
        let mut blocks = Vec::new();
        for (file, (row, note)) in (0..).zip(self.rows.iter_mut().zip(&self.notes)) {
            let begin = self.extents.len();
            if note.is_inline {
                self.extents.push(Extent { length: row.size, flags: flag::INLINE, ..Extent::default() });
            }
            mapping.extents_of(file, block_bytes, note.flags, &mut self.extents);
            let (own, found) = (mapping.nodes_of(file), &self.extents[begin..]);
            row.count(found, own, block_bytes);
            let name = if mapping.is_tree(file) { "extent tree" } else { "indirect blocks" };
            self.parts.extend(own.iter().map(|(_, block)| (row.number, name, *block, 1)));
            if note.is_directory {
                // A block is read as a directory once.
                let used = blocks_within(found, row.size, block_bytes).filter(|block| fs.met.insert(*block));
                let seed = self.seeds[file as usize];
                let of = |block| DirectoryBlock { block, directory: row.number, is_encrypted: note.is_encrypted, seed };
                blocks.extend(used.map(|block| (block, of(block))));
            }
            if let Some(part) = note.part {
                let placed = found.iter().filter(|extent| extent.flags & flag::NOWHERE == 0);
                let kept = placed.map(|extent| (row.number, part, extent.physical / block_bytes, extent.length / block_bytes));
                self.parts.extend(kept);
                self.extents.truncate(begin);
            }
            row.extents = (self.extents.len() - begin) as u32;
        }
        blocks
    }

    fn directories(&mut self, fs: &FileSystem, blocks: Vec<(u64, DirectoryBlock)>) {
        let inodes = fs.super_block.inodes;
        fs.source.each(blocks, |DirectoryBlock { block, directory, is_encrypted, seed }, bytes| {
            let holds = |bytes: &[u8]| seed.is_none_or(|seed| directory_block_holds(seed, bytes));
            if !holds(bytes) && fs.sums.stays_wrong(|| fs.source.block(block).is_ok_and(|bytes| holds(&bytes))) {
                let example = || facts::directory_checksum(directory);
                self.issues.add(word::BROKEN_DIRECTORY, 1, example);
            }
            if !(Entries { bytes, directory, is_encrypted, inodes }).read(&mut self.names) {
                self.issues.add(word::BROKEN_DIRECTORY, 1, || facts::entry_broken(directory));
            }
        });
        self.issues.add(word::BROKEN_DIRECTORY, self.names.lost, facts::directory_too_large);
    }
}

impl Row {
    /// Count fragments and blocks of its extents; `own` are the blocks that point to them.
    fn count(&mut self, extents: &[Extent], own: &[(u32, u64)], block_bytes: u64) {
        let mut fragments = Fragments::default();
        extents.iter().for_each(|extent| fragments.add(extent));
        self.fragments = fragments.count();
        self.forgiving = match own {
            [] => self.fragments,
            own => Forgiving::count(extents, |from, end| holds_only(own, from, end, block_bytes)),
        };
        let placed = extents.iter().filter(|extent| extent.flags & flag::NOWHERE == 0);
        self.allocated = placed.map(|extent| extent.length).sum();
    }
}

/// Blocks of extents within the size of their file.
fn blocks_within(extents: &[Extent], size: u64, block_bytes: u64) -> impl Iterator<Item = u64> {
    let placed = extents.iter().filter(|extent| extent.flags & flag::NOWHERE == 0);
    placed.flat_map(move |extent| {
        let count = size.saturating_sub(extent.logical).div_ceil(block_bytes).min(extent.length / block_bytes);
        let first = extent.physical / block_bytes;
        first..first + count
    })
}

/// Whether there are blocks between two offsets [B], and all of them are the file's own.
fn holds_only(own: &[(u32, u64)], from: u64, end: u64, block_bytes: u64) -> bool {
    let (from, end) = (from / block_bytes, end / block_bytes);
    let first = own.partition_point(|(_, block)| *block < from);
    let after = own.partition_point(|(_, block)| *block < end);
    from < end && (after - first) as u64 == end - from
}

fn le64_of(bits: &[u8], at: u64) -> u64 {
    match bits.get(at as usize / 8..) {
        Some(rest) if rest.len() >= 8 => le64(rest, 0),
        Some(rest) => rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        None => 0,
    }
}
