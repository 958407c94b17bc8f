//! Errors that prevent a measurement.

use std::{io, path::PathBuf};

use sysdock_table::{TableError, codes};

use crate::step::{Item, Operation};

/// Why no load was made. A failure during a measurement is a status of its row.
#[derive(Debug)]
pub enum LoadError {
    /// A system call on this path failed.
    Io(PathBuf, io::Error),
    /// The path is no directory.
    NotADirectory(PathBuf),
    /// The requested step is invalid.
    Step(WrongStep),
    /// The requested load on a web server is invalid.
    Request(WrongRequest),
    /// A request cannot be sent to this address.
    Address(String, WrongAddress),
    /// A system call of the client of a web server failed.
    Http(io::Error),
    /// The recording could not be written.
    Table(TableError),
}

/// What is wrong with a step.
#[derive(Clone, Copy, Debug)]
pub enum WrongStep {
    Operation(Item, Operation),
    Processes {
        wanted: u32,
        most: u32,
    },
    /// Size of a request [B].
    Length(u64),
    /// Size of a direct request that is no multiple of a sector [B].
    DirectLength(u64),
    Depth(u32),
    WriteShare(f64),
    /// No time, no bytes or no files.
    Empty,
    /// The item ends only after a time.
    NoTime(Item),
}

/// What is wrong with a load on a web server.
#[derive(Clone, Copy, Debug)]
pub enum WrongRequest {
    /// Number of the line, from 1 on, that is no request.
    Line(usize),
    Rate,
    /// Fewer connections than threads, or no threads.
    Connections,
    /// A time of 0.
    Time,
    /// There is no request.
    Empty,
    /// The process may open this many files only.
    OpenFiles(u64),
}

/// What is wrong with an address.
#[derive(Debug)]
pub enum WrongAddress {
    /// The server of a file of requests has a path itself.
    ServerWithPath,
    /// Another scheme than http.
    Scheme,
    Blanks,
    Form,
    /// The name cannot be looked up.
    Lookup(io::Error),
    /// The name has no address.
    NoAddress,
}

codes!(LoadError {
    Io: "io",
    NotADirectory: "not-a-directory",
    Step: "step",
    Request: "request",
    Address: "address",
    Http: "http",
    Table: "table",
});

impl From<TableError> for LoadError {
    fn from(error: TableError) -> Self {
        LoadError::Table(error)
    }
}
