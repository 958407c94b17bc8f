//! Asks the kernel for the sockets in the recorder's network namespace: those that existed before,
//! local ones, and the amounts that connections have transferred by the end. Uses
//! `NETLINK_SOCK_DIAG`, sock_diag(7).

use std::{io, os::fd::OwnedFd, time::Duration};

use rustc_hash::FxHashMap;
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use crate::{
    events::{self, EVENT_SOCKET, SOCKET_ADDRESSES, SOCKET_COUNTS, SOCKET_PEER, SocketEvent},
    transport::spool::monotonic_ns,
};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// All states except those of connections that no process has: SYN_RECV and TIME_WAIT.
const STATES: u32 = !(1 << 3 | 1 << 6);
const INET_DIAG_INFO: u16 = 2;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_PEER: u16 = 2;
const UDIAG_SHOW_NAME_AND_PEER: u32 = 1 | 4;
/// Sizes of `struct nlmsghdr`, `struct inet_diag_msg` and `struct unix_diag_msg`.
const MESSAGE: usize = 16;
const INET: usize = 72;
const UNIX: usize = 16;
/// Families and protocols that are requested.
const KINDS: [(i32, i32); 5] = [
    (libc::AF_INET, libc::IPPROTO_TCP),
    (libc::AF_INET6, libc::IPPROTO_TCP),
    (libc::AF_INET, libc::IPPROTO_UDP),
    (libc::AF_INET6, libc::IPPROTO_UDP),
    (libc::AF_UNIX, 0),
];
/// The kernel answers at once; a late answer is not awaited.
const PATIENCE: Duration = Duration::from_millis(200);

/// The sockets of the machine at the last query.
#[derive(Debug)]
pub(crate) struct Census {
    socket: OwnedFd,
    /// The other end of each socket, by inode, without values that change constantly.
    known: FxHashMap<u64, ([u8; 16], u16, u64)>,
    buffer: Vec<u8>,
}

impl Census {
    /// `None`: the kernel does not answer such queries.
    pub(crate) fn open() -> Option<Census> {
        let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
        let socket = net::socket_with(AddressFamily::NETLINK, kind, flags, Some(net::netlink::SOCK_DIAG)).ok()?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(PATIENCE)).ok()?;
        Some(Census { socket, known: FxHashMap::default(), buffer: vec![0; 1 << 16] })
    }

    /// Events for the spool: about `all` sockets, or about those that are new or have another end
    /// now. Sockets that the kernel does not report are left out.
    pub(crate) fn read(&mut self, all: bool) -> Vec<u8> {
        let (mut out, mut now) = (Vec::new(), FxHashMap::default());
        for (family, protocol) in KINDS {
            // A kernel may be built without one of them.
            let _ = self.query(family, protocol, &mut |socket, name, before| {
                let end = (socket.remote, socket.remote_port, socket.peer);
                if all || before.get(&socket.inode) != Some(&end) {
                    events::add(&mut out, EVENT_SOCKET, 0, socket, name);
                }
                now.insert(socket.inode, end);
            });
        }
        self.known = now;
        out
    }

    fn query(
        &mut self,
        family: i32,
        protocol: i32,
        take: &mut impl FnMut(&SocketEvent, &[u8], &FxHashMap<u64, ([u8; 16], u16, u64)>),
    ) -> io::Result<()> {
        net::send(&self.socket, &question(family, protocol), SendFlags::empty())?;
        loop {
            let (_, got) = net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            let mut rest = &self.buffer[..got];
            while let Some((kind, message, after)) = message(rest) {
                if i32::from(kind) == libc::NLMSG_DONE || i32::from(kind) == libc::NLMSG_ERROR {
                    return Ok(());
                }
                let found = if family == libc::AF_UNIX { local(message) } else { internet(message, protocol) };
                if let Some((socket, name)) = found.filter(|(socket, _)| socket.inode != 0) {
                    take(&socket, name, &self.known);
                }
                rest = after;
            }
            if got == 0 {
                return Ok(());
            }
        }
    }
}

/// `struct nlmsghdr` with `struct inet_diag_req_v2` or `struct unix_diag_req`.
fn question(family: i32, protocol: i32) -> Vec<u8> {
    let mut body = vec![family as u8, protocol as u8];
    if family == libc::AF_UNIX {
        body.extend([0; 2]);
        body.extend(u32::MAX.to_le_bytes());
        body.extend(0u32.to_le_bytes());
        body.extend(UDIAG_SHOW_NAME_AND_PEER.to_le_bytes());
        body.extend([0; 8]);
    } else {
        body.extend([1 << (INET_DIAG_INFO - 1), 0]);
        body.extend(STATES.to_le_bytes());
        body.extend([0; 48]);
    }
    let mut question = ((MESSAGE + body.len()) as u32).to_le_bytes().to_vec();
    question.extend(SOCK_DIAG_BY_FAMILY.to_le_bytes());
    question.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_le_bytes());
    question.extend([0; 8]);
    question.extend(body);
    question
}

/// Kind and content of the first message, and the bytes after it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = number::<4>(bytes, 0)? as usize;
    let kind = number::<2>(bytes, 4)? as u16;
    let content = bytes.get(MESSAGE..length)?;
    Some((kind, content, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The attribute of a kind: `struct rtattr`s follow each other from `at` on.
fn attribute(bytes: &[u8], mut at: usize, wanted: u16) -> Option<&[u8]> {
    loop {
        let length = number::<2>(bytes, at)? as usize;
        if number::<2>(bytes, at + 2)? as u16 == wanted {
            return bytes.get(at + 4..at + length);
        }
        at += length.max(4).next_multiple_of(4);
    }
}

/// Parse a `struct inet_diag_msg`.
fn internet(message: &[u8], protocol: i32) -> Option<(SocketEvent, &'static [u8])> {
    let port = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
    let mut socket = SocketEvent {
        at_ns: monotonic_ns(),
        inode: number::<4>(message, INET - 4)?,
        peer: 0,
        received_bytes: 0,
        sent_bytes: 0,
        retransmits: 0,
        round_trip_us: 0,
        family: u16::from(*message.first()?),
        protocol: protocol as u16,
        local_port: port(4)?,
        remote_port: port(6)?,
        known: SOCKET_ADDRESSES,
        length: 0,
        local: *message.get(8..)?.first_chunk()?,
        remote: *message.get(24..)?.first_chunk()?,
    };
    // `struct tcp_info`, include/uapi/linux/tcp.h.
    if let Some(info) = attribute(message, INET, INET_DIAG_INFO).filter(|_| protocol == libc::IPPROTO_TCP) {
        let (round_trip_us, retransmits) = (number::<4>(info, 68), number::<4>(info, 100));
        let (received, sent, sent_again) = (number::<8>(info, 128), number::<8>(info, 200), number::<8>(info, 208));
        if let (Some(received), Some(sent), Some(sent_again)) = (received, sent, sent_again) {
            socket.round_trip_us = round_trip_us.unwrap_or(0) as u32;
            socket.retransmits = retransmits.unwrap_or(0) as u32;
            (socket.received_bytes, socket.sent_bytes) = (received, sent.saturating_sub(sent_again));
            socket.known |= SOCKET_COUNTS;
        }
    }
    Some((socket, &[]))
}

/// Parse a `struct unix_diag_msg`.
fn local(message: &[u8]) -> Option<(SocketEvent, &[u8])> {
    let name = attribute(message, UNIX, UNIX_DIAG_NAME).unwrap_or_default();
    let peer = attribute(message, UNIX, UNIX_DIAG_PEER).and_then(|peer| number::<4>(peer, 0));
    let known = peer.map_or(0, |_| SOCKET_PEER);
    let socket = SocketEvent {
        at_ns: monotonic_ns(),
        inode: number::<4>(message, 4)?,
        peer: peer.unwrap_or(0),
        received_bytes: 0,
        sent_bytes: 0,
        retransmits: 0,
        round_trip_us: 0,
        family: libc::AF_UNIX as u16,
        protocol: 0,
        local_port: 0,
        remote_port: 0,
        known,
        length: name.len() as u32,
        local: [0; 16],
        remote: [0; 16],
    };
    Some((socket, name))
}

/// The number of `N` bytes at an offset.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes: &[u8; N] = bytes.get(at..)?.first_chunk()?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::{
        net::{TcpListener, TcpStream},
        os::unix::{fs::MetadataExt, net::UnixStream},
    };

    use super::*;

    fn inode(fd: &impl AsRawFd) -> u64 {
        std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().ino()
    }

    fn found(events: &[u8]) -> Vec<SocketEvent> {
        let (mut rest, mut found) = (events, Vec::new());
        while let Some((event, after)) = events::split(rest) {
            found.push(event.read::<SocketEvent>().unwrap().0);
            rest = after;
        }
        found
    }

    #[test]
    fn both_ends_of_a_connection_are_there_with_what_they_moved() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        io::Write::write_all(&mut client, &[7; 1000]).unwrap();
        io::Read::read_exact(&mut server, &mut [0; 1000]).unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let mut census = Census::open().unwrap();
        let all = found(&census.read(false));
        let of = |fd: u64| *all.iter().rfind(|socket| socket.inode == fd).unwrap();
        let (client_end, server_end) = (of(inode(&client)), of(inode(&server)));
        assert_eq!(client_end.local_port, client.local_addr().unwrap().port());
        assert_eq!((client_end.remote_port, client_end.remote[..4].to_vec()), (server_end.local_port, vec![127, 0, 0, 1]));
        assert_eq!((server_end.received_bytes, server_end.known & SOCKET_COUNTS), (1000, SOCKET_COUNTS));
        assert_eq!((of(inode(&one)).peer, of(inode(&other)).peer), (inode(&other), inode(&one)));
        // Only new sockets are reported again, unless all are requested.
        let again = found(&census.read(false));
        assert!(again.iter().all(|socket| socket.inode != inode(&client)));
        assert!(found(&census.read(true)).iter().any(|socket| socket.inode == inode(&client)));
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        for length in 0..INET {
            assert!(internet(&vec![1; length], libc::IPPROTO_TCP).is_none(), "{length}");
        }
        assert!(local(&[1; 7]).is_none());
        assert!(message(&[255; 20]).is_none());
        // An attribute without a length would be read again and again.
        assert!(attribute(&[0; 64], 0, 3).is_none());
    }
}
