use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use sysdock_table::{Fact, TableError};

/// Errors between a file system and its tables. The text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum DiskError {
    /// The target, or the file system that contains it, cannot be read.
    Io(PathBuf, io::Error),
    /// A device or image without a known file system.
    NoFileSystem(PathBuf),
    /// A file system that is refused in its present state: the reason, and what to do.
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

/// The side that failed: the kernel, or the tables.
pub(crate) enum Refused {
    Kernel(io::Error),
    Table(TableError),
}

impl Refused {
    /// The error for `path`, about which the kernel was asked.
    pub(crate) fn at(self, path: &Path) -> DiskError {
        match self {
            Refused::Kernel(error) => DiskError::Io(path.into(), error),
            Refused::Table(error) => error.into(),
        }
    }
}
