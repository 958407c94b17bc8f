//! Encodes a section of events as streams of bytes, and decodes it.
//!
//! | stream | content |
//! |---|---|
//! | units | new kinds of units, in order of first appearance: 2 * slots, + 1 with a head; the head, rotated left by 8; bits 48-63 of each access |
//! | flow | number of units that the first guess had right, then the next one: 0 the second guess, 1 a new kind, else its number + 2 |
//! | choice | number of addresses that the best guess of their slot had right, then for the next one: 0 none, else guess + 1 |
//! | misses | addresses that no guess had right: difference to the last one of the slot |
//!
//! Numbers are LEB128, differences zigzag.

use rustc_hash::FxHashMap;

use crate::model::{GUESSES, LAST, Model, UNIT_SLOTS};
use crate::word::{ADDRESS, address_of};
use crate::{Damage, Event};

pub(crate) const STREAMS: usize = 4;
const UNITS: usize = 0;
const FLOW: usize = 1;
const CHOICE: usize = 2;
const MISSES: usize = 3;

/// Bits of a word that do not vary.
fn fixed(word: u64) -> u64 {
    if word >> 62 == 1 { word & !ADDRESS } else { word }
}

/// Encodes words into streams.
pub(crate) struct Encoder {
    model: Model,
    known: FxHashMap<Box<[u64]>, u32>,
    /// The words of each known unit.
    words: Vec<Box<[u64]>>,
    /// The unit that last began with each block.
    last_of_block: Vec<u32>,
    unit: Vec<u64>,
    addresses: Vec<u64>,
    units_right: u64,
    addresses_right: u64,
    streams: [Vec<u8>; STREAMS],
    events: u64,
}

impl Encoder {
    pub(crate) fn new() -> Encoder {
        Encoder {
            model: Model::new(),
            known: FxHashMap::default(),
            words: Vec::new(),
            last_of_block: Vec::new(),
            unit: Vec::with_capacity(UNIT_SLOTS + 1),
            addresses: Vec::with_capacity(UNIT_SLOTS),
            units_right: 0,
            addresses_right: 0,
            streams: Default::default(),
            events: 0,
        }
    }

    /// Number of words that were encoded.
    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    #[inline]
    pub(crate) fn push(&mut self, word: u64) {
        self.events += 1;
        if word >> 62 == 1 {
            if self.addresses.len() == UNIT_SLOTS {
                self.end_unit();
            }
            self.unit.push(fixed(word));
            self.addresses.push(address_of(word));
        } else {
            self.end_unit();
            self.unit.push(word);
        }
    }

    /// The streams of all words.
    pub(crate) fn finish(mut self) -> [Vec<u8>; STREAMS] {
        self.end_unit();
        put(&mut self.streams[FLOW], self.units_right);
        put(&mut self.streams[CHOICE], self.addresses_right);
        self.streams
    }

    fn end_unit(&mut self) {
        if self.unit.is_empty() {
            return;
        }
        let unit = self.number();
        let guesses = self.model.next_units();
        let is_new = unit as usize == self.words.len();
        if is_new {
            self.define();
        }
        if guesses[0] == unit {
            self.units_right += 1;
        } else {
            let code = if is_new {
                1
            } else if guesses[1] == unit {
                0
            } else {
                u64::from(unit) + 2
            };
            put(&mut self.streams[FLOW], self.units_right);
            put(&mut self.streams[FLOW], code);
            self.units_right = 0;
        }
        self.model.saw_unit(unit);
        for index in 0..self.addresses.len() {
            self.put_address(unit, index);
        }
        self.unit.clear();
        self.addresses.clear();
    }

    /// The number of the current unit; that of the next one if it is new.
    fn number(&mut self) -> u32 {
        let block = match Event::unpack(self.unit[0]) {
            Some(Event::Block(block)) => Some(block as usize),
            _ => None,
        };
        if let Some(&last) = block.and_then(|block| self.last_of_block.get(block))
            && self.words.get(last as usize).is_some_and(|words| **words == *self.unit)
        {
            return last;
        }
        let unit = self.known.get(self.unit.as_slice()).copied().unwrap_or(self.words.len() as u32);
        if let Some(block) = block {
            if block >= self.last_of_block.len() {
                self.last_of_block.resize(block + 1, u32::MAX);
            }
            self.last_of_block[block] = unit;
        }
        unit
    }

    fn define(&mut self) {
        let words: Box<[u64]> = self.unit.as_slice().into();
        let slots = self.addresses.len();
        let head = words.len() > slots;
        put(&mut self.streams[UNITS], (slots as u64) << 1 | u64::from(head));
        if head {
            // The kind of a note is rotated to the front, so that small numbers stay small.
            put(&mut self.streams[UNITS], words[0].rotate_left(8));
        }
        for &word in &words[usize::from(head)..] {
            put(&mut self.streams[UNITS], word >> 48);
        }
        self.model.add_unit(self.addresses.len());
        self.known.insert(words.clone(), self.words.len() as u32);
        self.words.push(words);
    }

    #[inline]
    fn put_address(&mut self, unit: u32, index: usize) {
        let address = self.addresses[index];
        let guesses = self.model.guess(unit, index);
        let right = if guesses.addresses[guesses.best] == address {
            self.addresses_right += 1;
            Some(guesses.best)
        } else {
            let right = guesses.addresses.iter().position(|&guess| guess == address);
            put(&mut self.streams[CHOICE], self.addresses_right);
            self.addresses_right = 0;
            self.streams[CHOICE].push(right.map_or(0, |right| right as u8 + 1));
            if right.is_none() {
                put(&mut self.streams[MISSES], zigzag(address.wrapping_sub(guesses.addresses[LAST])));
            }
            right
        };
        self.model.saw_address(&guesses, address, right);
    }
}

/// Decode streams to `events` words. None of them names a block that is not among the first
/// `blocks`.
pub(crate) fn decode(streams: &[&[u8]; STREAMS], events: u64, blocks: usize, out: &mut Vec<u64>) -> Result<(), Damage> {
    let mut model = Model::new();
    let [mut units, mut flow, mut choice, mut misses] = *streams;
    let mut starts: Vec<usize> = vec![0];
    let mut words: Vec<u64> = Vec::new();
    let mut units_right = take(&mut flow)?;
    let mut addresses_right = take(&mut choice)?;
    let end = out.len() as u64 + events;
    while (out.len() as u64) < end {
        let guesses = model.next_units();
        let unit = if units_right > 0 {
            units_right -= 1;
            guesses[0]
        } else {
            let unit = match take(&mut flow)? {
                0 => guesses[1],
                1 => {
                    let slots = take_unit(&mut units, blocks, &mut words)?;
                    starts.push(words.len());
                    model.add_unit(slots);
                    starts.len() as u32 - 2
                }
                number => u32::try_from(number - 2).map_err(|_| Damage)?,
            };
            units_right = take(&mut flow)?;
            unit
        };
        let range = match (starts.get(unit as usize), starts.get((unit as usize).wrapping_add(1))) {
            (Some(&start), Some(&end)) => start..end,
            _ => return Err(Damage),
        };
        if out.len() as u64 + range.len() as u64 > end {
            return Err(Damage);
        }
        model.saw_unit(unit);
        let mut index = 0;
        for &word in &words[range] {
            if word >> 62 != 1 {
                out.push(word);
                continue;
            }
            let guesses = model.guess(unit, index);
            index += 1;
            let (address, right) = if addresses_right > 0 {
                addresses_right -= 1;
                (guesses.addresses[guesses.best], Some(guesses.best))
            } else {
                let (&first, rest) = choice.split_first().ok_or(Damage)?;
                choice = rest;
                addresses_right = take(&mut choice)?;
                match usize::from(first) {
                    0 => (guesses.addresses[LAST].wrapping_add(unzigzag(take(&mut misses)?)), None),
                    right @ 1..=GUESSES => (guesses.addresses[right - 1], Some(right - 1)),
                    _ => return Err(Damage),
                }
            };
            model.saw_address(&guesses, address, right);
            out.push(word | address & ADDRESS);
        }
    }
    Ok(())
}

/// Read the definition of a unit. Returns the number of its slots.
fn take_unit(units: &mut &[u8], blocks: usize, words: &mut Vec<u64>) -> Result<usize, Damage> {
    let count = take(units)?;
    let slots = count >> 1;
    if count == 0 || slots > UNIT_SLOTS as u64 {
        return Err(Damage);
    }
    if count & 1 == 1 {
        let head = take(units)?.rotate_right(8);
        match Event::unpack(head) {
            Some(Event::Block(block)) if (block as usize) < blocks => {}
            Some(Event::Note(_)) => {}
            _ => return Err(Damage),
        }
        words.push(head);
    }
    for _ in 0..slots {
        let access = take(units)?;
        if access >> 14 != 1 {
            return Err(Damage);
        }
        words.push(access << 48);
    }
    Ok(slots as usize)
}

pub(crate) fn zigzag(value: u64) -> u64 {
    value << 1 ^ (value.cast_signed() >> 63).cast_unsigned()
}

pub(crate) fn unzigzag(value: u64) -> u64 {
    value >> 1 ^ (value & 1).wrapping_neg()
}

/// Append a number as LEB128.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Read a number in LEB128.
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Ok(value);
        }
    }
    Err(Damage)
}
