//! Files from their beginning to their end.

use std::{fs::File, io, os::unix::fs::FileExt, sync::atomic::Ordering::Relaxed};

use super::{
    Phase, Work, WorkerContext,
    files::{Buffer, Part, forget, make_ready, open, part, synced, whole, whole_read},
};
use crate::{Operation, Sync, clock::now_ns, meter::Meter};

/// Time limit for preparing files when only reading is measured [ns].
pub(crate) const PREPARING_NS: u64 = 60_000_000_000;

pub(crate) struct Transfer<'a> {
    place: WorkerContext<'a>,
    part: Part,
    buffer: Option<Buffer>,
    file: Option<File>,
}

impl<'a> Transfer<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        let part = part(&place);
        Transfer { place, part, buffer: None, file: None }
    }

    fn write(&mut self, meter: &mut Meter<'_>) -> io::Result<()> {
        let (step, prepared) = (self.place.step, &self.place.slot().prepared);
        let (length, sync) = (step.length_bytes as usize, step.sync_of(Operation::Write));
        let (Some(file), Some(buffer)) = (&self.file, &mut self.buffer) else { return Ok(()) };
        let mut done = 0;
        while done < self.part.bytes {
            let offset = self.part.start + done;
            self.place.pool.fill(buffer.bytes(), self.part.file, offset);
            meter.begin();
            let outcome = whole(file.write_at(buffer.bytes(), offset), length).and_then(|done| synced(file, sync).map(|()| done));
            if outcome.is_ok() {
                done += length as u64;
                prepared.store(done, Relaxed);
            }
            if !meter.end(0, outcome) {
                break;
            }
        }
        if sync == Sync::End { file.sync_all() } else { Ok(()) }
    }

    fn read(&mut self, meter: &mut Meter<'_>) {
        let step = self.place.step;
        let (length, bytes) = (step.length_bytes as usize, self.place.slot().prepared.load(Relaxed));
        let (Some(file), Some(buffer)) = (&self.file, &mut self.buffer) else { return };
        let mut done = 0;
        while done + length as u64 <= bytes {
            let offset = self.part.start + done;
            let outcome = whole_read(file.read_at(buffer.bytes(), offset), length);
            let read = outcome.is_ok();
            let go_on = meter.end(0, outcome);
            if read && step.verify {
                if !self.place.pool.matches(buffer.bytes(), self.part.file, offset) {
                    meter.damaged();
                }
                meter.begin();
            }
            if !go_on {
                break;
            }
            done += length as u64;
        }
    }
}

impl Work for Transfer<'_> {
    fn prepare(&mut self, phase: &Phase) -> io::Result<()> {
        let step = self.place.step;
        if self.buffer.is_none() {
            self.buffer = Some(Buffer::new(step.length_bytes as usize)?);
        }
        if phase.operations[0] == Operation::Read {
            if self.file.is_none() {
                make_ready(&self.place, &self.part, now_ns() + PREPARING_NS)?;
            }
            let file = open(&self.part.path, false, Sync::None)?;
            file.sync_all()?;
            forget(&file, self.part.start, self.part.bytes);
        }
        self.file = Some(open(&self.part.path, step.direct, step.sync_of(Operation::Write))?);
        Ok(())
    }

    fn run(&mut self, phase: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        if phase.operations[0] == Operation::Write {
            return self.write(meter);
        }
        self.read(meter);
        Ok(())
    }
}
