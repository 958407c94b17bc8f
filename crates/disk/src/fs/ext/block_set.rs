//! Sets of blocks, with a bit for each, and memory only where there are some.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

const BLOCKS: u64 = 1 << 12;
const WORDS: usize = (BLOCKS / 64) as usize;

type Chunk = [AtomicU64; WORDS];

/// A set of blocks of a device. Threads may share it.
pub(super) struct BlockSet {
    chunks: Vec<OnceLock<Box<Chunk>>>,
}

impl BlockSet {
    pub(super) fn new(blocks: u64) -> Self {
        BlockSet { chunks: (0..blocks.div_ceil(BLOCKS)).map(|_| OnceLock::new()).collect() }
    }

    fn chunk(&self, block: u64) -> Option<&Chunk> {
        let chunk = self.chunks.get((block / BLOCKS) as usize)?;
        Some(chunk.get_or_init(|| Box::new([const { AtomicU64::new(0) }; WORDS])))
    }

    /// Insert a block. False: it was in the set already, or is beyond the device.
    pub(super) fn insert(&self, block: u64) -> bool {
        self.insert_all(block, 1) == 0 && block / BLOCKS < self.chunks.len() as u64
    }

    /// Insert blocks. Returns how many of them were in the set already.
    pub(super) fn insert_all(&self, first: u64, count: u64) -> u64 {
        let (mut block, end) = (first, first.saturating_add(count));
        let mut known = 0;
        while block < end {
            let Some(chunk) = self.chunk(block) else { break };
            let bit = block % 64;
            let taken = (end - block).min(64 - bit);
            let mask = (u64::MAX >> (64 - taken)) << bit;
            let before = chunk[(block % BLOCKS / 64) as usize].fetch_or(mask, Ordering::Relaxed);
            known += u64::from((before & mask).count_ones());
            block += taken;
        }
        known
    }

    /// 64 bits from a block on, the lowest first; beyond the device they are 0.
    pub(super) fn word(&self, block: u64) -> u64 {
        let shift = (block % 64) as u32;
        let low = self.aligned_word(block - u64::from(shift)) >> shift;
        if shift == 0 { low } else { low | self.aligned_word(block - u64::from(shift) + 64) << (64 - shift) }
    }

    fn aligned_word(&self, block: u64) -> u64 {
        let chunk = self.chunks.get((block / BLOCKS) as usize).and_then(OnceLock::get);
        chunk.map_or(0, |chunk| chunk[(block % BLOCKS / 64) as usize].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_were_in_are_counted() {
        let set = BlockSet::new(100_000);
        assert_eq!(set.insert_all(32_700, 200), 0);
        assert_eq!(set.insert_all(32_600, 150), 50);
        assert!(!set.insert(32_899) && set.insert(32_900) && !set.insert(1 << 40));
        assert_eq!(set.word(32_590), u64::MAX << 10);
        assert_eq!(set.word(32_890), 0x7ff);
    }
}
