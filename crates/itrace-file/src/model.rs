//! Predicts the next word from earlier ones. Encoder and decoder keep the same model, so only wrong
//! guesses need room.
//!
//! Words are grouped in *units*: a block or a note with the accesses after it, without addresses.
//! The same code results in the same unit again and again, so one guess predicts a block and all
//! that is fixed about its accesses. Addresses are guessed one by one, each from what the same
//! access of the same unit (its *slot*) did before.
//!
//! The guesses are those of value prediction (last value, stride, finite context and differential
//! finite context; Burtscher's VPC, 2004), and two that suit instruction traces: the distance from
//! the access just before, and that from the last access to the same 16 MB.

/// Largest number of slots of a unit. Further accesses of a block form a unit without a head.
pub(crate) const UNIT_SLOTS: usize = 64;
/// Number of guesses for an address.
pub(crate) const GUESSES: usize = 7;
/// Index of the guess that is the last address; misses are coded as the distance from it.
pub(crate) const LAST: usize = 5;

// Part of the format: larger tables would not fit into the caches of a core, and encoding and
// decoding would be a quarter slower, for files of the same size.
const TABLE_BITS: u32 = 16;
const TABLE: usize = 1 << TABLE_BITS;
const REGIONS: usize = 64;
const REGION_SHIFT: u32 = 24;

/// What is known about an access of a unit.
#[derive(Clone, Copy, Default)]
struct Slot {
    last: u64,
    stride: u64,
    before_last_stride: u64,
    /// Distance from the access just before.
    from_previous: u64,
    /// Distance from the last access to the same region, and the region.
    from_region: u64,
    region: u32,
    /// The guess that was right last time.
    best: u8,
}

/// Guesses of an address, and the state needed to learn the actual one.
pub(crate) struct Guesses {
    pub(crate) addresses: [u64; GUESSES],
    /// The guess that was right for this slot last time.
    pub(crate) best: usize,
    slot: usize,
    by_context: usize,
    by_strides: usize,
}

/// What has been seen since the section began.
pub(crate) struct Model {
    after_four: Vec<u32>,
    after_two: Vec<u32>,
    history: [u32; 4],
    four: usize,
    two: usize,
    /// Index of the first slot of each unit.
    first_slots: Vec<usize>,
    slots: Vec<Slot>,
    by_context: Vec<u64>,
    by_strides: Vec<u64>,
    previous: u64,
    regions: [u64; REGIONS],
}

fn hash(value: u64) -> usize {
    (value.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS)) as usize
}

fn region_of(address: u64) -> usize {
    ((address >> REGION_SHIFT).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

impl Model {
    pub(crate) fn new() -> Model {
        Model {
            after_four: vec![0; TABLE],
            after_two: vec![0; TABLE],
            history: [0; 4],
            four: 0,
            two: 0,
            first_slots: Vec::new(),
            slots: Vec::new(),
            by_context: vec![0; TABLE],
            by_strides: vec![0; TABLE],
            previous: 0,
            regions: [0; REGIONS],
        }
    }

    /// Add a kind of unit with this many slots.
    pub(crate) fn add_unit(&mut self, slots: usize) {
        self.first_slots.push(self.slots.len());
        self.slots.resize(self.slots.len() + slots, Slot::default());
    }

    /// Guesses of the next unit: by the last four, and by the last two. `u32::MAX`: no such
    /// sequence was seen yet.
    pub(crate) fn next_units(&self) -> [u32; 2] {
        [self.after_four[self.four].wrapping_sub(1), self.after_two[self.two].wrapping_sub(1)]
    }

    /// Learn that this unit came.
    pub(crate) fn saw_unit(&mut self, unit: u32) {
        self.after_four[self.four] = unit + 1;
        self.after_two[self.two] = unit + 1;
        self.history = [unit, self.history[0], self.history[1], self.history[2]];
        let [a, b, c, d] = self.history.map(u64::from);
        self.two = hash(a << 32 | b);
        self.four = hash(a << 40 ^ b << 27 ^ c << 13 ^ d);
    }

    /// Guesses of the address of a slot of the last unit.
    #[inline]
    pub(crate) fn guess(&self, unit: u32, index: usize) -> Guesses {
        let number = self.first_slots[unit as usize] + index;
        let slot = &self.slots[number];
        let by_context = hash((self.four as u64) << 32 ^ number as u64);
        let by_strides = hash(slot.stride ^ slot.before_last_stride.rotate_left(20) ^ (number as u64) << 40);
        Guesses {
            addresses: [
                slot.last.wrapping_add(slot.stride),
                self.previous.wrapping_add(slot.from_previous),
                self.regions[slot.region as usize].wrapping_add(slot.from_region),
                self.by_context[by_context],
                slot.last.wrapping_add(self.by_strides[by_strides]),
                slot.last,
                self.previous,
            ],
            best: usize::from(slot.best),
            slot: number,
            by_context,
            by_strides,
        }
    }

    /// Learn the actual address, and which guess was right, if any.
    #[inline]
    pub(crate) fn saw_address(&mut self, guesses: &Guesses, address: u64, right: Option<usize>) {
        let region = region_of(address);
        let slot = &mut self.slots[guesses.slot];
        let stride = address.wrapping_sub(slot.last);
        self.by_strides[guesses.by_strides] = stride;
        self.by_context[guesses.by_context] = address;
        slot.before_last_stride = slot.stride;
        slot.stride = stride;
        slot.last = address;
        slot.from_previous = address.wrapping_sub(self.previous);
        slot.from_region = address.wrapping_sub(self.regions[region]);
        slot.region = region as u32;
        if let Some(right) = right {
            slot.best = right as u8;
        }
        self.previous = address;
        self.regions[region] = address;
    }
}
