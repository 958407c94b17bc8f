//! The command to run, and its environment.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use sysdock_table::User;

/// A command, its environment, and what is measured besides.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program, looked up in PATH if it has no `/`, and its arguments.
    pub words: Vec<OsString>,
    /// File for its standard output. `None`: /dev/null.
    pub output: Option<PathBuf>,
    /// File for its standard error. `None`: /dev/null.
    pub errors: Option<PathBuf>,
    /// Working directory. `None`: ours.
    pub directory: Option<PathBuf>,
    /// Environment variables, in addition to ours.
    pub environment: Vec<(OsString, OsString)>,
    /// User whose rights it has. `None`: ours.
    pub user: Option<User>,
    /// CPUs that it may use. `None`: those that we may use.
    pub cpus: Option<Vec<usize>>,
    /// Time after which the whole run is ended.
    pub timeout: Option<Duration>,
    /// Whether processes that outlive the command continue, instead of being killed.
    pub keep_left_over: bool,
    /// Block devices to count: names as in /sys/class/block, or paths.
    pub devices: Vec<String>,
}
