//! The names in all directories. One name of each inode is kept, the same in every scan: that in
//! the directory with the lowest number, and of several there the first by its bytes. Blocks are
//! read in any order, because those in memory come first. Texts stay as the windows passed them.

use super::window::Names;
use crate::paths::NamesByInode;

/// Number of inodes of a page.
const PAGE: usize = 1 << 12;

/// Location of the name of an inode. `text` counts from 1: 0 is none.
#[derive(Clone, Copy, Default)]
struct NameLocation {
    directory: u32,
    text: u32,
    at: u32,
}

/// Names of all inodes.
pub(super) struct AllNames {
    pages: Vec<Option<Box<[NameLocation]>>>,
    texts: Texts,
}

/// Names as the windows passed them, each after its length.
#[derive(Default)]
struct Texts(Vec<Vec<u8>>);

impl Texts {
    fn name_at(&self, place: NameLocation) -> Option<&[u8]> {
        let text = self.0.get((place.text as usize).checked_sub(1)?)?.get(place.at as usize..)?;
        let (length, name) = text.split_first_chunk()?;
        name.get(..usize::from(u16::from_le_bytes(*length)))
    }

    /// Sort key of a name. The lowest name of an inode is kept.
    fn order_of(&self, place: NameLocation) -> (u32, Option<&[u8]>) {
        (place.directory, self.name_at(place))
    }
}

impl AllNames {
    pub(super) fn new(inodes: u32) -> Self {
        let pages = (inodes as usize + 1).div_ceil(PAGE);
        AllNames { pages: vec![None; pages], texts: Texts::default() }
    }

    pub(super) fn add(&mut self, names: Names) {
        if names.entries.is_empty() {
            return;
        }
        self.texts.0.push(names.text);
        let text = self.texts.0.len() as u32;
        for (inode, directory, at) in names.entries {
            let Some(page) = self.pages.get_mut(inode as usize / PAGE) else { continue };
            let page = page.get_or_insert_with(|| vec![NameLocation::default(); PAGE].into());
            let (kept, new) = (&mut page[inode as usize % PAGE], NameLocation { directory, text, at });
            // Nearly all inodes have one name only.
            if kept.text == 0 || self.texts.order_of(new) < self.texts.order_of(*kept) {
                *kept = new;
            }
        }
    }

    /// Inodes that have a name, in order.
    pub(super) fn named(&self) -> impl Iterator<Item = u32> {
        let pages = self.pages.iter().enumerate().filter_map(|(page, places)| Some((page, places.as_ref()?)));
        pages.flat_map(|(page, places)| {
            let named = places.iter().enumerate().filter(|(_, place)| place.text != 0);
            named.map(move |(at, _)| (page * PAGE + at) as u32)
        })
    }
}

impl NamesByInode for AllNames {
    fn name_of(&self, inode: u64) -> Option<(u64, &[u8])> {
        let inode = usize::try_from(inode).ok()?;
        let place = self.pages.get(inode / PAGE)?.as_ref()?[inode % PAGE];
        Some((u64::from(place.directory), self.texts.name_at(place)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(entries: &[(u32, u32, &[u8])]) -> Names {
        let mut names = Names::default();
        entries.iter().for_each(|(inode, directory, name)| names.add(*inode, *directory, name));
        names
    }

    #[test]
    fn a_file_with_many_names_gets_the_same_one_whatever_is_read_first() {
        let all: [(u32, u32, &[u8]); 4] = [(12, 20, b"a"), (12, 11, b"second"), (12, 11, b"first"), (13, 2, b"other")];
        for turn in 0..all.len() {
            let mut order = all;
            order.rotate_left(turn);
            let mut found = AllNames::new(100);
            // Half of them in one window, half in the next.
            order.chunks(2).for_each(|part| found.add(names(part)));
            assert_eq!(found.name_of(12), Some((11, b"first".as_slice())));
            assert_eq!(found.name_of(13), Some((2, b"other".as_slice())));
        }
    }
}
