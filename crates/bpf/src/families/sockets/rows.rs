//! Rows of `sockets`: sockets that a recorded program has used.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use rustc_hash::FxHashMap;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, TableError,
    rows::{self, SocketsColumns},
};

use crate::{
    conversion::Conversion,
    events::{SOCKET_ADDRESSES, SOCKET_COUNTS, SOCKET_PEER, SocketEvent},
};

/// A socket, from all events about it.
#[derive(Clone, Debug, Default)]
pub(super) struct Socket {
    protocol: Option<&'static str>,
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    name: Vec<u8>,
    peer: Option<u64>,
    counts: Option<Counts>,
}

#[derive(Clone, Copy, Debug)]
struct Counts {
    received_bytes: u64,
    sent_bytes: u64,
    retransmits: u32,
    round_trip_us: u32,
}

impl Socket {
    /// Add the content of an event.
    pub(super) fn see(&mut self, event: &SocketEvent, name: &[u8]) {
        self.protocol = match (i32::from(event.family), i32::from(event.protocol)) {
            (libc::AF_UNIX, _) => Some("unix"),
            (_, libc::IPPROTO_TCP) => Some("tcp"),
            (_, libc::IPPROTO_UDP) => Some("udp"),
            _ => None,
        };
        if event.known & SOCKET_ADDRESSES != 0 {
            // A connection that has ended no longer has another end, so known addresses are kept.
            self.local = address(event.family, &event.local, event.local_port).or(self.local);
            self.remote = address(event.family, &event.remote, event.remote_port).or(self.remote);
        }
        if event.known & SOCKET_PEER != 0 {
            self.peer = Some(event.peer);
        }
        if !name.is_empty() {
            self.name = name.to_vec();
        }
        if event.known & SOCKET_COUNTS != 0 {
            let SocketEvent { received_bytes, sent_bytes, retransmits, round_trip_us, .. } = *event;
            let before = self.counts.map_or((0, 0, 0), |counts| (counts.received_bytes, counts.sent_bytes, counts.retransmits));
            self.counts = Some(Counts {
                received_bytes: received_bytes.max(before.0),
                sent_bytes: sent_bytes.max(before.1),
                retransmits: retransmits.max(before.2),
                round_trip_us,
            });
        }
    }
}

/// Address of a socket that has a port.
fn address(family: u16, bytes: &[u8; 16], port: u16) -> Option<SocketAddr> {
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::from(*bytes.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*bytes).to_canonical(),
        _ => return None,
    };
    (port != 0).then_some(SocketAddr::new(ip, port))
}

/// Write the rows. The other end is the socket with the two addresses exchanged, or the one that
/// the kernel names.
pub(super) fn write(sockets: &BTreeMap<u64, Socket>, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
    let pair = |socket: &Socket| Some((socket.protocol?, socket.local?, socket.remote?));
    let ends: FxHashMap<_, u64> = sockets.iter().filter_map(|(inode, socket)| Some((pair(socket)?, *inode))).collect();
    let mut batch: Batch<SocketsColumns> = Batch::default();
    for (inode, socket) in sockets {
        let Some(path_id) = path_of(*inode, conversion) else { continue };
        let other_end = || pair(socket).and_then(|(protocol, local, remote)| ends.get(&(protocol, remote, local)).copied());
        let peer = socket.peer.or_else(other_end);
        batch.push(&rows::Sockets {
            path_id,
            protocol: socket.protocol.unwrap_or("unknown").into(),
            local: address_text(socket.local, &socket.name).map(Into::into),
            remote: address_text(socket.remote, peer.and_then(|peer| sockets.get(&peer)).map_or(&[], |peer| &peer.name))
                .map(Into::into),
            peer_path_id: peer.and_then(|peer| path_of(peer, conversion)),
            received_bytes: socket.counts.map(|counts| counts.received_bytes.cast_signed()),
            sent_bytes: socket.counts.map(|counts| counts.sent_bytes.cast_signed()),
            retransmits: socket.counts.map(|counts| i64::from(counts.retransmits)),
            round_trip_ns: socket.counts.map(|counts| i64::from(counts.round_trip_us) * 1000),
        });
        if batch.len() >= ROWS_PER_GROUP {
            conversion.recording.write_batch(&mut batch)?;
        }
    }
    conversion.recording.write_batch(&mut batch)
}

/// The row in `paths` of a socket that a recorded program has used.
fn path_of(inode: u64, conversion: &Conversion<'_>) -> Option<i32> {
    conversion.objects.find(format!("socket:[{inode}]").as_bytes()).map(|id| id as i32)
}

/// An address, or the name of a local socket: a path, or `@` and a name for sockets without a file.
fn address_text(address: Option<SocketAddr>, name: &[u8]) -> Option<String> {
    if let Some(address) = address {
        return Some(address.to_string());
    }
    let (first, rest) = name.split_first()?;
    let text = if *first == 0 { [b"@", rest].concat() } else { name.to_vec() };
    let end = text.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    Some(sysdock_table::readable(&text[..end]).into_owned())
}
