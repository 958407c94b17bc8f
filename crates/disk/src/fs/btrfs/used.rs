//! What is in use: every extent of data and of metadata, by address.

use std::{convert::Infallible, io, iter, ops::RangeInclusive, os::fd::RawFd};

use super::{
    Chunk, Chunks,
    search::{EXTENT_TREE, items, kind},
};
use crate::parallel::in_order;

/// An extent in use [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) is_metadata: bool,
    /// Whether several files, or several snapshots, use it.
    pub(crate) is_shared: bool,
}

const TREE_BLOCK: u64 = 2;

/// Everything in use, ordered by address. Each thread requests another chunk.
pub(crate) fn used(file: RawFd, chunks: &Chunks, node_bytes: u64, threads: usize) -> io::Result<Vec<Used>> {
    let mut all = Vec::new();
    let of_chunk = |number: u64| {
        let chunk = &chunks.all[number as usize];
        used_within(file, chunk.address..=chunk.address.saturating_add(chunk.length - 1), node_bytes)
    };
    in_order(chunks.all.len() as u64, threads, of_chunk, |found| {
        all.extend(found?);
        Ok::<_, io::Error>(())
    })?;
    Ok(all)
}

fn used_within(file: RawFd, addresses: RangeInclusive<u64>, node_bytes: u64) -> io::Result<Vec<Used>> {
    let mut found = Vec::new();
    items(file, EXTENT_TREE, addresses, (kind::EXTENT, kind::METADATA), &mut |item| {
        let (references, flags) = (item.number::<8>(0), item.number::<8>(16));
        let length = if item.kind == kind::METADATA { node_bytes } else { item.offset };
        let is_metadata = item.kind == kind::METADATA || flags & TREE_BLOCK != 0;
        found.push(Used { address: item.object, length, is_metadata, is_shared: references > 1 });
        Ok(true)
    })?;
    Ok(found)
}

impl Chunks {
    /// Free ranges of devices, ordered: device, offset and length. `used` is ordered by address.
    pub(crate) fn free(&self, used: &[Used]) -> Vec<(u32, u64, u64)> {
        let mut holes = Vec::new();
        for (chunk, mine) in self.with(used) {
            if chunk.has_parity() {
                chunk.free_with_parity(mine, |device, place, length| holes.push((device, place, length)));
                continue;
            }
            let mut at = chunk.address;
            let ends = iter::once((chunk.end(), 0));
            for (address, length) in mine.iter().map(|piece| (piece.address, piece.length)).chain(ends) {
                if address > at {
                    let Ok(()) = chunk.spans((at, address - at), 0, |device, place, length| {
                        holes.push((device, place, length));
                        Ok::<(), Infallible>(())
                    });
                }
                at = at.max(address.saturating_add(length));
            }
        }
        holes.extend(self.unallocated());
        holes.sort_unstable();
        merged(&holes)
    }

    /// Each chunk with the extents in use in it.
    pub(crate) fn with<'a>(&'a self, used: &'a [Used]) -> impl Iterator<Item = (&'a Chunk, &'a [Used])> {
        let mut left = used;
        self.all.iter().map(move |chunk| {
            let mine = left.iter().take_while(|piece| piece.address < chunk.end()).count();
            let (found, after) = left.split_at(mine);
            left = after;
            (chunk, found)
        })
    }

    /// Ranges of devices that belong to no chunk.
    fn unallocated(&self) -> Vec<(u32, u64, u64)> {
        let slots = |chunk: &Chunk| {
            let length = chunk.slot_bytes();
            chunk.slots.iter().map(move |(device, at)| (*device, *at, length)).collect::<Vec<_>>()
        };
        let mut taken: Vec<(u32, u64, u64)> = self.all.iter().flat_map(slots).collect();
        taken.sort_unstable();
        let mut holes = Vec::new();
        for (device, size) in &self.devices {
            let mut at = 0;
            for (_, begin, length) in taken.iter().filter(|(other, ..)| other == device) {
                if *begin > at {
                    holes.push((*device, at, begin - at));
                }
                at = at.max(begin + length);
            }
            if *size > at {
                holes.push((*device, at, size - at));
            }
        }
        holes
    }
}

/// Ranges with adjacent ones joined.
fn merged(holes: &[(u32, u64, u64)]) -> Vec<(u32, u64, u64)> {
    let mut all: Vec<(u32, u64, u64)> = Vec::with_capacity(holes.len());
    for hole in holes {
        match all.last_mut() {
            Some(last) if last.0 == hole.0 && last.1 + last.2 == hole.1 => last.2 += hole.2,
            _ => all.push(*hole),
        }
    }
    all
}
