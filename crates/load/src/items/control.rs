//! Work that accesses no file: it shows how fast the machine is for the workers themselves.

use std::{hint, io};

use super::{Phase, Work, WorkerContext};
use crate::meter::{Done, Meter};

/// Number of bytes that an operation processes once.
const BYTES: usize = 64 << 10;

pub(crate) struct Control<'a> {
    place: WorkerContext<'a>,
    buffer: Vec<u8>,
}

impl<'a> Control<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        Control { place, buffer: vec![0; BYTES] }
    }
}

impl Work for Control<'_> {
    fn prepare(&mut self, _: &Phase) -> io::Result<()> {
        Ok(())
    }

    fn run(&mut self, _: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let mut offset = 0;
        loop {
            // The copy is compared as well, so that the compiler cannot remove it.
            self.place.pool.fill(&mut self.buffer, 0, offset);
            hint::black_box(self.place.pool.matches(&self.buffer, 0, offset));
            offset += BYTES as u64;
            if !meter.end(0, Ok(Done::ONE)) {
                return Ok(());
            }
        }
    }
}
