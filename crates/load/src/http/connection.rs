//! One connection, and the request in progress on it.
//!
//! States: *closed* -> *connecting* -> *sending* -> *waiting* (for the answer) -> *idle* ->
//! *sending* ... ; *closed* from any of them.

use std::{
    net::SocketAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{
    io::Errno,
    net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt},
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

    pub(super) fn descriptor(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.socket.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }

    /// Begin to connect.
    pub(super) fn open(&mut self, address: SocketAddr) -> Result<(), Errno> {
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
            match self.descriptor().and_then(sockopt::socket_error).and_then(|error| error) {
                Ok(()) => self.state = State::Sending,
                Err(errno) => return Outcome::Failed(errno.raw_os_error()),
            }
        }
        if self.state == State::Sending { self.send(target) } else { Outcome::Pending }
    }

    fn send(&mut self, target: &Target) -> Outcome {
        let rest = target.request.get(self.sent..).unwrap_or_default();
        match self.descriptor().and_then(|socket| net::send(socket, rest, SendFlags::NOSIGNAL)) {
            Ok(bytes) => {
                self.sent += bytes;
                if self.sent == target.request.len() {
                    self.state = State::Waiting;
                }
                Outcome::Pending
            }
            Err(errno) => pending_or_failed(errno),
        }
    }

    /// The socket is readable. Adds the number of bytes to `received`.
    pub(super) fn readable(&mut self, buffer: &mut [u8], received: &mut u64) -> Outcome {
        loop {
            let read = self.descriptor().and_then(|socket| net::recv(socket, &mut *buffer, RecvFlags::empty()));
            let bytes = match read {
                Ok((_, bytes)) => bytes,
                Err(errno) => return pending_or_failed(errno),
            };
            *received += bytes as u64;
            if bytes == 0 {
                return if self.response.close() { Outcome::Complete } else { Outcome::Closed };
            }
            match self.response.read(buffer.get(..bytes).unwrap_or_default()) {
                Step::Complete => return Outcome::Complete,
                Step::Wrong => return Outcome::Malformed,
                // There is more only if the buffer was full.
                Step::More if bytes < buffer.len() => return Outcome::Pending,
                Step::More => {}
            }
        }
    }
}

fn pending_or_failed(errno: Errno) -> Outcome {
    match errno {
        Errno::AGAIN | Errno::INTR => Outcome::Pending,
        _ => Outcome::Failed(errno.raw_os_error()),
    }
}

/// A socket that connects without waiting.
fn connect(address: &SocketAddr) -> Result<OwnedFd, Errno> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Without it, requests are merely later.
    let _ = sockopt::set_tcp_nodelay(&socket, true);
    match net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno),
    }
}
