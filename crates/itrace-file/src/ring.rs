//! Memory through which a process that records itself passes its events to the one that writes
//! them.
//!
//! A program under qemu-user may end at any instruction: it is killed, it faults, or it executes
//! another program. What it wrote to this memory before is still there, and the other process takes
//! it. The memory is a head ([`Head`]), then slots of [`SLOT_WORDS`] words that are filled in turn;
//! the length of a slot is updated with each word. Neither side relies on the other being alive:
//! both check periodically.
//!
//! Words are those of [`crate::Event`]. Between blocks there are messages, which no event file
//! contains: a word of kind 3, its bytes, and zeros up to the next word.
//!
//! | bits 62-63 | bits 56-61 | bits 24-55 | bits 0-23 | the bytes |
//! |---|---|---|---|---|
//! | 3 | 0: a block, numbered from 0 | instructions | bytes | address (8 bytes), length of each instruction, code |
//! | 3 | 1: the current mappings | | bytes | lines of /proc/PID/maps |

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Block;

/// Number of slots.
pub const SLOTS: u32 = 8;
/// Words in a slot: 2 MB.
pub const SLOT_WORDS: usize = 1 << 18;
/// Offset of the slots.
const HEAD_BYTES: usize = 4096;
/// Size of the whole memory.
pub const RING_BYTES: usize = HEAD_BYTES + SLOTS as usize * SLOT_WORDS * 8;
/// Longest message [B].
pub const MOST_BYTES: usize = 1 << 19;

const KIND: u32 = 62;
const WHAT: u32 = 56;
const BLOCK: u64 = 0;
const MAPS: u64 = 1;

/// State that both sides share.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Head {
    /// Number of slots that were filled.
    pub filled: AtomicU32,
    /// Number of slots that were taken.
    pub emptied: AtomicU32,
    /// Why recording ended; 0: it has not.
    pub ended: AtomicU32,
    /// Number of child processes that the program has created.
    pub children: AtomicU32,
    /// Whether the program is about to execute another one.
    pub executes: AtomicU32,
    /// Number of instructions that were begun.
    pub counter: AtomicU64,
    /// Value of `counter` when the last block was entered.
    pub begun: AtomicU64,
    /// The last block: its number in bits 16-47, and its number of instructions below.
    pub block: AtomicU64,
    /// Number of words in each slot.
    pub lengths: [AtomicU64; SLOTS as usize],
}

/// Why recording of a program ended before the program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The requested number of instructions was executed.
    Limit,
    /// It has started a second thread.
    Thread,
    /// Its memory is not at its stated addresses.
    Moved,
    /// The recorder failed.
    Failed,
    /// Recording did not end before: the program has ended.
    Exit,
}

impl Why {
    const ALL: [Why; 5] = [Why::Limit, Why::Thread, Why::Moved, Why::Failed, Why::Exit];

    /// The value of [`Head::ended`].
    #[must_use]
    pub fn number(self) -> u32 {
        Why::ALL.iter().position(|each| *each == self).map_or(0, |at| at as u32 + 1)
    }

    /// `None`: recording has not ended, or the reason is unknown.
    #[must_use]
    pub fn of(number: u32) -> Option<Why> {
        Why::ALL.get((number as usize).checked_sub(1)?).copied()
    }
}

/// The memory, as mapped by one of the two sides.
#[derive(Clone, Copy, Debug)]
pub struct Ring(*mut u8);

// It consists of atomics, and of slots that belong to one side at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// # Safety
    ///
    /// `start` is the start of [`RING_BYTES`] bytes, mapped writable as long as this is used, and
    /// aligned to a page.
    #[must_use]
    pub unsafe fn at(start: *mut u8) -> Ring {
        Ring(start)
    }

    /// State that both sides share.
    #[must_use]
    pub fn head(&self) -> &Head {
        // Safe: see `at`; zeros are a valid head.
        unsafe { &*self.0.cast::<Head>() }
    }

    /// The words of a slot.
    #[must_use]
    pub fn slot(&self, number: u32) -> *mut u64 {
        let at = HEAD_BYTES + (number % SLOTS) as usize * SLOT_WORDS * 8;
        // Safe: within the memory.
        unsafe { self.0.add(at).cast() }
    }

    /// The number of words in a slot.
    #[must_use]
    pub fn length(&self, number: u32) -> &AtomicU64 {
        &self.head().lengths[(number % SLOTS) as usize]
    }

    /// Append the words of the next filled slot, if there is one. With `partial`, also those of a
    /// slot that was being filled: no one fills it any more.
    #[must_use]
    pub fn take(&self, partial: bool, words: &mut Vec<u64>) -> bool {
        let head = self.head();
        let (filled, emptied) = (head.filled.load(Ordering::Acquire), head.emptied.load(Ordering::Relaxed));
        if filled == emptied && !partial {
            return false;
        }
        let length = (self.length(emptied).load(Ordering::Acquire) as usize).min(SLOT_WORDS);
        // Safe: no one writes to a slot that is filled, or whose writer has ended.
        words.extend_from_slice(unsafe { std::slice::from_raw_parts(self.slot(emptied), length) });
        if filled == emptied {
            self.length(emptied).store(0, Ordering::Relaxed);
        } else {
            head.emptied.store(emptied.wrapping_add(1), Ordering::Release);
        }
        length > 0
    }
}

/// A message, as words.
fn message(first: u64, bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![first];
    words.extend(bytes.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    }));
    words
}

/// The message that defines the block with the next number.
#[must_use]
pub fn block_message(block: &Block) -> Vec<u64> {
    let mut bytes = block.address.to_le_bytes().to_vec();
    bytes.extend_from_slice(&block.lengths);
    bytes.extend_from_slice(&block.code);
    message(3 << KIND | BLOCK << WHAT | (block.lengths.len() as u64) << 24 | bytes.len() as u64, &bytes)
}

/// The message with mappings: whole lines, at most [`MOST_BYTES`].
#[must_use]
pub fn maps_message(lines: &str) -> Vec<u64> {
    message(3 << KIND | MAPS << WHAT | lines.len() as u64, lines.as_bytes())
}

/// Content at the beginning of words.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// This many events.
    Events(usize),
    /// A block.
    Block(Block),
    /// Lines of /proc/PID/maps.
    Maps(String),
}

/// Parse the content at the beginning of words. Returns it with its length in words. `None`: it is
/// cut, or malformed.
#[must_use]
pub fn next_piece(words: &[u64]) -> Option<(Piece, usize)> {
    let events = words.iter().position(|word| word >> KIND == 3).unwrap_or(words.len());
    if events > 0 {
        return Some((Piece::Events(events), events));
    }
    let first = *words.first()?;
    let length = (first & 0xff_ffff) as usize;
    let count = 1 + length.div_ceil(8);
    let bytes: Vec<u8> = words.get(1..count)?.iter().flat_map(|word| word.to_le_bytes()).take(length).collect();
    let piece = match first >> WHAT & 0x3f {
        BLOCK => {
            let instructions = (first >> 24) as u32 as usize;
            let (address, rest) = bytes.split_first_chunk::<8>()?;
            let (lengths, code) = rest.split_at_checked(instructions)?;
            let is_whole = lengths.iter().map(|&each| usize::from(each)).sum::<usize>() == code.len();
            is_whole.then(|| {
                Piece::Block(Block { address: u64::from_le_bytes(*address), code: code.into(), lengths: lengths.into() })
            })?
        }
        MAPS => Piece::Maps(String::from_utf8_lossy(&bytes).into_owned()),
        _ => return None,
    };
    Some((piece, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> (Vec<u64>, Ring) {
        let mut memory = vec![0u64; RING_BYTES / 8];
        // Safe: the vector lives as long as the test.
        let ring = unsafe { Ring::at(memory.as_mut_ptr().cast()) };
        (memory, ring)
    }

    #[test]
    fn messages_are_distinguished_from_events() {
        let block = Block { address: 0x40_1000, code: [0x90, 0x0f, 0x05].as_slice().into(), lengths: [1, 2].as_slice().into() };
        let mut words = vec![0, 5];
        words.extend(block_message(&block));
        words.extend(maps_message("400000-401000 r-xp 0 0 0 /bin/a\n"));
        words.push(1);
        assert_eq!(next_piece(&words), Some((Piece::Events(2), 2)));
        assert_eq!(next_piece(&words[2..]), Some((Piece::Block(block), 3)));
        assert_eq!(next_piece(&words[5..]), Some((Piece::Maps("400000-401000 r-xp 0 0 0 /bin/a\n".into()), 5)));
        assert_eq!(next_piece(&words[10..]), Some((Piece::Events(1), 1)));
        assert_eq!(next_piece(&[]), None);
    }

    #[test]
    fn messages_that_are_cut_or_unknown_are_none() {
        let block = Block { address: 1, code: [0x90; 40].as_slice().into(), lengths: [1; 40].as_slice().into() };
        let words = block_message(&block);
        for length in 1..words.len() {
            assert_eq!(next_piece(&words[..length]), None);
        }
        assert_eq!(next_piece(&[3 << KIND | 7 << WHAT]), None);
        // Lengths that do not match the code.
        let mut wrong = words;
        wrong[2] += 1;
        assert_eq!(next_piece(&wrong), None);
    }

    #[test]
    fn slots_are_taken_in_turn_and_the_last_one_as_far_as_it_is_filled() {
        let (_memory, ring) = memory();
        let mut words = Vec::new();
        assert!(!ring.take(false, &mut words));
        for slot in 0..2u32 {
            unsafe { ring.slot(slot).write(u64::from(slot) + 7) };
            ring.length(slot).store(1, Ordering::Relaxed);
        }
        ring.head().filled.store(1, Ordering::Release);
        assert!(ring.take(false, &mut words));
        assert!(!ring.take(false, &mut words));
        assert_eq!(words, [7]);
        assert!(ring.take(true, &mut words));
        assert!(!ring.take(true, &mut words));
        assert_eq!(words, [7, 8]);
    }

    #[test]
    fn reasons_have_numbers() {
        for why in Why::ALL {
            assert_eq!(Why::of(why.number()), Some(why));
        }
        assert_eq!((Why::of(0), Why::of(99)), (None, None));
    }
}
