//! Errors of `sysdock-table` as text.

use std::io;

use sysdock_table::{TableError, facts::paths as facts};

use super::Message;
use crate::sentences;

impl From<TableError> for Message {
    fn from(error: TableError) -> Self {
        let kind = error.io_kind();
        match (&error, kind) {
            (TableError::Exists(path), _) => Message::new(
                format!("{}: exists and is not empty", path.display()),
                "name another folder with -o, or remove this one",
            ),
            (TableError::Stranger(path, user), _) => Message::new(
                format!("{}: belongs to another user (uid {user})", path.display()),
                "only its owner may write to a recording; name another folder with -o, or work as that user",
            ),
            (TableError::StrangersLink(path, name, user), _) => {
                let why = facts::strangers_link(name.display().to_string(), user.to_string());
                let why = sentences::sentence(&why);
                Message::new(format!("{}: {why}", path.display()), sentences::sentence(&facts::name_where_it_leads()))
            }
            (TableError::OthersWrite(path), _) => Message::new(
                format!("{}: others may write to this folder", path.display()),
                format!("if you trust what is in it: chmod -R go-w {}", path.display()),
            ),
            (TableError::NotComplete(path), _) => Message::new(
                format!("{}: not a complete recording of this version", path.display()),
                "a capture is added to a recording that `sysdock run` or `sysdock import` finished",
            ),
            (
                TableError::Io(path, _) | TableError::Parquet(path, _),
                Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            ) => Message::new(
                format!("{}: no space left on device", path.display()),
                "what was closed before can be read; free some space or give another place with -o, and import again",
            ),
            (TableError::Io(path, _) | TableError::Parquet(path, _), Some(io::ErrorKind::FileTooLarge)) => Message::new(
                format!("{}: larger than this shell's limit for files", path.display()),
                "ulimit -f shows the limit; what was closed before can be read",
            ),
            (TableError::Io(path, _) | TableError::Parquet(path, _), Some(io::ErrorKind::PermissionDenied)) => {
                Message::new(format!("{}: permission denied", path.display()), "give a folder you may write with -o")
            }
            (TableError::Io(path, error), _) => Message::bare(format!("{}: {error}", path.display())),
            (TableError::Parquet(path, error), _) => Message::bare(format!("{}: {error}", path.display())),
        }
    }
}
