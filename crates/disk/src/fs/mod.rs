//! All methods, each in a folder of its own.

use crate::method::Method;

mod btrfs;
mod ext;
mod fiemap;
#[cfg(test)]
mod made_up;
mod xfs;

/// Ordered by how well they know a file system. Each one that accepts a target is tried until one
/// can read it.
pub(crate) static METHODS: [&dyn Method; 4] = [&ext::Raw, &xfs::ReverseMap, &btrfs::Trees, &fiemap::FileByFile];
