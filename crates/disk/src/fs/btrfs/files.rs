//! Files of one subvolume after another: inodes, names and extents, as its tree has them.

use std::{io, os::fd::RawFd};

use rustc_hash::FxHashMap;

use super::search::{Item, ROOT_TREE, TOP_LEVEL, items, kind};
use crate::batch::{Batch, Extent, Inode, Kind, flag};

/// The first number that a file, or a subvolume, can have.
const FIRST_FREE: u64 = 256;
/// Trees with higher numbers are of btrfs itself.
const LAST_FREE: u64 = u64::MAX - 255;
const TREE_SHIFT: u32 = 48;

/// A tree of files.
#[derive(Clone, Debug)]
pub(crate) struct Subvolume {
    tree: u64,
    /// Its path from the top level, without a slash in front: empty for the top level itself.
    path: Vec<u8>,
}

impl Subvolume {
    /// The path of its top folder.
    fn root(&self, prefix: &[u8]) -> Vec<u8> {
        let mut root = prefix.to_vec();
        if !self.path.is_empty() {
            root.push(b'/');
            root.extend_from_slice(&self.path);
        }
        root
    }
}

/// Where a subvolume has its name: in which tree, in which folder of that, and which.
type Place = (u64, u64, Vec<u8>);

/// All subvolumes and snapshots. The path of one whose name is not found is its number.
pub(crate) fn subvolumes(file: RawFd) -> io::Result<Vec<Subvolume>> {
    let (mut trees, mut places) = (vec![TOP_LEVEL], FxHashMap::<u64, Place>::default());
    items(file, ROOT_TREE, (kind::ROOT, kind::ROOT_NAME), &mut |item| {
        if item.kind == kind::ROOT && (FIRST_FREE..LAST_FREE).contains(&item.object) && trees.last() != Some(&item.object) {
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

/// Nested deeper than this, it is a loop.
const DEEPEST: usize = 64;

fn path_of_subvolume(file: RawFd, tree: u64, places: &FxHashMap<u64, Place>, depth: usize) -> io::Result<Vec<u8>> {
    let Some((parent, folder, name)) = places.get(&tree).filter(|_| depth < DEEPEST) else {
        return Ok(if tree == TOP_LEVEL { Vec::new() } else { format!("subvolume {tree}").into_bytes() });
    };
    let mut path = path_of_subvolume(file, *parent, places, depth + 1)?;
    if *folder != FIRST_FREE {
        let names = Names::of(file, *parent)?;
        join(&mut path, &names.path(*folder));
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
struct Names {
    bytes: Vec<u8>,
    of_inode: FxHashMap<u64, (u64, usize, usize)>,
}

impl Names {
    fn of(file: RawFd, tree: u64) -> io::Result<Names> {
        let mut names = Names::default();
        items(file, tree, (kind::NAME, kind::NAME), &mut |item| {
            names.add(item);
            Ok(true)
        })?;
        Ok(names)
    }

    /// `struct btrfs_inode_ref`: a number, the length of the name, the name; the key's offset is the folder.
    fn add(&mut self, item: &Item<'_>) {
        let length = item.number::<2>(8) as usize;
        let name = item.data.get(10..10 + length).unwrap_or_default();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.of_inode.entry(item.object).or_insert((item.offset, start, self.bytes.len()));
    }

    /// The path from the root of the subvolume, without a slash in front.
    fn path(&self, inode: u64) -> Vec<u8> {
        let (mut parts, mut at) = (Vec::new(), inode);
        while at != FIRST_FREE && parts.len() < 4096 {
            let Some((folder, start, end)) = self.of_inode.get(&at) else { break };
            parts.push(&self.bytes[*start..*end]);
            at = *folder;
        }
        parts.reverse();
        parts.join(&b'/')
    }
}

/// Paths of the files of a subvolume.
struct Paths {
    root: Vec<u8>,
    names: Names,
}

impl Paths {
    fn of(&self, inode: u64) -> Vec<u8> {
        let mut path = self.root.clone();
        if inode != FIRST_FREE {
            path.push(b'/');
            path.extend_from_slice(&self.names.path(inode));
        }
        path
    }
}

/// A file under construction.
#[derive(Default)]
struct Building {
    inode: Option<Inode>,
    extents: Vec<Extent>,
}

/// Every file of a subvolume, until `full` says that it is enough; its path begins with `prefix`, or it has none. Extents have the addresses of
/// btrfs.
pub(crate) fn files(
    file: RawFd,
    subvolume: &Subvolume,
    prefix: Option<&[u8]>,
    full: &mut dyn FnMut(&mut Batch) -> io::Result<bool>,
) -> io::Result<()> {
    let paths = match prefix {
        Some(prefix) => Some(Paths { root: subvolume.root(prefix), names: Names::of(file, subvolume.tree)? }),
        None => None,
    };
    let (mut batch, mut building) = (Batch::default(), Building::default());
    let mut goes_on = true;
    items(file, subvolume.tree, (kind::INODE, kind::EXTENT_DATA), &mut |item| {
        if item.kind == kind::INODE {
            building.finish(&mut batch, subvolume.tree, paths.as_ref());
            if batch.is_full() {
                goes_on = full(&mut std::mem::take(&mut batch))?;
            }
            building.inode = (FIRST_FREE..LAST_FREE).contains(&item.object).then(|| inode(item));
        } else if item.kind == kind::EXTENT_DATA {
            building.extents.extend(extent(item));
        }
        Ok(goes_on)
    })?;
    if goes_on {
        building.finish(&mut batch, subvolume.tree, paths.as_ref());
        full(&mut batch)?;
    }
    Ok(())
}

impl Building {
    fn finish(&mut self, batch: &mut Batch, tree: u64, paths: Option<&Paths>) {
        if let Some(mut inode) = self.inode.take() {
            let path = paths.map(|paths| paths.of(inode.number));
            if tree != TOP_LEVEL {
                inode.number |= tree << TREE_SHIFT;
            }
            batch.add(inode, path.as_deref(), &self.extents);
        }
        self.extents.clear();
    }
}

/// `struct btrfs_inode_item`.
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

/// `struct btrfs_file_extent_item`; `None`: a hole.
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
    // A compressed extent is read as a whole, whatever part of it is wanted.
    let physical = if is_compressed { address } else { address.wrapping_add(item.number::<8>(37)) };
    let extent = Extent { logical: item.offset, physical, length: item.number::<8>(45), flags, ..Extent::default() };
    (address != 0).then_some(Extent { stored: is_compressed.then_some(stored), ..extent })
}
