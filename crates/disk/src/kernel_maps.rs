//! File systems whose maps the kernel gives as a whole: xfs by its reverse map, btrfs by its trees.

use std::{
    fs::File,
    io,
    ops::Range,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    panic,
    path::Path,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use sysdock_table::{Cancel, Ending, Progress, TableError};

use crate::{
    DiskError, Outcome, Settings,
    batch::Batch,
    fs::{
        btrfs::{self, Chunks, Map, Reading},
        xfs::{self, Owned},
    },
    mounts::Mount,
    names::{Names, SharedNames},
    paths::{self, NeedsPath},
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
    let may_ask = xfs::inodes(folder.as_raw_fd(), 0..u64::MAX, &mut |_: &_| Ok(false));
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
    let unable = |refused| match refused {
        Refused::Kernel(error) => failed(error),
        Refused::Table(error) => error.into(),
    };
    let names = thread::scope(|scope| {
        // The folders are read while the kernel tells its map.
        let names = scope.spawn(|| match work.settings.without_names {
            true => Names::default(),
            false => names(&mount.point, status.dev(), status.ino(), work.settings, work.cancel),
        });
        let outcome = pieces(&folder, status.dev(), &mut tables, &mut |piece| owned.take(piece));
        let names = names.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        outcome.map(|()| names)
    });
    let names = names.map_err(unable)?;
    let threads = threads(work.settings);
    // More than threads, as some ranges take longer.
    let ranges = owned.sorted(4 * threads);
    let owners = Owners { folder: &folder, owned: &owned, names: &names, ranges, next: AtomicUsize::new(0), cancel: work.cancel };
    let gone = owners.write(threads, &mut tables, work.report).map_err(unable)?;
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

/// Inodes and what they own, asked for by threads side by side.
struct Owners<'a> {
    folder: &'a File,
    owned: &'a Owned,
    names: &'a Names,
    /// Of inode numbers.
    ranges: Vec<Range<u64>>,
    /// The next of them.
    next: AtomicUsize,
    cancel: &'a Cancel,
}

impl Owners<'_> {
    /// One thread's part. Returns how many inodes had changed meanwhile.
    fn ask(&self, sender: &mpsc::SyncSender<Batch>) -> io::Result<u64> {
        let mut gone = 0;
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut full = |batch| !self.cancel.requested() && sender.send(batch).is_ok();
            gone += self.owned.files(self.folder.as_raw_fd(), range.clone(), self.names, &mut full)?;
        }
        Ok(gone)
    }

    /// All of them, into the tables. Returns how many had changed meanwhile.
    fn write(&self, threads: usize, tables: &mut Tables<'_>, report: &mut dyn FnMut(Progress)) -> Result<u64, Refused> {
        thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel(2 * threads);
            let senders: Vec<_> = (0..threads).map(|_| sender.clone()).collect();
            drop(sender);
            let asking: Vec<_> = senders.into_iter().map(|sender| scope.spawn(move || self.ask(&sender))).collect();
            for batch in batches {
                tables.batch(&batch).map_err(Refused::Table)?;
                report(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            }
            let ended = asking.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
            ended.sum::<io::Result<u64>>().map_err(Refused::Kernel)
        })
    }
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
    let (threads, without_names) = (threads(work.settings), work.settings.without_names);
    let used = btrfs::used(file, &chunks, facts.node_bytes, threads).map_err(failed)?;
    let mut tables = if without_names { Tables::new(work.recording) } else { Tables::with_late_paths(work.recording) };
    let mut map = Map::new(&chunks, &used);
    let reading = Reading { file, threads, cancel: work.cancel, without_names };
    let unable = |refused| match refused {
        Refused::Kernel(error) => failed(error),
        Refused::Table(error) => error.into(),
    };
    for subvolume in btrfs::subvolumes(file).map_err(failed)? {
        let mut kept = Vec::new();
        let names = btrfs::files(reading, &subvolume, |batch| {
            map.place(batch);
            if !without_names {
                kept.extend(batch.files.iter().map(|file| (file.inode.number, file.inode.kind)));
            }
            (work.report)(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            tables.batch(batch).map_err(Refused::Table)
        });
        let names = names.map_err(unable)?;
        let kept = kept.iter().map(|(number, kind)| NeedsPath {
            number: btrfs::within_subvolume(*number),
            kind: *kind,
            is_linked: true,
        });
        paths::write(kept, subvolume.paths(&names, mount.point.as_os_str().as_encoded_bytes()), work.cancel, &mut tables)?;
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
