//! File systems that tell more than the kernel's common questions do: one file for each.

pub(crate) mod btrfs;
pub(crate) mod xfs;
