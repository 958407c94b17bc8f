//! Any mounted file system, file by file: the kernel is queried for the extents of each (FIEMAP),
//! and for free space if it reports that.

use std::{
    fs::{self, File},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{PoisonError, atomic::Ordering, mpsc},
    thread,
};

use sysdock_table::{Facts, Progress, TableError, facts::disk as facts};

use sysdock_mounts::Mount;

use crate::{
    DiskError, Outcome, Settings, Target,
    error::Refused,
    fsmap::{self, Owner},
    method::{Method, Unable, Work},
    mounted::{Devices, MountedScan},
    statvfs::statvfs,
    tables::Tables,
    walk::Walk,
};

/// The fallback method, and the only one for a part of a file system.
pub(super) struct FileByFile;

impl Method for FileByFile {
    fn name(&self) -> &'static str {
        "fiemap"
    }

    fn takes(&self, target: &Target) -> bool {
        target.mount().is_some()
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        match (target.mounted_as_a_whole(), target.mount()) {
            (Some(mount), _) => Ok(self.walk(&mount.point, mount, true, work)?),
            (None, Some(mount)) => Ok(self.walk(&target.path, mount, false, work)?),
            (None, None) => Err(Unable::Because(facts::not_mounted())),
        }
    }
}

impl FileByFile {
    fn walk(&self, path: &Path, mount: &Mount, is_whole: bool, work: &mut Work<'_>) -> Result<Outcome, DiskError> {
        let failed = |error| DiskError::Io(path.into(), error);
        let device = fs::metadata(path).map_err(failed)?.dev();
        let space = statvfs(path).map_err(failed)?;
        let walk = Walk::new(device, work.cancel, None, work.settings.without_names);
        let mut tables = Tables::new(work.recording);
        gather(&walk, path, threads(work.settings), &mut tables, work.report)?;
        let mut reason = Facts::from(facts::file_by_file(mount.fs_type.as_str()));
        reason.extend(work.why_not.take().map(facts::instead_of));
        if is_whole {
            match free_space(path, device, &mut tables) {
                Ok(()) => reason.push(facts::free_queried()),
                Err(Refused::Kernel(error)) => reason.push(facts::free_unknown(error.to_string())),
                Err(Refused::Table(error)) => return Err(error.into()),
            }
        }
        let files = tables.taken + walk.unread.load(Ordering::Relaxed) + walk.others.load(Ordering::Relaxed);
        tables.finish()?;
        let scan = MountedScan {
            mount,
            path,
            uuid: None,
            space,
            is_whole,
            moment: "unknown",
            method: self.name(),
            reason,
            files,
            unread: walk.unread.load(Ordering::Relaxed),
            issues: walk.issues(),
            broken: None,
            devices: Devices::Unknown,
        };
        let outcome = scan.outcome(work)?;
        Ok(Outcome { example: walk.reason.into_inner().unwrap_or_else(PoisonError::into_inner), ..outcome })
    }
}

/// Each thread waits for the device to read one inode, and then the locations of its extents.
fn threads(settings: Settings) -> usize {
    /// Number of requests that a device can well handle at a time.
    const IN_FLIGHT: usize = 32;
    settings.threads_or(settings.query_threads().max(IN_FLIGHT))
}

/// Number of batches that wait to be taken: a thread with another one waits.
const WAITING: usize = 8;

/// Write batches of all threads to the tables.
fn gather(
    walk: &Walk<'_>,
    path: &Path,
    threads: usize,
    tables: &mut Tables<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<(), TableError> {
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel(WAITING);
        walk.begin(path, &sender);
        for _ in 0..threads {
            let sender = sender.clone();
            scope.spawn(move || walk.work(&sender));
        }
        drop(sender);
        for batch in batches {
            tables.batch(&batch)?;
            report(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
        }
        Ok(())
    })
}

/// Write free space, and the space that the file system keeps for itself, if the kernel reports it.
fn free_space(path: &Path, device: u64, tables: &mut Tables<'_>) -> Result<(), Refused> {
    let folder = File::open(path).map_err(Refused::Kernel)?;
    // Extents of files are reported with the files.
    fsmap::write(&folder, device, tables, &mut |piece| matches!(piece.owner, Owner::Inode(_) | Owner::Part("unknown")))
}
