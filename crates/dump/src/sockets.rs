//! Sockets of processes: their connections, and unread data in them.

use std::net::{Ipv4Addr, Ipv6Addr};

use rustc_hash::FxHashSet;
use sysdock_symbols::btf::Field;

use crate::{error::Fault, files::OpenFile, kernel::Kernel};

const UNIX: u64 = 1;
const INET: u64 = 2;
const INET6: u64 = 10;
const NETLINK: u64 = 16;
const PACKET: u64 = 17;
const TCP: u64 = 6;
const UDP: u64 = 17;
const ESTABLISHED: u64 = 1;
const LISTEN: u64 = 10;
/// Names of states, as in `ss` (include/net/tcp_states.h).
const STATES: [&str; 13] = [
    "?",
    "established",
    "syn sent",
    "syn received",
    "fin wait 1",
    "fin wait 2",
    "time wait",
    "closed",
    "close wait",
    "last ack",
    "listen",
    "closing",
    "new syn received",
];
/// Limit for the packets of a queue that are added up.
const MOST_PACKETS: usize = 1 << 16;

/// An open socket of a process. Values that could not be read are `None`, and `fault` tells why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Socket {
    /// Index of its process in the list of tasks.
    pub task: usize,
    /// Number of its descriptor.
    pub descriptor: u64,
    /// Number of its inode, as in `socket:[NUMBER]`.
    pub inode: Option<u64>,
    /// For example `inet`.
    pub family: String,
    /// For example `stream`.
    pub kind: Option<String>,
    /// For example `tcp`.
    pub protocol: Option<String>,
    /// For example `listen`.
    pub state: Option<String>,
    /// Its own address.
    pub local: Option<String>,
    /// Its own port.
    pub local_port: Option<u16>,
    /// Address of the other end.
    pub remote: Option<String>,
    /// Port of the other end.
    pub remote_port: Option<u16>,
    /// Unread data [B].
    pub receive: Option<u64>,
    /// Number of connections that a listening socket has not accepted yet.
    pub unaccepted: Option<u32>,
    /// Data that have not been acknowledged [B].
    pub send: Option<u64>,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

/// Offsets of the members of a `sock`.
struct Layout {
    private: Field,
    sock: Field,
    family: Field,
    state: Field,
    kind: Field,
    protocol: Field,
    local: Field,
    remote: Field,
    local6: Option<Field>,
    remote6: Option<Field>,
    local_port: Field,
    remote_port: Field,
    backlog: Field,
    received: Field,
    written: Field,
    queue: Field,
}

impl Layout {
    fn of(kernel: &Kernel) -> Result<Layout, Fault> {
        let sock = |path: &str| kernel.field("sock", path);
        Ok(Layout {
            private: kernel.field("file", "private_data")?,
            sock: kernel.field("socket", "sk")?,
            family: sock("__sk_common.skc_family")?,
            state: sock("__sk_common.skc_state")?,
            kind: sock("sk_type")?,
            protocol: sock("sk_protocol")?,
            local: sock("__sk_common.skc_rcv_saddr")?,
            remote: sock("__sk_common.skc_daddr")?,
            local6: sock("__sk_common.skc_v6_rcv_saddr").ok(),
            remote6: sock("__sk_common.skc_v6_daddr").ok(),
            local_port: sock("__sk_common.skc_num")?,
            remote_port: sock("__sk_common.skc_dport")?,
            backlog: sock("sk_ack_backlog")?,
            received: sock("sk_backlog.rmem_alloc")?,
            written: sock("sk_wmem_alloc")?,
            queue: sock("sk_receive_queue")?,
        })
    }
}

impl Kernel {
    /// The sockets among these files.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel's layout is unknown.
    pub fn sockets(&self, files: &[OpenFile]) -> Result<Vec<Socket>, Fault> {
        const KIND: u64 = 0o170_000;
        const SOCKET: u64 = 0o140_000;
        let layout = Layout::of(self)?;
        let sockets = files.iter().filter(|file| file.mode.is_some_and(|mode| mode & KIND == SOCKET));
        Ok(sockets.map(|file| self.socket(file, &layout)).collect())
    }

    fn socket(&self, file: &OpenFile, layout: &Layout) -> Socket {
        let mut socket =
            Socket { task: file.task, descriptor: file.descriptor, inode: file.inode, family: "?".into(), ..Socket::default() };
        let read = (|| {
            let sock = self.number(self.number(file.address, layout.private)?, layout.sock)?;
            // A socket that is being closed has none any longer.
            if sock == 0 {
                return Ok(());
            }
            let (family, kind) = (self.number(sock, layout.family)?, self.number(sock, layout.kind)?);
            socket.family = family_name(family);
            socket.kind = Some(kind_name(kind));
            let state = self.number(sock, layout.state)?;
            socket.state = Some(state_name(family, kind, state));
            match family {
                INET | INET6 => self.fill_internet(sock, family, state, layout, &mut socket)?,
                UNIX => self.fill_unix(sock, state, layout, &mut socket)?,
                _ => {
                    socket.receive = Some(self.number(sock, layout.received)? & 0xffff_ffff);
                    socket.send = Some(self.written(sock, layout)?);
                }
            }
            Ok(())
        })();
        socket.fault = read.err();
        socket
    }

    fn fill_internet(&self, sock: u64, family: u64, state: u64, layout: &Layout, socket: &mut Socket) -> Result<(), Fault> {
        let protocol = self.number(sock, layout.protocol)?;
        socket.protocol = Some(protocol_name(protocol));
        let address = |four: Field, six: Option<Field>| -> Result<(String, bool), Fault> {
            match six.filter(|_| family == INET6) {
                Some(six) => {
                    let bytes = self.memory.bytes(sock.wrapping_add(six.offset), 16)?;
                    let address = Ipv6Addr::from(<[u8; 16]>::try_from(bytes).unwrap_or_default());
                    Ok((address.to_string(), address.is_unspecified()))
                }
                None => {
                    // In network byte order.
                    let address = Ipv4Addr::from((self.number(sock, four)? as u32).to_le_bytes());
                    Ok((address.to_string(), address.is_unspecified()))
                }
            }
        };
        socket.local = Some(address(layout.local, layout.local6)?.0);
        socket.local_port = Some(self.number(sock, layout.local_port)? as u16);
        let (remote, is_none) = address(layout.remote, layout.remote6)?;
        let port = (self.number(sock, layout.remote_port)? as u16).swap_bytes();
        if !is_none || port != 0 {
            (socket.remote, socket.remote_port) = (Some(remote), Some(port));
        }
        let member = |structure: &str, path: &str| self.member(sock, structure, path);
        let distance = |to: u64, from: u64| u64::from((to as u32).wrapping_sub(from as u32));
        if protocol == TCP && state == LISTEN {
            socket.unaccepted = Some(self.number(sock, layout.backlog)? as u32);
            return Ok(());
        }
        (socket.receive, socket.send) = match protocol {
            TCP => {
                let unread = distance(member("tcp_sock", "rcv_nxt")?, member("tcp_sock", "copied_seq")?);
                let unsent = distance(member("tcp_sock", "write_seq")?, member("tcp_sock", "snd_una")?);
                // A connection that the other side ended has read one more than there were bytes.
                (Some(if unread > u64::from(u32::MAX / 2) { 0 } else { unread }), Some(unsent))
            }
            UDP => {
                let later = member("udp_sock", "forward_deficit").unwrap_or(0);
                let received = distance(self.number(sock, layout.received)?, later);
                (Some(received), Some(self.written(sock, layout)?))
            }
            _ => (Some(self.number(sock, layout.received)? & 0xffff_ffff), Some(self.written(sock, layout)?)),
        };
        Ok(())
    }

    fn fill_unix(&self, sock: u64, state: u64, layout: &Layout, socket: &mut Socket) -> Result<(), Fault> {
        socket.local = self.unix_name(sock)?;
        let peer = self.member(sock, "unix_sock", "peer")?;
        if peer != 0 {
            socket.remote = self.unix_name(peer)?;
        }
        let queue = sock.wrapping_add(layout.queue.offset);
        // The queue of a listening socket contains sockets of connections.
        if state == LISTEN {
            socket.unaccepted = Some(self.member(queue, "sk_buff_head", "qlen")? as u32);
            return Ok(());
        }
        socket.receive = Some(self.bytes_in(queue)?);
        socket.send = Some(self.written(sock, layout)?);
        Ok(())
    }

    /// The name of a unix socket; an abstract one begins with `@`.
    fn unix_name(&self, sock: u64) -> Result<Option<String>, Fault> {
        const MOST: u64 = 108;
        let address = self.member(sock, "unix_sock", "addr")?;
        if address == 0 {
            return Ok(None);
        }
        let family = self.field("sockaddr_un", "sun_path")?.offset;
        let length = self.member(address, "unix_address", "len")?.saturating_sub(family).min(MOST);
        let name = address.wrapping_add(self.field("unix_address", "name")?.offset + family);
        let mut bytes = self.memory.bytes(name, length)?;
        if let Some(first @ 0) = bytes.first_mut() {
            *first = b'@';
        } else {
            bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()).filter(|name| !name.is_empty()))
    }

    /// Memory of unsent data; the socket itself counts as one byte.
    fn written(&self, sock: u64, layout: &Layout) -> Result<u64, Fault> {
        Ok((self.number(sock, layout.written)? & 0xffff_ffff).saturating_sub(1))
    }

    fn bytes_in(&self, queue: u64) -> Result<u64, Fault> {
        let (next, length) = (self.field("sk_buff", "next")?, self.field("sk_buff", "len")?);
        let (mut at, mut sum, mut seen) = (self.number(queue, next)?, 0_u64, FxHashSet::default());
        while seen.len() < MOST_PACKETS {
            if at == queue || at == 0 {
                return Ok(sum);
            }
            if !seen.insert(at) {
                return Err(Fault::Cycle);
            }
            sum = sum.saturating_add(self.number(at, length)?);
            at = self.number(at, next)?;
        }
        Err(Fault::TooLong)
    }
}

fn family_name(family: u64) -> String {
    match family {
        UNIX => "unix".into(),
        INET => "inet".into(),
        INET6 => "inet6".into(),
        NETLINK => "netlink".into(),
        PACKET => "packet".into(),
        other => other.to_string(),
    }
}

fn kind_name(kind: u64) -> String {
    match kind {
        1 => "stream".into(),
        2 => "datagram".into(),
        3 => "raw".into(),
        5 => "seqpacket".into(),
        other => other.to_string(),
    }
}

fn protocol_name(protocol: u64) -> String {
    match protocol {
        1 => "icmp".into(),
        TCP => "tcp".into(),
        UDP => "udp".into(),
        other => other.to_string(),
    }
}

/// Only streams have all states.
fn state_name(family: u64, kind: u64, state: u64) -> String {
    const STREAM: u64 = 1;
    let is_tcp = matches!(family, INET | INET6) && kind == STREAM;
    match state {
        _ if is_tcp => STATES.get(state as usize).unwrap_or(&"?").to_string(),
        LISTEN => "listen".into(),
        ESTABLISHED => "established".into(),
        _ => "unconnected".into(),
    }
}
