//! Why a file system is not read. The path is added later.

use std::{io, path::Path};

use sysdock_table::{Fact, facts::disk as facts};

use crate::error::{DiskError, Remedy};

#[derive(Debug)]
pub(super) enum Refusal {
    NoFileSystem,
    Io(io::Error),
    /// The reason, and what to do.
    Because(Fact, Remedy),
}

impl Refusal {
    /// A field of the super block, or of the journal's, is impossible.
    pub(super) fn damaged(field: Fact) -> Self {
        Refusal::Because(facts::damaged_super_block(field), Remedy::CheckSuperBlock)
    }

    pub(super) fn at(self, path: &Path) -> DiskError {
        match self {
            Refusal::NoFileSystem => DiskError::NoFileSystem(path.into()),
            Refusal::Io(error) => DiskError::Io(path.into(), error),
            Refusal::Because(why, remedy) => DiskError::Refused(path.into(), why, remedy),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Refusal::Io(error)
    }
}
