//! Recordings that triggers write: one at a time, and limited in rate, number and disk space.
//!
//! Any user can cause triggers. So that nobody silences them for good, a new recording replaces an
//! earlier one when a limit is reached: the oldest in the second half. The first half stays, because
//! what happened first often explains what followed.

use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use chrono::Local;
use rustix::{
    fs::{AtFlags, statat},
    process::setpriority_process,
};
use serde_json::{Value, json};
use sysdock_bpf::Dump;
use sysdock_table::{Access, Folder, TableError, open_folder, remove_folder, sudo_caller};

use crate::{arguments::FlightStart, messages::Message};

/// A recording that was written or attempted.
struct Written {
    at: String,
    path: PathBuf,
    cause: String,
    state: State,
    /// Device and inode of its folder, once it is complete.
    made: Option<(u64, u64)>,
}

enum State {
    UnderWay(Child),
    Done,
    Failed(String),
}

/// The recordings of one flight recorder.
pub(crate) struct Triggered {
    into: PathBuf,
    /// The same folder; `None`: there is no trigger.
    folder: Option<OwnedFd>,
    pause: Duration,
    most: usize,
    most_bytes: u64,
    last: Option<Instant>,
    written: Vec<Written>,
    /// Number of triggers that wrote nothing.
    pub(crate) ignored: u64,
    /// Number of recordings that were removed to make room.
    pub(crate) removed: u64,
}

impl Triggered {
    pub(crate) fn new(arguments: &FlightStart) -> Result<Triggered, Message> {
        let into = std::path::absolute(&arguments.into).unwrap_or_else(|_| arguments.into.clone());
        let folder = (!arguments.on.is_empty()).then(|| open(&into)).transpose()?;
        let (pause, most, most_bytes) = (arguments.pause, arguments.most, u64::from(arguments.disk) << 20);
        let (last, written) = (None, Vec::new());
        Ok(Triggered { into, folder, pause, most, most_bytes, last, written, ignored: 0, removed: 0 })
    }

    /// Whether a trigger may write now; if not, it is counted.
    pub(crate) fn may_write(&mut self) -> bool {
        self.reap();
        let is_soon = self.last.is_some_and(|last| last.elapsed() < self.pause);
        let is_busy = self.written.iter().any(|one| matches!(one.state, State::UnderWay(_)));
        let may = !is_soon && !is_busy && self.make_room();
        self.ignored += u64::from(!may);
        may
    }

    /// Remove recordings that are not among the first until there is room for another one. Returns
    /// whether there is.
    fn make_room(&mut self) -> bool {
        let stay = self.most / 2;
        while self.written.len() >= self.most || bytes_in(&self.into) > self.most_bytes {
            if self.written.len() <= stay {
                return false;
            }
            let one = self.written.remove(stay);
            match self.remove(&one) {
                Ok(was_there) => self.removed += u64::from(was_there),
                Err(_) => return false,
            }
        }
        true
    }

    /// Remove a recording. Returns whether it was there: it may have been moved, and another folder
    /// may have its name.
    fn remove(&self, one: &Written) -> io::Result<bool> {
        let (Some(made), Some(folder), Some(name)) = (one.made, &self.folder, one.path.file_name()) else { return Ok(false) };
        remove_folder(folder.as_fd(), name, made)
    }

    /// Write a recording, in a separate process of low priority.
    pub(crate) fn write(&mut self, dump: Dump, cause: String) {
        self.last = Some(Instant::now());
        let now = Local::now();
        let path = self.free_path(&now.format("%Y%m%d-%H%M%S").to_string());
        let state = match begin(dump, &path) {
            Ok(child) => State::UnderWay(child),
            Err(error) => State::Failed(error.to_string()),
        };
        self.written.push(Written { at: now.format("%Y-%m-%d %H:%M:%S").to_string(), path, cause, state, made: None });
    }

    /// A name that is not taken: the time, with a number if necessary.
    fn free_path(&self, time: &str) -> PathBuf {
        let with = |number: u32| if number == 1 { time.to_string() } else { format!("{time}-{number}") };
        (1..).map(|number| self.into.join(with(number))).find(|path| !path.exists()).expect("numbers do not end")
    }

    /// Update the state of recordings in progress.
    pub(crate) fn reap(&mut self) {
        for one in &mut self.written {
            let State::UnderWay(child) = &mut one.state else { continue };
            let Ok(Some(status)) = child.try_wait() else { continue };
            one.made = self.folder.as_ref().filter(|_| status.success()).and_then(|folder| {
                let found = statat(folder, one.path.file_name()?, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                Some((found.st_dev, found.st_ino))
            });
            let mut message = String::new();
            let _ = child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut message));
            one.state =
                if status.success() { State::Done } else { State::Failed(message.lines().next().unwrap_or("failed").into()) };
        }
    }

    /// The recordings, for the status.
    pub(crate) fn list(&self) -> Value {
        let one = |written: &Written| {
            let state = match &written.state {
                State::UnderWay(_) => "being written".to_string(),
                State::Done => "complete".to_string(),
                State::Failed(error) => format!("not complete ({error})"),
            };
            json!({ "at": written.at, "path": written.path.to_string_lossy(), "cause": written.cause, "state": state })
        };
        self.written.iter().map(one).collect()
    }

    /// Wait for recordings in progress.
    pub(crate) fn finish(&mut self) {
        for one in &mut self.written {
            if let State::UnderWay(child) = &mut one.state {
                let _ = child.wait();
            }
        }
        self.reap();
    }
}

/// The folder for recordings, which is created if it does not exist.
fn open(into: &Path) -> Result<OwnedFd, Message> {
    let opened = match open_folder(into, sudo_caller()) {
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => Folder::create(into, Access::default())
            .and_then(|folder| folder.as_fd().try_clone_to_owned().map_err(|error| TableError::Io(into.into(), error))),
        opened => opened,
    };
    opened.map_err(Message::from)
}

fn begin(dump: Dump, path: &Path) -> io::Result<Child> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command.args(["flight", "receive", "-o"]).arg(path);
    command.stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs))).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: a system call with numbers, in the new process.
    unsafe {
        command.pre_exec(|| Ok(setpriority_process(None, 19)?));
    }
    let child = command.spawn()?;
    thread::spawn(move || {
        // If writing fails, the receiver reports the reason.
        let _ = dump.write(&mut ours).and_then(|()| ours.flush());
    });
    Ok(child)
}

/// Size of all files in a folder [B].
fn bytes_in(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_in(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    bytes.sum()
}
