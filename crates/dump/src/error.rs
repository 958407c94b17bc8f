use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use sysdock_table::TableError;

/// Why a dump cannot be read at all. The text for people is formed in `native`.
#[derive(Debug)]
#[non_exhaustive]
pub enum DumpError {
    /// The file cannot be read.
    Io(PathBuf, io::Error),
    /// The file contains no memory of a kernel: what it is instead.
    NoDump(PathBuf, String),
    /// The file begins like a dump, but its headers contradict each other or the file.
    Damaged(PathBuf, String),
    /// A dump of an unsupported machine or kernel, and the reason.
    NotReadable(PathBuf, String),
    /// Debug information of another build than the kernel's: the file, its build, and that of the
    /// dump.
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

/// Why an address of the kernel cannot be read. A fault never ends a walk: it becomes the status of
/// a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No page table maps it.
    NotMapped,
    /// The page was left out of the dump, or there is no memory at this address.
    NotInDump,
    /// The page is in the dump, but cannot be decompressed.
    Damaged,
    /// A list returned to an earlier entry.
    Cycle,
    /// A list is longer than any plausible one.
    TooLong,
    /// This kernel does not have the type or member, or not under this name.
    NoType,
    /// The page contains data of users, which were not requested.
    OfUser,
    /// Reading was cancelled.
    Interrupted,
}

impl Fault {
    /// The value of columns `status`.
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

/// Makes errors of a file.
pub(crate) fn io_error(path: &Path) -> impl Fn(io::Error) -> DumpError {
    move |error| DumpError::Io(path.into(), error)
}
