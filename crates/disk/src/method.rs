//! The interface of a method of reading a file system: what it states about itself, what it works
//! with, and its outcome.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

use sysdock_table::{Cancel, Ending, Fact, Facts, Progress, Recording};

use crate::{DiskError, Target};

/// A way to read the locations of the files of a file system. [`crate::fs::METHODS`] lists all of
/// them.
pub(crate) trait Method: Sync {
    /// The value of `file_systems.method`.
    fn name(&self) -> &'static str;

    /// Whether a device or image begins with a file system that this method reads raw.
    fn begins_in(&self, _image: &File) -> bool {
        false
    }

    /// Name of the file system at the beginning of a device or image, if this method reads it only
    /// while it is mounted.
    fn mounted_only(&self, _image: &File) -> Option<&'static str> {
        None
    }

    /// Whether it may be able to read this target. It is asked to scan only such targets.
    fn takes(&self, target: &Target) -> bool;

    /// Write the tables of a scan.
    ///
    /// # Errors
    /// [`Unable::Because`], before anything is written, makes the next method try that accepts the
    /// target.
    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable>;

    /// How it numbers the files below `root`, for files that are looked up by their paths later.
    ///
    /// # Errors
    /// Those of the kernel: `root` cannot be queried.
    fn numbering(&self, root: &Path) -> io::Result<Box<dyn Numbering>> {
        Ok(Box::new(OfDevice(fs::metadata(root)?.dev())))
    }
}

/// How a scan numbers files.
pub(crate) trait Numbering {
    /// The number of a file in `inodes`. `None`: it is on another file system.
    fn inode(&self, path: &Path, status: &Metadata) -> io::Result<Option<u64>>;
}

/// Inode numbers of stat(2), for a file system whose files all have the same device.
struct OfDevice(u64);

impl Numbering for OfDevice {
    fn inode(&self, _path: &Path, status: &Metadata) -> io::Result<Option<u64>> {
        Ok((status.dev() == self.0).then_some(status.ino()))
    }
}

/// How to scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Number of threads that query; 0: one or two for each core, as the method needs.
    pub threads: usize,
    /// Whether to leave out names: folders are not read, and memory stays small for any number of
    /// files.
    pub without_names: bool,
}

impl Settings {
    /// Number of threads, or as many as the method needs.
    pub(crate) fn threads_or(self, needed: usize) -> usize {
        if self.threads == 0 { needed } else { self.threads }
    }

    /// Number of threads that query the kernel: most of them wait for it.
    pub(crate) fn query_threads(self) -> usize {
        self.threads_or(2 * cores())
    }
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Everything that a method works with.
pub(crate) struct Work<'a> {
    pub(crate) recording: &'a mut Recording,
    pub(crate) settings: Settings,
    pub(crate) cancel: &'a Cancel,
    pub(crate) report: &'a mut dyn FnMut(Progress),
    /// Why an earlier method was not able to read the target; empty: there was none.
    pub(crate) why_not: Option<Fact>,
}

/// A method that cannot be used here, or that failed.
pub(crate) enum Unable {
    Because(Fact),
    Failed(DiskError),
}

impl<E: Into<DiskError>> From<E> for Unable {
    fn from(error: E) -> Self {
        Unable::Failed(error.into())
    }
}

/// Outcome of a scan.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// The value of `file_systems.method`.
    pub method: &'static str,
    /// Why this method was used.
    pub reason: Facts,
    /// Number of files, folders, links and the like that were met, and of those that could not be
    /// read.
    pub files: u64,
    /// See `files`.
    pub unread: u64,
    /// An unreadable file, and the error.
    pub example: Option<(PathBuf, io::Error)>,
    /// How the file system was made and is used, for `environment`: names and values.
    pub facts: Vec<(String, String)>,
    /// What could not be understood: the value of `import_issues.issue`, and its detail.
    pub issues: Vec<(&'static str, Fact)>,
}

/// Why a scan ended that wrote its tables.
pub(crate) fn ending(cancel: &Cancel, is_broken: bool) -> Ending {
    match (cancel.requested(), is_broken) {
        (true, _) => Ending::Interrupted,
        (false, true) => Ending::InputError,
        (false, false) => Ending::EndOfInput,
    }
}
