//! What can go wrong before anything is measured, or so that nothing can be.

use std::{io, path::PathBuf};

use sysdock_table::TableError;

/// Why no load was made. What goes wrong while one is measured is a status of its row.
#[derive(Debug)]
pub enum LoadError {
    /// A system call on this path failed.
    Io(PathBuf, io::Error),
    /// The path is no directory.
    NotADirectory(PathBuf),
    /// What was requested makes no sense, as text.
    Step(String),
    /// The same of a load on a web server.
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
