//! Why a file system is not read. The path is added later.

use std::{io, path::Path};

use sysdock_table::{Fact, facts::disk as facts};

use crate::DiskError;

#[derive(Debug)]
pub(super) enum Refusal {
    NoFileSystem,
    Io(io::Error),
    /// The reason, and what to do.
    Because(Fact, &'static str),
}

impl Refusal {
    /// A field of the super block, or of the journal's, is impossible.
    pub(super) fn damaged(field: &str) -> Self {
        Refusal::Because(
            facts::damaged_super_block(field),
            "e2fsck -n shows more; dumpe2fs and mke2fs -n list backup superblocks",
        )
    }

    pub(super) fn at(self, path: &Path) -> DiskError {
        match self {
            Refusal::NoFileSystem => DiskError::NoFileSystem(path.into()),
            Refusal::Io(error) => DiskError::Io(path.into(), error),
            Refusal::Because(why, hint) => DiskError::Refused(path.into(), why, hint),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Io(error)
    }
}
