//! btrfs, by searching its trees through the kernel (`BTRFS_IOC_TREE_SEARCH_V2`): a mounted one is never read raw.
//!
//! btrfs has addresses of its own; the chunk tree says where on which device each lies (`spread.rs`: stripes, copies, parity). The extent tree has what is in use, and how often; the
//! tree of each subvolume has its files. An inode number is unique in its subvolume only: those of the top level (5) keep theirs, others get
//! the number of their tree in the upper 16 bits.
//!
//! Formats: include/uapi/linux/btrfs_tree.h and btrfs.h of Linux.

mod chunks;
mod devices;
mod files;
mod lookup;
mod map;
mod search;
mod spread;
mod used;

pub(crate) use chunks::{Chunk, Chunks};
pub(crate) use devices::devices;
pub(crate) use files::{Reading, Subvolume, files, inode_in, subvolumes, within_subvolume};
pub(crate) use lookup::tree_of;
pub(crate) use map::{Facts, Map, facts};
pub(crate) use used::{Used, used};
