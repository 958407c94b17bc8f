//! Picks a method for a target, and runs it.

use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
    sync::{PoisonError, atomic::Ordering, mpsc},
    thread,
};

use sysdock_table::{Cancel, Column, Ending, Progress, Recording, TableError};

use crate::{
    DiskError,
    fsmap::{self, Owner},
    mounts::Mount,
    tables::{Free, Part, Tables},
    target::{Place, Target},
    walk::Walk,
};

/// How to scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Threads that ask; 0: two for each core, as most of them wait for the disk.
    pub threads: usize,
}

/// What a scan came to.
#[derive(Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// The word of `file_systems.method`.
    pub method: &'static str,
    /// Why by this one.
    pub reason: String,
    /// Files and folders that were met, and those of them that could not be read.
    pub files: u64,
    /// See `files`.
    pub unread: u64,
    /// One of them, and why.
    pub example: Option<(PathBuf, io::Error)>,
}

/// The row of `file_systems`.
struct FileSystem<'a> {
    mount: &'a Mount,
    block_bytes: u64,
    size_bytes: u64,
    free_bytes: u64,
    is_whole: bool,
    /// The word of `file_systems.moment`.
    moment: &'static str,
}

/// Read where files lie, into the tables of a recording.
///
/// # Errors
/// [`DiskError`]: nothing can be read there, or the recording cannot be written.
pub fn scan(
    target: &Target,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    match &target.place {
        Place::FileSystem(mount) => walk(target, mount, true, recording, settings, cancel, report),
        Place::Within(mount) => walk(target, mount, false, recording, settings, cancel, report),
        Place::Image(Some(mount)) => {
            let target = Target { path: mount.point.clone(), place: Place::FileSystem(mount.clone()) };
            walk(&target, mount, true, recording, settings, cancel, report)
        }
        Place::Image(None) => Err(DiskError::NoFileSystem(target.path.clone())),
    }
}

/// File by file, through the kernel.
fn walk(
    target: &Target,
    mount: &Mount,
    is_whole: bool,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    let failed = |error| DiskError::Io(target.path.clone(), error);
    let device = fs::metadata(&target.path).map_err(failed)?.dev();
    let walk = Walk::new(device, cancel);
    let mut tables = Tables::new(recording);
    gather(&walk, &target.path, threads(settings), &mut tables, report)?;
    let mut reason = format!("{} is mounted: its files are asked for one by one", mount.fs_type);
    if is_whole {
        match free_space(&target.path, device, &mut tables) {
            Ok(()) => reason += ", and the kernel for what is free",
            Err(Refused::Kernel(error)) => reason += &format!("; what is free is not told: {error}"),
            Err(Refused::Table(error)) => return Err(error.into()),
        }
    }
    let files = tables.taken + walk.unread.load(Ordering::Relaxed) + walk.others.load(Ordering::Relaxed);
    tables.finish()?;
    let unread = walk.unread.load(Ordering::Relaxed);
    let space = space(&target.path).map_err(failed)?;
    let row = FileSystem { mount, block_bytes: space.0, size_bytes: space.1, free_bytes: space.2, is_whole, moment: "unknown" };
    write_file_system(recording, &row, "fiemap", &reason, files, unread)?;
    let ending = if cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    let example = walk.reason.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { ending, method: "fiemap", reason, files, unread, example })
}

fn threads(settings: Settings) -> usize {
    match settings.threads {
        0 => 2 * thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// Batches of all threads, into the tables.
fn gather(
    walk: &Walk<'_>,
    path: &Path,
    threads: usize,
    tables: &mut Tables<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<(), TableError> {
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel(2 * threads);
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

enum Refused {
    Kernel(io::Error),
    Table(TableError),
}

/// What is free, and what the file system keeps for itself, where the kernel tells it.
fn free_space(path: &Path, device: u64, tables: &mut Tables<'_>) -> Result<(), Refused> {
    let folder = File::open(path).map_err(Refused::Kernel)?;
    let mut failed = None;
    let outcome = fsmap::pieces(folder.as_raw_fd(), device, |piece| {
        let (physical, length) = (piece.physical, piece.length);
        let written = match piece.owner {
            Owner::Free => tables.free(Free { physical, length, device: 0 }),
            Owner::Part(part) if part != "unknown" => {
                tables.part(Part { part, number: None, inode: None, physical, length, device: 0 })
            }
            // Of files, which tell it themselves.
            Owner::Part(_) | Owner::Inode(_) => Ok(()),
        };
        written.map_err(|error| {
            failed = Some(error);
            io::Error::other("not written")
        })
    });
    match (outcome, failed) {
        (_, Some(error)) => Err(Refused::Table(error)),
        (outcome, None) => outcome.map_err(Refused::Kernel),
    }
}

/// Size of blocks, of all of it, and of what is free (statvfs(3)) [B].
fn space(path: &Path) -> io::Result<(u64, u64, u64)> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut space = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends in NUL, and the kernel fills the struct where it does not fail.
    let space = unsafe {
        if libc::statvfs(path.as_ptr(), space.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        space.assume_init()
    };
    let blocks = |count: u64| count.saturating_mul(space.f_frsize);
    Ok((space.f_bsize, blocks(space.f_blocks), blocks(space.f_bfree)))
}

fn write_file_system(
    recording: &mut Recording,
    row: &FileSystem<'_>,
    method: &str,
    reason: &str,
    files: u64,
    unread: u64,
) -> Result<(), TableError> {
    let text = |value: &str| Column::String(vec![Some(value.into())]);
    let number = |value: u64| Column::Int64(vec![Some(value.cast_signed())]);
    let columns = vec![
        Column::words([Some(row.mount.fs_type.as_str())]),
        text(&row.mount.source.to_string_lossy()),
        text(&row.mount.point.to_string_lossy()),
        Column::String(vec![None]),
        Column::String(vec![None]),
        number(row.block_bytes),
        number(row.size_bytes),
        number(row.free_bytes),
        Column::words([Some(method)]),
        text(reason),
        number(files),
        number(unread),
        Column::Bool(vec![row.is_whole]),
        Column::words([Some(row.moment)]),
    ];
    recording.write("file_systems", columns)
}
