use std::{fmt, io, path::PathBuf};

/// Errors while a recording is written. The text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum TableError {
    /// The output folder exists and is not empty.
    Exists(PathBuf),
    /// The folder contains no complete recording of this version, so nothing can be added to it.
    NotComplete(PathBuf),
    /// The folder belongs to this other user, who could redirect what is written to it.
    Stranger(PathBuf, u32),
    /// Users other than its owner may write to the folder.
    OthersWrite(PathBuf),
    /// A file or folder could not be created or written.
    Io(PathBuf, io::Error),
    /// The Parquet writer failed; mostly a write error in disguise (see [`TableError::io_kind`]).
    Parquet(PathBuf, parquet::errors::ParquetError),
}

impl TableError {
    /// The kind of the underlying write error, if there is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            TableError::Io(_, error) => Some(error.kind()),
            TableError::Parquet(_, parquet::errors::ParquetError::External(inner)) => {
                inner.downcast_ref::<io::Error>().map(io::Error::kind)
            }
            _ => None,
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableError::Exists(path) => write!(f, "{}: exists", path.display()),
            TableError::NotComplete(path) => write!(f, "{}: no complete recording", path.display()),
            TableError::Stranger(path, user) => write!(f, "{}: belongs to user {user}", path.display()),
            TableError::OthersWrite(path) => write!(f, "{}: others may write to it", path.display()),
            TableError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            TableError::Parquet(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for TableError {}
