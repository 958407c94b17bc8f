//! What the journal contains in addition to the rest of the device (kernel:
//! Documentation/filesystems/ext4/journal.rst, fs/jbd2/recovery.c). Numbers in it are big-endian.
//!
//! A log of transactions: descriptor blocks (which block each of the following copies is for),
//! revocation blocks (copies in this or older transactions are void), and a commit that ends a
//! transaction. Replaying means to read the last copy of a block in place of the block; nothing is
//! written, and the copies stay where they are.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
};

use sysdock_table::{Fact, facts::disk as facts};

use super::{
    bytes::{be16, be32, be64, le16, le32, wide},
    crc::crc32c,
    refusal::Refusal,
    source::Source,
    super_block::SuperBlock,
};
use crate::{error::Remedy, extent::Extent};

pub(super) const MAGIC: u32 = 0xc03b_3998;

const DESCRIBES: u32 = 1;
const COMMITS: u32 = 2;
const REVOKES: u32 = 5;

/// Bits of the features of the journal.
const BITS_64: u32 = 2;
const CSUM_V2: u32 = 8;
const CSUM_V3: u32 = 0x10;
const FAST_COMMIT: u32 = 0x20;
const UNDERSTOOD: u32 = 0x3f;

/// Bits of a tag.
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;

/// The copy of a block in the journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copy {
    pub(super) block: u64,
    /// Whether its first four bytes were removed, because they look like the journal's own magic.
    pub(super) is_escaped: bool,
}

/// Copies to be read in place of blocks.
#[derive(Debug, Default)]
pub(super) struct Replay {
    copies: BTreeMap<u64, Copy>,
    pub(super) transactions: u64,
    /// Number of copies with a wrong checksum, which are not used.
    pub(super) damaged: u64,
    /// Whether the log ends with a block that has a wrong checksum, as one that was cut off does.
    pub(super) ends_damaged: bool,
    /// Whether fast commits follow the last transaction. They are not replayed.
    pub(super) has_fast_commits: bool,
}

impl Replay {
    pub(super) fn between(&self, from: u64, end: u64) -> impl Iterator<Item = (u64, Copy)> {
        self.copies.range((Bound::Included(from), Bound::Excluded(end))).map(|(block, copy)| (*block, *copy))
    }

    pub(super) fn blocks(&self) -> usize {
        self.copies.len()
    }
}

/// The super block of the journal, and the location of its blocks.
struct Journal<'a> {
    source: &'a Source,
    blocks: u64,
    /// Extents of its inode in blocks: logical, physical, count.
    map: Vec<(u64, u64, u64)>,
    /// First block of the ring that is the log; the end follows.
    first: u64,
    end: u64,
    features: u32,
    seed: u32,
}

/// A transaction: blocks, their copies and the checksums of these, and the blocks that it revokes.
#[derive(Default)]
struct Transaction {
    copies: Vec<(u64, Copy, u32)>,
    revoked: Vec<u64>,
}

/// Read the log of a file system that was not unmounted.
pub(super) fn replay(source: &Source, super_block: &SuperBlock, extents: &[Extent]) -> Result<Replay, Refusal> {
    let bytes = super_block.block_bytes;
    let mut map: Vec<_> =
        extents.iter().map(|extent| (extent.logical / bytes, extent.physical / bytes, extent.length / bytes)).collect();
    map.sort_unstable();
    let mut journal = Journal { source, blocks: super_block.blocks, map, first: 0, end: 0, features: 0, seed: 0 };
    let head = journal.read(0)?;
    if be32(&head, 0) != MAGIC || !matches!(be32(&head, 4), 3 | 4) || u64::from(be32(&head, 0xc)) != bytes {
        return Err(unreadable(facts::journal_without_super_block()));
    }
    let is_second = be32(&head, 4) == 4;
    journal.features = if is_second { be32(&head, 0x28) } else { 0 };
    if journal.features & !UNDERSTOOD != 0 {
        return Err(unreadable(facts::journal_features(format!("0x{:x}", journal.features & !UNDERSTOOD))));
    }
    journal.seed = crc32c(u32::MAX, &head[0x30..0x40]);
    let (length, begin) = (u64::from(be32(&head, 0x10)), u64::from(be32(&head, 0x1c)));
    let fast = if journal.features & FAST_COMMIT == 0 {
        0
    } else {
        Some(u64::from(be32(&head, 0x54))).filter(|count| *count > 0).unwrap_or(256)
    };
    (journal.first, journal.end) = (u64::from(be32(&head, 0x14)), length.saturating_sub(fast));
    let room: u64 = journal.map.iter().map(|(_, _, count)| count).sum();
    if journal.first == 0 || journal.first >= journal.end || length > room || begin >= journal.end {
        return Err(unreadable(facts::journal_super_block_damaged()));
    }
    if begin == 0 {
        // The log is empty: only fast commits may be left, which restart with each commit.
        let has_fast_commits = fast > 0 && journal.has_fast_commits(be32(&head, 0x18));
        return Ok(Replay { has_fast_commits, ..Replay::default() });
    }
    let mut replay = journal.scan(begin.max(journal.first), be32(&head, 0x18))?;
    let next = be32(&head, 0x18).wrapping_add(replay.transactions as u32);
    replay.has_fast_commits = fast > 0 && journal.has_fast_commits(next);
    Ok(replay)
}

fn unreadable(why: Fact) -> Refusal {
    Refusal::Because(facts::not_unmounted(facts::journal_unreadable(why)), Remedy::ApplyJournal)
}

impl Journal<'_> {
    /// Location of a block of the journal on the device.
    fn place(&self, block: u64) -> Option<u64> {
        let after = self.map.partition_point(|(logical, ..)| *logical <= block);
        let (logical, physical, count) = self.map.get(after.checked_sub(1)?)?;
        (block - logical < *count).then(|| physical + (block - logical))
    }

    fn read(&self, block: u64) -> Result<Vec<u8>, Refusal> {
        let place = self.place(block).ok_or_else(|| unreadable(facts::journal_has_hole()))?;
        self.source.block(place).map_err(|error| unreadable(facts::error(error.to_string())))
    }

    fn next(&self, block: u64) -> u64 {
        if block + 1 >= self.end { self.first } else { block + 1 }
    }

    fn has_sums(&self) -> bool {
        self.features & (CSUM_V2 | CSUM_V3) != 0
    }

    /// Read all committed transactions.
    fn scan(&self, begin: u64, first_sequence: u32) -> Result<Replay, Refusal> {
        let (mut at, mut sequence) = (begin, first_sequence);
        let (mut open, mut done) = (Transaction::default(), Vec::new());
        let mut replay = Replay::default();
        // The log can contain each of its blocks once.
        let mut left = self.end - self.first;
        while left > 0 {
            let bytes = self.read(at)?;
            if be32(&bytes, 0) != MAGIC || be32(&bytes, 8) != sequence {
                break;
            }
            left -= 1;
            at = self.next(at);
            let is_sound = match be32(&bytes, 4) {
                DESCRIBES => self.tail_is_sound(&bytes) && self.described(&bytes, &mut at, &mut left, &mut open),
                REVOKES => self.tail_is_sound(&bytes) && self.revoked(&bytes, &mut open),
                COMMITS if self.commit_is_sound(&bytes) => {
                    done.push(std::mem::take(&mut open));
                    sequence = sequence.wrapping_add(1);
                    true
                }
                COMMITS => false,
                _ => break,
            };
            if !is_sound {
                replay.ends_damaged = true;
                break;
            }
        }
        replay.transactions = done.len() as u64;
        self.apply(&done, first_sequence, &mut replay);
        Ok(replay)
    }

    /// Keep the last copies, except those that the same or a later transaction revokes.
    fn apply(&self, transactions: &[Transaction], first_sequence: u32, replay: &mut Replay) {
        let mut revoked: HashMap<u64, usize> = HashMap::new();
        for (number, transaction) in transactions.iter().enumerate() {
            revoked.extend(transaction.revoked.iter().map(|block| (*block, number)));
        }
        for (number, transaction) in transactions.iter().enumerate() {
            let sequence = first_sequence.wrapping_add(number as u32);
            for (block, copy, sum) in &transaction.copies {
                if revoked.get(block).is_some_and(|last| *last >= number) || *block >= self.blocks {
                    continue;
                }
                if self.has_sums() && !self.copy_is_sound(*copy, *sum, sequence) {
                    replay.damaged += 1;
                    continue;
                }
                replay.copies.insert(*block, *copy);
            }
        }
    }

    /// Read the tags of a descriptor block, and skip the copies after it. False: a block has an
    /// impossible location.
    fn described(&self, bytes: &[u8], at: &mut u64, left: &mut u64, open: &mut Transaction) -> bool {
        const UUID: usize = 16;
        let is_wide = self.features & BITS_64 != 0;
        let has_v3 = self.features & CSUM_V3 != 0;
        let tag_bytes = match (has_v3, is_wide) {
            (true, _) => 16,
            (false, true) => 12 + self.extra_tag_bytes(),
            (false, false) => 8 + self.extra_tag_bytes(),
        };
        let end = bytes.len() - if self.has_sums() { 4 } else { 0 };
        let mut tag = 12;
        while tag + tag_bytes <= end {
            let (flags, sum, high) = if has_v3 {
                (be32(bytes, tag + 4), be32(bytes, tag + 12), be32(bytes, tag + 8))
            } else {
                (u32::from(be16(bytes, tag + 6)), u32::from(be16(bytes, tag + 4)), if is_wide { be32(bytes, tag + 8) } else { 0 })
            };
            let block = wide(if is_wide { high } else { 0 }, be32(bytes, tag));
            let Some(place) = self.place(*at).filter(|_| *left > 0) else { return false };
            open.copies.push((block, Copy { block: place, is_escaped: flags & ESCAPED != 0 }, sum));
            *at = self.next(*at);
            *left -= 1;
            tag += tag_bytes + if flags & SAME_UUID == 0 { UUID } else { 0 };
            if flags & LAST != 0 {
                break;
            }
        }
        true
    }

    /// With checksums of version 2 a tag has two more bytes, which are not used.
    fn extra_tag_bytes(&self) -> usize {
        if self.features & CSUM_V2 != 0 { 2 } else { 0 }
    }

    fn revoked(&self, bytes: &[u8], open: &mut Transaction) -> bool {
        let end = be32(bytes, 12) as usize;
        let Some(records) = bytes.get(16..end) else { return false };
        if self.features & BITS_64 != 0 {
            open.revoked.extend(records.chunks_exact(8).map(|record| be64(record, 0)));
        } else {
            open.revoked.extend(records.chunks_exact(4).map(|record| u64::from(be32(record, 0))));
        }
        true
    }

    /// Whether the checksum at the end of a descriptor or revocation block is right.
    fn tail_is_sound(&self, bytes: &[u8]) -> bool {
        if !self.has_sums() {
            return true;
        }
        let (content, tail) = bytes.split_at(bytes.len() - 4);
        crc32c(crc32c(self.seed, content), &[0; 4]) == be32(tail, 0)
    }

    fn commit_is_sound(&self, bytes: &[u8]) -> bool {
        const SUM: usize = 16;
        if !self.has_sums() {
            return true;
        }
        let before = crc32c(self.seed, &bytes[..SUM]);
        crc32c(crc32c(before, &[0; 4]), &bytes[SUM + 4..]) == be32(bytes, SUM)
    }

    fn copy_is_sound(&self, copy: Copy, stated: u32, sequence: u32) -> bool {
        let Ok(bytes) = self.source.block(copy.block) else { return false };
        let sum = crc32c(crc32c(self.seed, &sequence.to_be_bytes()), &bytes);
        if self.features & CSUM_V3 != 0 { sum == stated } else { sum & 0xffff == stated }
    }

    /// Whether the first block of the area of fast commits belongs to the next transaction (kernel:
    /// fs/ext4/fast_commit.h; these numbers are little-endian). The kernel leaves one block free
    /// before it.
    fn has_fast_commits(&self, next: u32) -> bool {
        const HEAD: u16 = 9;
        let begins = |bytes: Vec<u8>| le16(&bytes, 0) == HEAD && le32(&bytes, 8) == next;
        [self.end + 1, self.end].into_iter().any(|block| self.read(block).is_ok_and(begins))
    }
}
