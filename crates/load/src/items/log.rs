//! Records that are appended and synced one by one, like the log of a database.

use std::{fs::File, io, os::unix::fs::FileExt};

use super::{
    Phase, Work, WorkerContext,
    files::{Buffer, Part, make_ready, open, synced, whole},
    transfer::PREPARING_NS,
};
use crate::{Item, Operation, Sync, clock::now_ns, meter::Meter};

/// Size of the log next to a mixed load [B]: one segment of PostgreSQL's log.
const SEGMENT: u64 = 16 << 20;
/// Length of its records [B]: one page of PostgreSQL.
pub(crate) const MIX_RECORD_BYTES: u64 = 8192;

pub(crate) struct Log<'a> {
    place: WorkerContext<'a>,
    part: Part,
    length: u64,
    sync: Sync,
    /// The lane of its operation.
    lane: usize,
    opened: Option<(File, Buffer)>,
    offset: u64,
}

impl<'a> Log<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        let step = place.step;
        let is_mixed = step.item == Item::RandomMix;
        let (length, bytes, lane) = match is_mixed {
            true => (MIX_RECORD_BYTES, SEGMENT, 2),
            false => (step.length_bytes, step.share(), 0),
        };
        let sync = step.sync_of(Operation::Append);
        let part = Part { path: format!("log{}", place.worker).into(), file: place.worker + 1, start: 0, bytes };
        Log { place, part, length, sync, lane, opened: None, offset: 0 }
    }
}

impl Work for Log<'_> {
    fn prepare(&mut self, _: &Phase) -> io::Result<()> {
        if self.place.step.prefilled {
            make_ready(&self.place, &self.part, now_ns() + PREPARING_NS)?;
        }
        let direct = self.place.step.direct && self.lane == 0;
        let file = open(&self.part.path, direct, self.sync)?;
        file.sync_all()?;
        self.opened = Some((file, Buffer::new(self.length as usize)?));
        Ok(())
    }

    fn run(&mut self, _: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let Some((file, buffer)) = &mut self.opened else { return Ok(()) };
        loop {
            if self.offset + self.length > self.part.bytes {
                // Start over, as with a segment that is reused.
                self.offset = 0;
            }
            self.place.pool.fill(buffer.bytes(), self.part.file, self.offset);
            meter.begin();
            let outcome = whole(file.write_at(buffer.bytes(), self.offset), self.length as usize)
                .and_then(|done| synced(file, self.sync).map(|()| done));
            self.offset += self.length;
            if !meter.end(self.lane, outcome) {
                return if self.sync == Sync::End { file.sync_all() } else { Ok(()) };
            }
        }
    }
}
