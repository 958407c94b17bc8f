//! btrfs, by searching its trees through the kernel (`BTRFS_IOC_TREE_SEARCH_V2`): a mounted one is
//! never read raw.
//!
//! btrfs has addresses of its own; the chunk tree maps each to offsets on devices (`spread.rs`:
//! stripes, copies, parity). The extent tree lists what is in use, and how often; the tree of each
//! subvolume lists its files. An inode number is unique in its subvolume only: numbers of the top
//! level (5) are unchanged, others get the number of their tree in the upper 16 bits.
//!
//! Formats: include/uapi/linux/btrfs_tree.h and btrfs.h of Linux.

mod chunks;
mod devices;
mod files;
mod lookup;
mod map;
mod numbering;
mod read_state;
mod scan;
mod search;
mod spread;
mod used;

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use sysdock_table::facts::disk;

use crate::{
    Outcome, Target,
    method::{Method, Numbering, Unable, Work},
};
use chunks::{Chunk, Chunks};
use map::Facts;
use used::Used;

pub(super) struct Trees;

impl Method for Trees {
    fn name(&self) -> &'static str {
        scan::METHOD
    }

    fn mounted_only(&self, image: &File) -> Option<&'static str> {
        /// Offset of the magic in the first super block.
        const PLACE: u64 = 0x1_0000 + 0x40;
        let mut magic = [0; 8];
        (image.read_exact_at(&mut magic, PLACE).is_ok() && magic == *b"_BHRfS_M").then_some("btrfs")
    }

    fn takes(&self, target: &Target) -> bool {
        target.mounted_as_a_whole().is_some_and(|mount| mount.fs_type == "btrfs")
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        let Some(mount) = target.mounted_as_a_whole() else { return Err(Unable::Because(disk::not_mounted())) };
        scan::scan(mount, work)
    }

    fn numbering(&self, root: &Path) -> io::Result<Box<dyn Numbering>> {
        Ok(Box::new(numbering::BySubvolume::of(root)?))
    }
}
