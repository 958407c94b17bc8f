//! Files that workers read and write.

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    ptr, slice,
};

use super::WorkerContext;
use crate::{Layout, Sync};

/// Requests by which files are made ready.
const PREPARING: usize = 1 << 20;
/// The common file of items that read at random, in the folder.
pub(crate) const DATA: &str = "data";

/// Memory for a request, at the start of a page as `O_DIRECT` needs it.
pub(crate) struct Buffer {
    memory: *mut u8,
    bytes: usize,
}

impl Buffer {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE);
        // SAFETY: a new mapping; nothing else is touched.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Buffer { memory: memory.cast(), bytes }) }
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has this length and is ours alone.
        unsafe { slice::from_raw_parts_mut(self.memory, self.bytes) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any more.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

/// A part of a file that belongs to one worker.
pub(crate) struct Part {
    pub(crate) path: PathBuf,
    /// By what its contents are computed.
    pub(crate) file: u32,
    /// Where it begins [B].
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// What is this worker's of the files of a transfer.
pub(crate) fn part(place: &WorkerContext<'_>) -> Part {
    let bytes = place.step.share();
    match place.step.layout {
        Layout::Own => Part { path: place.folder.join(format!("w{}", place.worker)), file: place.worker + 1, start: 0, bytes },
        Layout::Shared => Part { path: place.folder.join("shared"), file: 0, start: u64::from(place.worker) * bytes, bytes },
    }
}

/// What is this worker's of the common file.
pub(crate) fn part_of_data(place: &WorkerContext<'_>) -> Part {
    let bytes = place.step.share();
    Part { path: place.folder.join(DATA), file: 0, start: u64::from(place.worker) * bytes, bytes }
}

/// Open to read and write, made if it is not there.
pub(crate) fn open(path: &Path, direct: bool, sync: Sync) -> io::Result<File> {
    let flags = if direct { libc::O_DIRECT } else { 0 } | if sync == Sync::Dsync { libc::O_DSYNC } else { 0 };
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags | libc::O_NOFOLLOW)
        .mode(0o600)
        .open(path)
}

/// Write what is this worker's, and have the device take it, without measuring anything. Its slot says how far it came, in bytes.
pub(crate) fn make_ready(place: &WorkerContext<'_>, part: &Part, until_ns: u64) -> io::Result<()> {
    use std::sync::atomic::Ordering::Relaxed;
    let prepared = &place.slot().prepared;
    let file = open(&part.path, false, Sync::None)?;
    let mut buffer = vec![0; PREPARING];
    let mut done = if part.path.ends_with(DATA) { place.data_bytes.saturating_sub(part.start).min(part.bytes) } else { 0 };
    while done < part.bytes && !place.header.stopped() && crate::clock::now_ns() < until_ns {
        let count = PREPARING.min((part.bytes - done) as usize);
        place.pool.fill(&mut buffer[..count], part.file, part.start + done);
        file.write_all_at(&buffer[..count], part.start + done)?;
        done += count as u64;
        prepared.store(done, Relaxed);
    }
    file.sync_data()?;
    prepared.store(done, Relaxed);
    Ok(())
}

/// Have the page cache forget a file, as far as it does.
pub(crate) fn forget(file: &File, start: u64, bytes: u64) {
    // SAFETY: takes numbers. Pages that stay are noticed: the device does not read them.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), start as i64, bytes as i64, libc::POSIX_FADV_DONTNEED) };
}

/// After a write, as the step wants it.
pub(crate) fn synced(file: &File, sync: Sync) -> io::Result<()> {
    match sync {
        Sync::None | Sync::End | Sync::Dsync => Ok(()),
        Sync::Fdatasync => file.sync_data(),
        Sync::Fsync => file.sync_all(),
    }
}

/// An operation on a whole request: fewer bytes are an error.
pub(crate) fn whole(count: io::Result<usize>, wanted: usize) -> io::Result<crate::meter::Done> {
    match count {
        Ok(count) if count == wanted => Ok(crate::meter::Done::bytes(wanted as u64)),
        // The kernel takes what fits and refuses the rest at the next try.
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        Err(error) => Err(error),
    }
}

/// As [`whole`], of a read: fewer bytes are the end of the file, where none should be.
pub(crate) fn whole_read(count: io::Result<usize>, wanted: usize) -> io::Result<crate::meter::Done> {
    match count {
        Ok(count) if count != wanted => Err(io::Error::from_raw_os_error(libc::ENODATA)),
        other => whole(other, wanted),
    }
}
