use std::{
    io,
    path::{Path, PathBuf},
};

use sysdock_table::{Fact, TableError, codes, facts::disk};

/// Errors between a file system and its tables.
#[derive(Debug)]
pub enum DiskError {
    /// The target, or the file system that contains it, cannot be read.
    Io(PathBuf, io::Error),
    /// No mount contains the target.
    NoMount(PathBuf),
    /// The target is neither a folder, a file nor a block device.
    NoTarget(PathBuf),
    /// A device or image without a known file system.
    NoFileSystem(PathBuf),
    /// A file system that is refused in its present state: the reason, and what to do.
    Refused(PathBuf, Fact, Remedy),
    /// The file is no list of used files.
    NoUsageList(PathBuf),
    /// The recording cannot be written.
    Table(TableError),
}

/// A fact as the cause of an [`io::Error`], where it occurs among calls that can fail.
#[derive(Debug)]
struct Stated(Fact);

impl std::fmt::Display for Stated {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.0.code())
    }
}

impl std::error::Error for Stated {}

/// An error because of what a fact says.
pub(crate) fn stating(fact: Fact) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, Stated(fact))
}

/// The fact of an error: its cause, or the operating system's text.
pub fn fact_of(error: &io::Error) -> Fact {
    match error.get_ref().and_then(|cause| cause.downcast_ref()) {
        Some(Stated(fact)) => fact.clone(),
        None => disk::error(error.to_string()),
    }
}

/// What to do about a file system that is refused.
#[derive(Clone, Copy, Debug)]
pub enum Remedy {
    /// Mount it, and scan the mount point.
    Mount,
    /// Mount the image, and scan the mount point.
    MountImage,
    /// Mount it once, which applies its journal, or run e2fsck on a copy.
    ApplyJournal,
    /// Look at its super block, and at the backups.
    CheckSuperBlock,
    CopyAgain,
    /// Copy the image again, in its full length.
    CopyInFull,
    /// Scan the mount point or the loop device of a mounted image.
    ScanMounted,
    /// Scan the device whose journal this is.
    ScanOwner,
}

codes!(DiskError {
    Io: "io",
    NoMount: "no-mount",
    NoTarget: "no-target",
    NoFileSystem: "no-file-system",
    Refused: "refused",
    NoUsageList: "no-usage-list",
    Table: "table",
});

impl From<TableError> for DiskError {
    fn from(error: TableError) -> Self {
        DiskError::Table(error)
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_survives_in_an_error_of_the_operating_system() {
        let fact = disk::out_of_order(5, 257, 4096);
        assert_eq!(fact_of(&stating(fact.clone())), fact);
        assert_eq!(fact_of(&io::Error::from(io::ErrorKind::NotFound)), disk::error("entity not found"));
    }
}
