//! Merges the events of all CPUs by time.
//!
//! Those of one CPU are in order already: a call is written at its return. So the merge buffers a
//! part of each CPU's events, and continues with one CPU as long as no other has an earlier event.

use std::{cmp::Reverse, collections::BinaryHeap, fs::File, io, os::unix::fs::FileExt};

use crate::{
    events::{self, Raw},
    families::Families,
    transport::frames::FrameRange,
};

/// Bytes of a stream that are read at a time; more than the longest event.
const STRETCH: usize = 128 << 10;
/// Longer than any event: its length has 16 bits.
const LONGEST: usize = 1 << 16;

/// The events of one CPU.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Frames; those from `next_frame` on have unread parts.
    frames: Vec<FrameRange>,
    next_frame: usize,
    buffer: Vec<u8>,
    /// Offset of the next event in the buffer.
    at: usize,
    /// Time of the next event.
    next_ns: u64,
}

impl Stream {
    pub(crate) fn new(first: FrameRange) -> Self {
        Stream { frames: vec![first], next_frame: 0, buffer: Vec::new(), at: 0, next_ns: 0 }
    }

    /// Append a frame.
    pub(crate) fn add(&mut self, frame: FrameRange) {
        self.frames.push(frame);
    }

    /// Read until the buffer contains the whole next event, if there is one. Returns false at the
    /// end.
    fn fill(&mut self, file: &File) -> io::Result<bool> {
        while self.buffer.len() - self.at < LONGEST {
            let Some(frame) = self.frames.get_mut(self.next_frame) else { break };
            if frame.length == 0 {
                self.next_frame += 1;
                continue;
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            let held = self.buffer.len();
            let take = (frame.length as usize).min(STRETCH);
            self.buffer.resize(held + take, 0);
            file.read_exact_at(&mut self.buffer[held..], frame.offset)?;
            *frame = FrameRange { offset: frame.offset + take as u64, length: frame.length - take as u32 };
        }
        Ok(self.at < self.buffer.len())
    }

    /// Skip events without a time, and store the time of the next one. Returns false at the end.
    fn read_on(&mut self, file: &File) -> io::Result<bool> {
        loop {
            if self.buffer.len() - self.at < LONGEST && !self.fill(file)? {
                return Ok(false);
            }
            // The survey has ended the stream before a broken event; a file that was changed since
            // then ends it here.
            let Some((event, rest)) = events::split(&self.buffer[self.at..]) else { return Ok(false) };
            if let Some(at_ns) = Families::at_ns(&event) {
                self.next_ns = at_ns;
                return Ok(true);
            }
            self.at = self.buffer.len() - rest.len();
        }
    }

    /// Take the next event.
    #[inline]
    fn take(&mut self) -> Option<Raw<'_>> {
        let (event, rest) = events::split(&self.buffer[self.at..])?;
        self.at = self.buffer.len() - rest.len();
        Some(event)
    }
}

/// All streams, merged.
#[derive(Debug)]
pub(crate) struct Merge {
    file: File,
    streams: Vec<Stream>,
    /// Time of the next event of each stream except the current one.
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
}

impl Merge {
    pub(crate) fn new(file: File, mut streams: Vec<Stream>) -> io::Result<Self> {
        let mut waiting = BinaryHeap::new();
        for (index, stream) in streams.iter_mut().enumerate() {
            if stream.read_on(&file)? {
                waiting.push(Reverse((stream.next_ns, index)));
            }
        }
        let current = waiting.pop().map(|Reverse((_, index))| index);
        Ok(Merge { file, streams, waiting, current })
    }

    /// The next event; of equal times, that of the stream that came first. Events without a time
    /// are left out.
    #[inline]
    pub(crate) fn next(&mut self) -> io::Result<Option<Raw<'_>>> {
        let Some(index) = self.current else { return Ok(None) };
        let stream = &mut self.streams[index];
        // The previous event is in the buffer, which may change only now.
        if !stream.read_on(&self.file)? {
            self.current = self.waiting.pop().map(|Reverse((_, index))| index);
        } else if let Some(mut first) = self.waiting.peek_mut()
            && first.0 < (stream.next_ns, index)
        {
            self.current = Some(first.0.1);
            *first = Reverse((stream.next_ns, index));
        }
        Ok(self.current.and_then(|index| self.streams[index].take()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn events_come_in_the_order_of_their_ends() {
        let mut random = testing::Random(7);
        for cpus in [1, 2, 5] {
            let mut bytes = Vec::new();
            let (mut streams, mut expected): (Vec<Stream>, Vec<u64>) = Default::default();
            for cpu in 0..cpus {
                let mut now = 0;
                for _ in 0..1 + random.below(20) {
                    let from = bytes.len();
                    for _ in 0..random.below(3000) {
                        now += random.below(50);
                        expected.push(now + 3);
                        bytes.extend(testing::call(1, now, 3, libc::SYS_getpid, 0).bytes());
                        bytes.extend(testing::path(1, &["x"]).bytes());
                    }
                    let place = FrameRange { offset: from as u64, length: (bytes.len() - from) as u32 };
                    match streams.get_mut(cpu) {
                        Some(stream) => stream.add(place),
                        None => streams.push(Stream::new(place)),
                    }
                }
            }
            expected.sort_unstable();
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let mut merge = Merge::new(file, streams).unwrap();
            let mut found = Vec::new();
            while let Some(event) = merge.next().unwrap() {
                found.push(Families::at_ns(&event).unwrap());
            }
            assert_eq!(found, expected);
        }
    }
}
