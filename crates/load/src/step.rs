//! What is to be measured: one item with one setting.

use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// Write files from their beginning to their end, and read them.
    Transfer,
    /// The same with a fixed number of bytes for all processes together, whatever the length of a request.
    Volume,
    /// Make, find, list and remove files and directories.
    Metadata,
    /// Append to a file and make each record last, as the log of a database.
    Log,
    /// Read at random offsets.
    RandomRead,
    /// Read and write at random offsets beside a log.
    RandomMix,
    /// Read and write through a mapping.
    Mmap,
    /// Read at random offsets with many requests under way (`io_uring`).
    Depth,
    /// Compute, and touch no file: how fast the machine itself is.
    Control,
}

/// What the workers do, in the order in which it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Operation {
    Mkdir,
    Create,
    Write,
    Append,
    Open,
    Stat,
    /// With dentries that were dropped before.
    StatCold,
    Readdir,
    Rename,
    Read,
    Remove,
    Rmdir,
    Compute,
}

/// What processes share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A file, or a directory, for each.
    #[default]
    Own,
    /// One for all.
    Shared,
}

/// How writes reach the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sync {
    /// When the kernel likes.
    None,
    /// fsync once, after the last write, within the time that is measured.
    #[default]
    End,
    /// fdatasync after each write.
    Fdatasync,
    /// fsync after each write.
    Fsync,
    /// The file is opened with `O_DSYNC`.
    Dsync,
}

/// One item with one setting. In a plan (JSON) what is left out has the value that is said here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What is measured.
    pub item: Item,
    /// Of its operations, those that are wanted; none: all that it has.
    #[serde(default)]
    pub operations: Vec<Operation>,
    /// Bytes of a request.
    #[serde(default = "four_kib")]
    pub length_bytes: u64,
    /// Workers at a time.
    #[serde(default = "one")]
    pub processes: u32,
    /// Requests that each worker keeps under way (depth).
    #[serde(default = "one")]
    pub depth: u32,
    /// Open files with `O_DIRECT`.
    #[serde(default)]
    pub direct: bool,
    /// A file (directory) for each, or one for all.
    #[serde(default)]
    pub layout: Layout,
    /// How writes reach the device; of a log `fdatasync` is usual.
    #[serde(default)]
    pub sync: Sync,
    /// Bytes of all files of the step together; NULL: what the time allows, up to 256 MiB.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Each operation ends after this time [ns], however far it came; NULL: when all is done.
    #[serde(default)]
    pub time_ns: Option<u64>,
    /// Files of each worker (metadata).
    #[serde(default = "thousand")]
    pub files: u32,
    /// Part of the requests that write (`random_mix`).
    #[serde(default = "third")]
    pub write_share: f64,
    /// Read everything back and compare each block with what was written.
    #[serde(default)]
    pub verify: bool,
}

fn four_kib() -> u64 {
    4096
}

fn one() -> u32 {
    1
}

fn thousand() -> u32 {
    1000
}

fn third() -> f64 {
    0.3
}
