//! Items of a tree, ordered by key.

use std::{io, ops::RangeInclusive, os::fd::RawFd};

use sysdock_table::facts::disk;

use crate::{error::stating, ioctl};

/// `struct btrfs_ioctl_search_key`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Range {
    tree: u64,
    first_object: u64,
    last_object: u64,
    first_offset: u64,
    last_offset: u64,
    first_transaction: u64,
    last_transaction: u64,
    first_kind: u32,
    last_kind: u32,
    items: u32,
    unused: u32,
    unused_too: [u64; 4],
}

/// `struct btrfs_ioctl_search_args_v2`, with its buffer.
#[repr(C)]
struct Request {
    range: Range,
    room: u64,
    buffer: [u8; ROOM],
}

// SAFETY: it contains numbers, and its buffer has the size that is stated.
unsafe impl ioctl::Request for Request {}

const ROOM: usize = 1 << 18;
const HEAD: usize = size_of::<Range>() + size_of::<u64>();
const BTRFS_IOC_TREE_SEARCH_V2: libc::Ioctl = ioctl::read_write(0x94, 17, HEAD);

/// Numbers of trees.
pub(super) const ROOT_TREE: u64 = 1;
pub(super) const EXTENT_TREE: u64 = 2;
pub(super) const CHUNK_TREE: u64 = 3;
pub(super) const TOP_LEVEL: u64 = 5;
pub(super) mod kind {
    pub(in super::super) const INODE: u32 = 1;
    pub(in super::super) const NAME: u32 = 12;
    pub(in super::super) const EXTENT_DATA: u32 = 108;
    pub(in super::super) const ROOT: u32 = 132;
    pub(in super::super) const ROOT_NAME: u32 = 144;
    pub(in super::super) const EXTENT: u32 = 168;
    pub(in super::super) const METADATA: u32 = 169;
    pub(in super::super) const DEVICE: u32 = 216;
    pub(in super::super) const CHUNK: u32 = 228;
}

/// An item: its key, and its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item<'a> {
    pub(super) object: u64,
    pub(super) kind: u32,
    pub(super) offset: u64,
    pub(super) data: &'a [u8],
}

impl Item<'_> {
    /// A number of `N` bytes; 0 beyond the end of the item, because items of older kernels are
    /// shorter.
    pub(super) fn number<const N: usize>(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        if let Some(found) = self.data.get(at..at + N) {
            bytes[..N].copy_from_slice(found);
        }
        u64::from_le_bytes(bytes)
    }
}

/// All objects of a tree.
pub(super) const ALL: RangeInclusive<u64> = 0..=u64::MAX;

impl Request {
    fn new() -> Box<Self> {
        Box::new(Request { range: Range::default(), room: ROOM as u64, buffer: [0; ROOM] })
    }

    /// Fill the buffer with items from a key on, at most `most`; their number is then in the range.
    fn search(&mut self, file: RawFd, tree: u64, from: Key, last_object: u64, most: u32) -> io::Result<()> {
        let (first_object, first_kind, first_offset) = from;
        self.range = Range {
            tree,
            first_object,
            last_object,
            first_offset,
            last_offset: u64::MAX,
            last_transaction: u64::MAX,
            first_kind,
            last_kind: u32::from(u8::MAX),
            items: most,
            ..Range::default()
        };
        self.room = ROOM as u64;
        ioctl::query(file, BTRFS_IOC_TREE_SEARCH_V2, self)
    }
}

/// The greatest object of a tree within a range. `None`: there is none.
pub(super) fn last_object(file: RawFd, tree: u64, objects: RangeInclusive<u64>) -> io::Result<Option<u64>> {
    let mut request = Request::new();
    let (mut from, mut to) = objects.into_inner();
    let end = to;
    let mut found = None;
    while from <= to {
        let middle = from + (to - from) / 2;
        request.search(file, tree, (middle, 0, 0), end, 1)?;
        match self::found(&request.buffer, request.range.items).next() {
            Some(item) => {
                if !(middle..=end).contains(&item.object) {
                    return Err(astray(tree, &item));
                }
                found = Some(item.object);
                let Some(next) = item.object.checked_add(1) else { break };
                from = next;
            }
            None if middle == 0 => break,
            None => to = middle - 1,
        }
    }
    Ok(found)
}

/// Pass items of some objects, of the kinds from `kinds.0` to `kinds.1`, to `take`, until it
/// returns `false`. Needs `CAP_SYS_ADMIN`.
pub(super) fn items(
    file: RawFd,
    tree: u64,
    objects: RangeInclusive<u64>,
    kinds: (u32, u32),
    take: &mut dyn FnMut(&Item<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let mut request = Request::new();
    let mut next = Some((*objects.start(), 0, 0));
    while let Some(from) = next {
        request.search(file, tree, from, *objects.end(), u32::MAX)?;
        let mut last = None;
        for item in found(&request.buffer, request.range.items) {
            let key = (item.object, item.kind, item.offset);
            if !is_in_turn(key, from, last, *objects.end()) {
                return Err(astray(tree, &item));
            }
            last = Some(key);
            if (kinds.0..=kinds.1).contains(&item.kind) && !take(&item)? {
                return Ok(());
            }
        }
        next = last.and_then(after);
    }
    Ok(())
}

/// Whether an item may follow the last one in the answer to a query from a key to the end of an
/// object. All processing of items relies on this order.
fn is_in_turn(key: Key, from: Key, last: Option<Key>, last_object: u64) -> bool {
    key >= from && last.is_none_or(|last| key > last) && key.0 <= last_object
}

fn astray(tree: u64, item: &Item<'_>) -> io::Error {
    stating(disk::out_of_order(tree, item.object, item.offset))
}

/// Object, kind and offset.
type Key = (u64, u32, u64);

/// The key right after another.
fn after((object, kind, offset): Key) -> Option<Key> {
    match (offset.checked_add(1), kind < u32::from(u8::MAX)) {
        (Some(offset), _) => Some((object, kind, offset)),
        (None, true) => Some((object, kind + 1, 0)),
        (None, false) => Some((object.checked_add(1)?, 0, 0)),
    }
}

/// Items in the buffer: a header of 32 bytes (transaction, object, offset, kind, length), and the
/// data.
fn found(buffer: &[u8], items: u32) -> impl Iterator<Item = Item<'_>> {
    let mut rest = buffer;
    (0..items).map_while(move |_| {
        let (head, after) = rest.split_at_checked(32)?;
        let number = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let small = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let (data, after) = after.split_at_checked(small(28) as usize)?;
        rest = after;
        Some(Item { object: number(8), kind: small(24), offset: number(16), data })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_was_not_asked_for_or_comes_again_is_not_in_turn() {
        let from = (256, 12, 3);
        let is_in_turn = |key, last| is_in_turn(key, from, last, 300);
        assert!(is_in_turn(from, None) && is_in_turn((300, 255, u64::MAX), Some(from)));
        assert!(!is_in_turn((256, 12, 2), None) && !is_in_turn((301, 0, 0), None));
        assert!(!is_in_turn((257, 1, 0), Some((257, 1, 0))) && !is_in_turn((257, 1, 0), Some((258, 1, 0))));
    }
}
