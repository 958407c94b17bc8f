//! Where the files of a file system lie on its device, what is free, and what the file system keeps for itself.
//!
//! [`Target`] says what a path means, [`scan`] picks a `Method` from the list in `fs` and runs it. Everything of one file system
//! lies in its folder there; a method hands files (`batch`) and pieces of the device to `tables`. [`measure`] says what a request
//! costs the device, [`add_usage`] how much its files were used, [`map`] draws what was recorded.
//!
//! Modules use those of lines below their own, and methods never each other:
//!
//! ```text
//! scan, usage                                     a target, a list of used files
//! fs                                              the list of methods
//! fs/ext  fs/xfs  fs/btrfs  fs/fiemap             everything of one file system; any file system, file by file
//! fsmap, paths                                    the kernel's map of a device; paths from names
//! mounted, tables, walk                           what is stated of a mounted one; rows; every file below a folder
//! method, batch, cost, map                        what a method is; files on their way; in addition: measuring, drawing
//! target, fiemap, fragments                       what a path means; the extents of a file; counting its pieces
//! error, extent, ioctl, parallel, paths_by_inode, small_tables, statvfs
//! ```

mod batch;
mod cost;
mod error;
mod extent;
mod fiemap;
mod fragments;
mod fs;
mod fsmap;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod ioctl;
pub mod map;
mod method;
mod mounted;
mod parallel;
mod paths;
mod paths_by_inode;
mod scan;
mod small_tables;
mod statvfs;
mod tables;
mod target;
mod usage;
mod walk;

/// What a scan is about, as `knowhow/tables` has it.
pub const ABOUT: &str = "scan";

pub use cost::{Cost, measure};
pub use error::DiskError;
pub use method::{Outcome, Settings};
pub use scan::scan;
pub use target::Target;
pub use usage::{Found, add_usage};
