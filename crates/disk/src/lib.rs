//! Where the files of a file system lie on its device, what is free, and what the file system keeps for itself.
//!
//! [`Target`] says what a path means, [`scan`] picks a method and fills the tables. Each method gives [`Batch`]es of files to the
//! [`Tables`]: `walk` asks the kernel file by file (FIEMAP), `fsmap` asks it for the map of a mounted file system (GETFSMAP), those in `fs`
//! know one family of file systems. [`measure`] says what a request costs the device, [`add_usage`] how much its
//! files were used.

mod batch;
mod cost;
mod error;
mod fiemap;
mod fragments;
mod fs;
mod fsmap;
mod ioctl;
mod kernel_maps;
pub mod map;
mod mounts;
mod names;
mod ordered;
mod paths;
mod scan;
mod stated;
mod tables;
mod target;
mod usage;
mod walk;

/// What a scan is about, as `knowhow/tables` has it.
pub const ABOUT: &str = "scan";

pub use cost::{Cost, measure};
pub use error::DiskError;
pub use scan::{Outcome, Settings, scan};
pub use target::Target;
pub use usage::{Found, add_usage};
