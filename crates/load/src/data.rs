//! The written data: bytes that cannot be compressed, in which all blocks of 4 KiB differ, and
//! which can be recomputed for comparison.

/// Size of a block [B], the unit in which contents are known.
const BLOCK: u64 = 4096;
const POOL: usize = 4 << 20;

/// Random bytes from which blocks are cut.
pub(crate) struct Pool {
    bytes: Vec<u8>,
    seed: u64,
}

impl Pool {
    /// A pool that differs for each seed.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let bytes = (0..POOL / 8).flat_map(|_| random.next().to_le_bytes()).collect();
        Pool { bytes, seed }
    }

    /// Fill `buffer` with the contents of `file` at `offset` [B].
    pub(crate) fn fill(&self, buffer: &mut [u8], file: u32, offset: u64) {
        self.blocks(buffer.len(), file, offset, |range, stamp, contents, skip| {
            let buffer = &mut buffer[range];
            buffer.copy_from_slice(contents);
            if skip < 8 {
                let count = buffer.len().min(8 - skip);
                buffer[..count].copy_from_slice(&stamp[skip..skip + count]);
            }
            true
        });
    }

    /// Whether `buffer` has the contents of `file` at `offset` [B].
    pub(crate) fn matches(&self, buffer: &[u8], file: u32, offset: u64) -> bool {
        self.blocks(buffer.len(), file, offset, |range, stamp, contents, skip| {
            let buffer = &buffer[range];
            let count = if skip < 8 { buffer.len().min(8 - skip) } else { 0 };
            buffer[count..] == contents[count..] && buffer[..count] == stamp[skip.min(8)..skip.min(8) + count]
        })
    }

    /// Call `each` for each block that `length` bytes at `offset` overlap: its range in the buffer,
    /// the stamp at the beginning of the block, the bytes of the pool, and the part of the block
    /// before the buffer. Ends at the first that returns false.
    fn blocks(
        &self,
        length: usize,
        file: u32,
        offset: u64,
        mut each: impl FnMut(std::ops::Range<usize>, [u8; 8], &[u8], usize) -> bool,
    ) -> bool {
        let mut done = 0;
        while done < length {
            let (block, skip) = ((offset + done as u64) / BLOCK, ((offset + done as u64) % BLOCK) as usize);
            let count = (BLOCK as usize - skip).min(length - done);
            let stamp = Random(self.seed ^ (u64::from(file) << 40) ^ block).next();
            let from = stamp as usize % (POOL - BLOCK as usize) + skip;
            if !each(done..done + count, stamp.to_le_bytes(), &self.bytes[from..from + count], skip) {
                return false;
            }
            done += count;
        }
        true
    }
}

/// A generator of random numbers (splitmix64, by Sebastiano Vigna).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which must be above 0.
    #[inline]
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// Whether an event of this probability happens.
    #[inline]
    pub(crate) fn happens(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_come_whatever_pieces_they_are_asked_in() {
        let pool = Pool::new(7);
        let mut whole = vec![0; 3 * BLOCK as usize];
        pool.fill(&mut whole, 3, BLOCK * 5);
        for (start, length) in [(0, 1), (3, 9), (4090, 20), (5000, 7000), (8191, 2)] {
            let mut piece = vec![0; length];
            pool.fill(&mut piece, 3, BLOCK * 5 + start as u64);
            assert_eq!(piece, whole[start..start + length], "{start}");
            assert!(pool.matches(&piece, 3, BLOCK * 5 + start as u64));
            assert!(!pool.matches(&piece, 3, BLOCK * 9 + start as u64));
            piece[length / 2] ^= 1;
            assert!(!pool.matches(&piece, 3, BLOCK * 5 + start as u64));
        }
    }

    #[test]
    fn no_block_is_like_another() {
        let pool = Pool::new(7);
        let mut seen = std::collections::HashSet::new();
        for file in 0..3 {
            let mut bytes = vec![0; 200 * BLOCK as usize];
            pool.fill(&mut bytes, file, 0);
            assert!(bytes.chunks(BLOCK as usize).all(|block| seen.insert(block.to_vec())));
        }
    }
}
