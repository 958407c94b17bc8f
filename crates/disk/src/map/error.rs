use std::{fmt, io, path::PathBuf};

/// Why a map cannot be made. The text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum MapError {
    /// A file of the recording cannot be read.
    Io(PathBuf, io::Error),
    /// A file of the recording differs from recording.json, or from what a table must be: how it
    /// differs.
    Damaged(PathBuf, String),
    /// The recording has no such table: it is not a scan of a disk.
    NoTable(PathBuf, &'static str),
    /// The recording contains nothing with this path.
    NotFound(String),
    /// There is nothing to draw: the device has no size.
    Empty(PathBuf),
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            MapError::Damaged(path, how) => write!(f, "{}: {how}", path.display()),
            MapError::NoTable(path, table) => write!(f, "{}: no table {table}", path.display()),
            MapError::NotFound(path) => write!(f, "{path}: not in this recording"),
            MapError::Empty(path) => write!(f, "{}: a file system without any size", path.display()),
        }
    }
}

impl std::error::Error for MapError {}
