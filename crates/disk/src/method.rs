//! What a method of reading a file system has to say of itself, what it works with, and what a scan by it comes to.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

use sysdock_table::{Cancel, Ending, Fact, Facts, Progress, Recording};

use crate::{DiskError, Target};

/// A way to read where the files of a file system lie. [`crate::fs::METHODS`] lists all of them.
pub(crate) trait Method: Sync {
    /// The value of `file_systems.method`.
    fn name(&self) -> &'static str;

    /// Whether a file system that this reads raw begins in a device or image.
    fn begins_in(&self, _image: &File) -> bool {
        false
    }

    /// What begins in a device or image, where this reads it only while it is mounted.
    fn mounted_only(&self, _image: &File) -> Option<&'static str> {
        None
    }

    /// Whether it may be able to read this target; only then it is asked to scan it.
    fn takes(&self, target: &Target) -> bool;

    /// Write the tables of a scan.
    ///
    /// # Errors
    /// [`Unable::Because`], before anything is written, hands the target on to the next method that takes it.
    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable>;

    /// How it numbers the files below `root`, for those that are looked up by their paths later.
    ///
    /// # Errors
    /// What the kernel says: `root` cannot be asked about.
    fn numbering(&self, root: &Path) -> io::Result<Box<dyn Numbering>> {
        Ok(Box::new(OfDevice(fs::metadata(root)?.dev())))
    }
}

/// How a scan numbers files.
pub(crate) trait Numbering {
    /// The number of a file in `inodes`. `None`: it lies on another file system.
    fn inode(&self, path: &Path, status: &Metadata) -> io::Result<Option<u64>>;
}

/// As stat(2) does, of which all files of the file system have the same device.
struct OfDevice(u64);

impl Numbering for OfDevice {
    fn inode(&self, _path: &Path, status: &Metadata) -> io::Result<Option<u64>> {
        Ok((status.dev() == self.0).then_some(status.ino()))
    }
}

/// How to scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Threads that ask; 0: one or two for each core, as the method needs.
    pub threads: usize,
    /// Leave out what files are called: folders are not read, and whatever the number of files, the memory stays small.
    pub without_names: bool,
}

impl Settings {
    /// Threads, or as many as the method needs.
    pub(crate) fn threads_or(self, needed: usize) -> usize {
        if self.threads == 0 { needed } else { self.threads }
    }

    /// Threads that ask the kernel: most of them wait for it.
    pub(crate) fn query_threads(self) -> usize {
        self.threads_or(2 * cores())
    }
}

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What every method works with.
pub(crate) struct Work<'a> {
    pub(crate) recording: &'a mut Recording,
    pub(crate) settings: Settings,
    pub(crate) cancel: &'a Cancel,
    pub(crate) report: &'a mut dyn FnMut(Progress),
    /// Why a method before this one was not able to read the target; empty: there was none.
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

/// What a scan came to.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// The value of `file_systems.method`.
    pub method: &'static str,
    /// Why by this one.
    pub reason: Facts,
    /// Files, folders, links and the like that were met, and those of them that could not be read.
    pub files: u64,
    /// See `files`.
    pub unread: u64,
    /// One of them, and why.
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
