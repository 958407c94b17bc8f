//! Errors that prevent a measurement.

use std::{io, path::PathBuf};

use sysdock_table::TableError;

/// Why no load was made. A failure during a measurement is a status of its row.
#[derive(Debug)]
pub enum LoadError {
    /// A system call on this path failed.
    Io(PathBuf, io::Error),
    /// The path is no directory.
    NotADirectory(PathBuf),
    /// The requested step is invalid: why, as text.
    Step(String),
    /// The requested load on a web server is invalid: why, as text.
    Address(String),
    /// A system call of the client of a web server failed.
    Http(io::Error),
    /// The recording could not be written.
    Table(TableError),
}

impl From<TableError> for LoadError {
    fn from(error: TableError) -> Self {
        LoadError::Table(error)
    }
}
