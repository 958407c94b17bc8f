//! Blocks of a device or image, as they are, or as they will be when its journal has been replayed.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicU64, Ordering},
};

use super::journal::Replay;

/// Blocks that lie at most this far apart are read at once: reading those between costs less than asking again.
const NEAR: u64 = 4;
/// The most that is read at once when single blocks are asked for [B].
const MOST_AT_ONCE: usize = 1 << 18;

pub(super) struct Source {
    file: File,
    pub(super) block_bytes: u64,
    replay: Option<Replay>,
    /// Blocks that could not be read.
    pub(super) unreadable: AtomicU64,
}

impl Source {
    pub(super) fn new(file: File, block_bytes: u64) -> Self {
        Source { file, block_bytes, replay: None, unreadable: AtomicU64::new(0) }
    }

    pub(super) fn set_replay(&mut self, replay: Replay) {
        self.replay = Some(replay);
    }

    /// Bytes from a place on, of the device as it is.
    pub(super) fn read_bytes(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.file.read_exact_at(&mut buffer, place)?;
        Ok(buffer)
    }

    /// Whole blocks.
    pub(super) fn read(&self, block: u64, buffer: &mut [u8]) -> io::Result<()> {
        debug_assert_eq!(buffer.len() as u64 % self.block_bytes, 0);
        self.file.read_exact_at(buffer, block * self.block_bytes)?;
        self.replay_over(block, buffer)
    }

    /// One block.
    pub(super) fn block(&self, block: u64) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; self.block_bytes as usize];
        self.read(block, &mut buffer)?;
        Ok(buffer)
    }

    /// Whole blocks; what cannot be read is counted, and stands as zeros.
    pub(super) fn read_what_can_be(&self, block: u64, buffer: &mut [u8]) {
        if self.read(block, buffer).is_ok() {
            return;
        }
        for (number, one) in (block..).zip(buffer.chunks_mut(self.block_bytes as usize)) {
            if self.read(number, one).is_err() {
                one.fill(0);
                self.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Many single blocks, in order of place; those near one another at once. Such as cannot be read are counted and left out.
    pub(super) fn each<T>(&self, mut wanted: Vec<(u64, T)>, mut take: impl FnMut(T, &[u8])) {
        wanted.sort_unstable_by_key(|(block, _)| *block);
        let bytes = self.block_bytes as usize;
        let most = (MOST_AT_ONCE / bytes).max(1) as u64;
        let mut buffer = Vec::new();
        let mut rest = wanted.into_iter().peekable();
        let mut run = Vec::new();
        while let Some((first, item)) = rest.next() {
            run.push((first, item));
            let mut last = first;
            while let Some(next) = rest.next_if(|(block, _)| *block <= last + NEAR && block - first < most) {
                last = next.0;
                run.push(next);
            }
            buffer.resize((last - first + 1) as usize * bytes, 0);
            let whole = self.read(first, &mut buffer).is_ok();
            for (block, item) in run.drain(..) {
                let at = (block - first) as usize * bytes;
                let one = &mut buffer[at..at + bytes];
                if whole || self.read(block, one).is_ok() {
                    take(item, one);
                } else {
                    self.unreadable.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn replay_over(&self, block: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some(replay) = &self.replay else { return Ok(()) };
        let bytes = self.block_bytes as usize;
        for (target, copy) in replay.between(block, block + (buffer.len() / bytes) as u64) {
            let at = (target - block) as usize * bytes;
            let one = &mut buffer[at..at + bytes];
            self.file.read_exact_at(one, copy.block * self.block_bytes)?;
            if copy.is_escaped {
                one[..4].copy_from_slice(&super::journal::MAGIC.to_be_bytes());
            }
        }
        Ok(())
    }
}
