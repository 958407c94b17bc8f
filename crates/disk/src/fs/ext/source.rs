//! Blocks of a device or image, as they are, or as they will be once its journal is replayed.

use std::{
    fs::File,
    io::{self, IoSliceMut},
    num::NonZeroU64,
    os::unix::fs::FileExt,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::{
    fs::{Advice, fadvise},
    io::{ReadWriteFlags, preadv2},
};

use super::journal::Replay;

/// Blocks at most this far apart are read at once: reading those in between costs less than another
/// request.
const NEAR: u64 = 4;
/// Limit for one read when single blocks are requested [B].
const MOST_AT_ONCE: usize = 1 << 18;

pub(super) struct Source {
    file: File,
    pub(super) block_bytes: u64,
    replay: Option<Replay>,
    /// Number of blocks that could not be read.
    pub(super) unreadable: AtomicU64,
}

impl Source {
    pub(super) fn new(file: File, block_bytes: u64) -> Self {
        Source { file, block_bytes, replay: None, unreadable: AtomicU64::new(0) }
    }

    pub(super) fn set_replay(&mut self, replay: Replay) {
        self.replay = Some(replay);
    }

    /// Bytes at an offset of the device as it is.
    pub(super) fn read_bytes(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.file.read_exact_at(&mut buffer, place)?;
        Ok(buffer)
    }

    /// Read whole blocks.
    pub(super) fn read(&self, block: u64, buffer: &mut [u8]) -> io::Result<()> {
        debug_assert_eq!(buffer.len() as u64 % self.block_bytes, 0);
        self.file.read_exact_at(buffer, block * self.block_bytes)?;
        self.replay_over(block, buffer)
    }

    /// Read one block.
    pub(super) fn block(&self, block: u64) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; self.block_bytes as usize];
        self.read(block, &mut buffer)?;
        Ok(buffer)
    }

    /// Read whole blocks. Those that cannot be read are counted, and are zeros.
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

    /// Read many single blocks, those near one another at once. Unreadable ones are counted and
    /// left out.
    ///
    /// Blocks in memory come first. All others are requested before any of them is waited for: a
    /// device answers many requests faster than one after another.
    pub(super) fn each<T: Copy>(&self, mut wanted: Vec<(u64, T)>, mut take: impl FnMut(T, &[u8])) {
        wanted.sort_unstable_by_key(|(block, _)| *block);
        let most = (MOST_AT_ONCE / self.block_bytes as usize).max(1) as u64;
        let near = |run: &[(u64, T)], next: u64| next <= run[run.len() - 1].0 + NEAR && next - run[0].0 < most;
        let mut buffer = Vec::new();
        let mut later = Vec::new();
        let mut rest = wanted.as_slice();
        while !rest.is_empty() {
            let count = (1..rest.len()).find(|end| !near(&rest[..*end], rest[*end].0)).unwrap_or(rest.len());
            let (run, after) = rest.split_at(count);
            rest = after;
            if self.read_from_memory(run[0].0, self.room(&mut buffer, run)) {
                self.hand_over(run, &mut buffer, true, &mut take);
            } else {
                self.request_ahead(run[0].0, run[count - 1].0 - run[0].0 + 1);
                later.push(run);
            }
        }
        for run in later {
            let is_whole = self.read(run[0].0, self.room(&mut buffer, run)).is_ok();
            self.hand_over(run, &mut buffer, is_whole, &mut take);
        }
    }

    /// Begin to read blocks into the page cache, without waiting. It is a hint: nothing depends on
    /// it.
    pub(super) fn request_ahead(&self, block: u64, count: u64) {
        let length = NonZeroU64::new(count * self.block_bytes);
        let _ = fadvise(&self.file, block * self.block_bytes, length, Advice::WillNeed);
    }

    /// Buffer for a run of blocks and those in between.
    fn room<'a, T>(&self, buffer: &'a mut Vec<u8>, run: &[(u64, T)]) -> &'a mut [u8] {
        let bytes = (run[run.len() - 1].0 - run[0].0 + 1) as usize * self.block_bytes as usize;
        if buffer.len() < bytes {
            buffer.resize(bytes, 0);
        }
        &mut buffer[..bytes]
    }

    /// Pass on the blocks of a run, which `buffer` contains from the first on, or which are read
    /// one by one because not all of them could be read.
    fn hand_over<T: Copy>(&self, run: &[(u64, T)], buffer: &mut [u8], is_whole: bool, take: &mut impl FnMut(T, &[u8])) {
        let bytes = self.block_bytes as usize;
        for (block, item) in run {
            let at = (block - run[0].0) as usize * bytes;
            let one = &mut buffer[at..at + bytes];
            if is_whole || self.read(*block, one).is_ok() {
                take(*item, one);
            } else {
                self.unreadable.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Read whole blocks, if all of them are in memory.
    fn read_from_memory(&self, block: u64, buffer: &mut [u8]) -> bool {
        let read = preadv2(&self.file, &mut [IoSliceMut::new(buffer)], block * self.block_bytes, ReadWriteFlags::NOWAIT);
        read == Ok(buffer.len()) && self.replay_over(block, buffer).is_ok()
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
