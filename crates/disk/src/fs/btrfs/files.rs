//! Files of one subvolume after another: inodes, names and extents, from its tree.

use std::{io, ops::RangeInclusive, os::fd::RawFd};

use rustc_hash::FxHashMap;
use sysdock_table::{Cancel, TableError};

use super::search::{ALL, Item, ROOT_TREE, TOP_LEVEL, items, kind, last_object};
use crate::{
    batch::{Batch, Inode, Kind},
    error::Refused,
    extent::{Extent, flag},
    parallel::in_order,
    paths::{NamesByInode, Paths},
};

/// The first number that a file or a subvolume can have.
const FIRST_FREE: u64 = 256;
/// Trees with higher numbers belong to btrfs itself.
const LAST_FREE: u64 = u64::MAX - 256;
const TREE_SHIFT: u32 = 48;

/// A tree of files.
#[derive(Clone, Debug)]
pub(crate) struct Subvolume {
    tree: u64,
    /// Path from the top level, without a leading slash; empty for the top level itself.
    path: Vec<u8>,
}

/// The name of a subvolume: the tree that contains it, the folder in that tree, and the name.
type RootLocation = (u64, u64, Vec<u8>);

/// All subvolumes and snapshots. If the name of one is not found, its path is its number.
pub(crate) fn subvolumes(file: RawFd) -> io::Result<Vec<Subvolume>> {
    let (mut trees, mut places) = (vec![TOP_LEVEL], FxHashMap::<u64, RootLocation>::default());
    items(file, ROOT_TREE, ALL, (kind::ROOT, kind::ROOT_NAME), &mut |item| {
        if item.kind == kind::ROOT && (FIRST_FREE..=LAST_FREE).contains(&item.object) && trees.last() != Some(&item.object) {
            trees.push(item.object);
        }
        if item.kind == kind::ROOT_NAME {
            let length = item.number::<2>(16) as usize;
            let name = item.data.get(18..18 + length).unwrap_or_default();
            places.insert(item.object, (item.offset, item.number::<8>(0), name.to_vec()));
        }
        Ok(true)
    })?;
    let path = |tree| path_of_subvolume(file, tree, &places, 0);
    trees.into_iter().map(|tree| Ok(Subvolume { tree, path: path(tree)? })).collect()
}

/// Deeper nesting is a loop.
const DEEPEST: usize = 64;

fn path_of_subvolume(file: RawFd, tree: u64, places: &FxHashMap<u64, RootLocation>, depth: usize) -> io::Result<Vec<u8>> {
    let Some((parent, folder, name)) = places.get(&tree).filter(|_| depth < DEEPEST) else {
        return Ok(if tree == TOP_LEVEL { Vec::new() } else { format!("subvolume {tree}").into_bytes() });
    };
    let mut path = path_of_subvolume(file, *parent, places, depth + 1)?;
    if *folder != FIRST_FREE {
        let names = Names::of(file, *parent)?;
        join(
            &mut path,
            Paths::new(&names, FIRST_FREE, b"").path(*folder).and_then(|path| path.strip_prefix(b"/")).unwrap_or_default(),
        );
    }
    join(&mut path, name);
    Ok(path)
}

fn join(path: &mut Vec<u8>, name: &[u8]) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

/// The folder and the name of every inode of a subvolume; of several names the first.
#[derive(Default)]
pub(crate) struct Names {
    text: Vec<u8>,
    /// Inode, folder, and begin and end of the name in `text`; ordered by inode.
    places: Vec<(u64, u64, usize, usize)>,
}

impl Names {
    fn of(file: RawFd, tree: u64) -> io::Result<Names> {
        let mut names = Names::default();
        items(file, tree, ALL, (kind::NAME, kind::NAME), &mut |item| {
            names.add(item);
            Ok(true)
        })?;
        Ok(names)
    }

    /// Add a `struct btrfs_inode_ref`: a number, the length of the name, the name. The key's offset
    /// is the folder.
    fn add(&mut self, item: &Item<'_>) {
        if self.places.last().is_some_and(|place| place.0 == item.object) {
            return;
        }
        let length = item.number::<2>(8) as usize;
        let start = self.text.len();
        self.text.extend_from_slice(item.data.get(10..10 + length).unwrap_or_default());
        self.places.push((item.object, item.offset, start, self.text.len()));
    }

    /// Append the names of later inodes.
    fn append(&mut self, later: &Names) {
        let begin = self.text.len();
        self.text.extend_from_slice(&later.text);
        self.places.extend(later.places.iter().map(|(inode, folder, start, end)| (*inode, *folder, begin + start, begin + end)));
    }
}

impl NamesByInode for Names {
    fn name_of(&self, inode: u64) -> Option<(u64, &[u8])> {
        let place = self.places.binary_search_by_key(&inode, |place| place.0).ok()?;
        let (_, folder, start, end) = self.places[place];
        Some((folder, &self.text[start..end]))
    }
}

/// How files are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) file: RawFd,
    pub(crate) threads: usize,
    pub(crate) cancel: &'a Cancel,
    pub(crate) without_names: bool,
}

/// Files of a range of inode numbers.
#[derive(Default)]
struct Found {
    batch: Batch,
    names: Names,
    /// Why the files after them are missing.
    broken: Option<io::Error>,
}

/// Read every file of a subvolume, ordered by number. Extents have addresses of btrfs. Returns the
/// names of the files, and why some are missing: the kernel stopped answering.
pub(crate) fn files(
    reading: Reading<'_>,
    subvolume: &Subvolume,
    mut take: impl FnMut(&mut Batch) -> Result<(), TableError>,
) -> Result<(Names, Option<io::Error>), TableError> {
    /// Number of inode numbers that a thread requests at a time.
    const WIDTH: u64 = 1 << 14;
    /// Limit for the number of ranges: inode numbers may be far apart.
    const MOST: u64 = 1 << 16;
    let mut names = Names::default();
    let last = match last_object(reading.file, subvolume.tree, FIRST_FREE..=LAST_FREE) {
        Ok(Some(last)) => last,
        nothing => return Ok((names, nothing.err())),
    };
    let numbers = last - FIRST_FREE + 1;
    let width = WIDTH.max(numbers.div_ceil(MOST));
    let work = |number: u64| {
        let first = FIRST_FREE + number * width;
        if reading.cancel.requested() {
            return Found::default();
        }
        Found::read(reading, subvolume.tree, first..=(first + (width - 1)).min(last))
    };
    let outcome = in_order(numbers.div_ceil(width), reading.threads, work, |mut found: Found| {
        names.append(&found.names);
        take(&mut found.batch).map_err(Refused::Table)?;
        found.broken.map_or(Ok(()), |error| Err(Refused::Kernel(error)))
    });
    match outcome {
        Err(Refused::Table(error)) => Err(error),
        Err(Refused::Kernel(error)) => Ok((names, Some(error))),
        Ok(()) => Ok((names, None)),
    }
}

impl Subvolume {
    /// Paths of its files, for the tables.
    pub(crate) fn paths<'a>(&self, names: &'a Names, mount_point: &[u8]) -> Paths<'a, Names> {
        let mut root = mount_point.strip_suffix(b"/").unwrap_or(mount_point).to_vec();
        if !self.path.is_empty() {
            root.push(b'/');
            root.extend_from_slice(&self.path);
        }
        Paths::new(names, FIRST_FREE, &root)
    }
}

/// The number within its subvolume, for a number among all subvolumes.
pub(crate) fn within_subvolume(number: u64) -> u64 {
    number & ((1 << TREE_SHIFT) - 1)
}

pub(crate) fn inode_in(tree: u64, inode: u64) -> u64 {
    if tree == TOP_LEVEL { inode } else { inode | tree << TREE_SHIFT }
}

impl Found {
    fn read(reading: Reading<'_>, tree: u64, inodes: RangeInclusive<u64>) -> Found {
        let mut found = Found::default();
        let mut building = Building::default();
        let outcome = items(reading.file, tree, inodes, (kind::INODE, kind::EXTENT_DATA), &mut |item| {
            match item.kind {
                kind::INODE => {
                    building.finish(&mut found.batch, tree);
                    building.inode = Some(inode(item));
                }
                kind::NAME if !reading.without_names => found.names.add(item),
                kind::EXTENT_DATA => building.extents.extend(extent(item)),
                _ => {}
            }
            Ok(!reading.cancel.requested())
        });
        match outcome {
            Ok(()) => building.finish(&mut found.batch, tree),
            // The last file may have more extents.
            Err(error) => found.broken = Some(error),
        }
        found
    }
}

/// A file under construction.
#[derive(Default)]
struct Building {
    inode: Option<Inode>,
    extents: Vec<Extent>,
}

impl Building {
    fn finish(&mut self, batch: &mut Batch, tree: u64) {
        if let Some(inode) = self.inode.take() {
            batch.add(Inode { number: inode_in(tree, inode.number), ..inode }, None, &self.extents);
        }
        self.extents.clear();
    }
}

/// Parse `struct btrfs_inode_item`.
fn inode(item: &Item<'_>) -> Inode {
    let seconds = item.number::<8>(136).cast_signed();
    Inode {
        number: item.object,
        kind: Kind::of_mode(item.number::<4>(52) as u32),
        size: item.number::<8>(16),
        links: item.number::<4>(40) as u32,
        modified_ns: seconds.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(item.number::<4>(144).cast_signed())),
    }
}

/// Parse `struct btrfs_file_extent_item`; `None`: a hole.
fn extent(item: &Item<'_>) -> Option<Extent> {
    const INLINE: u64 = 0;
    const UNWRITTEN: u64 = 2;
    let (is_compressed, kind) = (item.number::<1>(16) != 0, item.number::<1>(20));
    let mut flags = if is_compressed { flag::COMPRESSED } else { 0 };
    if item.number::<1>(17) != 0 {
        flags |= flag::ENCRYPTED;
    }
    if kind == INLINE {
        return Some(Extent {
            logical: item.offset,
            length: item.number::<8>(8),
            flags: flags | flag::INLINE,
            ..Extent::default()
        });
    }
    if kind == UNWRITTEN {
        flags |= flag::UNWRITTEN;
    }
    let (address, stored) = (item.number::<8>(21), item.number::<8>(29));
    // A compressed extent is always read as a whole.
    let physical = if is_compressed { address } else { address.wrapping_add(item.number::<8>(37)) };
    let extent = Extent { logical: item.offset, physical, length: item.number::<8>(45), flags, ..Extent::default() };
    (address != 0).then_some(Extent { stored: is_compressed.then_some(stored), ..extent })
}
