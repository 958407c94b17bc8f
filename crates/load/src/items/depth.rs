//! Reads at random offsets with many requests in progress (`io_uring`).

use std::{fs::File, io, os::fd::AsRawFd};

use io_uring::{IoUring, opcode, types};

use super::{
    Phase, Work, WorkerContext,
    files::{Buffer, whole_read},
    random::{Offsets, prepare_data},
};
use crate::{clock::now_ns, meter::Meter};

pub(crate) struct Depth<'a> {
    place: WorkerContext<'a>,
    opened: Option<Opened>,
}

struct Opened {
    file: File,
    ring: IoUring,
    /// Buffers for all requests in progress, one after another.
    buffer: Buffer,
}

impl<'a> Depth<'a> {
    pub(crate) fn new(place: WorkerContext<'a>) -> Self {
        Depth { place, opened: None }
    }
}

impl Opened {
    /// Queue a read with the number `slot`.
    fn submit(&mut self, slot: usize, offset: u64, length: usize) -> io::Result<()> {
        let place = self.buffer.bytes()[slot * length..].as_mut_ptr();
        let entry = opcode::Read::new(types::Fd(self.file.as_raw_fd()), place, length as u32).offset(offset).build();
        // SAFETY: file and buffer live until the ring is empty or closed, and each part of the
        // buffer has one request at a time.
        unsafe { self.ring.submission().push(&entry.user_data(slot as u64)) }
            .map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))
    }
}

impl Work for Depth<'_> {
    fn prepare(&mut self, _: &Phase) -> io::Result<()> {
        let step = self.place.step;
        let file = prepare_data(&self.place)?;
        let buffer = Buffer::new(step.length_bytes as usize * step.depth as usize)?;
        self.opened = Some(Opened { file, ring: IoUring::new(step.depth.next_power_of_two())?, buffer });
        Ok(())
    }

    fn run(&mut self, _: &Phase, meter: &mut Meter<'_>) -> io::Result<()> {
        let (length, depth) = (self.place.step.length_bytes as usize, self.place.step.depth as usize);
        let mut offsets = Offsets::new(&self.place)?;
        let Some(opened) = &mut self.opened else { return Ok(()) };
        let mut began = vec![now_ns(); depth];
        for slot in 0..depth {
            opened.submit(slot, offsets.next(), length)?;
        }
        let mut under_way = depth;
        let mut go_on = true;
        let mut done = Vec::with_capacity(depth);
        while under_way > 0 {
            match opened.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => continue,
                Err(error) => return Err(error),
            }
            done.clear();
            done.extend(opened.ring.completion().map(|entry| (entry.user_data() as usize, entry.result())));
            for &(slot, result) in &done {
                under_way -= 1;
                let count = if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(result as usize) };
                if !go_on {
                    // Requests that complete after the end of the phase do not count.
                    continue;
                }
                go_on = meter.end_of(0, began[slot], whole_read(count, length));
                if go_on {
                    began[slot] = meter.began();
                    opened.submit(slot, offsets.next(), length)?;
                    under_way += 1;
                }
            }
        }
        Ok(())
    }
}
