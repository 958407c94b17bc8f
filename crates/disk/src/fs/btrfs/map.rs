//! Converts addresses of btrfs to locations on its devices, and adds what no file reports:
//! metadata, unreferenced extents, free space.

use std::{io, os::fd::RawFd};

use rustc_hash::FxHashMap;
use sysdock_table::{Fact, TableError, facts::disk};

use super::{Chunk, Chunks, Used};
use crate::{
    extent::{Extent, flag},
    ioctl,
    tables::{Free, Part, Tables},
};

/// The parts of `struct btrfs_ioctl_fs_info_args` that are used.
#[repr(C)]
struct Info {
    _most_device: u64,
    _devices: u64,
    uuid: [u8; 16],
    node_bytes: u32,
    _small: [u8; 12],
    /// On input, what is queried in addition; on output, what was reported.
    flags: u64,
    generation: u64,
    _rest: [u8; 1024 - 64],
}

/// `struct btrfs_ioctl_feature_flags`.
#[repr(C)]
#[derive(Default)]
struct Features {
    _compatible: u64,
    _readable: u64,
    incompatible: u64,
}

// SAFETY: both contain numbers, and have the sizes that the numbers of their ioctls state.
unsafe impl ioctl::Request for Info {}
unsafe impl ioctl::Request for Features {}

const BTRFS_IOC_FS_INFO: libc::Ioctl = ioctl::read(0x94, 31, size_of::<Info>());
const BTRFS_IOC_GET_FEATURES: libc::Ioctl = ioctl::read(0x94, 57, size_of::<Features>());
/// `BTRFS_FEATURE_INCOMPAT_RAID_STRIPE_TREE`.
const STRIPE_TREE: u64 = 1 << 14;

/// `BTRFS_FS_INFO_FLAG_GENERATION`, since Linux 5.10.
const HAS_GENERATION: u64 = 1 << 1;

/// The newest transaction that was begun, committed or not. `None`: this kernel does not report it.
pub(super) fn newest_transaction(file: RawFd) -> io::Result<Option<u64>> {
    // SAFETY: all bits of a struct of numbers may be zero.
    let mut info: Info = unsafe { std::mem::zeroed() };
    info.flags = HAS_GENERATION;
    ioctl::query(file, BTRFS_IOC_FS_INFO, &mut info)?;
    Ok((info.flags & HAS_GENERATION != 0).then_some(info.generation))
}

/// Facts that btrfs reports about itself.
pub(crate) struct Facts {
    pub(crate) uuid: [u8; 16],
    pub(crate) node_bytes: u64,
    /// Whether locations of stripes are not computed, but stored in a tree of their own (zoned
    /// devices).
    pub(crate) has_stripe_tree: bool,
}

pub(crate) fn facts(file: RawFd) -> io::Result<Facts> {
    // SAFETY: all bits of a struct of numbers may be zero.
    let mut info: Info = unsafe { std::mem::zeroed() };
    ioctl::query(file, BTRFS_IOC_FS_INFO, &mut info)?;
    let mut features = Features::default();
    // A kernel without this ioctl does not change the structure.
    let _ = ioctl::query(file, BTRFS_IOC_GET_FEATURES, &mut features);
    let has_stripe_tree = features.incompatible & STRIPE_TREE != 0;
    Ok(Facts { uuid: info.uuid, node_bytes: u64::from(info.node_bytes), has_stripe_tree })
}

/// The value of `import_issues.issue`, explained in docs/reference/import-issues.md.
const NO_CHUNK: &str = "address_in_no_chunk";

/// The files that refer to an extent in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owners {
    None,
    One(u64),
    Several,
}

impl Owners {
    fn add(&mut self, inode: u64) {
        *self = match *self {
            Owners::None => Owners::One(inode),
            Owners::One(other) if other == inode => return,
            _ => Owners::Several,
        };
    }
}

/// Extents in use, and which of them files refer to.
pub(crate) struct Map<'a> {
    chunks: &'a Chunks,
    used: &'a [Used],
    /// Whether adjacent addresses may be on different devices. Then rows of extents contain the
    /// addresses, too.
    is_striped: bool,
    /// Index of the last extent in `chunks` and in `used`: the next one is usually close.
    last: (usize, usize),
    /// For each extent in use, whether a file refers to all of it by one extent.
    is_whole: Vec<bool>,
    /// For each extent in use, the files that refer to it, if all of them are read before rows are
    /// written.
    owners: Option<Vec<Owners>>,
    /// Address and length of all other ranges that files refer to.
    referenced: Vec<(u64, u64)>,
    /// Number of extents that are in no chunk, and the first of them: inode and address.
    astray: (u64, Option<(u64, u64)>),
}

impl<'a> Map<'a> {
    pub(crate) fn new(chunks: &'a Chunks, used: &'a [Used]) -> Self {
        Map {
            chunks,
            used,
            is_striped: chunks.is_striped(),
            last: (0, 0),
            is_whole: vec![false; used.len()],
            owners: None,
            referenced: Vec::new(),
            astray: (0, None),
        }
    }

    /// The extent in use that contains an address, or the last one before it.
    fn piece(&mut self, address: u64) -> Option<usize> {
        let number = last_of(self.used, self.last.1, |piece| piece.address <= address);
        self.last.1 = number.unwrap_or_default();
        number
    }

    /// Record who refers to an extent. The count of references in btrfs does not show that: a file
    /// that was rewritten in its middle refers to its old extent twice, and what a snapshot shares
    /// through a node of its tree has one reference.
    pub(crate) fn own(&mut self, inode: u64, extent: &Extent) {
        if extent.flags & flag::NOWHERE != 0 {
            return;
        }
        let number = self.piece(extent.physical);
        let owners = self.owners.get_or_insert_with(|| vec![Owners::None; self.used.len()]);
        if let Some(owners) = number.and_then(|number| owners.get_mut(number)) {
            owners.add(inode);
        }
    }

    /// Record that a file refers to a range. Returns whether other files refer to it, too.
    fn refer(&mut self, address: u64, length: u64) -> bool {
        let used = self.used;
        let number = self.piece(address);
        let piece = number.map(|number| &used[number]);
        if piece.is_some_and(|piece| (piece.address, piece.length) == (address, length)) {
            self.is_whole[self.last.1] = true;
        } else {
            self.referenced.push((address, length));
        }
        match (&self.owners, number) {
            (Some(owners), Some(number)) => owners[number] == Owners::Several,
            _ => piece.is_some_and(|piece| piece.is_shared),
        }
    }

    /// The chunk that contains an address.
    fn chunk(&mut self, address: u64) -> Option<&'a Chunk> {
        let chunks = self.chunks.all.as_slice();
        self.last.0 = last_of(chunks, self.last.0, |chunk| chunk.address <= address)?;
        Some(&chunks[self.last.0]).filter(|chunk| address < chunk.end())
    }

    /// Write the rows of an extent, whose location is an address of btrfs: the locations of its
    /// first copy on devices. An extent across several stripes has a row for each of them. (The
    /// fragments of a file are counted by address, as `filefrag` does.)
    pub(crate) fn extent(&mut self, inode: u64, extent: &Extent, tables: &mut Tables<'_>) -> Result<(), TableError> {
        if extent.flags & flag::NOWHERE != 0 {
            return tables.extent(inode, extent);
        }
        let address = extent.physical;
        let taken = extent.stored.unwrap_or(extent.length);
        let mut extent = *extent;
        if self.refer(address, taken) {
            extent.flags |= flag::SHARED;
        }
        let Some(chunk) = self.chunk(address) else {
            self.astray = (self.astray.0 + 1, self.astray.1.or(Some((inode, address))));
            return Ok(());
        };
        let begin = extent.logical;
        for piece in chunk.pieces(address, taken, 0) {
            (extent.device, extent.physical) = (piece.device, piece.physical);
            match &mut extent.stored {
                _ if !chunk.is_striped() => {}
                // A compressed extent cannot be split: its whole length is reported with the first
                // part.
                Some(stored) => {
                    *stored = piece.length;
                    if piece.address > address {
                        (extent.logical, extent.length) = (begin.saturating_add(extent.length), 0);
                    }
                }
                None => (extent.logical, extent.length) = (begin.saturating_add(piece.address - address), piece.length),
            }
            tables.placed_extent(inode, &extent, self.is_striped.then_some(piece.address))?;
        }
        Ok(())
    }

    /// Extents that could not be located, for `import_issues`.
    pub(crate) fn issues(&self) -> Vec<(&'static str, Fact)> {
        let described = |(inode, address)| disk::extents_without_chunk(self.astray.0, inode, address);
        self.astray.1.map(described).map(|detail| (NO_CHUNK, detail)).into_iter().collect()
    }

    /// Write everything that belongs to no file: metadata, further copies of data, parity, extents
    /// or parts of them that no file refers to any more, free space. `unclaimed` is the word for
    /// data that no file has. Returns the free space of each device.
    pub(crate) fn rest(mut self, unclaimed: &'static str, tables: &mut Tables<'_>) -> Result<FxHashMap<u32, u64>, TableError> {
        for (number, chunk) in self.chunks.all.iter().enumerate() {
            let (number, length) = (i32::try_from(number).ok(), chunk.slot_bytes());
            for (device, physical) in &chunk.slots {
                let (device, physical) = (*device, *physical);
                tables.part(Part { part: "group", number, inode: None, physical, length, device })?;
            }
        }
        self.referenced.sort_unstable();
        let (all, is_whole) = self.with_later();
        let (mut left, mut is_whole) = (self.referenced.as_slice(), is_whole.iter());
        for (chunk, used) in self.chunks.with(&all) {
            for piece in used {
                let is_whole = is_whole.next().is_some_and(|is_whole| *is_whole);
                left = parts_of(chunk, piece, (is_whole, left), unclaimed, tables)?;
            }
            if chunk.has_parity() {
                chunk.parity(used, |device, physical, length| part(tables, "parity", device, physical, length))?;
            }
        }
        let mut free = FxHashMap::default();
        for (device, physical, length) in self.chunks.free(&all) {
            let sum: &mut u64 = free.entry(device).or_default();
            *sum = sum.saturating_add(length);
            tables.free(Free { physical, length, device })?;
        }
        Ok(free)
    }
}

impl Map<'_> {
    /// Extents in use, including those that only files refer to: an extent that was allocated after the extent
    /// tree was read must not be reported as free too. Also returns which pieces are referenced as a whole.
    fn with_later(&self) -> (Vec<Used>, Vec<bool>) {
        let (mut all, mut is_whole) = (Vec::with_capacity(self.used.len()), Vec::with_capacity(self.used.len()));
        let mut pieces = self.used.iter().zip(&self.is_whole).peekable();
        // Everything up to here is reported.
        let mut at = 0;
        let later = |from: u64, until: u64, all: &mut Vec<Used>, is_whole: &mut Vec<bool>| {
            for (address, length) in within_chunks(&self.chunks.all, from, until) {
                all.push(Used { address, length, is_metadata: false, is_shared: false });
                is_whole.push(false);
            }
        };
        for (address, length) in &self.referenced {
            let end = address.saturating_add(*length);
            while let Some((piece, whole)) = pieces.next_if(|(piece, _)| piece.address < end) {
                later(at.max(*address), piece.address, &mut all, &mut is_whole);
                all.push(*piece);
                is_whole.push(*whole);
                at = at.max(piece.address.saturating_add(piece.length));
            }
            later(at.max(*address), end, &mut all, &mut is_whole);
            at = at.max(end);
        }
        for (piece, whole) in pieces {
            all.push(*piece);
            is_whole.push(*whole);
        }
        (all, is_whole)
    }
}

/// The parts of a range that are in chunks, which are ordered: address and length.
fn within_chunks(chunks: &[Chunk], from: u64, until: u64) -> impl Iterator<Item = (u64, u64)> {
    let first = chunks.partition_point(|chunk| chunk.end() <= from);
    chunks[first..].iter().map_while(move |chunk| {
        let (begin, end) = (chunk.address.max(from), chunk.end().min(until));
        (begin < end).then(|| (begin, end - begin))
    })
}

/// Index of the last element for which `begins` holds; it holds for a prefix of `all`. The search
/// starts at `near`, in steps that double.
fn last_of<T>(all: &[T], near: usize, begins: impl Fn(&T) -> bool) -> Option<usize> {
    let (mut from, mut until) = (near.min(all.len()), near.min(all.len()));
    let mut step = 1;
    while from > 0 && !begins(&all[from - 1]) {
        (from, until) = (from.saturating_sub(step), from - 1);
        step *= 2;
    }
    while until < all.len() && begins(&all[until]) {
        (from, until) = (until + 1, all.len().min(until + 1 + step));
        step *= 2;
    }
    (from + all[from..until].partition_point(begins)).checked_sub(1)
}

/// Write the parts of an extent in use that files do not report. `referenced`: whether a file
/// refers to all of it, and the other ranges that files refer to from there on. Returns those of
/// them after the extent.
fn parts_of<'a>(
    chunk: &Chunk,
    piece: &Used,
    (is_whole, referenced): (bool, &'a [(u64, u64)]),
    unclaimed: &'static str,
    tables: &mut Tables<'_>,
) -> Result<&'a [(u64, u64)], TableError> {
    let mut write = |word, address: u64, until: u64, first_copy| {
        if until <= address {
            return Ok(());
        }
        let range = (address, until - address);
        chunk.spans(range, first_copy, |device, physical, length| part(tables, word, device, physical, length))
    };
    let end = piece.address.saturating_add(piece.length);
    if piece.is_metadata {
        write("metadata", piece.address, end, 0)?;
        return Ok(referenced);
    }
    // Everything before `at` is done. Files refer to the range from `begin` on.
    let (mut at, mut begin) = (piece.address, piece.address);
    let mine = referenced.iter().take_while(|(address, _)| *address < end).count();
    if is_whole {
        at = end;
    }
    for (address, length) in referenced[..mine].iter().copied().chain([(end, 0)]) {
        if address > at {
            write("copy", begin, at, 1)?;
            write(unclaimed, at, address, 0)?;
            begin = address;
        }
        at = at.max(address.saturating_add(length).min(end));
    }
    write("copy", begin, end, 1)?;
    Ok(&referenced[mine..])
}

fn part(tables: &mut Tables<'_>, part: &'static str, device: u32, physical: u64, length: u64) -> Result<(), TableError> {
    tables.part(Part { part, number: None, inode: None, physical, length, device })
}

#[cfg(test)]
mod tests {
    use super::super::search::{Item, kind};
    use super::*;

    /// A chunk on one device, whose addresses equal offsets.
    fn single(address: u64, length: u64) -> Chunk {
        let mut data = [0; 80];
        data[0..8].copy_from_slice(&length.to_le_bytes());
        data[16..24].copy_from_slice(&(1_u64 << 16).to_le_bytes());
        (data[24], data[44], data[46], data[48]) = (1, 1, 1, 1);
        data[56..64].copy_from_slice(&address.to_le_bytes());
        Chunk::of(&Item { object: 256, kind: kind::CHUNK, offset: address, data: &data }).expect("a chunk")
    }

    #[test]
    fn what_only_files_refer_to_is_in_use_and_nothing_is_twice() {
        const BLOCK: u64 = 4096;
        let chunks = Chunks {
            all: vec![single(1 << 20, 16 * BLOCK), single((1 << 20) + 20 * BLOCK, 16 * BLOCK)],
            devices: vec![(1, 4 << 20)],
        };
        let mut state = 1_u64;
        let mut random = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % limit
        };
        for _ in 0..2000 {
            let in_use: Vec<bool> = (0..36).map(|block| !(16..20).contains(&block) && random(3) == 0).collect();
            let place = |block: u64| (1 << 20) + block * BLOCK;
            let piece = |block: u64| Used { address: place(block), length: BLOCK, is_metadata: false, is_shared: false };
            let used: Vec<Used> = (0..36).filter(|block| in_use[*block as usize]).map(piece).collect();
            let mut map = Map::new(&chunks, &used);
            let mut expected = in_use.clone();
            for _ in 0..random(6) {
                let (begin, length) = (random(36), 1 + random(5));
                map.refer(place(begin), length * BLOCK);
                (begin..(begin + length).min(36))
                    .filter(|block| !(16..20).contains(block))
                    .for_each(|block| expected[block as usize] = true);
            }
            map.referenced.sort_unstable();
            let (all, is_whole) = map.with_later();
            assert_eq!(all.len(), is_whole.len());
            assert!(all.windows(2).all(|two| two[0].address + two[0].length <= two[1].address), "{all:?}");
            let holds =
                |block: u64| all.iter().any(|piece| (piece.address..piece.address + piece.length).contains(&place(block)));
            assert_eq!((0..36).map(holds).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn the_last_is_found_from_everywhere() {
        for length in 0..40 {
            let all: Vec<u64> = (0..length).collect();
            for near in 0..length as usize + 3 {
                for limit in 0..length + 2 {
                    let expected = all.iter().rposition(|each| *each < limit);
                    assert_eq!(last_of(&all, near, |each| *each < limit), expected, "{length} {near} {limit}");
                }
            }
        }
    }
}
