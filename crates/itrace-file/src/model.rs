//! What comes next, guessed from what came before: encoder and decoder keep the same model, so that only wrong guesses need room.
//!
//! Words are taken in *units*: a block or a note with the accesses after it, addresses left out. The same code gives the same unit again and
//! again, so one guess stands for a block and all that is fixed about its accesses. Addresses are guessed one by one, each by what the
//! same access of the same unit (its *slot*) did before.
//!
//! The guesses are those of value prediction (last value, stride, finite context and differential finite context; Burtscher's VPC, 2004), and of
//! two kinds that instruction traces have in addition: the distance from the access just before, and that from the last access to the same 16 MB.

/// Slots that one unit has at most; what a block accesses beyond that is a unit without a head.
pub(crate) const UNIT_SLOTS: usize = 64;
/// How many ways of guessing an address there are.
pub(crate) const GUESSES: usize = 7;
/// Which of them is the address of the last time; misses are stated as the distance from it.
pub(crate) const LAST: usize = 5;

// Part of the format: more would not fit into the caches of a core, and encode and decode a quarter slower, for files as large.
const TABLE_BITS: u32 = 16;
const TABLE: usize = 1 << TABLE_BITS;
const REGIONS: usize = 64;
const REGION_SHIFT: u32 = 24;

/// What is known of an access of a unit.
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
    /// Which guess was right the last time.
    best: u8,
}

/// A guess of an address, and what is needed to learn what it was.
pub(crate) struct Guesses {
    pub(crate) addresses: [u64; GUESSES],
    /// Which of them was right for this slot the last time.
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
    /// Where the slots of each unit begin.
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

    /// A new kind of unit, with so many slots.
    pub(crate) fn add_unit(&mut self, slots: usize) {
        self.first_slots.push(self.slots.len());
        self.slots.resize(self.slots.len() + slots, Slot::default());
    }

    /// Which unit comes next: after the last four, and after the last two. None was seen yet where it is `u32::MAX`.
    pub(crate) fn next_units(&self) -> [u32; 2] {
        [self.after_four[self.four].wrapping_sub(1), self.after_two[self.two].wrapping_sub(1)]
    }

    /// This unit came.
    pub(crate) fn saw_unit(&mut self, unit: u32) {
        self.after_four[self.four] = unit + 1;
        self.after_two[self.two] = unit + 1;
        self.history = [unit, self.history[0], self.history[1], self.history[2]];
        let [a, b, c, d] = self.history.map(u64::from);
        self.two = hash(a << 32 | b);
        self.four = hash(a << 40 ^ b << 27 ^ c << 13 ^ d);
    }

    /// Guesses of the address of a slot of the unit that came last.
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

    /// It was this address, and this guess was right, if any.
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
