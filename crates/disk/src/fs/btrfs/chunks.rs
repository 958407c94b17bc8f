//! Where the addresses of btrfs lie on its devices.

use std::{io, os::fd::RawFd};

use super::search::{ALL, CHUNK_TREE, Item, items, kind};

/// RAID0, RAID10, RAID5 and RAID6: neighbours in the address lie on different devices.
const STRIPED: u64 = 8 | 64 | 128 | 256;

/// A range of addresses, and where it lies.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) address: u64,
    pub(crate) length: u64,
    kind: u64,
    /// Device and place of each copy.
    pub(crate) copies: Vec<(u32, u64)>,
}

/// All chunks, and the devices.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// In order of address.
    pub(crate) all: Vec<Chunk>,
    /// Number and size of each.
    pub(crate) devices: Vec<(u32, u64)>,
}

impl Chunks {
    pub(crate) fn of(file: RawFd) -> io::Result<Chunks> {
        let mut chunks = Chunks::default();
        items(file, CHUNK_TREE, ALL, (kind::DEVICE, kind::CHUNK), &mut |item| {
            match item.kind {
                kind::DEVICE => chunks.devices.push((item.number::<4>(0) as u32, item.number::<8>(8))),
                kind::CHUNK => chunks.all.push(chunk(item)),
                _ => {}
            }
            Ok(true)
        })?;
        Ok(chunks)
    }

    /// Whether a place on a device belongs to each address.
    pub(crate) fn is_striped(&self) -> bool {
        self.all.iter().any(|chunk| chunk.kind & STRIPED != 0)
    }

    /// All places of an address: one for each copy.
    pub(crate) fn places(&self, address: u64) -> impl Iterator<Item = (u32, u64)> {
        let number = self.all.partition_point(|chunk| chunk.address <= address);
        let chunk = number.checked_sub(1).map(|number| &self.all[number]);
        let chunk = chunk.filter(|chunk| address - chunk.address < chunk.length);
        chunk
            .into_iter()
            .flat_map(move |chunk| chunk.copies.iter().map(move |(device, at)| (*device, at + (address - chunk.address))))
    }
}

/// `struct btrfs_chunk`: 48 bytes, and 32 for each stripe.
fn chunk(item: &Item<'_>) -> Chunk {
    let stripes = item.number::<2>(44) as usize;
    let at = |stripe: usize| 48 + 32 * stripe;
    Chunk {
        address: item.offset,
        length: item.number::<8>(0),
        kind: item.number::<8>(24),
        copies: (0..stripes).map(|stripe| (item.number::<8>(at(stripe)) as u32, item.number::<8>(at(stripe) + 8))).collect(),
    }
}
