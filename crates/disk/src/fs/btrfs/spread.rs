//! How a chunk spreads its addresses over its slots, for all profiles.
//!
//! Addresses are divided into stripes (64 KiB). Adjacent stripes are in the columns of a row, the
//! next ones in the next row; a slot contains one stripe of each row, in order. With copies
//! (RAID10) a column has that many slots, one after another. With parity (RAID5, RAID6) the columns
//! of a row are followed by its parities (P, then Q), and with each row all of them move on by one
//! slot. As in `btrfs_map_block` and `map_blocks_for_raid56` of Linux (fs/btrfs/volumes.c), and in
//! the chapter on RAID56 of the developers' documentation of btrfs-progs.

use std::{iter, ops::Range};

use sysdock_table::{Fact, facts::disk as facts};

use super::{chunks::Chunk, used::Used};

/// Profiles, and their bits in a chunk's type; no bit is `single`.
const PROFILES: [(u64, &str); 8] = [
    (1 << 3, "RAID0"),
    (1 << 4, "RAID1"),
    (1 << 5, "DUP"),
    (1 << 6, "RAID10"),
    (1 << 7, "RAID5"),
    (1 << 8, "RAID6"),
    (1 << 9, "RAID1C3"),
    (1 << 10, "RAID1C4"),
];
/// Bits of the content of a chunk.
const CONTENTS: u64 = 7;

/// Number of columns of a row, of copies of each, and of parities after them; length of a stripe
/// [B].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    columns: u64,
    copies: u64,
    parities: u64,
    stripe: u64,
}

impl Spread {
    /// The spread of a chunk with this many slots.
    pub(super) fn of(kind: u64, slots: u64, sub_stripes: u64, stripe: u64) -> Result<Spread, Fact> {
        let (columns, copies, parities) = match Self::profile(kind) {
            "single" | "DUP" | "RAID1" | "RAID1C3" | "RAID1C4" => (1, slots, 0),
            "RAID0" => (slots, 1, 0),
            "RAID10" if sub_stripes > 0 && slots.is_multiple_of(sub_stripes) => (slots / sub_stripes, sub_stripes, 0),
            "RAID5" if slots >= 2 => (slots - 1, 1, 1),
            "RAID6" if slots >= 3 => (slots - 2, 1, 2),
            "RAID10" | "RAID5" | "RAID6" => return Err(facts::profile_needs_other_devices()),
            _ => return Err(facts::profile_unknown()),
        };
        let spread = Spread { columns, copies, parities, stripe };
        // 64 KiB at present. Any power of two of at least a page is accepted, so that a range of
        // addresses has no more stripes than blocks.
        let is_length = stripe.is_power_of_two() && (1 << 12..=1 << 30).contains(&stripe);
        if spread.is_striped() && !is_length { Err(facts::stripes_impossible()) } else { Ok(spread) }
    }

    /// Name of the profile.
    pub(super) fn profile(kind: u64) -> &'static str {
        match kind & !CONTENTS {
            0 => "single",
            bits => PROFILES.iter().find(|(bit, _)| *bit == bits).map_or("unknown", |(_, word)| word),
        }
    }

    pub(crate) fn is_striped(&self) -> bool {
        self.columns > 1 || self.parities > 0
    }

    /// Whether a chunk may have this length: a whole number of rows.
    pub(super) fn fits(&self, length: u64) -> bool {
        length > 0 && (!self.is_striped() || length.is_multiple_of(self.row_bytes()))
    }

    /// Number of addresses in a row.
    fn row_bytes(&self) -> u64 {
        self.columns * self.stripe
    }

    /// Length of the part of a column before an offset of the chunk.
    fn before(&self, offset: u64, column: u64) -> u64 {
        let in_row = (offset % self.row_bytes()).saturating_sub(column * self.stripe);
        offset / self.row_bytes() * self.stripe + in_row.min(self.stripe)
    }
}

/// A range of a device, and its first address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceRange {
    pub(crate) address: u64,
    pub(crate) device: u32,
    pub(crate) physical: u64,
    pub(crate) length: u64,
}

impl Chunk {
    /// Length of the range on each of its slots.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.length / self.spread.columns
    }

    pub(crate) fn is_striped(&self) -> bool {
        self.spread.is_striped()
    }

    pub(super) fn has_parity(&self) -> bool {
        self.spread.parities > 0
    }

    /// Device and offset of the beginning of a stripe: of a column or, after the columns, of a
    /// parity.
    fn stripe(&self, row: u64, column: u64, copy: u64) -> (u32, u64) {
        let slot = match self.spread.parities {
            0 => column * self.spread.copies + copy,
            _ => (column + row) % self.slots.len() as u64,
        };
        let (device, place) = self.slots[slot as usize];
        (device, place + row * self.spread.stripe)
    }

    /// Location of an address, up to the end of its stripe or to `end`.
    fn place(&self, address: u64, end: u64, copy: u64) -> Option<DeviceRange> {
        let Spread { columns, stripe, .. } = self.spread;
        let left = end.checked_sub(address).filter(|left| *left > 0)?;
        let offset = address - self.address;
        if !self.is_striped() {
            let (device, place) = self.slots[copy as usize];
            return Some(DeviceRange { address, device, physical: place + offset, length: left });
        }
        let (number, within) = (offset / stripe, offset % stripe);
        let (device, place) = self.stripe(number / columns, number % columns, copy);
        Some(DeviceRange { address, device, physical: place + within, length: left.min(stripe - within) })
    }

    /// The ranges of one copy of a range of addresses that begins in the chunk, ordered by address.
    /// Ranges that follow one another on one device are joined: on three devices of RAID5, the last
    /// stripe of a row and the first of the next.
    pub(crate) fn pieces(&self, address: u64, length: u64, copy: u64) -> impl Iterator<Item = DeviceRange> {
        let end = address.saturating_add(length).min(self.end());
        let mut next = self.place(address, end, copy);
        iter::from_fn(move || {
            let mut piece = next?;
            loop {
                next = self.place(piece.address + piece.length, end, copy);
                match next {
                    Some(more) if more.device == piece.device && more.physical == piece.physical + piece.length => {
                        piece.length += more.length;
                    }
                    _ => return Some(piece),
                }
            }
        })
    }

    /// Pass the ranges that a range of addresses takes up on devices, from the copy `first` on:
    /// device, offset and length. The stripes of a slot follow one another on its device, so
    /// without parity each slot has one range.
    pub(crate) fn spans<E>(
        &self,
        (address, length): (u64, u64),
        first: u64,
        mut take: impl FnMut(u32, u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let Spread { columns, copies, parities, .. } = self.spread;
        for copy in first..copies {
            if parities > 0 || !self.is_striped() {
                for piece in self.pieces(address, length, copy) {
                    take(piece.device, piece.physical, piece.length)?;
                }
                continue;
            }
            let begin = address - self.address;
            let end = begin.saturating_add(length).min(self.length);
            for column in 0..columns {
                let (from, until) = (self.spread.before(begin, column), self.spread.before(end, column));
                let (device, place) = self.stripe(0, column, copy);
                if until > from {
                    take(device, place + from, until - from)?;
                }
            }
        }
        Ok(())
    }

    /// Pass the ranges of parity in use, which exist where any column of the row contains data:
    /// device, offset and length.
    pub(crate) fn parity<E>(&self, used: &[Used], mut take: impl FnMut(u32, u64, u64) -> Result<(), E>) -> Result<(), E> {
        self.rows(used, |rows, ranges| {
            let shadow = self.shadow(ranges);
            self.parities_of(rows.start, &shadow, &mut take)
        })
    }

    /// Pass the free ranges of a chunk with parity: device, offset and length.
    pub(super) fn free_with_parity(&self, used: &[Used], mut take: impl FnMut(u32, u64, u64)) {
        let Spread { columns, stripe, .. } = self.spread;
        let done = self.rows(used, |rows, ranges| {
            if ranges.is_empty() {
                let length = (rows.end - rows.start) * stripe;
                self.slots.iter().for_each(|(device, place)| take(*device, place + rows.start * stripe, length));
                return Ok(());
            }
            let row = self.address + rows.start * self.spread.row_bytes();
            for (from, until) in gaps(ranges, columns * stripe) {
                self.pieces(row + from, until - from, 0).for_each(|piece| take(piece.device, piece.physical, piece.length));
            }
            let not_needed: Vec<(u64, u64)> = gaps(&self.shadow(ranges), stripe).collect();
            self.parities_of(rows.start, &not_needed, &mut |device, place, length| {
                take(device, place, length);
                Ok::<(), ()>(())
            })
        });
        debug_assert!(done.is_ok());
    }

    /// Pass ranges of all parities of a row.
    fn parities_of<E>(
        &self,
        row: u64,
        ranges: &[(u64, u64)],
        take: &mut impl FnMut(u32, u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for parity in 0..self.spread.parities {
            let (device, place) = self.stripe(row, self.spread.columns + parity, 0);
            for (from, until) in ranges {
                take(device, place + from, until - from)?;
            }
        }
        Ok(())
    }

    /// Ranges of a row, as ranges of each of its parities: ordered, and without overlap.
    fn shadow(&self, ranges: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let stripe = self.spread.stripe;
        let mut all = Vec::new();
        for (from, until) in ranges {
            match (from / stripe, (until - 1) / stripe) {
                (first, last) if first == last => all.push((from - first * stripe, until - first * stripe)),
                (first, last) if first + 1 < last => return vec![(0, stripe)],
                (_, last) => all.extend([(from % stripe, stripe), (0, until - last * stripe)]),
            }
        }
        all.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (from, until) in all {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => joined.push((from, until)),
            }
        }
        joined
    }

    /// Pass rows one after another, each with the ranges in use (offsets in the row, in order);
    /// empty rows, as many as follow one another. `used` is ordered by address.
    fn rows<E>(&self, used: &[Used], mut take: impl FnMut(Range<u64>, &[(u64, u64)]) -> Result<(), E>) -> Result<(), E> {
        let width = self.spread.row_bytes();
        let (mut row, mut at) = (0, 0);
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for piece in used {
            let mut from = piece.address.saturating_sub(self.address).max(at);
            let end = piece.address.saturating_add(piece.length).saturating_sub(self.address).min(self.length);
            while from < end {
                let next = from / width;
                if next > row {
                    end_of_row(&mut row, next, &mut ranges, &mut take)?;
                }
                let until = end.min((next + 1) * width);
                match ranges.last_mut() {
                    Some(last) if last.1 == from - next * width => last.1 = until - next * width,
                    _ => ranges.push((from - next * width, until - next * width)),
                }
                from = until;
            }
            at = at.max(end);
        }
        end_of_row(&mut row, self.length / width, &mut ranges, &mut take)
    }
}

/// Pass a row, and the empty ones after it up to `next`.
fn end_of_row<E>(
    row: &mut u64,
    next: u64,
    ranges: &mut Vec<(u64, u64)>,
    take: &mut impl FnMut(Range<u64>, &[(u64, u64)]) -> Result<(), E>,
) -> Result<(), E> {
    if !ranges.is_empty() {
        take(*row..*row + 1, ranges)?;
        ranges.clear();
        *row += 1;
    }
    if *row < next {
        take(*row..next, &[])?;
    }
    *row = next;
    Ok(())
}

/// The gaps between ordered ranges, up to an end.
fn gaps(ranges: &[(u64, u64)], end: u64) -> impl Iterator<Item = (u64, u64)> {
    let begins = iter::once(0).chain(ranges.iter().map(|range| range.1));
    let ends = ranges.iter().map(|range| range.0).chain(iter::once(end));
    begins.zip(ends).filter(|(from, until)| from < until)
}

#[cfg(test)]
mod tests;
