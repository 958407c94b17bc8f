//! The locations of files on the device of a file system, free space, and the space that the file
//! system keeps for itself.
//!
//! [`Target`] interprets a path, [`scan`] picks a `Method` from the list in `fs` and runs it.
//! Everything about one file system is in its folder there; a method passes files (`batch`) and
//! ranges of the device to `tables`. [`measure`] measures the cost of a request, [`add_usage`] adds
//! how much the files were used, [`map`] draws a recording.
//!
//! Modules use those on lines below their own, and methods never use each other:
//!
//! ```text
//! scan, usage                                     a target, a list of used files
//! fs                                              the list of methods
//! fs/ext  fs/xfs  fs/btrfs  fs/fiemap             everything of one file system; any file system, file by file
//! fsmap, paths                                    the kernel's map of a device; paths from names
//! mounted, tables, walk                           the result of a mounted one; rows; every file below a folder
//! method, batch, cost, map                        the trait of methods; batches of files; also: measuring, drawing
//! target, fiemap, fragments                       the meaning of a path; the extents of a file; counting fragments
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
#[cfg(any(test, feature = "fuzzing"))]
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

/// The subject of a scan, as in `about` of `knowhow/tables`.
pub const ABOUT: &str = "scan";

pub use cost::{Cost, measure};
pub use error::{DiskError, Remedy, fact_of};
pub use method::{Outcome, Settings};
pub use scan::scan;
pub use target::Target;
pub use usage::{Found, add_usage};
