use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use sysdock_table::{Fact, TableError};

/// What can go wrong between a file system and its tables. Text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum DiskError {
    /// The target, or the file system it lies in, cannot be read.
    Io(PathBuf, io::Error),
    /// A device or image without a file system that is known.
    NoFileSystem(PathBuf),
    /// A file system that is not read as it stands: why, and what to do.
    Refused(PathBuf, Fact, &'static str),
    /// The recording cannot be written.
    Table(TableError),
}

impl From<TableError> for DiskError {
    fn from(error: TableError) -> Self {
        DiskError::Table(error)
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            DiskError::NoFileSystem(path) => write!(f, "{}: no file system", path.display()),
            DiskError::Refused(path, why, _) => write!(f, "{}: {}", path.display(), why.code()),
            DiskError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DiskError {}

/// Who could not go on.
pub(crate) enum Refused {
    Kernel(io::Error),
    Table(TableError),
}

impl Refused {
    /// `path` is what the kernel was asked about.
    pub(crate) fn at(self, path: &Path) -> DiskError {
        match self {
            Refused::Kernel(error) => DiskError::Io(path.into(), error),
            Refused::Table(error) => error.into(),
        }
    }
}
