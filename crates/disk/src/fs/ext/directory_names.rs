//! The names in all directories. Of each inode the first is kept. The text stays as the windows brought it.

use super::window::Names;
use crate::paths::NamesByInode;

/// Inodes of a page.
const PAGE: usize = 1 << 12;

/// Where the name of an inode is found. `text` counts from 1: 0 is none.
#[derive(Clone, Copy, Default)]
struct Place {
    directory: u32,
    text: u32,
    at: u32,
}

/// Names of all inodes.
pub(super) struct AllNames {
    pages: Vec<Option<Box<[Place]>>>,
    texts: Vec<Vec<u8>>,
}

impl AllNames {
    pub(super) fn new(inodes: u32) -> Self {
        let pages = (inodes as usize + 1).div_ceil(PAGE);
        AllNames { pages: vec![None; pages], texts: Vec::new() }
    }

    pub(super) fn add(&mut self, names: Names) {
        if names.entries.is_empty() {
            return;
        }
        self.texts.push(names.text);
        let text = self.texts.len() as u32;
        for (inode, directory, at) in names.entries {
            let Some(page) = self.pages.get_mut(inode as usize / PAGE) else { continue };
            let page = page.get_or_insert_with(|| vec![Place::default(); PAGE].into());
            let place = &mut page[inode as usize % PAGE];
            if place.text == 0 {
                *place = Place { directory, text, at };
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
        let text = self.texts.get((place.text as usize).checked_sub(1)?)?.get(place.at as usize..)?;
        let (length, name) = text.split_first_chunk()?;
        Some((u64::from(place.directory), name.get(..usize::from(u16::from_le_bytes(*length)))?))
    }
}
