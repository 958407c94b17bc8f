//! The socket: generic netlink, family TASKSTATS (Documentation/accounting/taskstats.rst of the
//! kernel).

use std::{fs, io, os::fd::OwnedFd};

use rustix::{
    io::Errno,
    net::{
        self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType,
        netlink::{self, SocketAddrNetlink},
        sockopt,
    },
};

use sysdock_table::{Fact, facts::measure as facts};

use super::record::Record;
use crate::missing::unreadable;

/// Requested size of the socket's buffer [B]. The kernel doubles it, and allocates memory only for
/// actual messages.
pub(super) const BUFFER: usize = 32 << 20;

const CTRL: u16 = 0x10;
const CTRL_GET_FAMILY: u8 = 3;
const CTRL_FAMILY_ID: u16 = 1;
const CTRL_FAMILY_NAME: u16 = 2;
const CMD_GET: u8 = 1;
const ATTR_PID: u16 = 1;
const ATTR_REGISTER_CPUS: u16 = 3;
const ATTR_DEREGISTER_CPUS: u16 = 4;
const TYPE_STATS: u16 = 3;
const TYPE_OF_TASK: u16 = 4;
/// Lengths of `nlmsghdr` and `genlmsghdr`.
const HEADER: usize = 16;
const GENERIC: usize = 4;

/// A socket that receives a record of each task that ends.
pub(super) struct Socket {
    socket: OwnedFd,
    family: u16,
    cpus: String,
    buffer: Vec<u8>,
}

/// What was received.
pub(super) enum Received {
    Record(Box<Record>),
    /// The socket is empty.
    Nothing,
    /// Messages were dropped because the buffer was full.
    Lost,
    /// A message that is not understood.
    Unknown(Fact),
}

impl Socket {
    pub(super) fn open(bytes: usize) -> Result<Self, Fact> {
        let socket = raw_socket().map_err(|error| refused("netlink", &error))?;
        let cpus = fs::read_to_string("/sys/devices/system/cpu/possible");
        let cpus = cpus.map_err(|error| facts::cpus_unreadable(error.to_string()))?;
        let mut socket = Socket { socket, family: CTRL, cpus: cpus.trim().into(), buffer: vec![0; 1 << 16] };
        let name = attribute(CTRL_FAMILY_NAME, b"TASKSTATS\0");
        let family = socket.query(CTRL_GET_FAMILY, &name).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => facts::no_records_kept(),
            _ => refused("taskstats", &error),
        })?;
        let id = find(&family, CTRL_FAMILY_ID).and_then(|field| field.first_chunk()).map(|id| u16::from_ne_bytes(*id));
        socket.family = id.ok_or_else(facts::no_family_named)?;
        socket.check_form()?;
        socket.set_room(bytes);
        let list = cpu_list(&socket.cpus);
        socket.query(CMD_GET, &attribute(ATTR_REGISTER_CPUS, &list)).map_err(|error| refused("taskstats", &error))?;
        Ok(socket)
    }

    /// Check that our own record has our ids at the expected offsets.
    fn check_form(&mut self) -> Result<(), Fact> {
        let pid = std::process::id();
        let answer =
            self.query(CMD_GET, &attribute(ATTR_PID, &pid.to_ne_bytes())).map_err(|error| refused("taskstats", &error))?;
        let bytes = find(&answer, TYPE_OF_TASK).and_then(|nested| find(nested, TYPE_STATS));
        let record = Record::parse(bytes.ok_or_else(facts::no_record_in_answer)?)?;
        let parent = std::os::unix::process::parent_id();
        if (record.task, record.parent, record.process) == (pid, parent, pid) { Ok(()) } else { Err(facts::unknown_form()) }
    }

    /// Set the size of the buffer; without the right to exceed the limit, to the limit.
    fn set_room(&self, bytes: usize) {
        if sockopt::set_socket_recv_buffer_size_force(&self.socket, bytes).is_err() {
            // The kernel takes any size, and keeps to the limit.
            let _ = sockopt::set_socket_recv_buffer_size(&self.socket, bytes);
        }
    }

    /// Send a request, and wait for the answer: its attributes, empty for a bare acknowledgement.
    fn query(&mut self, command: u8, attributes: &[u8]) -> io::Result<Vec<u8>> {
        self.send(command, attributes)?;
        loop {
            let length = self.receive(RecvFlags::empty())?;
            let message = &self.buffer[..length];
            match message_type(message) {
                Some(kind) if kind == libc::NLMSG_ERROR as u16 => {
                    let code = message[HEADER..].first_chunk().map_or(libc::EBADMSG, |code| -i32::from_ne_bytes(*code));
                    return if code == 0 { Ok(Vec::new()) } else { Err(io::Error::from_raw_os_error(code)) };
                }
                Some(kind) if kind == self.family => return Ok(message[(HEADER + GENERIC).min(length)..].to_vec()),
                // A record of another task, which came before the answer.
                Some(_) => {}
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn send(&self, command: u8, attributes: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(HEADER + GENERIC + attributes.len());
        message.extend(((HEADER + GENERIC + attributes.len()) as u32).to_ne_bytes());
        message.extend(self.family.to_ne_bytes());
        // If the answer is a record, request it alone: an acknowledgement would follow it, among
        // later records.
        let flags = if command == CMD_GET && is_about_cpus(attributes) {
            libc::NLM_F_REQUEST | libc::NLM_F_ACK
        } else {
            libc::NLM_F_REQUEST
        };
        message.extend((flags as u16).to_ne_bytes());
        message.extend([0; 8]);
        message.extend([command, 1, 0, 0]);
        message.extend(attributes);
        net::send(&self.socket, &message, SendFlags::empty())?;
        Ok(())
    }

    fn receive(&mut self, flags: RecvFlags) -> Result<usize, Errno> {
        net::recv(&self.socket, &mut self.buffer[..], flags).map(|(_, length)| length)
    }

    /// The next received record; does not wait.
    pub(super) fn next(&mut self) -> Received {
        loop {
            let length = match self.receive(RecvFlags::DONTWAIT) {
                Ok(length) => length,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Received::Nothing,
                Err(Errno::NOBUFS) => return Received::Lost,
                Err(error) => return Received::Unknown(unreadable("taskstats", io::Error::from(error))),
            };
            let message = &self.buffer[..length];
            if message_type(message) != Some(self.family) || length < HEADER + GENERIC {
                continue;
            }
            // A message contains one task; the sums of its process may follow, and add nothing new.
            let bytes = find(&message[HEADER + GENERIC..], TYPE_OF_TASK).and_then(|nested| find(nested, TYPE_STATS));
            return match bytes.map(Record::parse) {
                Some(Ok(record)) => Received::Record(Box::new(record)),
                Some(Err(why)) => Received::Unknown(why),
                None => continue,
            };
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Otherwise the kernel notices only when it cannot send any more. A failure does no harm.
        let _ = self.send(CMD_GET, &attribute(ATTR_DEREGISTER_CPUS, &cpu_list(&self.cpus)));
    }
}

/// Why the kernel gives no records.
fn refused(what: &str, error: &io::Error) -> Fact {
    match error.raw_os_error() {
        Some(libc::EPERM) => facts::records_not_permitted(),
        Some(libc::EINVAL) => facts::no_records_in_containers(),
        _ => unreadable(what, error),
    }
}

fn raw_socket() -> io::Result<OwnedFd> {
    let socket = net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::GENERIC))?;
    net::bind(&socket, &SocketAddrNetlink::new(0, 0))?;
    Ok(socket)
}

fn cpu_list(cpus: &str) -> Vec<u8> {
    cpus.bytes().chain([0]).collect()
}

fn is_about_cpus(attributes: &[u8]) -> bool {
    find(attributes, ATTR_REGISTER_CPUS).or_else(|| find(attributes, ATTR_DEREGISTER_CPUS)).is_some()
}

fn message_type(message: &[u8]) -> Option<u16> {
    message.get(4..)?.first_chunk().map(|kind| u16::from_ne_bytes(*kind))
}

/// An attribute, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + value.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of this kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    // The upper bits are flags.
    const KIND: u16 = 0x3fff;
    loop {
        let length = usize::from(u16::from_ne_bytes(*attributes.first_chunk()?));
        let found = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?) & KIND;
        let value = attributes.get(4..length)?;
        if found == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_after_others() {
        let all = [attribute(1, b"abc"), attribute(4, &attribute(3, &[9; 5]))].concat();
        assert_eq!(find(&all, 1), Some(&b"abc"[..]));
        assert_eq!(find(&all, 4).and_then(|nested| find(nested, 3)), Some(&[9; 5][..]));
        assert_eq!(find(&all, 2), None);
    }

    #[test]
    fn attributes_that_are_cut_off_or_empty_end_the_search() {
        for bytes in [&[][..], &[0, 0][..], &[0, 0, 0, 0][..], &[3, 0, 1, 0][..], &[200, 0, 1, 0, 1][..]] {
            assert_eq!(find(bytes, 1), None, "{bytes:?}");
        }
    }
}
