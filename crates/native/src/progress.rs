//! Progress as one JSON object a line.

use std::{
    fs::File,
    io::{self, Write},
    mem::ManuallyDrop,
    os::fd::FromRawFd,
    time::{Duration, Instant},
};

use serde_json::json;
use sysdock_table::Progress;

use crate::arguments;

/// Shortest interval between reports.
const INTERVAL: Duration = Duration::from_millis(200);

/// Writes progress to the descriptor that the user requested.
pub(crate) struct Reporter {
    sink: Option<Box<dyn Write>>,
    started: Instant,
    last: Instant,
}

/// Keep the descriptor for progress from programs that are started: they should inherit only the
/// user's descriptors.
pub(crate) fn keep_to_ourselves(arguments: &arguments::Progress) {
    if let Some(fd) = arguments.progress_fd {
        // SAFETY: takes numbers only.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// The descriptor that the caller passed. It stays open until the process ends: a verb that traces
/// and then converts reports twice.
struct Given(ManuallyDrop<File>);

impl Write for Given {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Reporter {
    pub(crate) fn new(arguments: &arguments::Progress) -> Self {
        let sink: Option<Box<dyn Write>> = match arguments {
            // SAFETY: the caller passed the descriptor for this purpose and nothing else here uses
            // it.
            arguments::Progress { progress_fd: Some(fd), .. } if *fd > 2 => {
                Some(Box::new(Given(unsafe { ManuallyDrop::new(File::from_raw_fd(*fd)) })))
            }
            arguments::Progress { progress: true, .. } => Some(Box::new(io::stderr())),
            _ => None,
        };
        let now = Instant::now();
        Reporter { sink, started: now, last: now }
    }

    /// Report, unless the last report was a moment ago. If the reader is gone, reporting ends and
    /// the work continues.
    pub(crate) fn report(&mut self, progress: Progress) {
        if self.sink.is_none() || self.last.elapsed() < INTERVAL {
            return;
        }
        self.last = Instant::now();
        let seconds = self.started.elapsed().as_secs_f64();
        let rate = progress.bytes_done as f64 / seconds;
        let left = progress.bytes_total.map(|total| total.saturating_sub(progress.bytes_done) as f64 / rate);
        let event = json!({
            "event": "progress",
            "bytes_done": progress.bytes_done,
            "bytes_total": progress.bytes_total,
            "lines": progress.lines,
            "bytes_per_s": rate as u64,
            "seconds_left": left.map(|left| (left * 10.0).round() / 10.0),
        });
        self.write(&event);
    }

    /// Report an event other than the progress of an import, at most as often.
    pub(crate) fn event(&mut self, event: &serde_json::Value) {
        if self.sink.is_some() && self.last.elapsed() >= INTERVAL {
            self.last = Instant::now();
            self.write(event);
        }
    }

    fn write(&mut self, event: &serde_json::Value) {
        if let Some(sink) = &mut self.sink
            && writeln!(sink, "{event}").and_then(|()| sink.flush()).is_err()
        {
            self.sink = None;
        }
    }
}
