//! Methods that know one family of file systems: more than the kernel's common questions tell.

pub(crate) mod btrfs;
pub(crate) mod ext;
pub(crate) mod xfs;
