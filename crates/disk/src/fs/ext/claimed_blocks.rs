//! Owners of all blocks: which structure claims a block, which are free, and which are neither.

use sysdock_table::facts::disk as facts;

use super::{
    FileSystem,
    block_set::BlockSet,
    bytes::{le64, runs},
    groups::{self, Fixed},
    issues::{Issues, word},
    super_block::SuperBlock,
};

/// All claimed blocks. Indices count from the first block of the first group, so that groups begin
/// at whole bytes.
pub(super) struct ClaimedBlocks {
    first_block: u64,
    claimed: BlockSet,
    /// Blocks that never move.
    fixed: BlockSet,
    attributes: BlockSet,
}

/// Ranges that are found at the end, in blocks: first and count.
pub(super) enum Found {
    Free(u64, u64),
    /// In use without an owner; the last field: whether another block of the same cluster is
    /// claimed.
    Unclaimed(u64, u64, bool),
}

impl ClaimedBlocks {
    pub(super) fn new(super_block: &SuperBlock) -> Self {
        let set = || BlockSet::new(super_block.blocks);
        ClaimedBlocks { first_block: super_block.first_block, claimed: set(), fixed: set(), attributes: set() }
    }

    /// Claim blocks for an owner.
    pub(super) fn claim(&self, first: u64, count: u64, issues: &mut Issues, whose: impl FnOnce() -> String) {
        let Some(place) = first.checked_sub(self.first_block) else { return };
        let twice = self.claimed.insert_all(place, count);
        issues.add(word::CLAIMED_TWICE, twice, || facts::claimed_twice(first, first + count - 1, whose()));
    }

    pub(super) fn claim_fixed(&self, fixed: &Fixed, issues: &mut Issues) {
        if let Some(place) = fixed.first.checked_sub(self.first_block) {
            self.fixed.insert_all(place, fixed.count);
        }
        self.claim(fixed.first, fixed.count, issues, || fixed.part.into());
    }

    /// Claim a block of attributes, which several files may share. Returns true for the first of
    /// them.
    pub(super) fn claim_attributes(&self, block: u64, inode: u32, issues: &mut Issues) -> bool {
        let is_first = self.attributes.insert(block);
        if is_first {
            self.claim(block, 1, issues, || format!("attributes of inode {inode}"));
        }
        is_first
    }

    /// Compare with the block bitmaps, once everything is claimed. Free ranges may extend across
    /// groups.
    pub(super) fn rest(&self, fs: &FileSystem, issues: &mut Issues, mut take: impl FnMut(Found)) {
        let super_block = &fs.super_block;
        let mut free: Option<(u64, u64)> = None;
        for number in 0..super_block.groups {
            let count = super_block.group_blocks(number);
            let place = number * super_block.blocks_per_group;
            let first = super_block.group_first_block(number);
            let Some(used) = self.used(fs, number, place, count, issues) else { continue };
            let word_of = |at: u64| used.get(at as usize / 64).copied().unwrap_or(0);
            runs(
                count,
                |at| !word_of(at),
                |from, length| match &mut free {
                    Some(open) if open.0 + open.1 == first + from => open.1 += length,
                    _ => {
                        if let Some((from, length)) = free.replace((first + from, length)) {
                            take(Found::Free(from, length));
                        }
                    }
                },
            );
            let clash: u64 = (0..count)
                .step_by(64)
                .map(|at| {
                    let mask = u64::MAX >> (64 - (count - at).min(64));
                    u64::from((self.claimed.word(place + at) & !word_of(at) & mask).count_ones())
                })
                .sum();
            issues.add(word::FREE_BUT_USED, clash, || facts::free_but_used(number));
            runs(
                count,
                |at| word_of(at) & !self.claimed.word(place + at),
                |from, length| {
                    self.unclaimed(first + from, length, super_block.cluster_blocks, &mut take);
                },
            );
        }
        if let Some((from, length)) = free {
            take(Found::Free(from, length));
        }
    }

    /// Blocks of a group that are in use by its bitmap, a bit for each.
    fn used(&self, fs: &FileSystem, number: u64, place: u64, count: u64, issues: &mut Issues) -> Option<Vec<u64>> {
        let group = &fs.groups[number as usize];
        let words = count.div_ceil(64);
        let cluster = fs.super_block.cluster_blocks;
        if group.has_no_bitmap {
            let fixed: Vec<u64> = (0..words).map(|word| self.fixed.word(place + word * 64)).collect();
            return Some(if cluster > 1 { whole_clusters(&fixed, cluster, count) } else { fixed });
        }
        let bitmap = match group.block_bitmap.map(|block| fs.source.block(block)) {
            Some(Ok(bitmap)) => {
                let is_wrong = !groups::bitmap_holds(fs, number, false, &bitmap);
                let example = || facts::block_bitmap_checksum(number);
                issues.add(word::BROKEN_GROUP, u64::from(is_wrong), example);
                bitmap
            }
            Some(Err(error)) => {
                let lost = || facts::block_bitmap_unreadable(number, error.to_string());
                issues.add(word::UNREADABLE_BLOCK, 1, lost);
                return None;
            }
            None => return None,
        };
        if cluster == 1 {
            return Some((0..words).map(|word| le64_at(&bitmap, word as usize * 8)).collect());
        }
        let is_used = |block: u64| {
            let bit = (block / cluster) as usize;
            bitmap.get(bit / 8).is_none_or(|byte| byte >> (bit % 8) & 1 == 1)
        };
        let word = |first: u64| (0..64).fold(0, |word, bit| word | u64::from(is_used(first + bit)) << bit);
        Some((0..words).map(|number| word(number * 64)).collect())
    }

    /// Pass blocks without an owner, separately those whose cluster has other owners.
    fn unclaimed(&self, first: u64, count: u64, cluster: u64, take: &mut impl FnMut(Found)) {
        if cluster == 1 {
            return take(Found::Unclaimed(first, count, false));
        }
        let (mut at, end) = (first, first + count);
        while at < end {
            let begin = at - (at - self.first_block) % cluster;
            let next = (begin + cluster).min(end);
            let is_shared = (begin..begin + cluster).any(|block| self.claimed.word(block - self.first_block) & 1 == 1);
            take(Found::Unclaimed(at, next - at, is_shared));
            at = next;
        }
    }
}

/// The set with all blocks of each cluster that has a block in it.
fn whole_clusters(bits: &[u64], cluster: u64, count: u64) -> Vec<u64> {
    let mut whole = vec![0_u64; bits.len()];
    let mut set = |first: u64, count: u64| (first..first + count).for_each(|bit| whole[bit as usize / 64] |= 1 << (bit % 64));
    runs(
        count,
        |at| bits[at as usize / 64],
        |first, length| {
            let begin = first / cluster * cluster;
            let end = ((first + length).next_multiple_of(cluster)).min(count);
            set(begin, end - begin);
        },
    );
    whole
}

/// Bytes after the end of a short bitmap count as in use.
fn le64_at(bytes: &[u8], at: usize) -> u64 {
    if at + 8 <= bytes.len() {
        return le64(bytes, at);
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    if rest.is_empty() { u64::MAX } else { word | u64::MAX << (8 * rest.len()) }
}
