//! Files that workers read and write.

use std::{
    fs::{File, OpenOptions},
    io,
    num::NonZeroU64,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{Advice, fadvise};

use super::WorkerContext;
use crate::{Layout, Sync};

/// Size of the requests by which files are prepared [B].
const PREPARING: usize = 1 << 20;
/// Name in the folder of the common file of items that read at random.
pub(crate) const DATA: &str = "data";

/// Memory for a request, aligned to a page as `O_DIRECT` requires.
pub(crate) struct Buffer(MmapMut);

impl Buffer {
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        MmapOptions::new().len(bytes).populate().map_anon().map(Buffer)
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

/// A part of a file that belongs to one worker.
pub(crate) struct Part {
    /// In the working directory, the folder of the run.
    pub(crate) path: PathBuf,
    /// Number from which its contents are computed.
    pub(crate) file: u32,
    /// Offset of its beginning [B].
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The part of this worker in the files of a transfer.
pub(crate) fn part(place: &WorkerContext<'_>) -> Part {
    let bytes = place.step.share();
    match place.step.layout {
        Layout::Own => Part { path: format!("w{}", place.worker).into(), file: place.worker + 1, start: 0, bytes },
        Layout::Shared => Part { path: "shared".into(), file: 0, start: u64::from(place.worker) * bytes, bytes },
    }
}

/// The part of this worker in the common file.
pub(crate) fn part_of_data(place: &WorkerContext<'_>) -> Part {
    let bytes = place.step.share();
    Part { path: DATA.into(), file: 0, start: u64::from(place.worker) * bytes, bytes }
}

/// Open for reading and writing; created if it does not exist.
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

/// Write the part of this worker, and sync it, without measuring. The slot records the progress
/// [B].
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

/// Make the page cache drop a file, as far as it does.
pub(crate) fn forget(file: &File, start: u64, bytes: u64) {
    // Pages that stay are noticed: the device does not read them.
    let _ = fadvise(file, start, NonZeroU64::new(bytes), Advice::DontNeed);
}

/// Sync after a write, as the step requires.
pub(crate) fn synced(file: &File, sync: Sync) -> io::Result<()> {
    match sync {
        Sync::None | Sync::End | Sync::Dsync => Ok(()),
        Sync::Fdatasync => file.sync_data(),
        Sync::Fsync => file.sync_all(),
    }
}

/// The result of an operation on a whole request: fewer bytes are an error.
pub(crate) fn whole(count: io::Result<usize>, wanted: usize) -> io::Result<crate::meter::Done> {
    match count {
        Ok(count) if count == wanted => Ok(crate::meter::Done::bytes(wanted as u64)),
        // The kernel writes what fits, and refuses the rest at the next attempt.
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
        Err(error) => Err(error),
    }
}

/// As [`whole`], for a read: fewer bytes are an unexpected end of the file.
pub(crate) fn whole_read(count: io::Result<usize>, wanted: usize) -> io::Result<crate::meter::Done> {
    match count {
        Ok(count) if count != wanted => Err(io::Error::from_raw_os_error(libc::ENODATA)),
        other => whole(other, wanted),
    }
}
