//! Errors that prevent a run.

use std::{ffi::OsString, io, path::PathBuf, process::ExitStatus};

use sysdock_table::codes;

/// Why there was no run, or nothing is known about it.
#[derive(Debug)]
pub enum MeasureError {
    /// The command could not be executed.
    CannotRun(OsString, io::Error),
    /// Its process ended before it could execute the command.
    EndedBefore(OsString, ExitStatus),
    /// A file for its output could not be created.
    Output(PathBuf, io::Error),
    /// Its working directory does not exist.
    Directory(PathBuf, io::Error),
    /// It may not run on these CPUs.
    Cpus(io::Error),
    /// It cannot be run as another user.
    User(io::Error),
    /// There is no block device of this name.
    NoSuchDevice(String),
    /// It does not end, even after it was killed.
    DoesNotEnd(u32),
    /// A system call of ours failed.
    System(Attempt, io::Error),
}

codes!(MeasureError {
    CannotRun: "cannot-run",
    EndedBefore: "ended-before",
    Output: "output",
    Directory: "directory",
    Cpus: "cpus",
    User: "user",
    NoSuchDevice: "no-such-device",
    DoesNotEnd: "does-not-end",
    System: "system",
});

/// What a system call was made for.
#[derive(Clone, Copy, Debug)]
pub enum Attempt {
    BlockSignals,
    AdoptOrphans,
    MakeProcess,
    GetMemory,
}
