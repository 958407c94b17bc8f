//! The buffer for events: in memory of this process, or in a slot of a [`Ring`] that another
//! process reads after this one has ended, so its length is always up to date there.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU64, Ordering};

use sysdock_itrace_file::ring::{Ring, SLOT_WORDS};

use crate::output::BATCH;

/// More words than a callback appends between two checks of the room.
const SPARE: usize = 16;

/// A buffer for a limited number of words.
pub(crate) struct Words {
    start: *mut u64,
    length: usize,
    room: usize,
    shown: *const AtomicU64,
}

/// The published length of a buffer that no one reads.
static UNSEEN: AtomicU64 = AtomicU64::new(0);

impl Words {
    /// A buffer in memory of this process: room for [`BATCH`].
    pub(crate) fn own() -> Words {
        Words::of(Vec::with_capacity(BATCH))
    }

    /// A buffer in an empty vector.
    pub(crate) fn of(words: Vec<u64>) -> Words {
        let mut words = ManuallyDrop::new(words);
        Words { start: words.as_mut_ptr(), length: 0, room: words.capacity(), shown: &raw const UNSEEN }
    }

    /// A buffer in the current slot of a ring.
    pub(crate) fn shared(ring: Ring) -> Words {
        let slot = ring.head().filled.load(Ordering::Relaxed);
        let length = ring.length(slot);
        length.store(0, Ordering::Relaxed);
        Words { start: ring.slot(slot), length: 0, room: SLOT_WORDS, shown: &raw const *length }
    }

    /// The words as a vector. Only for a buffer in memory of this process.
    pub(crate) fn into_vec(self) -> Vec<u64> {
        // Safe: they come from a vector (`of`).
        unsafe { Vec::from_raw_parts(self.start, self.length, self.room) }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, word: u64) {
        if self.length < self.room {
            // Safe: there is room.
            unsafe { self.start.add(self.length).write(word) };
            self.length += 1;
            // Safe: it lives as long as the ring, or always. The other process sees the word before
            // the length.
            unsafe { (*self.shown).store(self.length as u64, Ordering::Release) };
        }
    }

    /// Whether there is too little room for what the next callback may append.
    #[inline(always)]
    pub(crate) fn is_full(&self) -> bool {
        self.length + SPARE > self.room
    }

    pub(crate) fn has_room(&self, count: usize) -> bool {
        self.length + count + SPARE <= self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_more_than_fit_are_not_taken() {
        let mut words = Words::of(Vec::with_capacity(20));
        (0..4).for_each(|word| words.push(word));
        assert!(!words.is_full());
        assert!(!words.has_room(4));
        words.push(4);
        assert!(words.is_full());
        (5..40).for_each(|word| words.push(word));
        assert_eq!(words.into_vec(), (0..20).collect::<Vec<u64>>());
    }
}
