//! The chunks of a btrfs, and its devices.

use std::{io, os::fd::RawFd};

use sysdock_table::{Fact, facts::disk as facts};

use super::{
    search::{ALL, CHUNK_TREE, Item, items, kind},
    spread::Spread,
};

/// Contents of a chunk: bits of its type, and their names.
pub(super) const CONTENTS: [(u64, &str); 3] = [(1, "data"), (4, "metadata"), (2, "system")];

/// A range of addresses, and its location: a range on each of its slots.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) address: u64,
    pub(crate) length: u64,
    /// Content and profile, as bits.
    pub(super) kind: u64,
    pub(super) spread: Spread,
    /// Device and offset of each slot.
    pub(crate) slots: Vec<(u32, u64)>,
}

/// All chunks, and the devices.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Ordered by address.
    pub(crate) all: Vec<Chunk>,
    /// Number and size of each device.
    pub(crate) devices: Vec<(u32, u64)>,
}

/// Why the chunks are not known.
#[derive(Debug)]
pub(super) enum Unread {
    Io(io::Error),
    /// One of them is inconsistent.
    Invalid(Fact),
}

impl Chunks {
    pub(super) fn of(file: RawFd) -> Result<Chunks, Unread> {
        let (mut chunks, mut invalid) = (Chunks::default(), None);
        items(file, CHUNK_TREE, ALL, (kind::DEVICE, kind::CHUNK), &mut |item| {
            match item.kind {
                kind::DEVICE => chunks.devices.push((item.number::<4>(0) as u32, item.number::<8>(8))),
                kind::CHUNK => {
                    let added = Chunk::of(item).and_then(|chunk| chunks.add(chunk));
                    invalid = added.err().map(|why| facts::invalid_chunk(item.offset, why));
                }
                _ => {}
            }
            Ok(invalid.is_none())
        })
        .map_err(Unread::Io)?;
        invalid.map_or(Ok(chunks), |why| Err(Unread::Invalid(why)))
    }

    /// Append a chunk. Chunks are reported ordered by address.
    pub(super) fn add(&mut self, chunk: Chunk) -> Result<(), Fact> {
        if self.all.last().is_some_and(|last| chunk.address < last.end()) {
            return Err(facts::chunk_overlaps());
        }
        self.all.push(chunk);
        Ok(())
    }

    /// Whether adjacent addresses may be on different devices.
    pub(crate) fn is_striped(&self) -> bool {
        self.all.iter().any(|chunk| chunk.spread.is_striped())
    }

    /// Contents of chunks, and their profiles: `data` and `RAID0`.
    pub(crate) fn profiles(&self) -> Vec<(&'static str, String)> {
        let of = |(content, word): (u64, &'static str)| {
            let chunks = self.all.iter().filter(|chunk| chunk.kind & content != 0);
            let mut profiles: Vec<&str> = chunks.map(|chunk| Spread::profile(chunk.kind)).collect();
            profiles.sort_unstable();
            profiles.dedup();
            (word, profiles.join(" and "))
        };
        CONTENTS.into_iter().map(of).filter(|(_, profiles)| !profiles.is_empty()).collect()
    }
}

impl Chunk {
    /// Parse `struct btrfs_chunk`: 48 bytes, and 32 for each slot. Nothing in it is trusted: all
    /// later arithmetic stays within 64 bits.
    pub(super) fn of(item: &Item<'_>) -> Result<Chunk, Fact> {
        let (length, kind, slots) = (item.number::<8>(0), item.number::<8>(24), item.number::<2>(44));
        if slots == 0 || item.data.len() < 48 + 32 * slots as usize {
            return Err(facts::chunk_without_device());
        }
        let spread = Spread::of(kind, slots, item.number::<2>(46), item.number::<8>(16))?;
        if item.offset.checked_add(length).is_none() || !spread.fits(length) {
            return Err(facts::chunk_length_impossible());
        }
        let at = |slot: usize| 48 + 32 * slot;
        let slots = (0..slots as usize).map(|slot| (item.number::<8>(at(slot)) as u32, item.number::<8>(at(slot) + 8)));
        let chunk = Chunk { address: item.offset, length, kind, spread, slots: slots.collect() };
        let is_beyond = |(_, place): &(u32, u64)| place.checked_add(chunk.slot_bytes()).is_none_or(|end| end > i64::MAX as u64);
        if chunk.slots.iter().any(is_beyond) { Err(facts::chunk_beyond_devices()) } else { Ok(chunk) }
    }

    /// The address after its last one.
    pub(super) fn end(&self) -> u64 {
        self.address + self.length
    }
}
