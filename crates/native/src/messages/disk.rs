//! Errors of `sysdock-disk` as text.

use std::io;

use sysdock_disk::{DiskError, map::MapError};

use super::Message;
use crate::sentences;

impl From<DiskError> for Message {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Table(error) => error.into(),
            DiskError::Io(path, error) => {
                let fact = format!("{}: {error}", path.display());
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        Message::new(fact, "give a mount point, a folder, a file, a block device or an image file")
                    }
                    io::ErrorKind::PermissionDenied => Message::new(fact, "run as root, or give a folder that you can read"),
                    _ => Message::bare(fact),
                }
            }
            DiskError::NoFileSystem(path) => Message::new(
                format!("{}: no known file system", path.display()),
                "blkid shows what a device holds; a disk with partitions has a device for each",
            ),
            DiskError::Refused(path, why, hint) => {
                Message::new(format!("{}: {}", path.display(), sentences::sentence(&why)), hint)
            }
            other => Message::bare(other.to_string()),
        }
    }
}

impl From<MapError> for Message {
    fn from(error: MapError) -> Self {
        let fact = error.to_string();
        match error {
            MapError::Io(_, error) if error.kind() == io::ErrorKind::NotFound => {
                Message::new(fact, "to record a disk: sysdock disk scan TARGET -o REC")
            }
            MapError::Damaged(..) => Message::new(fact, "the recording was damaged or changed after it was written; scan again"),
            MapError::NoTable(..) => Message::new(fact, "a map is drawn of what `sysdock disk scan` recorded"),
            MapError::NotFound(_) => {
                Message::new(fact, "give the path of a file or directory as `sysdock show REC disk/files` has it")
            }
            _ => Message::bare(fact),
        }
    }
}
