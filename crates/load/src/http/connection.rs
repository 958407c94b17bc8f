//! One connection, and the request in progress on it.
//!
//! States: *closed* -> *connecting* -> *sending* -> *waiting* (for the answer) -> *idle* ->
//! *sending* ... ; *closed* from any of them.

use std::{
    io, mem,
    net::SocketAddr,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::Arc,
};

use super::{
    response::{Response, Step, Wanted},
    url::Target,
};

/// A request that is, or was, due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// When, by the monotonic clock [ns]: latency counts from there.
    pub(super) at_ns: u64,
    /// Index of its target.
    pub(super) target: usize,
}

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Connecting,
    Sending,
    Waiting,
    Idle,
}

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Not known yet.
    Pending,
    /// The answer is complete.
    Complete,
    /// The answer is invalid.
    Malformed,
    /// The server closed the connection before the answer was complete.
    Closed,
    /// A call failed with this error number.
    Failed(i32),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Option<OwnedFd>,
    /// The server to which it is open.
    pub(super) address: Option<SocketAddr>,
    pub(super) state: State,
    /// Number of the socket of this connection, so that events of an earlier one are recognized.
    pub(super) generation: u32,
    pub(super) due: Option<Due>,
    pub(super) response: Response,
    sent: usize,
    /// Whether it had an answer before: then the server may close it while a request is on the way,
    /// which is no error.
    pub(super) was_used: bool,
    wanted: Arc<Wanted>,
}

impl Connection {
    pub(super) fn new(wanted: &Arc<Wanted>) -> Self {
        Connection {
            socket: None,
            address: None,
            state: State::Closed,
            generation: 0,
            due: None,
            response: Response::new(wanted),
            sent: 0,
            was_used: false,
            wanted: Arc::clone(wanted),
        }
    }

    pub(super) fn descriptor(&self) -> i32 {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Begin to connect.
    pub(super) fn open(&mut self, address: SocketAddr) -> io::Result<()> {
        self.socket = Some(connect(&address)?);
        self.address = Some(address);
        self.generation = self.generation.wrapping_add(1);
        self.state = State::Connecting;
        self.was_used = false;
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.socket = None;
        self.state = State::Closed;
    }

    /// Begin a request. It is sent as far as the socket accepts it now.
    pub(super) fn begin(&mut self, due: Due, target: &Target) -> Outcome {
        self.due = Some(due);
        self.response = Response::new(&self.wanted);
        self.sent = 0;
        if self.state == State::Idle {
            self.state = State::Sending;
            return self.send(target);
        }
        Outcome::Pending
    }

    /// The socket is writable: it is connected, or accepts more.
    pub(super) fn writable(&mut self, target: &Target) -> Outcome {
        if self.state == State::Connecting {
            match error_of(self.descriptor()) {
                0 => self.state = State::Sending,
                errno => return Outcome::Failed(errno),
            }
        }
        if self.state == State::Sending { self.send(target) } else { Outcome::Pending }
    }

    fn send(&mut self, target: &Target) -> Outcome {
        let rest = &target.request[self.sent..];
        // SAFETY: the bytes live through the call, which does not wait.
        let sent = unsafe { libc::send(self.descriptor(), rest.as_ptr().cast(), rest.len(), libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(bytes) => {
                self.sent += bytes;
                if self.sent == target.request.len() {
                    self.state = State::Waiting;
                }
                Outcome::Pending
            }
            Err(_) => pending_or_failed(),
        }
    }

    /// The socket is readable. Adds the number of bytes to `received`.
    pub(super) fn readable(&mut self, buffer: &mut [u8], received: &mut u64) -> Outcome {
        loop {
            // SAFETY: the buffer has this length; the call does not wait.
            let read = unsafe { libc::recv(self.descriptor(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
            let Ok(bytes) = usize::try_from(read) else { return pending_or_failed() };
            *received += bytes as u64;
            if bytes == 0 {
                return if self.response.close() { Outcome::Complete } else { Outcome::Closed };
            }
            match self.response.read(&buffer[..bytes]) {
                Step::Complete => return Outcome::Complete,
                Step::Wrong => return Outcome::Malformed,
                // There is more only if the buffer was full.
                Step::More if bytes < buffer.len() => return Outcome::Pending,
                Step::More => {}
            }
        }
    }
}

fn pending_or_failed() -> Outcome {
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Outcome::Pending,
        _ => Outcome::Failed(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}

/// A socket that connects without waiting.
fn connect(address: &SocketAddr) -> io::Result<OwnedFd> {
    let (family, kind) = match address {
        SocketAddr::V4(_) => (libc::AF_INET, libc::SOCK_STREAM),
        SocketAddr::V6(_) => (libc::AF_INET6, libc::SOCK_STREAM),
    };
    let yes: libc::c_int = 1;
    // SAFETY: takes numbers; a descriptor that is returned is owned from then on. Value and
    // addresses live through the calls.
    unsafe {
        let socket = libc::socket(family, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let length = size_of_val(&yes) as u32;
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, (&raw const yes).cast(), length);
        let connected = match address {
            SocketAddr::V4(address) => {
                let mut raw: libc::sockaddr_in = mem::zeroed();
                raw.sin_family = libc::AF_INET as u16;
                raw.sin_port = address.port().to_be();
                raw.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
                libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), size_of_val(&raw) as u32)
            }
            SocketAddr::V6(address) => {
                let mut raw: libc::sockaddr_in6 = mem::zeroed();
                raw.sin6_family = libc::AF_INET6 as u16;
                raw.sin6_port = address.port().to_be();
                raw.sin6_addr.s6_addr = address.ip().octets();
                raw.sin6_scope_id = address.scope_id();
                libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), size_of_val(&raw) as u32)
            }
        };
        let error = io::Error::last_os_error();
        match connected {
            0 => Ok(socket),
            _ if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            _ => Err(error),
        }
    }
}

/// The error of a connecting socket; 0: none.
fn error_of(socket: i32) -> i32 {
    let mut errno: libc::c_int = 0;
    let mut length = size_of_val(&errno) as u32;
    // SAFETY: both live through the call.
    let status = unsafe { libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut errno).cast(), &raw mut length) };
    if status == 0 { errno } else { libc::EIO }
}
