//! Errors of `sysdock-bpf` as text.

use std::{io, path::Path};

use sysdock_bpf::BpfError;

use super::Message;

impl From<BpfError> for Message {
    fn from(error: BpfError) -> Self {
        match error {
            BpfError::Table(error) => error.into(),
            BpfError::Full(path) => {
                Message::new(full(&path), "everything recorded so far is kept: free some space, then run sysdock salvage REC")
            }
            BpfError::InUse(path) => Message::new(
                format!("{}: recording in progress", path.display()),
                "wait until the recorder ends, or stop it with Ctrl-C",
            ),
            BpfError::NotASpool(path) => Message::new(
                format!("{}: no recorded events", path.display()),
                "salvage works on the folder of a recording whose recorder died",
            ),
            BpfError::Spool(path, error) if error.kind() == io::ErrorKind::NotFound => Message::new(
                format!("{}: not found", path.display()),
                "salvage works on the folder of a recording whose recorder died; a complete recording needs no salvage",
            ),
            other => Message::bare(other.to_string()),
        }
    }
}

/// A recorder cannot distinguish the two causes: nothing more can be written.
pub(crate) fn full(spool: &Path) -> String {
    format!("{}: the disk is full, or the file is larger than this shell's limit (ulimit -f)", spool.display())
}
