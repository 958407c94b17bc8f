//! A scan of xfs from the first query to the last row.

use std::{
    fs::File,
    io,
    ops::Range,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    panic,
    path::{Path, PathBuf},
    sync::{
        PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use sysdock_table::{Cancel, Fact, Progress, TableError, facts::disk};

use super::bulkstat::{self, Facts, Owned};
use sysdock_mounts::Mount;

use crate::{
    DiskError, Outcome, Settings,
    batch::Batch,
    fsmap,
    method::{Unable, Work},
    mounted::{Devices, MountedScan},
    paths_by_inode::{PathsByInode, SharedPaths},
    statvfs::{StatVfs, statvfs},
    tables::{Part, Tables},
    walk::Walk,
};

/// The value of `file_systems.method`.
pub(super) const METHOD: &str = "fsmap";

/// Scan a mounted xfs.
pub(super) fn scan(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| DiskError::Io(mount.point.clone(), error);
    let folder = File::open(&mount.point).map_err(failed)?;
    let facts = bulkstat::facts(folder.as_raw_fd()).map_err(failed)?;
    /// More groups than the largest xfs can have.
    const MOST_GROUPS: u64 = 1 << 24;
    if facts.group_bytes == 0 || facts.size_bytes.div_ceil(facts.group_bytes) > MOST_GROUPS {
        return Err(Unable::Because(disk::invalid_group_size()));
    }
    if !facts.has_owners {
        return Err(Unable::Because(disk::no_reverse_map()));
    }
    // The first query shows whether queries are permitted.
    let may_ask = bulkstat::inodes(folder.as_raw_fd(), 0..u64::MAX, &mut |_: &_| Ok(false));
    match may_ask {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Unable::Because(disk::owners_for_root_only(error.to_string())));
        }
        Err(error) if error.raw_os_error() == Some(libc::ENOTTY) => {
            return Err(Unable::Because(disk::no_bulk_query(error.to_string())));
        }
        outcome => outcome.map_err(failed)?,
    }
    let space = statvfs(&mount.point).map_err(failed)?;
    let mut tables = Tables::new(work.recording);
    groups(&facts, &mut tables)?;
    let device = folder.metadata().map_err(failed)?;
    let mut owned = Owned::default();
    let (names, unnamed) = thread::scope(|scope| {
        // Folders are read while the kernel reports its map.
        let names = scope.spawn(|| match work.settings.without_names {
            true => (PathsByInode::default(), Unnamed::default()),
            false => names(&mount.point, device.dev(), device.ino(), work.settings, work.cancel),
        });
        let outcome = fsmap::write(&folder, device.dev(), &mut tables, &mut |piece| owned.take(piece));
        let names = names.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        outcome.map(|()| names).map_err(|refused| refused.at(&mount.point))
    })?;
    let threads = work.settings.query_threads();
    // More ranges than threads, because some take longer.
    let ranges = owned.sorted(4 * threads);
    let owners = Owners { folder: &folder, owned: &owned, names: &names, ranges, next: AtomicUsize::new(0), cancel: work.cancel };
    let QueryOutcome { gone, unreported, broken } = owners.write(threads, &mut tables, work.report)?;
    let files = tables.taken + unreported;
    tables.finish()?;
    let scan = MountedScan {
        mount,
        path: &mount.point,
        uuid: Some(facts.uuid),
        space: StatVfs { size_bytes: facts.size_bytes, ..space },
        is_whole: true,
        moment: if gone == 0 { "unknown" } else { "many" },
        method: METHOD,
        reason: disk::reverse_map().into(),
        files,
        unread: unreported + unnamed.folders,
        issues: unnamed.issues,
        broken,
        devices: Devices::One,
    };
    let outcome = scan.outcome(work)?;
    Ok(Outcome { example: unnamed.example, ..outcome })
}

fn groups(facts: &Facts, tables: &mut Tables<'_>) -> Result<(), TableError> {
    for number in 0..facts.size_bytes.div_ceil(facts.group_bytes) {
        let physical = number * facts.group_bytes;
        let length = facts.group_bytes.min(facts.size_bytes - physical);
        tables.part(Part { part: "group", number: i32::try_from(number).ok(), inode: None, physical, length, device: 0 })?;
    }
    Ok(())
}

/// Inodes and the extents that they own, requested by threads in parallel.
struct Owners<'a> {
    folder: &'a File,
    owned: &'a Owned,
    names: &'a PathsByInode,
    /// Ranges of inode numbers.
    ranges: Vec<Range<u64>>,
    /// Index of the next range.
    next: AtomicUsize,
    cancel: &'a Cancel,
}

/// Result of the queries for inodes that own extents.
#[derive(Default)]
struct QueryOutcome {
    /// Number of inodes that had changed meanwhile.
    gone: u64,
    /// Number of inodes that were not reported, because of an error.
    unreported: u64,
    /// The first of these errors.
    broken: Option<io::Error>,
}

impl QueryOutcome {
    fn and(self, other: QueryOutcome) -> QueryOutcome {
        let (gone, unreported) = (self.gone + other.gone, self.unreported + other.unreported);
        QueryOutcome { gone, unreported, broken: self.broken.or(other.broken) }
    }
}

impl Owners<'_> {
    /// The work of one thread. After an error it continues with the next range: unreadable inodes
    /// are counted.
    fn query(&self, sender: &mpsc::SyncSender<Batch>) -> QueryOutcome {
        let mut all = QueryOutcome::default();
        while let Some(range) = self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let mut full = |batch| !self.cancel.requested() && sender.send(batch).is_ok();
            let outcome = match self.owned.files(self.folder.as_raw_fd(), range.clone(), self.names, &mut full) {
                (gone, Ok(())) => QueryOutcome { gone, ..QueryOutcome::default() },
                (unreported, Err(error)) => QueryOutcome { unreported, broken: Some(error), ..QueryOutcome::default() },
            };
            all = all.and(outcome);
        }
        all
    }

    /// Query all ranges, and write the results to the tables.
    fn write(
        &self,
        threads: usize,
        tables: &mut Tables<'_>,
        report: &mut dyn FnMut(Progress),
    ) -> Result<QueryOutcome, TableError> {
        thread::scope(|scope| {
            let (sender, batches) = mpsc::sync_channel(2 * threads);
            let senders: Vec<_> = (0..threads).map(|_| sender.clone()).collect();
            drop(sender);
            let asking: Vec<_> = senders.into_iter().map(|sender| scope.spawn(move || self.query(&sender))).collect();
            for batch in batches {
                tables.batch(&batch)?;
                report(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            }
            let ended = asking.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic)));
            Ok(ended.fold(QueryOutcome::default(), QueryOutcome::and))
        })
    }
}

/// Folders that could not be read, so that their content has no names.
#[derive(Default)]
struct Unnamed {
    folders: u64,
    example: Option<(PathBuf, io::Error)>,
    issues: Vec<(&'static str, Fact)>,
}

/// The name of every inode of a file system.
fn names(path: &Path, device: u64, inode: u64, settings: Settings, cancel: &Cancel) -> (PathsByInode, Unnamed) {
    let names = SharedPaths::of(path, inode);
    let walk = Walk::new(device, cancel, Some(&names), false);
    thread::scope(|scope| {
        // No batches are sent.
        let (sender, _batches) = mpsc::sync_channel(1);
        walk.begin(path, &sender);
        for _ in 0..settings.query_threads() {
            let sender = sender.clone();
            let walk = &walk;
            scope.spawn(move || walk.work(&sender));
        }
    });
    let (folders, issues) = (walk.unread.load(Ordering::Relaxed), walk.issues());
    let example = walk.reason.into_inner().unwrap_or_else(PoisonError::into_inner);
    (names.into_names(), Unnamed { folders, example, issues })
}
