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
    batch::Batch,
    fs::{btrfs::{self, Chunks, Map}, ext, xfs::{self, Owned}},
    fsmap::{self, Owner, Piece},
    mounts::Mount,
    names::{Names, SharedNames},
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
    /// How the file system was made and is used, for `environment`: names and values.
    pub facts: Vec<(String, String)>,
    /// What could not be understood: the word of `import_issues.issue`, and its detail.
    pub issues: Vec<(&'static str, String)>,
}

/// The row of `file_systems`.
struct FileSystem<'a> {
    mount: &'a Mount,
    uuid: Option<String>,
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
    if let Some(request) = raw_ext(target, settings) {
        let outcome = ext::scan(&request, recording, cancel, report);
        let Some(mount) = request.mount else { return outcome };
        let Err(DiskError::Refused(_, why, _)) = outcome else { return outcome };
        // Mounted: the kernel can be asked.
        let target = Target { path: mount.point.clone(), place: Place::FileSystem(mount.clone()) };
        return walk(&target, mount, true, why, recording, settings, cancel, report);
    }
    match &target.place {
        Place::FileSystem(mount) => mounted(mount, recording, settings, cancel, report),
        Place::Within(mount) => walk(target, mount, false, String::new(), recording, settings, cancel, report),
        Place::Image(Some(mount)) => mounted(mount, recording, settings, cancel, report),
        Place::Image(None) => Err(DiskError::NoFileSystem(target.path.clone())),
    }
}

/// A whole ext2, ext3 or ext4 file system whose device or image may be read.
fn raw_ext(target: &Target, settings: Settings) -> Option<ext::Request<'_>> {
    let (path, mount) = match &target.place {
        Place::FileSystem(mount) => (mount.source.as_path(), Some(mount)),
        Place::Image(mount) => (target.path.as_path(), mount.as_ref()),
        Place::Within(_) => return None,
    };
    if mount.is_some_and(|mount| !mount.fs_type.starts_with("ext") || !mount.is_of(path)) {
        return None;
    }
    let begins = File::open(path).is_ok_and(|file| ext::begins_in(&file));
    begins.then_some(ext::Request { path, mount, threads: settings.threads })
}

/// A whole file system that is mounted: by what its type tells, or file by file.
fn mounted(
    mount: &Mount,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    let target = Target { path: mount.point.clone(), place: Place::FileSystem(mount.clone()) };
    let why_not;
    let outcome = match mount.fs_type.as_str() {
        "xfs" => by_owners(&target, mount, recording, settings, cancel, report),
        "btrfs" => by_trees(&target, mount, recording, cancel, report),
        _ => Err(Unable::Because(String::new())),
    };
    match outcome {
        Ok(outcome) => return Ok(outcome),
        Err(Unable::Because(reason)) => why_not = reason,
        Err(Unable::Failed(error)) => return Err(error),
    }
    walk(&target, mount, true, why_not, recording, settings, cancel, report)
}

/// A method that cannot be used here, or that failed.
enum Unable {
    Because(String),
    Failed(DiskError),
}

impl From<TableError> for Unable {
    fn from(error: TableError) -> Self {
        Unable::Failed(error.into())
    }
}

/// xfs, by its reverse map.
fn by_owners(
    target: &Target,
    mount: &Mount,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, Unable> {
    let failed = |error| Unable::Failed(DiskError::Io(target.path.clone(), error));
    let folder = File::open(&target.path).map_err(failed)?;
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
    let mut tables = Tables::new(recording);
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
    let names = names(&target.path, status.dev(), status.ino(), settings, cancel);
    let mut not_written = None;
    let gone = owned
        .files(folder.as_raw_fd(), &names, &mut |batch: &Batch| {
            let written = tables.batch(batch);
            report(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            written.map(|()| !cancel.requested()).map_err(|error| {
                not_written = Some(error);
                io::Error::other("not written")
            })
        })
        .map_err(|error| not_written.take().map_or_else(|| failed(error), Unable::from))?;
    let files = tables.taken;
    tables.finish()?;
    let space = space(&target.path).map_err(failed)?;
    let moment = if gone == 0 { "unknown" } else { "many" };
    let uuid = Some(hyphenated(facts.uuid));
    let row = FileSystem { mount, uuid, block_bytes: space.0, size_bytes: facts.size_bytes, free_bytes: space.2, is_whole: true, moment };
    let reason = "xfs keeps a reverse map, which names the owner of every block".to_string();
    write_file_system(recording, &row, "fsmap", &reason, files, 0)?;
    let ending = if cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    Ok(Outcome { ending, method: "fsmap", reason, files, unread: 0, example: None, facts: Vec::new(), issues: Vec::new() })
}

/// btrfs, by its trees.
fn by_trees(
    target: &Target,
    mount: &Mount,
    recording: &mut Recording,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, Unable> {
    let failed = |error| Unable::Failed(DiskError::Io(target.path.clone(), error));
    let folder = File::open(&target.path).map_err(failed)?;
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
    let mut tables = Tables::new(recording);
    let mut map = Map::new(&chunks, &used);
    let mut not_written = None;
    for subvolume in btrfs::subvolumes(file).map_err(failed)? {
        let outcome = btrfs::files(file, &subvolume, target.path.as_os_str().as_encoded_bytes(), &mut |batch| {
            map.place(batch);
            let written = tables.batch(batch);
            report(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            written.map(|()| !cancel.requested()).map_err(|error| {
                not_written = Some(error);
                io::Error::other("not written")
            })
        });
        outcome.map_err(|error| not_written.take().map_or_else(|| failed(error), Unable::from))?;
    }
    map.rest(&mut tables)?;
    let files = tables.taken;
    tables.finish()?;
    let space = space(&target.path).map_err(failed)?;
    let size_bytes = chunks.devices.iter().map(|(_, size)| size).sum();
    let uuid = Some(hyphenated(facts.uuid));
    let row = FileSystem { mount, uuid, block_bytes: space.0, size_bytes, free_bytes: space.2, is_whole: true, moment: "unknown" };
    let reason = "btrfs shows its trees to root".to_string();
    write_file_system(recording, &row, "tree", &reason, files, 0)?;
    let ending = if cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    Ok(Outcome { ending, method: "tree", reason, files, unread: 0, example: None, facts: Vec::new(), issues: Vec::new() })
}

/// The name of every inode of a file system.
fn names(path: &Path, device: u64, inode: u64, settings: Settings, cancel: &Cancel) -> Names {
    let names = SharedNames::of(path, inode);
    let walk = Walk::new(device, cancel, Some(&names));
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

/// File by file, through the kernel.
fn walk(
    target: &Target,
    mount: &Mount,
    is_whole: bool,
    why_not: String,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    let failed = |error| DiskError::Io(target.path.clone(), error);
    let device = fs::metadata(&target.path).map_err(failed)?.dev();
    let walk = Walk::new(device, cancel, None);
    let mut tables = Tables::new(recording);
    gather(&walk, &target.path, threads(settings), &mut tables, report)?;
    let mut reason = format!("{} is mounted: its files are asked for one by one", mount.fs_type);
    if !why_not.is_empty() {
        reason += &format!(", as {why_not}");
    }
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
    let row = FileSystem { mount, uuid: None, block_bytes: space.0, size_bytes: space.1, free_bytes: space.2, is_whole, moment: "unknown" };
    write_file_system(recording, &row, "fiemap", &reason, files, unread)?;
    let ending = if cancel.requested() { Ending::Interrupted } else { Ending::EndOfInput };
    let example = walk.reason.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { ending, method: "fiemap", reason, files, unread, example, facts: Vec::new(), issues: Vec::new() })
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
    // Files tell of their own pieces.
    pieces(&folder, device, tables, &mut |piece| matches!(piece.owner, Owner::Inode(_) | Owner::Part("unknown")))
}

/// Every piece of the device that is not `taken`.
fn pieces(
    folder: &File,
    device: u64,
    tables: &mut Tables<'_>,
    taken: &mut dyn FnMut(&Piece) -> bool,
) -> Result<(), Refused> {
    let mut failed = None;
    let outcome = fsmap::pieces(folder.as_raw_fd(), device, |piece| {
        if taken(&piece) {
            return Ok(());
        }
        let (physical, length) = (piece.physical, piece.length);
        let (part, inode) = match piece.owner {
            Owner::Free => ("", None),
            Owner::Part(part) => (part, None),
            Owner::Inode(inode) => ("extent tree", Some(inode)),
        };
        let written = match part {
            "" => tables.free(Free { physical, length, device: 0 }),
            part => tables.part(Part { part, number: None, inode, physical, length, device: 0 }),
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
        Column::String(vec![row.uuid.clone()]),
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
