//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "sysdock-native", version, about = "Record programs and import their traces (the native half of sysdock)")]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Turn logs of strace or truss into a recording.
    #[command(after_help = "Example:\n  strace -f -ttt -T -y -o run.strace make\n  sysdock-native import run.strace -o rec")]
    Import(Import),
    /// Run a command under strace and record it.
    #[command(after_help = "Example:\n  sysdock-native record -o rec -- tar cf /dev/null /usr/share/doc")]
    Record(Record),
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Logs: files (plain, .gz, .zst), a set that strace -ff wrote, or - for standard input.
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Folder to make.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Date of the first line, for logs that hold times of day only [YYYY-MM-DD]. Default: from the log's modification time.
    #[arg(long)]
    pub(crate) date: Option<String>,
    /// Seconds to add to the times of a log: by its name, or by a folder or a dotted part of its path, such as a host name.
    #[arg(long, value_name = "HOST=SECONDS")]
    pub(crate) offset: Vec<String>,
    /// Estimate how far the clocks of the logs are apart, from files that they share, and put them on the clock of the first one.
    /// The logs are read twice.
    #[arg(long)]
    pub(crate) align: bool,
    /// Time columns of a truss log, as the letters of truss's own options; "" for none. Default: found out from the log.
    #[arg(long, value_name = "dDE")]
    pub(crate) truss_columns: Option<String>,
    /// Threads that may work; 0: as many as there are cores. The recording is the same for any number.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// Go on reading logs that are still being written, until interrupted, or until every process in them has ended.
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// Folder to make.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Command and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Where progress goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Progress {
    /// Report progress as one JSON object a line on standard error.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Report progress on this descriptor instead.
    #[arg(long, value_name = "N")]
    pub(crate) progress_fd: Option<i32>,
}

/// Parse the command line; help, version and mistakes end the program here.
pub(crate) fn parse() -> Verb {
    CommandLine::parse().verb
}
