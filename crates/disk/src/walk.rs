//! Walks all files below a folder and requests their extents one by one, in several threads.
//!
//! A thread takes a folder, reads its names, and requests the files in the order of their inodes,
//! which is usually that of the inode tables; folders that it finds are queued for all. It needs no
//! more rights than reading the files; those that it may not read are counted.

use std::{
    ffi::CString,
    io,
    mem::MaybeUninit,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Path, PathBuf},
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::SyncSender,
    },
};

use rustc_hash::FxHashSet;
use sysdock_table::{Cancel, Fact, facts::disk as facts};

use crate::{
    batch::{Batch, Inode, Kind},
    extent::Extent,
    fiemap::Fiemap,
    paths_by_inode::SharedPaths,
    small_tables::UNREADABLE_BLOCK,
};

/// State that all threads share.
pub(crate) struct Walk<'a> {
    /// `st_dev` of the file system: other file systems mounted below are left out.
    device: u64,
    cancel: &'a Cancel,
    /// Collects names, if only they are wanted: then files are not opened.
    names: Option<&'a SharedPaths>,
    /// Whether files are passed on without their paths.
    without_names: bool,
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// Files with several names that were met already.
    linked: Mutex<FxHashSet<u64>>,
    /// Number of files that could not be read.
    pub(crate) unread: AtomicU64,
    /// Number of symbolic links, devices and the like, which have no extents that can be requested.
    pub(crate) others: AtomicU64,
    /// The first unreadable file, and the error.
    pub(crate) reason: Mutex<Option<(PathBuf, io::Error)>>,
    /// Number of files that the device failed to read, and the first of these.
    read_errors: Mutex<(u64, String)>,
}

/// Folders that are not read yet, and the number of threads that are reading one.
struct Waiting {
    folders: Vec<Vec<u8>>,
    busy: usize,
}

/// An entry of a folder.
struct Entry {
    inode: u64,
    kind: u8,
    name: CString,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Walk<'a> {
    pub(crate) fn new(device: u64, cancel: &'a Cancel, names: Option<&'a SharedPaths>, without_names: bool) -> Self {
        Walk {
            device,
            cancel,
            names,
            without_names,
            waiting: Mutex::new(Waiting { folders: Vec::new(), busy: 0 }),
            more: Condvar::new(),
            linked: Mutex::default(),
            unread: AtomicU64::new(0),
            others: AtomicU64::new(0),
            reason: Mutex::default(),
            read_errors: Mutex::default(),
        }
    }

    /// Begin with a folder or a file.
    pub(crate) fn begin(&self, path: &Path, batches: &SyncSender<Batch>) {
        let mut worker = Worker::new(self, batches);
        if self.names.is_some() {
            locked(&self.waiting).folders.push(path.as_os_str().as_bytes().to_vec());
            return;
        }
        worker.file(libc::AT_FDCWD, &c_string(path.as_os_str().as_bytes()), path.as_os_str().as_bytes());
        worker.hand_over();
        if path.is_dir() {
            locked(&self.waiting).folders.push(path.as_os_str().as_bytes().to_vec());
        }
    }

    /// The work of one thread, until no folder is left.
    pub(crate) fn work(&self, batches: &SyncSender<Batch>) {
        // Use a table of descriptors of its own: the kernel locks and counts shared ones at each
        // open, query and close. Without permission, shared ones work as well. SAFETY: it only
        // changes which table of descriptors this thread has.
        let _ = unsafe { libc::unshare(libc::CLONE_FILES) };
        let mut worker = Worker::new(self, batches);
        while let Some(folder) = self.next() {
            worker.folder(&folder);
            locked(&self.waiting).busy -= 1;
            self.more.notify_all();
        }
        worker.hand_over();
    }

    /// The next folder. Waits while other threads may still find some.
    fn next(&self) -> Option<Vec<u8>> {
        let mut waiting = locked(&self.waiting);
        loop {
            if self.cancel.requested() {
                return None;
            }
            if let Some(folder) = waiting.folders.pop() {
                waiting.busy += 1;
                return Some(folder);
            }
            if waiting.busy == 0 {
                return None;
            }
            waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Failures of the device, as an issue.
    pub(crate) fn issues(&self) -> Vec<(&'static str, Fact)> {
        let (count, example) = &*locked(&self.read_errors);
        let detail = || facts::unreadable_files(*count, example.to_string());
        (*count > 0).then(|| (UNREADABLE_BLOCK, detail())).into_iter().collect()
    }

    fn refused(&self, path: &[u8], error: io::Error) {
        self.unread.fetch_add(1, Ordering::Relaxed);
        if is_of_device(&error) {
            let mut errors = locked(&self.read_errors);
            if errors.0 == 0 {
                errors.1 = format!("{}: {error}", String::from_utf8_lossy(path));
            }
            errors.0 += 1;
        }
        locked(&self.reason).get_or_insert_with(|| (PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())), error));
    }
}

/// Whether a device or a server failed to read: a problem of the file system, not of rights, or of
/// a file that was just removed.
fn is_of_device(error: &io::Error) -> bool {
    const CODES: [i32; 8] =
        [libc::EIO, libc::ENODEV, libc::ENXIO, libc::EUCLEAN, libc::EBADMSG, libc::ESHUTDOWN, libc::ENOTCONN, libc::ESTALE];
    error.raw_os_error().is_some_and(|code| CODES.contains(&code))
}

/// A thread of the walk.
struct Worker<'a> {
    walk: &'a Walk<'a>,
    batches: &'a SyncSender<Batch>,
    batch: Batch,
    fiemap: Fiemap,
    extents: Vec<Extent>,
    path: Vec<u8>,
}

impl<'a> Worker<'a> {
    fn new(walk: &'a Walk<'a>, batches: &'a SyncSender<Batch>) -> Self {
        let (batch, extents, path) = Default::default();
        Worker { walk, batches, batch, fiemap: Fiemap::new(), extents, path }
    }

    fn hand_over(&mut self) {
        if !self.batch.is_empty() {
            // The receiver has ended, so the walk is over.
            let _ = self.batches.send(std::mem::take(&mut self.batch));
        }
    }

    fn folder(&mut self, folder: &[u8]) {
        let opened = match open(libc::AT_FDCWD, &c_string(folder), libc::O_DIRECTORY) {
            Ok(opened) => opened,
            Err(error) => return self.walk.refused(folder, error),
        };
        let mut entries = Vec::new();
        if let Err(error) = read_entries(opened.as_raw_fd(), &mut entries) {
            // Entries that were read before the error are used.
            self.walk.refused(folder, error);
        }
        if let Some(names) = self.walk.names {
            return self.names(names, opened.as_raw_fd(), folder, &entries);
        }
        entries.sort_unstable_by_key(|entry| entry.inode);
        for entry in &entries {
            if self.walk.cancel.requested() {
                return;
            }
            let mut path = std::mem::take(&mut self.path);
            path.clear();
            path_in(folder, entry, &mut path);
            match entry.kind {
                libc::DT_REG | libc::DT_DIR | libc::DT_UNKNOWN => self.file(opened.as_raw_fd(), &entry.name, &path),
                _ => drop(self.walk.others.fetch_add(1, Ordering::Relaxed)),
            }
            self.path = path;
        }
    }

    /// Record the names in a folder, and queue the folders in it. A mount point in it is recognized
    /// by its device.
    fn names(&mut self, names: &SharedPaths, opened: RawFd, folder: &[u8], entries: &[Entry]) {
        match status_of(opened) {
            Ok(status) if status.st_dev == self.walk.device => {}
            Ok(_) => return,
            Err(error) => return self.walk.refused(folder, error),
        }
        let (mut paths, mut ends) = (std::mem::take(&mut self.path), Vec::with_capacity(entries.len()));
        paths.clear();
        for entry in entries {
            let start = paths.len();
            path_in(folder, entry, &mut paths);
            ends.push((start, paths.len()));
        }
        names.add_all(entries.iter().zip(&ends).map(|(entry, (start, end))| (entry.inode, &paths[*start..*end])));
        let is_folder = |entry: &Entry| matches!(entry.kind, libc::DT_DIR);
        let folders = entries.iter().zip(&ends).filter(|(entry, _)| is_folder(entry));
        locked(&self.walk.waiting).folders.extend(folders.map(|(_, (start, end))| paths[*start..*end].to_vec()));
        self.walk.more.notify_all();
        self.path = paths;
    }

    /// Request a file or folder; a folder of this file system is queued.
    fn file(&mut self, folder: RawFd, name: &CString, path: &[u8]) {
        let read = open(folder, name, libc::O_NOFOLLOW).and_then(|file| Ok((status_of(file.as_raw_fd())?, file)));
        let (status, file) = match read {
            Ok(found) => found,
            Err(error) => return self.walk.refused(path, error),
        };
        if status.st_dev != self.walk.device {
            return;
        }
        let kind = Kind::of_mode(status.st_mode);
        if !matches!(kind, Kind::File | Kind::Directory) {
            self.walk.others.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if kind == Kind::File && status.st_nlink > 1 && !locked(&self.walk.linked).insert(status.st_ino) {
            return;
        }
        if kind == Kind::Directory && folder != libc::AT_FDCWD {
            locked(&self.walk.waiting).folders.push(path.to_vec());
            self.walk.more.notify_one();
        }
        if let Err(error) = self.fiemap.extents(file.as_raw_fd(), &mut self.extents) {
            // Folders of some file systems have no extents to request.
            if kind == Kind::File || !matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)) {
                return self.walk.refused(path, error);
            }
            self.extents.clear();
        }
        self.batch.add(inode(&status, kind), (!self.walk.without_names).then_some(path), &self.extents);
        if self.batch.is_full() {
            self.hand_over();
        }
    }
}

fn inode(status: &libc::stat, kind: Kind) -> Inode {
    let modified_ns = status.st_mtime.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(status.st_mtime_nsec));
    Inode {
        number: status.st_ino,
        kind,
        size: status.st_size.cast_unsigned(),
        links: u32::try_from(status.st_nlink).unwrap_or(u32::MAX),
        modified_ns,
    }
}

/// Append the path of an entry.
fn path_in(folder: &[u8], entry: &Entry, path: &mut Vec<u8>) {
    path.extend_from_slice(folder);
    if !folder.ends_with(b"/") {
        path.push(b'/');
    }
    path.extend_from_slice(entry.name.as_bytes());
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("names of files hold no NUL")
}

/// Open without blocking: otherwise a pipe would be waited for.
fn open(folder: RawFd, name: &CString, flags: i32) -> io::Result<OwnedFd> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | flags;
    // Not openat(3), which prepares for cancellation each time. SAFETY: the name ends in NUL.
    let file = unsafe { libc::syscall(libc::SYS_openat, folder, name.as_ptr(), flags) };
    let Ok(file) = RawFd::try_from(file) else { return Err(io::Error::last_os_error()) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(file) })
}

fn status_of(file: RawFd) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the whole struct unless it fails.
    unsafe {
        match libc::fstat(file, status.as_mut_ptr()) {
            0 => Ok(status.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// All names in a folder (getdents64(2)), or those before an error.
fn read_entries(folder: RawFd, found: &mut Vec<Entry>) -> io::Result<()> {
    const HEAD: usize = 19; // inode, position, length, kind
    let mut buffer = vec![0_u8; 1 << 16];
    loop {
        // SAFETY: the buffer has the stated size.
        let filled = unsafe { libc::syscall(libc::SYS_getdents64, folder, buffer.as_mut_ptr(), buffer.len()) };
        let Ok(filled) = usize::try_from(filled) else { return Err(io::Error::last_os_error()) };
        if filled == 0 {
            return Ok(());
        }
        let mut rest = &buffer[..filled];
        while rest.len() > HEAD {
            let inode = u64::from_ne_bytes(rest[..8].try_into().expect("eight bytes"));
            let length = usize::from(u16::from_ne_bytes([rest[16], rest[17]])).clamp(HEAD + 1, rest.len());
            let (entry, after) = rest.split_at(length);
            let name = entry[HEAD..].split(|byte| *byte == 0).next().unwrap_or_default();
            if name != b"." && name != b".." {
                found.push(Entry { inode, kind: entry[18], name: c_string(name) });
            }
            rest = after;
        }
    }
}
