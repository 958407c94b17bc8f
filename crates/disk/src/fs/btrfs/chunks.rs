//! The chunks of a btrfs, and its devices.

use std::{io, os::fd::RawFd};

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

impl Chunks {
    /// `InvalidData`: one of them is inconsistent.
    pub(crate) fn of(file: RawFd) -> io::Result<Chunks> {
        let mut chunks = Chunks::default();
        items(file, CHUNK_TREE, ALL, (kind::DEVICE, kind::CHUNK), &mut |item| {
            match item.kind {
                kind::DEVICE => chunks.devices.push((item.number::<4>(0) as u32, item.number::<8>(8))),
                kind::CHUNK => chunks.add(Chunk::of(item).map_err(|why| wrong(item, why))?).map_err(|why| wrong(item, why))?,
                _ => {}
            }
            Ok(true)
        })?;
        Ok(chunks)
    }

    /// Append a chunk. Chunks are reported ordered by address.
    pub(super) fn add(&mut self, chunk: Chunk) -> Result<(), &'static str> {
        if self.all.last().is_some_and(|last| chunk.address < last.end()) {
            return Err("it begins before the end of another");
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

fn wrong(item: &Item<'_>, why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("invalid chunk at {}: {why}", item.offset))
}

impl Chunk {
    /// Parse `struct btrfs_chunk`: 48 bytes, and 32 for each slot. Nothing in it is trusted: all
    /// later arithmetic stays within 64 bits.
    pub(super) fn of(item: &Item<'_>) -> Result<Chunk, &'static str> {
        let (length, kind, slots) = (item.number::<8>(0), item.number::<8>(24), item.number::<2>(44));
        if slots == 0 || item.data.len() < 48 + 32 * slots as usize {
            return Err("no device is given");
        }
        let spread = Spread::of(kind, slots, item.number::<2>(46), item.number::<8>(16))?;
        if item.offset.checked_add(length).is_none() || !spread.fits(length) {
            return Err("impossible length");
        }
        let at = |slot: usize| 48 + 32 * slot;
        let slots = (0..slots as usize).map(|slot| (item.number::<8>(at(slot)) as u32, item.number::<8>(at(slot) + 8)));
        let chunk = Chunk { address: item.offset, length, kind, spread, slots: slots.collect() };
        let is_beyond = |(_, place): &(u32, u64)| place.checked_add(chunk.slot_bytes()).is_none_or(|end| end > i64::MAX as u64);
        if chunk.slots.iter().any(is_beyond) { Err("beyond the end of every device") } else { Ok(chunk) }
    }

    /// The address after its last one.
    pub(super) fn end(&self) -> u64 {
        self.address + self.length
    }
}
