use std::{
    io,
    path::{Path, PathBuf},
};

use sysdock_table::{Fact, TableError, codes};

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
