//! Errors of `sysdock-dump` as text.

use std::io;

use sysdock_dump::DumpError;

use super::Message;

impl From<DumpError> for Message {
    fn from(error: DumpError) -> Self {
        let fact = error.to_string();
        match error {
            DumpError::Table(error) => error.into(),
            DumpError::Io(_, error) => match error.kind() {
                io::ErrorKind::NotFound => Message::new(fact, "kdump writes dumps below /var/crash"),
                io::ErrorKind::PermissionDenied => Message::new(fact, "run as root: a dump contains the memory of all users"),
                _ => Message::bare(fact),
            },
            DumpError::NoDump(..) => Message::new(
                fact,
                "give what kdump, makedumpfile or `dump-guest-memory` of qemu wrote; of a program that crashed, see `coredumpctl`",
            ),
            DumpError::Damaged(..) => {
                Message::new(fact, "is the file complete? compare its size with that on the machine that wrote it")
            }
            DumpError::OtherBuild(..) => Message::new(
                fact,
                "install the debug information of that very kernel; --force uses this one, whose lines may be wrong",
            ),
            other => Message::bare(other.to_string()),
        }
    }
}
