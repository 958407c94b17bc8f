use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use sysdock_table::TableError;

/// Why a dump cannot be read at all. Text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// The file holds no memory of a kernel: what it is instead.
    NoDump(PathBuf, String),
    /// The file begins like a dump, but its headers contradict each other or the file.
    Damaged(PathBuf, String),
    /// A dump of a machine or a kernel that is not read: why.
    NotReadable(PathBuf, String),
    /// Debug information of another build than the kernel's: the file, its build, and that of the dump.
    OtherBuild(PathBuf, String, String),
    /// The recording cannot be written.
    Table(TableError),
}

impl From<TableError> for DumpError {
    fn from(error: TableError) -> Self {
        DumpError::Table(error)
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            DumpError::NoDump(path, what) | DumpError::Damaged(path, what) | DumpError::NotReadable(path, what) => {
                write!(f, "{}: {what}", path.display())
            }
            DumpError::OtherBuild(path, found, wanted) => {
                write!(f, "{}: debug information of build {found}, but the dump is of build {wanted}", path.display())
            }
            DumpError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for DumpError {}

/// Why an address of the kernel cannot be read. One never ends a walk: it becomes the status of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No page table leads to it.
    NotMapped,
    /// The page was left out of the dump, or lies where no memory is.
    NotInDump,
    /// The page is in the dump, and cannot be decompressed.
    Damaged,
    /// A list came back to where it had been.
    Cycle,
    /// A list went on for longer than any that makes sense.
    TooLong,
    /// A type or a member that this kernel does not have, or not under this name.
    NoType,
    /// The page holds data of users, which were not requested.
    OfUser,
    /// It was to be read after an end had been requested.
    Interrupted,
}

impl Fault {
    /// The word of the columns `status`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::NotMapped => "not mapped",
            Fault::NotInDump => "not in the dump",
            Fault::Damaged => "damaged page",
            Fault::Cycle => "cycle",
            Fault::TooLong => "too long",
            Fault::NoType => "unknown layout",
            Fault::OfUser => "user memory",
            Fault::Interrupted => "interrupted",
        }
    }
}

/// Errors of a file.
pub(crate) fn io_error(path: &Path) -> impl Fn(io::Error) -> DumpError {
    move |error| DumpError::Io(path.into(), error)
}
