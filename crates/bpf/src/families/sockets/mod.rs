//! The two ends of sockets: the table `sockets`. The programs report when TCP connections begin and
//! end; the user side queries the others ([`census`]).

pub(crate) mod census;
mod rows;

use std::collections::BTreeMap;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{EVENT_SOCKET, Raw, SocketEvent},
    families::{Converter, Family, Recorded},
};

use rows::Socket;

/// What is known about sockets, by inode.
#[derive(Default)]
pub(crate) struct Sockets(BTreeMap<u64, Socket>);

impl Converter for Sockets {
    const FAMILY: Family = Family {
        name: "sockets",
        shows: "addresses of sockets and their peers, and what TCP counts of them",
        recorded: Recorded::Usually,
        object: programs!("sockets"),
        kinds: &[(EVENT_SOCKET, "sockets")],
        tables: &["sockets"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        event.read::<SocketEvent>().is_some_and(|(socket, name)| socket.length as usize <= name.len())
    }

    fn event(&mut self, event: &Raw<'_>, _: i64, _: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some((socket, name)) = event.read::<SocketEvent>() else { return Ok(()) };
        let name = name.get(..socket.length as usize).unwrap_or_default();
        self.0.entry(socket.inode).or_default().see(&socket, name);
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(rows::write(&std::mem::take(&mut self.0), conversion)?)
    }
}
