//! Rows of sockets of processes.

use sysdock_table::{TableError, readable, rows};

use super::{Outcome, note};
use crate::{Fault, Kernel, OpenFile, Sink, Socket, Task};

/// Write `dump_sockets`.
pub(super) fn write(
    kernel: &Kernel,
    (files, tasks): (&[OpenFile], &[Task]),
    out: &mut impl Sink,
    outcome: &mut Outcome,
) -> Result<(), TableError> {
    let found = kernel.sockets(files);
    note(outcome, "sockets", found.as_ref().err());
    out.write_rows(found.unwrap_or_default().iter().map(|socket| row(socket, tasks)))
}

fn row<'s>(socket: &'s Socket, tasks: &[Task]) -> rows::DumpSockets<'s> {
    let text = |text: &'s Option<String>| text.as_deref().map(|text| readable(text.as_bytes()));
    let signed = |value: Option<u64>| value.map(u64::cast_signed);
    rows::DumpSockets {
        pid: tasks.get(socket.task).and_then(|task| task.tgid).map(u32::cast_signed),
        fd: i32::try_from(socket.descriptor).unwrap_or(i32::MAX),
        family: socket.family.as_str().into(),
        kind: text(&socket.kind),
        protocol: text(&socket.protocol),
        state: text(&socket.state),
        local: text(&socket.local),
        local_port: socket.local_port.map(i32::from),
        remote: text(&socket.remote),
        remote_port: socket.remote_port.map(i32::from),
        receive_bytes: signed(socket.receive),
        unaccepted: socket.unaccepted.map(u32::cast_signed),
        send_bytes: signed(socket.send),
        inode: signed(socket.inode),
        status: socket.fault.map_or("ok", Fault::name).into(),
    }
}
