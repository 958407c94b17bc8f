//! Numbers of files that are looked up by their paths. Subvolumes are devices of their own, and use
//! the same inode numbers.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{MetadataExt, OpenOptionsExt},
    },
    path::Path,
};

use super::{files::inode_in, lookup::tree_of, map::facts};
use crate::method::Numbering;

/// For the btrfs with this UUID.
pub(super) struct BySubvolume([u8; 16]);

impl BySubvolume {
    /// For the btrfs that contains a folder.
    pub(super) fn of(root: &Path) -> io::Result<Self> {
        Ok(BySubvolume(facts(File::open(root)?.as_raw_fd())?.uuid))
    }
}

impl Numbering for BySubvolume {
    fn inode(&self, path: &Path, status: &Metadata) -> io::Result<Option<u64>> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        // Other mounted file systems do not support the query.
        let is_home = facts(file.as_raw_fd()).is_ok_and(|facts| facts.uuid == self.0);
        if !is_home {
            return Ok(None);
        }
        Ok(Some(inode_in(tree_of(file.as_raw_fd())?, status.ino())))
    }
}
