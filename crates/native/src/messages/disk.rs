//! Errors of `sysdock-disk` as text.

use std::io;

use sysdock_disk::{
    DiskError, Remedy, fact_of,
    map::{Damage, MapError},
};

use super::Message;
use crate::sentences;

impl From<DiskError> for Message {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Table(error) => error.into(),
            DiskError::Io(path, error) => {
                let fact = format!("{}: {}", path.display(), sentences::sentence(&fact_of(&error)));
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        Message::new(fact, "give a mount point, a folder, a file, a block device or an image file")
                    }
                    io::ErrorKind::PermissionDenied => Message::new(fact, "run as root, or give a folder that you can read"),
                    _ => Message::bare(fact),
                }
            }
            DiskError::NoMount(path) => Message::bare(format!("{}: no mount holds it", path.display())),
            DiskError::NoTarget(path) => {
                Message::bare(format!("{}: neither a folder, a file nor a block device", path.display()))
            }
            DiskError::NoFileSystem(path) => Message::new(
                format!("{}: no known file system", path.display()),
                "blkid shows what a device holds; a disk with partitions has a device for each",
            ),
            DiskError::Refused(path, why, remedy) => {
                Message::new(format!("{}: {}", path.display(), sentences::sentence(&why)), hint(remedy))
            }
            DiskError::NoUsageList(path) => Message::bare(format!("{}: not a list of used files", path.display())),
        }
    }
}

fn hint(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Mount => "mount it, and scan the mount point",
        Remedy::MountImage => "mount it, an image by `mount -o loop,ro IMAGE DIRECTORY`, and scan the mount point",
        Remedy::ApplyJournal => "mount it once, or run e2fsck on a copy of it",
        Remedy::CheckSuperBlock => "e2fsck -n shows more; dumpe2fs and mke2fs -n list backup superblocks",
        Remedy::CopyAgain => "copy the image again",
        Remedy::CopyInFull => "copy the image again; a sparse copy needs its full length",
        Remedy::ScanMounted => "scan the mount point or the loop device",
        Remedy::ScanOwner => "scan the device whose journal it is",
    }
}

impl From<MapError> for Message {
    fn from(error: MapError) -> Self {
        match error {
            MapError::Io(path, error) => {
                let fact = format!("{}: {error}", path.display());
                match error.kind() {
                    io::ErrorKind::NotFound => Message::new(fact, "to record a disk: sysdock disk scan TARGET -o REC"),
                    _ => Message::bare(fact),
                }
            }
            MapError::Damaged(path, damage) => Message::new(
                format!("{}: {}", path.display(), damaged(damage)),
                "the recording was damaged or changed after it was written; scan again",
            ),
            MapError::NoTable(path, table) => Message::new(
                format!("{}: no table {table}", path.display()),
                "a map is drawn of what `sysdock disk scan` recorded",
            ),
            MapError::NotFound(path) => Message::new(
                format!("{path}: not in this recording"),
                "give the path of a file or directory as `sysdock show REC disk/files` has it",
            ),
            MapError::Empty(path) => Message::bare(format!("{}: a file system without any size", path.display())),
        }
    }
}

fn damaged(damage: Damage) -> String {
    match damage {
        Damage::Json(error) => error.to_string(),
        Damage::Version { found, read } => format!("format version {found}, where {read} is read"),
        Damage::Outside => "not inside the recording".into(),
        Damage::NoFile(bytes) => format!("not a plain file of {bytes} bytes"),
        Damage::Hash => "its content does not match the hash in recording.json".into(),
        Damage::Footer => "its footer is invalid".into(),
        Damage::Panic => "the Parquet library cannot read it".into(),
        Damage::Parquet(error) => error.to_string(),
        Damage::Rows(error) => error.to_string(),
        Damage::Lengths => "its columns differ in length".into(),
        Damage::NoColumn(names) => format!("no column {names}"),
        Damage::Lists(name) => format!("column {name} holds lists"),
        Damage::NoValues(name) => format!("column {name} holds neither integers nor texts"),
        Damage::NoIntegers(name) => format!("column {name} holds no integers"),
        Damage::NoTexts(name) => format!("column {name} holds no texts"),
    }
}
