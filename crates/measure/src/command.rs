//! What is to be run, and how.

use std::{ffi::OsString, path::PathBuf, time::Duration};

/// A command, what it gets, and what is watched meanwhile.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program, looked up in PATH if it has no `/`, and its arguments.
    pub words: Vec<OsString>,
    /// Where its standard output goes. `None`: to /dev/null.
    pub output: Option<PathBuf>,
    /// Where its standard error goes. `None`: to /dev/null.
    pub errors: Option<PathBuf>,
    /// The folder it starts in. `None`: ours.
    pub directory: Option<PathBuf>,
    /// Variables that it has in addition to ours.
    pub environment: Vec<(OsString, OsString)>,
    /// CPUs that it may use. `None`: those that we may use.
    pub cpus: Option<Vec<usize>>,
    /// After this time all of it is ended.
    pub timeout: Option<Duration>,
    /// Processes that outlive the command go on, instead of being killed.
    pub keep_left_over: bool,
    /// Block devices to count: names as in /sys/class/block, or paths.
    pub devices: Vec<String>,
}
