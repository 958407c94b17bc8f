//! File systems whose maps the kernel gives as a whole: xfs by its reverse map, btrfs by its trees.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::Path,
    sync::mpsc,
    thread,
};

use sysdock_table::{Cancel, Ending, Progress, TableError};

use crate::{
    DiskError, Outcome, Settings,
    batch::Batch,
    fs::{
        btrfs::{self, Chunks, Map},
        xfs::{self, Owned},
    },
    mounts::Mount,
    names::{Names, SharedNames},
    scan::{FileSystem, Refused, Work, pieces, space, threads, write_file_system},
    tables::{Part, Tables},
    walk::Walk,
};

/// A method that cannot be used here, or that failed.
pub(crate) enum Unable {
    Because(String),
    Failed(DiskError),
}

impl From<TableError> for Unable {
    fn from(error: TableError) -> Self {
        Unable::Failed(error.into())
    }
}

/// xfs, by its reverse map.
pub(crate) fn by_owners(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| Unable::Failed(DiskError::Io(mount.point.clone(), error));
    let folder = File::open(&mount.point).map_err(failed)?;
    let status = folder.metadata().map_err(failed)?;
    let facts = xfs::facts(folder.as_raw_fd()).map_err(failed)?;
    if !facts.has_owners {
        return Err(Unable::Because("it has no reverse map (mkfs.xfs -m rmapbt=1)".into()));
    }
    // Asked first of all: it tells whether this may be asked.
    let may_ask = xfs::inodes(folder.as_raw_fd(), &mut |_: &_| Ok(false));
    if let Err(error) = may_ask {
        return Err(Unable::Because(format!("who owns its blocks is told to root only ({error})")));
    }
    let mut tables = Tables::new(work.recording);
    for number in 0..facts.size_bytes.div_ceil(facts.group_bytes.max(1)) {
        let physical = number * facts.group_bytes;
        let length = facts.group_bytes.min(facts.size_bytes - physical);
        tables.part(Part { part: "group", number: i32::try_from(number).ok(), inode: None, physical, length, device: 0 })?;
    }
    let mut owned = Owned::default();
    pieces(&folder, status.dev(), &mut tables, &mut |piece| owned.take(piece)).map_err(|refused| match refused {
        Refused::Kernel(error) => failed(error),
        Refused::Table(error) => error.into(),
    })?;
    let names = match work.settings.without_names {
        true => Names::default(),
        false => names(&mount.point, status.dev(), status.ino(), work.settings, work.cancel),
    };
    let mut not_written = None;
    let gone = owned
        .files(folder.as_raw_fd(), &names, &mut |batch: &Batch| {
            let written = tables.batch(batch);
            (work.report)(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            written.map(|()| !work.cancel.requested()).map_err(|error| {
                not_written = Some(error);
                io::Error::other("not written")
            })
        })
        .map_err(|error| not_written.take().map_or_else(|| failed(error), Unable::from))?;
    let files = tables.taken;
    tables.finish()?;
    let space = space(&mount.point).map_err(failed)?;
    let moment = if gone == 0 { "unknown" } else { "many" };
    let uuid = Some(hyphenated(facts.uuid));
    let row = FileSystem {
        mount,
        uuid,
        block_bytes: space.0,
        size_bytes: facts.size_bytes,
        free_bytes: space.2,
        is_whole: true,
        moment,
    };
    let reason = "xfs keeps a reverse map, which names the owner of every block".to_string();
    write_file_system(work.recording, &row, "fsmap", &reason, files, 0)?;
    let ending = if work.cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    Ok(Outcome { ending, method: "fsmap", reason, files, unread: 0, example: None, facts: Vec::new(), issues: Vec::new() })
}

/// btrfs, by its trees.
pub(crate) fn by_trees(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| Unable::Failed(DiskError::Io(mount.point.clone(), error));
    let folder = File::open(&mount.point).map_err(failed)?;
    let file = folder.as_raw_fd();
    let chunks = match Chunks::of(file) {
        Ok(chunks) => chunks,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Unable::Because(format!("its trees are shown to root only ({error})")));
        }
        Err(error) => return Err(failed(error)),
    };
    if chunks.is_striped() {
        return Err(Unable::Because("it is striped over several devices (RAID0, 5, 6 or 10), which is not mapped yet".into()));
    }
    let facts = btrfs::facts(file).map_err(failed)?;
    let used = btrfs::used(file, facts.node_bytes).map_err(failed)?;
    let mut tables = Tables::new(work.recording);
    let mut map = Map::new(&chunks, &used);
    let mut not_written = None;
    for subvolume in btrfs::subvolumes(file).map_err(failed)? {
        let prefix = (!work.settings.without_names).then_some(mount.point.as_os_str().as_encoded_bytes());
        let outcome = btrfs::files(file, &subvolume, prefix, &mut |batch| {
            map.place(batch);
            let written = tables.batch(batch);
            (work.report)(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            written.map(|()| !work.cancel.requested()).map_err(|error| {
                not_written = Some(error);
                io::Error::other("not written")
            })
        });
        outcome.map_err(|error| not_written.take().map_or_else(|| failed(error), Unable::from))?;
    }
    map.rest(&mut tables)?;
    let files = tables.taken;
    tables.finish()?;
    let space = space(&mount.point).map_err(failed)?;
    let size_bytes = chunks.devices.iter().map(|(_, size)| size).sum();
    let uuid = Some(hyphenated(facts.uuid));
    let row =
        FileSystem { mount, uuid, block_bytes: space.0, size_bytes, free_bytes: space.2, is_whole: true, moment: "unknown" };
    let reason = "btrfs shows its trees to root".to_string();
    write_file_system(work.recording, &row, "tree", &reason, files, 0)?;
    let ending = if work.cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    Ok(Outcome { ending, method: "tree", reason, files, unread: 0, example: None, facts: Vec::new(), issues: Vec::new() })
}

/// The name of every inode of a file system.
fn names(path: &Path, device: u64, inode: u64, settings: Settings, cancel: &Cancel) -> Names {
    let names = SharedNames::of(path, inode);
    let walk = Walk::new(device, cancel, Some(&names), false);
    thread::scope(|scope| {
        // Nothing is sent.
        let (sender, _batches) = mpsc::sync_channel(1);
        walk.begin(path, &sender);
        for _ in 0..threads(settings) {
            let sender = sender.clone();
            let walk = &walk;
            scope.spawn(move || walk.work(&sender));
        }
    });
    names.into_names()
}

fn hyphenated(uuid: [u8; 16]) -> String {
    let hex: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..4, 4..6, 6..8, 8..10, 10..16];
    parts.map(|part| hex[part].concat()).join("-")
}
