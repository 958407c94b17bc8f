//! Files through a mapping: the processor copies, and page faults do the rest.

use std::{fs::File, io, sync::atomic::Ordering::Relaxed};

use memmap2::{MmapMut, MmapOptions};

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
    mapping: Option<MmapMut>,
    buffer: Option<Buffer>,
}

/// Maps a part of a file.
fn map(file: &File, part: &Part) -> io::Result<MmapMut> {
    // SAFETY: only this worker uses this part of the file. If the file system has no room for a page, or somebody
    // cuts the file short, the worker dies of SIGBUS, which is reported.
    unsafe { MmapOptions::new().offset(part.start).len(part.bytes as usize).map_mut(file) }
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
                // A page without room would kill the worker.
                nix::fcntl::posix_fallocate(&file, self.part.start as i64, self.part.bytes as i64)?;
            }
            _ if !was_written => make_ready(&self.place, &self.part, now_ns() + PREPARING_NS)?,
            _ => {}
        }
        if phase.operations[0] == Operation::Read {
            file.sync_all()?;
            forget(&file, self.part.start, self.part.bytes);
        }
        self.buffer = Some(Buffer::new(length)?);
        self.mapping = Some(map(&file, &self.part)?);
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
                mapping[range].copy_from_slice(buffer.bytes());
            } else {
                buffer.bytes().copy_from_slice(&mapping[range]);
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
        if write && self.place.step.sync_of(Operation::Write) != Sync::None { mapping.flush() } else { Ok(()) }
    }
}
