use std::{io, path::PathBuf};

use sysdock_table::{TableError, codes};

/// Errors between the rings and the tables.
#[derive(Debug)]
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

codes!(BpfError { Spool: "spool", Full: "full", InUse: "in-use", NotASpool: "not-a-spool", Table: "table" });

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
