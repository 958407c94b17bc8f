//! What is in use: every extent of data and of metadata, by address.

use std::{io, ops::RangeInclusive, os::fd::RawFd};

use super::{
    Chunks,
    search::{EXTENT_TREE, items, kind},
};
use crate::ordered::in_order;

/// A piece in use [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) address: u64,
    pub(crate) length: u64,
    pub(crate) is_metadata: bool,
    /// Several files, or several snapshots, use it.
    pub(crate) is_shared: bool,
}

const TREE_BLOCK: u64 = 2;

/// Everything in use, in order of address. Each thread asks for another chunk.
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
    /// Ranges of devices that hold nothing, in order: device, place and length. `used` is in order of address.
    pub(crate) fn free(&self, used: &[Used]) -> Vec<(u32, u64, u64)> {
        let mut holes = Vec::new();
        let mut left = used;
        for chunk in &self.all {
            let (mut at, end) = (chunk.address, chunk.address + chunk.length);
            let mine = left.iter().take_while(|piece| piece.address < end).count();
            for piece in &left[..mine] {
                if piece.address > at {
                    holes.extend(
                        chunk.copies.iter().map(|(device, place)| (*device, place + (at - chunk.address), piece.address - at)),
                    );
                }
                at = at.max(piece.address + piece.length);
            }
            left = &left[mine..];
            if end > at {
                holes.extend(chunk.copies.iter().map(|(device, place)| (*device, place + (at - chunk.address), end - at)));
            }
        }
        holes.extend(self.unallocated());
        holes.sort_unstable();
        merged(&holes)
    }

    /// What no chunk lies on.
    fn unallocated(&self) -> Vec<(u32, u64, u64)> {
        let mut taken: Vec<(u32, u64, u64)> =
            self.all.iter().flat_map(|chunk| chunk.copies.iter().map(|(device, at)| (*device, *at, chunk.length))).collect();
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

/// Neighbours as one.
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
