//! Errors that prevent a run.

use std::{ffi::OsString, io, path::PathBuf};

/// Why there was no run, or nothing is known about it.
#[derive(Debug)]
pub enum MeasureError {
    /// The command could not be executed.
    CannotRun(OsString, io::Error),
    /// A file for its output could not be created.
    Output(PathBuf, io::Error),
    /// Its working directory does not exist.
    Directory(PathBuf, io::Error),
    /// It may not run on these CPUs.
    Cpus(io::Error),
    /// There is no block device of this name.
    NoSuchDevice(String),
    /// It does not end, even after it was killed.
    DoesNotEnd(u32),
    /// A system call of ours failed: what was attempted.
    System(&'static str, io::Error),
}
