//! What can go wrong so that there was no run.

use std::{ffi::OsString, io, path::PathBuf};

/// Why there was no run, or nothing is known of it.
#[derive(Debug)]
pub enum MeasureError {
    /// The command could not be executed.
    CannotRun(OsString, io::Error),
    /// A file for its output could not be made.
    Output(PathBuf, io::Error),
    /// Its folder is not there.
    Directory(PathBuf, io::Error),
    /// It may not run on these CPUs.
    Cpus(io::Error),
    /// There is not a block device of this name.
    NoSuchDevice(String),
    /// It does not end, even when it is killed.
    DoesNotEnd(u32),
    /// A system call of ours failed: what was tried.
    System(&'static str, io::Error),
}
