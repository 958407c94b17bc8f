//! Reuse distances: the number of different other blocks of memory that were referenced since the
//! last reference to the same block.
//!
//! A cache that replaces the least recently used block, and holds N blocks, hits on those
//! references whose distance is below N (Mattson et al., "Evaluation techniques for storage
//! hierarchies", IBM Systems Journal 9(2), 1970). Distances are exact; only their histogram has
//! classes.
//!
//! The most recently referenced blocks are in a short ordered list, where most references find
//! theirs. A block that leaves it gets an increasing number: blocks leave in the order of their
//! last references, so the number of blocks with a higher number is the number that were referenced
//! since. A tree of partial sums (Fenwick, "A new data structure for cumulative frequency tables",
//! 1994) counts these.

use rustc_hash::FxHashMap;

use crate::{code::Code, following::At, images::Mode};

/// Bits of the address within a block, for each size: a cache line, a page.
const SIZES: [u32; 2] = [6, 12];
/// Classes of distances: none, 0, 1, 2 to 3, 4 to 7, ...
const CLASSES: usize = 66;
const MODES: [Mode; 3] = [Mode::Kernel, Mode::Library, Mode::User];
/// Process ids are below 2^22.
const PROCESS_BITS: u32 = 22;

/// Instructions and data are counted separately, as in caches.
#[derive(Clone, Copy)]
enum Kind {
    Data,
    Instruction,
}

/// References of one request: by size, kind, mode and class.
type Counts = [[[[u64; CLASSES]; MODES.len()]; 2]; SIZES.len()];

/// Distances of all references of a trace, and their histogram for a request.
pub(crate) struct Reuse {
    distances: [[Distances; 2]; SIZES.len()],
    counts: Box<Counts>,
}

/// The number of references in a class of distances.
pub(crate) struct Class {
    pub(crate) block_bytes: i64,
    pub(crate) kind: &'static str,
    pub(crate) mode: Mode,
    /// `None`: the first reference to the block.
    pub(crate) distance: Option<i64>,
    pub(crate) times: u64,
}

impl Reuse {
    pub(crate) fn new() -> Reuse {
        let each = || [Distances::new(), Distances::new()];
        Reuse { distances: [each(), each()], counts: Box::new([[[[0; CLASSES]; MODES.len()]; 2]; SIZES.len()]) }
    }

    /// Count the references of an executed block of code.
    pub(crate) fn executed(&mut self, at: &At, code: &Code) {
        for (size, bits) in SIZES.into_iter().enumerate() {
            for block in code.address >> bits..=code.end.wrapping_sub(1) >> bits {
                self.refer(size, Kind::Instruction, at, block);
            }
        }
    }

    /// Count an access to memory.
    pub(crate) fn accessed(&mut self, at: &At, address: u64) {
        for (size, bits) in SIZES.into_iter().enumerate() {
            self.refer(size, Kind::Data, at, address >> bits);
        }
    }

    fn refer(&mut self, size: usize, kind: Kind, at: &At, block: u64) {
        // The same user address is different memory in each process.
        let is_kernel = block >> (63 - SIZES[size]) == 1;
        let process = u64::from(at.process as u32) & ((1 << PROCESS_BITS) - 1);
        let own = if is_kernel { block } else { 1 << 63 | process << (63 - PROCESS_BITS) | block };
        let class = match self.distances[size][kind as usize].refer(own) {
            None => 0,
            Some(0) => 1,
            Some(distance) => 2 + distance.ilog2() as usize,
        };
        let mode = MODES.iter().position(|mode| *mode == at.mode).unwrap_or_default();
        self.counts[size][kind as usize][mode][class] += 1;
    }

    /// The counts since the last call, in the order of the table.
    pub(crate) fn take(&mut self) -> Vec<Class> {
        let mut found = Vec::new();
        for (size, of_size) in self.counts.iter().enumerate() {
            for (kind, of_kind) in ["data", "instruction"].into_iter().zip(of_size) {
                for (mode, classes) in MODES.into_iter().zip(of_kind) {
                    let distance = |class: usize| class.checked_sub(1).map(|class| if class == 0 { 0 } else { 1 << (class - 1) });
                    let counted = classes.iter().enumerate().filter(|(_, times)| **times > 0);
                    found.extend(counted.map(|(class, &times)| Class {
                        block_bytes: 1 << SIZES[size],
                        kind,
                        mode,
                        distance: distance(class),
                        times,
                    }));
                }
            }
        }
        self.counts.as_flattened_mut().as_flattened_mut().as_flattened_mut().fill(0);
        found
    }
}

/// Length of the list.
const RECENT: usize = 16;
/// Smallest room of a tree, in numbers.
const ROOM: usize = 1 << 12;

/// Blocks of memory of one size, and the order of their references.
#[derive(Debug)]
pub(crate) struct Distances {
    /// The most recent blocks, the latest first.
    recent: Vec<u64>,
    /// Numbers of blocks that have left `recent`.
    numbers: FxHashMap<u64, usize>,
    /// For each number, whether its block still has it: as partial sums, from 1.
    sums: Vec<u32>,
    /// The next number.
    next: usize,
}

impl Distances {
    pub(crate) fn new() -> Distances {
        Distances { recent: Vec::with_capacity(RECENT + 1), numbers: FxHashMap::default(), sums: vec![0; ROOM + 1], next: 1 }
    }

    /// Record a reference. Returns the number of other blocks that were referenced since the last
    /// one to this block; `None`: it is the first.
    #[inline]
    pub(crate) fn refer(&mut self, block: u64) -> Option<u64> {
        if let Some(place) = self.recent.iter().position(|&known| known == block) {
            self.recent[..=place].rotate_right(1);
            return Some(place as u64);
        }
        self.refer_to_older(block)
    }

    fn refer_to_older(&mut self, block: u64) -> Option<u64> {
        let distance = self.numbers.remove(&block).map(|number| {
            self.add(number, u32::MAX);
            // Blocks in the list, and those with a higher number.
            (self.recent.len() + self.numbers.len() - self.sum(number) as usize) as u64
        });
        self.recent.insert(0, block);
        if self.recent.len() > RECENT
            && let Some(oldest) = self.recent.pop()
        {
            self.leave(oldest);
        }
        distance
    }

    fn leave(&mut self, block: u64) {
        if self.next == self.sums.len() {
            self.renumber();
        }
        self.numbers.insert(block, self.next);
        self.add(self.next, 1);
        self.next += 1;
    }

    /// Assign numbers from 1 on to the blocks that still have one, in their order.
    fn renumber(&mut self) {
        let mut ordered: Vec<(usize, u64)> = self.numbers.iter().map(|(&block, &number)| (number, block)).collect();
        ordered.sort_unstable();
        let room = (2 * ordered.len()).max(ROOM);
        self.sums.clear();
        self.sums.resize(room + 1, 0);
        self.next = 1;
        for (_, block) in ordered {
            self.numbers.insert(block, self.next);
            self.add(self.next, 1);
            self.next += 1;
        }
    }

    fn add(&mut self, number: usize, what: u32) {
        let mut at = number;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(what);
            at += at & at.wrapping_neg();
        }
    }

    /// Count of the numbers up to this one that are in use.
    fn sum(&self, number: usize) -> u32 {
        let (mut at, mut sum) = (number, 0u32);
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slow reference implementation: the list of all blocks, the latest first.
    fn slow(all: &mut Vec<u64>, block: u64) -> Option<u64> {
        let place = all.iter().position(|&known| known == block);
        if let Some(place) = place {
            all.remove(place);
        }
        all.insert(0, block);
        place.map(|place| place as u64)
    }

    #[test]
    fn distances_are_those_of_a_list() {
        let (mut distances, mut all) = (Distances::new(), Vec::new());
        let mut seed = 1u64;
        for step in 0..60_000u64 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Near references, far ones, and some that never recur.
            let block = match seed >> 62 {
                0 => (seed >> 40) % 20,
                1 => (seed >> 40) % 300,
                2 => (seed >> 40) % 1500,
                _ => 10_000 + step / 40,
            };
            assert_eq!(distances.refer(block), slow(&mut all, block), "reference {step}");
        }
        assert!(distances.next > 100, "numbers were given");
    }

    #[test]
    fn a_loop_over_more_than_the_list_has_its_length() {
        let mut distances = Distances::new();
        let found: Vec<_> = (0..300).map(|step| distances.refer(step % 100)).collect();
        assert!(found[..100].iter().all(Option::is_none));
        assert!(found[100..].iter().all(|&each| each == Some(99)));
    }
}
