//! Requests at random offsets of one file.

use std::{fs::File, io, os::unix::fs::FileExt, sync::atomic::Ordering::Relaxed};

use super::{
    Phase, Work, WorkerContext,
    files::{Buffer, forget, make_ready, open, part_of_data, whole, whole_read},
    transfer::PREPARING_NS,
};
use crate::{Item, Layout, Sync, clock::now_ns, data::Random, meter::Meter};

pub(crate) struct RandomRequests<'a> {
    place: WorkerContext<'a>,
    opened: Option<(File, Buffer)>,
}

impl<'a> RandomRequests<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        RandomRequests { place, opened: None }
    }
}

/// Offsets of requests in the existing parts of the common file.
pub(crate) struct Offsets {
    random: Random,
    /// Offset of each part, and the number of requests that fit into it.
    parts: Vec<(u64, u64)>,
    length: u64,
}

impl Offsets {
    /// For this worker's own part, or for all. Called when all workers have prepared theirs.
    pub(crate) fn new(place: &WorkerContext<'_>) -> io::Result<Self> {
        let (step, share) = (place.step, place.step.share());
        let part = |worker: u32| {
            let prepared = place.slots[worker as usize].prepared.load(Relaxed);
            (u64::from(worker) * share, prepared / step.length_bytes)
        };
        let workers = match step.layout {
            Layout::Own => place.worker..place.worker + 1,
            Layout::Shared => 0..step.processes,
        };
        let parts: Vec<_> = workers.map(part).filter(|(_, requests)| *requests > 0).collect();
        if parts.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::ENODATA));
        }
        let random = Random(place.seed ^ (u64::from(place.worker) << 32));
        Ok(Offsets { random, parts, length: step.length_bytes })
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let part = if self.parts.len() == 1 { 0 } else { self.random.below(self.parts.len() as u64) as usize };
        let (start, requests) = self.parts[part];
        start + self.random.below(requests) * self.length
    }

    /// Whether the next request writes.
    #[inline]
    fn writes(&mut self, share: f64) -> bool {
        self.random.happens(share)
    }
}

/// Prepare the common file, and make the page cache drop it.
pub(crate) fn prepare_data(place: &WorkerContext<'_>) -> io::Result<File> {
    let part = part_of_data(place);
    make_ready(place, &part, now_ns() + PREPARING_NS)?;
    let file = open(&part.path, false, Sync::None)?;
    forget(&file, part.start, part.bytes);
    open(&part.path, place.step.direct, Sync::None)
}

impl Work for RandomRequests<'_> {
    fn prepare(&mut self, _: &Phase) -> io::Result<()> {
        self.opened = Some((prepare_data(&self.place)?, Buffer::new(self.place.step.length_bytes as usize)?));
        Ok(())
    }

    fn run(&mut self, _: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let (step, mut offsets) = (self.place.step, Offsets::new(&self.place)?);
        let length = step.length_bytes as usize;
        let Some((file, buffer)) = &mut self.opened else { return Ok(()) };
        let mixed = step.item == Item::RandomMix;
        loop {
            let offset = offsets.next();
            let go_on = if mixed && offsets.writes(step.write_share) {
                self.place.pool.fill(buffer.bytes(), 0, offset);
                meter.begin();
                meter.end(1, whole(file.write_at(buffer.bytes(), offset), length))
            } else {
                let outcome = whole_read(file.read_at(buffer.bytes(), offset), length);
                let read = outcome.is_ok();
                let go_on = meter.end(0, outcome);
                if read && step.verify {
                    if !self.place.pool.matches(buffer.bytes(), 0, offset) {
                        meter.damaged();
                    }
                    meter.begin();
                }
                go_on
            };
            if !go_on {
                return Ok(());
            }
        }
    }
}
