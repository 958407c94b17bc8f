use std::{fmt, io, path::PathBuf};

use sysdock_table::TableError;

/// Errors between the rings and the tables. The text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum BpfError {
    /// The spool cannot be created, read or written.
    Spool(PathBuf, io::Error),
    /// The disk, or the user's quota, is full. The spool so far is whole, but nothing more fits.
    Full(PathBuf),
    /// A recorder is still writing this spool.
    InUse(PathBuf),
    /// The file is no spool, or nothing of it can be read.
    NotASpool(PathBuf),
    /// The recording cannot be written.
    Table(TableError),
}

impl BpfError {
    /// An error of the spool at `path`. A full disk has a variant of its own.
    #[must_use]
    pub fn spool(path: impl Into<PathBuf>, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                BpfError::Full(path.into())
            }
            _ => BpfError::Spool(path.into(), error),
        }
    }
}

impl From<TableError> for BpfError {
    fn from(error: TableError) -> Self {
        BpfError::Table(error)
    }
}

impl fmt::Display for BpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BpfError::Spool(path, error) => write!(f, "{}: {error}", path.display()),
            BpfError::Full(path) => write!(f, "{}: no space left", path.display()),
            BpfError::InUse(path) => write!(f, "{}: recording in progress", path.display()),
            BpfError::NotASpool(path) => write!(f, "{}: no recorded events", path.display()),
            BpfError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BpfError {}
