//! All methods, each in a folder of its own.

use crate::method::Method;

mod btrfs;
mod ext;
mod fiemap;
#[cfg(test)]
mod made_up;
mod xfs;

/// Those that know a file system best come first; each that takes a target is tried until one is able to read it.
pub(crate) static METHODS: [&dyn Method; 4] = [&ext::Raw, &xfs::ReverseMap, &btrfs::Trees, &fiemap::FileByFile];
