//! The blocks of the files of a window: extent trees (kernel:
//! Documentation/filesystems/ext4/ifork.rst) and indirect blocks.
//!
//! Roots are in the inodes. The nodes below them are read level by level, those of all files of the
//! window together in order of location. Each block may be a node only once in the file system, so
//! that loops end and the memory for a hostile image stays in proportion to its size.

use std::ops::Range;

use sysdock_table::{Fact, facts::disk as facts};

use super::{
    FileSystem,
    bytes::{le16, le32, wide},
    checksums::extent_node_holds,
    issues::{Issues, word},
};
use crate::extent::{Extent, flag};

const MAGIC: u16 = 0xf30a;
const DEEPEST: u16 = 5;
/// Above this, a length is that of an unwritten extent, plus this number.
const UNWRITTEN_FROM: u32 = 32768;

/// An entry of a node.
#[derive(Clone, Copy, Debug)]
enum Item {
    Run(Run),
    /// Another node, by its index.
    Node(u32),
}

/// Blocks that are contiguous in the file and on the device.
#[derive(Clone, Copy, Debug)]
struct Run {
    logical: u32,
    length: u32,
    physical: u64,
    is_unwritten: bool,
}

/// A block that points to other blocks.
#[derive(Clone, Debug)]
struct Node {
    /// Index of the file in the window.
    owner: u32,
    block: u64,
    /// Number of levels below it.
    depth: u16,
    /// Whether it belongs to an extent tree; otherwise it is a block of pointers.
    is_tree: bool,
    /// First block of the file that it points to; known for pointers only.
    logical: u32,
    items: Range<u32>,
}

/// The files of a window.
#[derive(Default)]
pub(super) struct Mapping {
    items: Vec<Item>,
    nodes: Vec<Node>,
    /// Entries of the root of each file, and whether they are pointers, whose runs end with their
    /// block.
    roots: Vec<(Range<u32>, bool)>,
    /// Nodes as (file, block), sorted once all have been read.
    owned: Vec<(u32, u64)>,
    /// Files of which a part could not be read.
    pub(super) broken: Vec<u32>,
}

/// What to read from, and where to report issues.
pub(super) struct Reading<'a> {
    pub(super) fs: &'a FileSystem,
    pub(super) issues: &'a mut Issues,
    /// Inode numbers, by file.
    pub(super) numbers: &'a [u32],
    /// Seeds of their checksums, if there are any.
    pub(super) seeds: &'a [Option<u32>],
}

impl Reading<'_> {
    fn broken(&mut self, owner: u32, what: fn(u32) -> Fact) {
        let number = self.numbers.get(owner as usize).copied().unwrap_or(0);
        self.issues.add(word::BROKEN_EXTENTS, 1, || what(number));
    }
}

impl Reading<'_> {
    /// Report a node with a wrong checksum.
    fn check_node(&mut self, owner: u32, block: u64, bytes: &[u8]) {
        let Some(seed) = self.seeds.get(owner as usize).copied().flatten() else { return };
        let again = || self.fs.source.block(block).is_ok_and(|bytes| extent_node_holds(seed, &bytes));
        if !extent_node_holds(seed, bytes) && self.fs.sums.stays_wrong(again) {
            self.broken(owner, facts::extent_node_checksum);
        }
    }
}

impl Mapping {
    /// Add a file without blocks.
    pub(super) fn add_none(&mut self) {
        let end = self.items.len() as u32;
        self.roots.push((end..end, false));
    }

    /// Add a file whose inode contains the root of an extent tree.
    pub(super) fn add_tree(&mut self, i_block: &[u8], reading: &mut Reading<'_>) {
        let owner = self.roots.len() as u32;
        let items = self.tree_node(i_block, owner, None, reading);
        self.roots.push((items, false));
    }

    /// Add a file whose inode contains pointers: twelve to blocks, and one each to blocks of
    /// pointers, one to three levels deep.
    pub(super) fn add_pointers(&mut self, i_block: &[u8], reading: &mut Reading<'_>) {
        const DIRECT: usize = 12;
        let owner = self.roots.len() as u32;
        let first = self.items.len() as u32;
        self.pointers(&i_block[..4 * DIRECT], owner, 0, 0, reading);
        let per_block = reading.fs.super_block.block_bytes / 4;
        let mut logical = DIRECT as u64;
        for depth in 0..3 {
            let at = 4 * (DIRECT + usize::from(depth));
            if let Ok(logical) = u32::try_from(logical) {
                self.pointers(&i_block[at..at + 4], owner, depth + 1, logical, reading);
            }
            logical += per_block.pow(u32::from(depth) + 1);
        }
        self.roots.push((first..self.items.len() as u32, true));
    }

    /// Add the entries of a node of an extent tree. `depth` is the one that its parent requires;
    /// the root may have any.
    fn tree_node(&mut self, bytes: &[u8], owner: u32, depth: Option<u16>, reading: &mut Reading<'_>) -> Range<u32> {
        const BYTES: usize = 12;
        let first = self.items.len() as u32;
        let (entries, most, stated) = (usize::from(le16(bytes, 2)), usize::from(le16(bytes, 4)), le16(bytes, 6));
        let is_deep = depth.is_some_and(|depth| depth != stated) || stated > DEEPEST;
        if le16(bytes, 0) != MAGIC || entries > most || BYTES * (most + 1) > bytes.len() || is_deep {
            self.broken.push(owner);
            reading.broken(owner, facts::extent_node_invalid);
            return first..first;
        }
        for entry in bytes[BYTES..].chunks_exact(BYTES).take(entries) {
            let logical = le32(entry, 0);
            if stated > 0 {
                let block = wide(u32::from(le16(entry, 8)), le32(entry, 4));
                self.add_node(Node { owner, block, depth: stated - 1, is_tree: true, logical, items: 0..0 }, reading);
            } else {
                let (length, physical) = (u32::from(le16(entry, 4)), wide(u32::from(le16(entry, 6)), le32(entry, 8)));
                let is_unwritten = length > UNWRITTEN_FROM;
                let length = if is_unwritten { length - UNWRITTEN_FROM } else { length };
                self.add_run(Run { logical, length, physical, is_unwritten }, owner, reading);
            }
        }
        first..self.items.len() as u32
    }

    /// Add pointers to blocks or, at a depth, to blocks of pointers. 0 is a hole.
    fn pointers(&mut self, bytes: &[u8], owner: u32, depth: u16, mut logical: u32, reading: &mut Reading<'_>) {
        let step = (reading.fs.super_block.block_bytes / 4).saturating_pow(u32::from(depth));
        let mut run: Option<Run> = None;
        for pointer in bytes.chunks_exact(4) {
            let block = u64::from(le32(pointer, 0));
            match &mut run {
                _ if block == 0 => {}
                _ if depth > 0 => {
                    self.add_node(Node { owner, block, depth: depth - 1, is_tree: false, logical, items: 0..0 }, reading);
                }
                Some(run) if run.physical + u64::from(run.length) == block && run.logical + run.length == logical => {
                    run.length += 1;
                }
                _ => {
                    let next = Run { logical, length: 1, physical: block, is_unwritten: false };
                    if let Some(done) = run.replace(next) {
                        self.add_run(done, owner, reading);
                    }
                }
            }
            // Files end at 2^32 blocks; further pointers are invalid.
            match u32::try_from(u64::from(logical) + step) {
                Ok(next) => logical = next,
                Err(_) => break,
            }
        }
        if let Some(done) = run {
            self.add_run(done, owner, reading);
        }
    }

    fn add_run(&mut self, run: Run, owner: u32, reading: &mut Reading<'_>) {
        let super_block = &reading.fs.super_block;
        let end = run.physical.saturating_add(u64::from(run.length));
        let is_inside = run.physical >= super_block.first_block && end <= super_block.blocks;
        if run.length == 0 || !is_inside || run.logical.checked_add(run.length - 1).is_none() {
            self.broken.push(owner);
            return reading.broken(owner, facts::extent_outside);
        }
        self.items.push(Item::Run(run));
    }

    fn add_node(&mut self, node: Node, reading: &mut Reading<'_>) {
        let super_block = &reading.fs.super_block;
        let is_inside = node.block >= super_block.first_block && node.block < super_block.blocks;
        if !is_inside || !reading.fs.met.insert(node.block) {
            self.broken.push(node.owner);
            return reading.broken(node.owner, facts::map_block_outside);
        }
        self.items.push(Item::Node(self.nodes.len() as u32));
        self.nodes.push(node);
    }

    /// Read all nodes, level by level.
    pub(super) fn read_nodes(&mut self, reading: &mut Reading<'_>) {
        let mut from = 0;
        while from < self.nodes.len() {
            let wanted = (from..self.nodes.len()).map(|number| (self.nodes[number].block, number)).collect();
            let (begin, fs) = (std::mem::replace(&mut from, self.nodes.len()), reading.fs);
            let mut is_missing = vec![true; from - begin];
            fs.source.each(wanted, |number, bytes| {
                is_missing[number - begin] = false;
                let Node { owner, depth, is_tree, logical, .. } = self.nodes[number];
                let items = if is_tree {
                    reading.check_node(owner, self.nodes[number].block, bytes);
                    self.tree_node(bytes, owner, Some(depth), reading)
                } else {
                    let first = self.items.len() as u32;
                    self.pointers(bytes, owner, depth, logical, reading);
                    first..self.items.len() as u32
                };
                self.nodes[number].items = items;
            });
            let missing = is_missing.into_iter().zip(&self.nodes[begin..]).filter(|(is_missing, _)| *is_missing);
            self.broken.extend(missing.map(|(_, node)| node.owner));
        }
        self.owned = self.nodes.iter().map(|node| (node.owner, node.block)).collect();
        self.owned.sort_unstable();
        self.broken.sort_unstable();
        self.broken.dedup();
    }

    /// Whether the nodes of a file belong to an extent tree, rather than being blocks of pointers.
    pub(super) fn is_tree(&self, file: u32) -> bool {
        !self.roots[file as usize].1
    }

    /// Blocks with nodes of a file, in order.
    pub(super) fn nodes_of(&self, file: u32) -> &[(u32, u64)] {
        let from = self.owned.partition_point(|(owner, _)| *owner < file);
        let count = self.owned[from..].partition_point(|(owner, _)| *owner == file);
        &self.owned[from..from + count]
    }

    /// Append the extents of a file, in its order. Ranges that pointers list block by block are
    /// joined.
    pub(super) fn extents_of(&self, file: u32, block_bytes: u64, flags: u8, take: &mut Vec<Extent>) {
        let begin = take.len();
        let (root, is_joined) = self.roots[file as usize].clone();
        let mut open = vec![root];
        while let Some(range) = open.last_mut() {
            let Some(number) = range.next() else {
                open.pop();
                continue;
            };
            match self.items[number as usize] {
                Item::Node(node) => open.push(self.nodes[node as usize].items.clone()),
                Item::Run(run) => {
                    let extent = Extent {
                        logical: u64::from(run.logical) * block_bytes,
                        physical: run.physical * block_bytes,
                        length: u64::from(run.length) * block_bytes,
                        stored: None,
                        flags: flags | if run.is_unwritten { flag::UNWRITTEN } else { 0 },
                        device: 0,
                    };
                    match take[begin..].last_mut() {
                        Some(last) if is_joined && goes_on(last, &extent) => last.length += extent.length,
                        _ => take.push(extent),
                    }
                }
            }
        }
    }
}

fn goes_on(last: &Extent, next: &Extent) -> bool {
    last.logical + last.length == next.logical && last.physical + last.length == next.physical
}
