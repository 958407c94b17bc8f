//! Why a file system is not read, before the path is known.

use std::{io, path::Path};

use crate::DiskError;

#[derive(Debug)]
pub(super) enum Refusal {
    NoFileSystem,
    Io(io::Error),
    /// Why, and what to do.
    Because(String, &'static str),
}

impl Refusal {
    pub(super) fn because(why: &str, hint: &'static str) -> Self {
        Refusal::Because(why.into(), hint)
    }

    /// A field of the super block, or of the journal's, that cannot be.
    pub(super) fn damaged(field: &str) -> Self {
        Refusal::Because(
            format!("its super block is damaged: {field}"),
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
