//! Files through a mapping: the processor copies, and page faults do the rest.

use std::{fs::File, io, os::fd::AsRawFd, ptr, slice, sync::atomic::Ordering::Relaxed};

use super::{
    Phase, Work, WorkerContext,
    files::{Buffer, Part, forget, make_ready, open, part},
    transfer::PREPARING_NS,
};
use crate::{
    Operation, Sync,
    clock::now_ns,
    meter::{Done, Meter},
};

pub(crate) struct Mapped<'a> {
    place: WorkerContext<'a>,
    part: Part,
    mapping: Option<Mapping>,
    buffer: Option<Buffer>,
}

/// A mapped part of a file.
struct Mapping {
    memory: *mut u8,
    bytes: usize,
    /// Offset of the part in the mapping, which begins at a page.
    skip: usize,
}

impl Mapping {
    fn new(file: &File, part: &Part) -> io::Result<Self> {
        const PAGE: u64 = 65_536;
        let skip = part.start % PAGE;
        let bytes = (part.bytes + skip) as usize;
        let (access, start) = (libc::PROT_READ | libc::PROT_WRITE, (part.start - skip) as i64);
        // SAFETY: a new mapping of a file without other users.
        let memory = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), start) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { memory: memory.cast(), bytes, skip: skip as usize })
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has this length. If the file system has no room for a page, the
        // worker dies of SIGBUS, which is reported.
        unsafe { slice::from_raw_parts_mut(self.memory.add(self.skip), self.bytes - self.skip) }
    }

    fn sync(&self) -> io::Result<()> {
        // SAFETY: the mapping has this length.
        match unsafe { libc::msync(self.memory.cast(), self.bytes, libc::MS_SYNC) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing refers to it any longer.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

impl<'a> Mapped<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        let part = part(&place);
        Mapped { place, part, mapping: None, buffer: None }
    }
}

impl Work for Mapped<'_> {
    fn prepare(&mut self, phase: &Phase) -> io::Result<()> {
        let length = self.place.step.length_bytes as usize;
        // Pages of a mapping stay in memory as long as the mapping exists.
        let was_written = self.mapping.take().is_some();
        let file = open(&self.part.path, false, Sync::None)?;
        match phase.operations[0] {
            Operation::Write => {
                // SAFETY: takes numbers. Room is allocated now: a page without room would kill the
                // worker.
                let refused = unsafe { libc::posix_fallocate(file.as_raw_fd(), self.part.start as i64, self.part.bytes as i64) };
                if refused != 0 {
                    return Err(io::Error::from_raw_os_error(refused));
                }
            }
            _ if !was_written => make_ready(&self.place, &self.part, now_ns() + PREPARING_NS)?,
            _ => {}
        }
        if phase.operations[0] == Operation::Read {
            file.sync_all()?;
            forget(&file, self.part.start, self.part.bytes);
        }
        self.buffer = Some(Buffer::new(length)?);
        self.mapping = Some(Mapping::new(&file, &self.part)?);
        Ok(())
    }

    fn run(&mut self, phase: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let (Some(mapping), Some(buffer)) = (&mut self.mapping, &mut self.buffer) else { return Ok(()) };
        let (length, pool) = (self.place.step.length_bytes as usize, self.place.pool);
        let prepared = &self.place.slot().prepared;
        let write = phase.operations[0] == Operation::Write;
        let bytes = if write { self.part.bytes } else { prepared.load(Relaxed) };
        let mut done = 0;
        while done + length as u64 <= bytes {
            let range = done as usize..done as usize + length;
            if write {
                pool.fill(buffer.bytes(), self.part.file, self.part.start + done);
                meter.begin();
                mapping.bytes()[range].copy_from_slice(buffer.bytes());
            } else {
                buffer.bytes().copy_from_slice(&mapping.bytes()[range]);
            }
            let offset = self.part.start + done;
            done += length as u64;
            if write {
                prepared.store(done, Relaxed);
            }
            let go_on = meter.end(0, Ok(Done::bytes(length as u64)));
            if !write && self.place.step.verify {
                if !pool.matches(buffer.bytes(), self.part.file, offset) {
                    meter.damaged();
                }
                meter.begin();
            }
            if !go_on {
                break;
            }
        }
        if write && self.place.step.sync_of(Operation::Write) != Sync::None { mapping.sync() } else { Ok(()) }
    }
}
