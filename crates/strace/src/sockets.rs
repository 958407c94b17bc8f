//! The table `sockets`, as far as a log shows: the address that each socket was connected to.

use std::collections::BTreeMap;

use memchr::memmem;
use sysdock_calls::{CallRow, Kind, Objects};
use sysdock_table::{Batch, Recording, TableError, readable, rows, rows::SocketsColumns};

use crate::fields::Call;

/// Addresses of peers by row in `paths`.
#[derive(Default)]
pub(crate) struct Sockets(BTreeMap<i32, Address>);

/// With so many bytes of addresses, no more are added.
const LONGEST: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    is_local: bool,
    /// Address and port, or the name of a local socket.
    text: String,
}

impl Sockets {
    /// Take note of a complete call.
    pub(crate) fn see(&mut self, call: &Call<'_>, row: &CallRow, objects: &Objects) {
        let Ok(object) = u32::try_from(row.object) else { return };
        // `TCP:[from->to]` has both addresses in its name.
        let says_itself = || memmem::find(objects.name(object), b"->").is_some();
        if call.name != b"connect" || objects.kind(object) != Kind::Socket || says_itself() {
            return;
        }
        if let Some(address) = address(call.arguments.text) {
            let known = self.0.entry(row.object).or_insert_with(|| address.clone());
            // A socket may be connected again after a failure: then it has several.
            if known.text.split(", ").all(|one| one != address.text) && known.text.len() < LONGEST {
                known.text = format!("{}, {}", known.text, address.text);
            }
        }
    }

    /// Write the rows.
    pub(crate) fn write(&self, recording: &mut Recording) -> Result<(), TableError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::<SocketsColumns>::default();
        for (path_id, address) in &self.0 {
            batch.push(&rows::Sockets {
                path_id: *path_id,
                protocol: if address.is_local { "unix" } else { "unknown" }.into(),
                local: None,
                remote: Some(address.text.as_str().into()),
                peer_path_id: None,
                received_bytes: None,
                sent_bytes: None,
                retransmits: None,
                round_trip_ns: None,
            });
        }
        recording.write_batch(&mut batch)
    }
}

/// The address in the arguments of `connect`: `{sa_family=AF_INET, sin_port=htons(80),
/// sin_addr=inet_addr("10.0.0.1")}`.
fn address(text: &[u8]) -> Option<Address> {
    let part = |before: &[u8], end: u8| {
        let start = memmem::find(text, before)? + before.len();
        let length = memchr::memchr(end, &text[start..])?;
        Some(readable(&text[start..start + length]))
    };
    if let Some(path) = part(b"sun_path=\"", b'"') {
        return Some(Address { is_local: true, text: path.into_owned() });
    }
    if let Some(name) = part(b"sun_path=@\"", b'"') {
        return Some(Address { is_local: true, text: format!("@{name}") });
    }
    let port = part(b"_port=htons(", b')')?;
    let text = match part(b"inet_addr(\"", b'"') {
        Some(address) => format!("{address}:{port}"),
        None => format!("[{}]:{port}", part(b"inet_pton(AF_INET6, \"", b'"')?),
    };
    Some(Address { is_local: false, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_every_family() {
        let address = |text: &str| address(text.as_bytes()).map(|address| address.text);
        assert_eq!(
            address(r#"connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("10.0.0.1")}, 16"#)
                .unwrap(),
            "10.0.0.1:80"
        );
        let ipv6 =
            r#"{sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::1", &sin6_addr)}"#;
        assert_eq!(address(ipv6).unwrap(), "[::1]:443");
        assert_eq!(address(r#"{sa_family=AF_UNIX, sun_path="/run/x"}, 110"#).unwrap(), "/run/x");
        assert_eq!(address(r#"{sa_family=AF_UNIX, sun_path=@"x"}, 110"#).unwrap(), "@x");
        assert_eq!(address("{sa_family=AF_UNSPEC"), None);
        assert_eq!(address(r#"{sa_family=AF_INET, sin_port=htons(80"#), None);
    }
}
