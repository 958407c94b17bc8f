//! xfs by its reverse map: the kernel names the owner of every piece, and gives all inodes; names come from the folders.

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

use sysdock_table::{Cancel, Progress, TableError};

use super::Unable;
use crate::{
    DiskError, Outcome, Settings,
    batch::Batch,
    fs::xfs::{self, Facts, Owned},
    mounts::Mount,
    names::{Names, SharedNames},
    scan::{Refused, Told, Work, pieces, threads},
    tables::{Part, Tables},
    walk::Walk,
};

/// Scan a mounted xfs.
pub(crate) fn by_owners(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| DiskError::Io(mount.point.clone(), error);
    let folder = File::open(&mount.point).map_err(failed)?;
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
    groups(&facts, &mut tables)?;
    let device = folder.metadata().map_err(failed)?;
    let mut owned = Owned::default();
    let names = thread::scope(|scope| {
        // The folders are read while the kernel tells its map.
        let names = scope.spawn(|| match work.settings.without_names {
            true => Names::default(),
            false => names(&mount.point, device.dev(), device.ino(), work.settings, work.cancel),
        });
        let outcome = pieces(&folder, device.dev(), &mut tables, &mut |piece| owned.take(piece));
        let names = names.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        outcome.map(|()| names).map_err(|refused| refused.at(&mount.point))
    })?;
    let threads = threads(work.settings);
    // More than threads, as some ranges take longer.
    let ranges = owned.sorted(4 * threads);
    let owners = Owners { folder: &folder, owned: &owned, names: &names, ranges, next: AtomicUsize::new(0), cancel: work.cancel };
    let gone = owners.write(threads, &mut tables, work.report).map_err(|refused| refused.at(&mount.point))?;
    let files = tables.taken;
    tables.finish()?;
    let told = Told {
        mount,
        path: &mount.point,
        uuid: Some(facts.uuid),
        size_bytes: Some(facts.size_bytes),
        is_whole: true,
        moment: if gone == 0 { "unknown" } else { "many" },
        method: "fsmap",
        reason: "xfs keeps a reverse map, which names the owner of every block".into(),
        files,
        unread: 0,
        devices: Vec::new(),
    };
    Ok(told.outcome(work.recording, work.cancel)?)
}

fn groups(facts: &Facts, tables: &mut Tables<'_>) -> Result<(), TableError> {
    for number in 0..facts.size_bytes.div_ceil(facts.group_bytes.max(1)) {
        let physical = number * facts.group_bytes;
        let length = facts.group_bytes.min(facts.size_bytes - physical);
        tables.part(Part { part: "group", number: i32::try_from(number).ok(), inode: None, physical, length, device: 0 })?;
    }
    Ok(())
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
