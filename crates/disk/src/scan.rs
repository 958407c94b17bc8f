//! Picks a method for a target, and runs it.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{PoisonError, atomic::Ordering, mpsc},
    thread,
};

use sysdock_table::{Cancel, Ending, Progress, Recording, TableError};

use crate::{
    DiskError,
    fs::ext,
    fsmap::{self, Owner, Piece},
    kernel_maps::{self, Unable},
    mounts::Mount,
    stated::{DeviceRow, FileSystemRow, write_issues},
    tables::{Free, Part, Tables},
    target::{Place, Target},
    walk::Walk,
};

/// How to scan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// Threads that ask; 0: one or two for each core, as the method needs.
    pub threads: usize,
    /// Leave out what files are called: folders are not read, and whatever the number of files, the memory stays small.
    pub without_names: bool,
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

/// Words of `import_issues.issue`, explained in docs/reference/import-issues.md.
pub(crate) const UNREADABLE_BLOCK: &str = "unreadable_block";
pub(crate) const BROKEN_OFF: &str = "scan_broken_off";

/// What the kernel told of a mounted file system.
pub(crate) struct Told<'a> {
    pub(crate) mount: &'a Mount,
    /// A folder or file that was asked about.
    pub(crate) path: &'a Path,
    pub(crate) uuid: Option<[u8; 16]>,
    /// Asked for before anything else: the device may be gone by now.
    pub(crate) space: Space,
    /// Of all devices; `None`: what statvfs(3) says.
    pub(crate) size_bytes: Option<u64>,
    pub(crate) is_whole: bool,
    /// The word of `file_systems.moment`.
    pub(crate) moment: &'static str,
    /// The word of `file_systems.method`.
    pub(crate) method: &'static str,
    pub(crate) reason: String,
    pub(crate) files: u64,
    pub(crate) unread: u64,
    /// What could not be read: words of `import_issues.issue`, and details.
    pub(crate) issues: Vec<(&'static str, String)>,
    /// Why it is not all: the kernel stopped telling.
    pub(crate) broken: Option<io::Error>,
    /// Of a file system that may have several; file by file, nobody says which there are.
    pub(crate) devices: Vec<DeviceRow>,
}

impl Told<'_> {
    /// Write the row of `file_systems` and the issues, and say what the scan came to.
    pub(crate) fn outcome(self, recording: &mut Recording, cancel: &Cancel) -> Result<Outcome, DiskError> {
        let Told { mount, space, method, reason, files, unread, mut issues, .. } = self;
        let row = FileSystemRow {
            fs_type: mount.fs_type.clone(),
            source: mount.source.to_string_lossy().into_owned(),
            mount_point: Some(mount.point.to_string_lossy().into_owned()),
            label: None,
            uuid: self.uuid.map(hyphenated),
            block_bytes: space.block_bytes,
            size_bytes: self.size_bytes.unwrap_or(space.size_bytes),
            // btrfs counts room for files, and each copy as the whole: the size is that of all devices.
            free_bytes: Some(match method {
                "tree" => space.free_bytes.saturating_mul(copies(self.size_bytes, space.size_bytes)),
                _ => space.free_bytes,
            }),
            method,
            reason: reason.clone(),
            files,
            unread_files: unread,
            is_whole: self.is_whole,
            moment: self.moment,
        };
        row.write(recording)?;
        match method {
            "fsmap" => DeviceRow::write(&[DeviceRow::only(&row)], recording)?,
            _ => DeviceRow::write(&self.devices, recording)?,
        }
        issues.extend(self.broken.iter().map(|error| (BROKEN_OFF, format!("{}: {error}", self.path.display()))));
        write_issues(&issues, self.path, recording)?;
        let ending = ending(cancel, self.broken.is_some());
        Ok(Outcome { ending, method, reason, files, unread, example: None, facts: Vec::new(), issues })
    }
}

/// Why a scan ended that wrote its tables.
pub(crate) fn ending(cancel: &Cancel, is_broken: bool) -> Ending {
    match (cancel.requested(), is_broken) {
        (true, _) => Ending::Interrupted,
        (false, true) => Ending::InputError,
        (false, false) => Ending::EndOfInput,
    }
}

/// How many times larger devices are than the room for files on them, which is a little less than they hold.
fn copies(devices: Option<u64>, room: u64) -> u64 {
    let devices = devices.filter(|_| room > 0).unwrap_or(room.max(1));
    (devices.saturating_add(room / 2) / room.max(1)).max(1)
}

pub(crate) fn hyphenated(uuid: [u8; 16]) -> String {
    let hex: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..4, 4..6, 6..8, 8..10, 10..16];
    parts.map(|part| hex[part].concat()).join("-")
}

/// What every method works with.
pub(crate) struct Work<'a> {
    pub(crate) recording: &'a mut Recording,
    pub(crate) settings: Settings,
    pub(crate) cancel: &'a Cancel,
    pub(crate) report: &'a mut dyn FnMut(Progress),
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
    let work = Work { recording, settings, cancel, report };
    if let Some(request) = raw_ext(target, settings) {
        let outcome = ext::scan(&request, work.recording, cancel, work.report);
        let Some(mount) = request.mount else { return outcome };
        let Err(DiskError::Refused(_, why, _)) = outcome else { return outcome };
        // Mounted: the kernel can be asked.
        return walk(&mount.point, mount, true, &why, work);
    }
    match &target.place {
        Place::FileSystem(mount) => mounted(mount, work),
        Place::Within(mount) => walk(&target.path, mount, false, "", work),
        Place::Image(Some(mount)) => mounted(mount, work),
        Place::Image(None) => Err(why_unknown(&target.path)),
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
    // They ask for much at a time, and wait seldom.
    let threads = if settings.threads == 0 { cores() } else { settings.threads };
    let begins = File::open(path).is_ok_and(|file| ext::begins_in(&file));
    begins.then_some(ext::Request { path, mount, threads, without_names: settings.without_names })
}

/// A device or image in which no file system was found: there is none, or its beginning cannot be read.
fn why_unknown(path: &Path) -> DiskError {
    let mut start = [0; 4096];
    match File::open(path).and_then(|file| file.read_at(&mut start, 0)) {
        Ok(_) => DiskError::NoFileSystem(path.into()),
        Err(error) => DiskError::Io(path.into(), error),
    }
}

/// A whole file system that is mounted: by what its type tells, or file by file.
fn mounted(mount: &Mount, mut work: Work<'_>) -> Result<Outcome, DiskError> {
    let outcome = match mount.fs_type.as_str() {
        "xfs" => kernel_maps::by_owners(mount, &mut work),
        "btrfs" => kernel_maps::by_trees(mount, &mut work),
        _ => Err(Unable::Because(String::new())),
    };
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(Unable::Because(reason)) => walk(&mount.point, mount, true, &reason, work),
        Err(Unable::Failed(error)) => Err(error),
    }
}

/// File by file, through the kernel.
fn walk(path: &Path, mount: &Mount, is_whole: bool, why_not: &str, work: Work<'_>) -> Result<Outcome, DiskError> {
    let Work { recording, settings, cancel, report } = work;
    let failed = |error| DiskError::Io(path.into(), error);
    let device = fs::metadata(path).map_err(failed)?.dev();
    let space = space(path).map_err(failed)?;
    let walk = Walk::new(device, cancel, None, settings.without_names);
    let mut tables = Tables::new(recording);
    gather(&walk, path, walkers(settings), &mut tables, report)?;
    let mut reason = format!("{} is mounted: its files are asked for one by one", mount.fs_type);
    if !why_not.is_empty() {
        reason += &format!(", as {why_not}");
    }
    if is_whole {
        match free_space(path, device, &mut tables) {
            Ok(()) => reason += ", and the kernel for what is free",
            Err(Refused::Kernel(error)) => reason += &format!("; what is free is not told: {error}"),
            Err(Refused::Table(error)) => return Err(error.into()),
        }
    }
    let files = tables.taken + walk.unread.load(Ordering::Relaxed) + walk.others.load(Ordering::Relaxed);
    tables.finish()?;
    let told = Told {
        mount,
        path,
        uuid: None,
        space,
        size_bytes: None,
        is_whole,
        moment: "unknown",
        method: "fiemap",
        reason,
        files,
        unread: walk.unread.load(Ordering::Relaxed),
        issues: walk.issues(),
        broken: None,
        devices: Vec::new(),
    };
    let outcome = told.outcome(recording, cancel)?;
    Ok(Outcome { example: walk.reason.into_inner().unwrap_or_else(PoisonError::into_inner), ..outcome })
}

/// Threads that ask the kernel: most of them wait for it.
pub(crate) fn threads(settings: Settings) -> usize {
    match settings.threads {
        0 => 2 * cores(),
        threads => threads,
    }
}

/// Threads that ask file by file: each waits for the device to bring one inode, and then the places of its extents.
fn walkers(settings: Settings) -> usize {
    /// As many as a device may well be asked for at a time.
    const IN_FLIGHT: usize = 32;
    match settings.threads {
        0 => threads(settings).max(IN_FLIGHT),
        threads => threads,
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Batches that wait to be taken: whoever has one more waits with it.
const WAITING: usize = 8;

/// Batches of all threads, into the tables.
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

/// Who could not go on.
pub(crate) enum Refused {
    Kernel(io::Error),
    Table(TableError),
}

impl Refused {
    /// `path` is what the kernel was asked about.
    pub(crate) fn at(self, path: &Path) -> DiskError {
        match self {
            Refused::Kernel(error) => DiskError::Io(path.into(), error),
            Refused::Table(error) => error.into(),
        }
    }
}

/// What is free, and what the file system keeps for itself, where the kernel tells it.
fn free_space(path: &Path, device: u64, tables: &mut Tables<'_>) -> Result<(), Refused> {
    let folder = File::open(path).map_err(Refused::Kernel)?;
    // Files tell of their own pieces.
    pieces(&folder, device, tables, &mut |piece| matches!(piece.owner, Owner::Inode(_) | Owner::Part("unknown")))
}

/// Every piece of the device that is not `taken`.
pub(crate) fn pieces(
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

/// What statvfs(3) says [B].
pub(crate) struct Space {
    block_bytes: u64,
    size_bytes: u64,
    free_bytes: u64,
}

pub(crate) fn space(path: &Path) -> io::Result<Space> {
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
    Ok(Space { block_bytes: space.f_bsize, size_bytes: blocks(space.f_blocks), free_bytes: blocks(space.f_bfree) })
}
