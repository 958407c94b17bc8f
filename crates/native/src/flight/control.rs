//! The control socket of a flight recorder, which only its user can open: it is in a folder that
//! belongs to this user and that nobody else may write to, and it is reached through that folder's
//! descriptor. A request is one line, a JSON object with `do`; so is the answer, which has `error` if
//! the request is refused. A spool follows the answer to `dump`.

use std::{
    env, io,
    io::{BufRead, BufReader, Read, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use nix::unistd::{Uid, User};
use rustix::process::geteuid;
use serde_json::{Value, json};
use sysdock_table::{Access, Folder};

use crate::messages::Message;

/// A client that has sent no request after this time is disconnected.
const PATIENCE: Duration = Duration::from_secs(2);
const LONGEST_REQUEST: u64 = 64 << 10;

/// An event from outside.
pub(crate) enum Occurrence {
    /// A request, and the connection for the answer.
    Request(Value, UnixStream),
    /// The command of a trigger succeeded.
    Condition(String),
}

/// The socket of a flight recorder.
pub(crate) struct Control {
    folder: Folder,
    name: String,
    pub(crate) sender: Sender<Occurrence>,
    pub(crate) occurrences: Receiver<Occurrence>,
}

/// The folder of this user's sockets.
fn place() -> PathBuf {
    let folder = |variable: &str| env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if geteuid().is_root() {
        return PathBuf::from("/run/sysdock");
    }
    let home = || folder("HOME").or_else(|| Some(User::from_uid(Uid::effective()).ok()??.dir)).unwrap_or_else(|| "/".into());
    folder("XDG_RUNTIME_DIR").unwrap_or_else(|| home().join(".local/state")).join("sysdock")
}

fn socket(name: &str) -> String {
    format!("{name}.sock")
}

/// A socket in a folder that may have been renamed since it was opened.
fn within(folder: &Folder, name: &str) -> PathBuf {
    format!("/proc/self/fd/{}/{}", folder.as_fd().as_raw_fd(), socket(name)).into()
}

impl Control {
    /// Listen for requests, in a thread of its own.
    pub(crate) fn open(name: &str) -> Result<Control, Message> {
        let folder = Folder::ensure(&place(), Access::default())?;
        if UnixStream::connect(within(&folder, name)).is_ok() {
            let hint = "sysdock flight status shows it; sysdock flight stop ends it; --name NAME starts another one";
            return Err(Message::new(format!("the flight recorder {name} is already running"), hint));
        }
        let failed = |error: io::Error| Message::bare(format!("{}: {error}", folder.path().join(socket(name)).display()));
        // A socket left by a recorder that was killed.
        folder.remove(&socket(name)).map_err(failed)?;
        let listener = UnixListener::bind(within(&folder, name)).map_err(failed)?;
        let (sender, occurrences) = channel();
        let sender_of_requests = sender.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender_of_requests = sender_of_requests.clone();
                thread::spawn(move || {
                    if let Some(request) = request(&stream) {
                        let _ = sender_of_requests.send(Occurrence::Request(request, stream));
                    }
                });
            }
        });
        Ok(Control { folder, name: name.into(), sender, occurrences })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.folder.remove(&socket(&self.name));
    }
}

fn request(stream: &UnixStream) -> Option<Value> {
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// Answer a request.
pub(crate) fn answer(stream: &mut UnixStream, answer: &Value) -> io::Result<()> {
    stream.write_all(format!("{answer}\n").as_bytes())
}

/// Send a request to the flight recorder of this name; returns the answer and the data after it.
pub(crate) fn send_request(name: &str, request: &Value) -> Result<(Value, impl Read + use<>), Message> {
    let none = || Message::new(format!("no flight recorder named {name} is running"), "start one with sysdock flight start");
    let folder = Folder::open(&place(), Access::default()).map_err(|error| match error.io_kind() {
        Some(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => none(),
        _ => error.into(),
    })?;
    let mut stream = UnixStream::connect(within(&folder, name)).map_err(|_| none())?;
    let ended = |_| Message::bare(format!("the flight recorder {name} did not answer: it has just ended"));
    stream.write_all(format!("{request}\n").as_bytes()).map_err(ended)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).map_err(ended)?;
    let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "error": "it has just ended" }));
    match answer["error"].as_str() {
        Some(error) => Err(Message::bare(format!("the flight recorder {name}: {error}"))),
        None => Ok((answer, reader)),
    }
}
