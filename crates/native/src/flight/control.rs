//! The control socket of a flight recorder, which only its user can open. A request is one line, a
//! JSON object with `do`; so is the answer, which has `error` if the request is refused. A spool
//! follows the answer to `dump`.

use std::{
    fs, io,
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::DirBuilderExt,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{messages::Message, privileges};

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
    path: PathBuf,
    pub(crate) sender: Sender<Occurrence>,
    pub(crate) occurrences: Receiver<Occurrence>,
}

fn socket(name: &str) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let folder = match std::env::var_os("XDG_RUNTIME_DIR") {
        _ if user == 0 => PathBuf::from("/run/sysdock"),
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("sysdock"),
        _ => PathBuf::from(format!("/tmp/sysdock-{user}")),
    };
    folder.join(format!("{name}.sock"))
}

impl Control {
    /// Listen for requests, in a thread of its own.
    pub(crate) fn open(name: &str) -> Result<Control, Message> {
        let path = socket(name);
        let failed = |error: io::Error| Message::bare(format!("{}: {error}", path.display()));
        let folder = path.parent().unwrap_or(&path);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        if UnixStream::connect(&path).is_ok() {
            let hint = "sysdock flight status shows it; sysdock flight stop ends it; --name NAME starts another one";
            return Err(Message::new(format!("the flight recorder {name} is already running"), hint));
        }
        // A socket left by a recorder that was killed.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path).map_err(failed)?;
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(failed)?;
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
        Ok(Control { path, sender, occurrences })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
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
    let path = socket(name);
    let none = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Message::new(format!("{}: {error}", path.display()), format!("as root: {} flight ...", privileges::sudo_sysdock()))
        }
        _ => Message::new(format!("no flight recorder named {name} is running"), "start one with sysdock flight start"),
    };
    let mut stream = UnixStream::connect(&path).map_err(none)?;
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
