//! Paths from the names in all directories.
//!
//! Of each inode the first name is kept. The text stays as the windows brought it; a path is put together when its row is written.

use rustc_hash::FxHashMap;

use super::{inode::ROOT, window::Names};

/// The longest path that is put together: longer ones no call can name (PATH_MAX).
const LONGEST: usize = 4096;

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

    /// The directory and the name of an inode.
    fn get(&self, inode: u32) -> Option<(u32, &[u8])> {
        let page = self.pages.get(inode as usize / PAGE)?.as_ref()?;
        let place = page[inode as usize % PAGE];
        let text = self.texts.get((place.text as usize).checked_sub(1)?)?.get(place.at as usize..)?;
        let (length, name) = text.split_first_chunk()?;
        Some((place.directory, name.get(..usize::from(u16::from_le_bytes(*length)))?))
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

/// Puts paths together; remembers those of directories.
pub(super) struct Paths<'a> {
    names: &'a AllNames,
    /// Where the paths of directories stand in `text`; `None`: it is not connected to the root.
    known: FxHashMap<u32, Option<(usize, usize)>>,
    text: Vec<u8>,
    last: (u32, Option<(usize, usize)>),
    root: (usize, usize),
    path: Vec<u8>,
}

impl<'a> Paths<'a> {
    /// `prefix` is the path of the root, without a slash at its end.
    pub(super) fn new(names: &'a AllNames, prefix: &[u8]) -> Self {
        let root = (0, prefix.len());
        let known = FxHashMap::from_iter([(ROOT, Some(root))]);
        Paths { names, known, text: prefix.to_vec(), last: (ROOT, Some(root)), root, path: Vec::new() }
    }

    /// The path of an inode. `None`: it has none.
    pub(super) fn path(&mut self, inode: u32) -> Option<&[u8]> {
        self.path.clear();
        let (from, end, name) = if inode == ROOT {
            (self.root.0, self.root.1, None)
        } else {
            let (directory, name) = self.names.get(inode)?;
            if self.last.0 != directory {
                self.last = (directory, self.directory(directory));
            }
            let (from, end) = self.last.1?;
            (from, end, Some(name))
        };
        self.path.extend_from_slice(&self.text[from..end]);
        if let Some(name) = name {
            self.path.push(b'/');
            self.path.extend_from_slice(name);
        } else if self.path.is_empty() {
            self.path.push(b'/');
        }
        (self.path.len() <= LONGEST).then_some(&self.path)
    }

    /// Where the path of a directory stands. Those above it are found first, from the root down.
    fn directory(&mut self, inode: u32) -> Option<(usize, usize)> {
        let mut chain = Vec::new();
        let mut at = inode;
        let mut above = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            // A loop ends here too: whoever is met again has no path yet.
            self.known.insert(at, None);
            chain.push(at);
            match self.names.get(at) {
                Some((directory, _)) => at = directory,
                None => break None,
            }
        };
        for number in chain.into_iter().rev() {
            above = above.and_then(|(from, end)| {
                let (_, name) = self.names.get(number)?;
                if end - from + 1 + name.len() > LONGEST {
                    return None;
                }
                let begin = self.text.len();
                self.text.extend_from_within(from..end);
                self.text.push(b'/');
                self.text.extend_from_slice(name);
                Some((begin, self.text.len()))
            });
            self.known.insert(number, above);
        }
        above
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(entries: &[(u32, u32, &str)], wanted: &[u32]) -> Vec<Option<String>> {
        let mut names = Names::default();
        entries.iter().for_each(|(inode, directory, name)| names.add(*inode, *directory, name.as_bytes()));
        let mut all = AllNames::new(100);
        all.add(names);
        let mut paths = Paths::new(&all, b"/mnt");
        wanted.iter().map(|inode| paths.path(*inode).map(|path| String::from_utf8_lossy(path).into_owned())).collect()
    }

    #[test]
    fn directories_may_come_in_any_order_and_in_loops() {
        let entries =
            [(14, 13, "file"), (13, 12, "b"), (12, 2, "a"), (20, 21, "x"), (21, 20, "y"), (22, 21, "z"), (30, 99, "lost")];
        let found = paths(&entries, &[14, 2, 12, 22, 20, 30, 50]);
        let texts: Vec<_> = found.iter().map(Option::as_deref).collect();
        assert_eq!(texts, [Some("/mnt/a/b/file"), Some("/mnt"), Some("/mnt/a"), None, None, None, None]);
    }

    #[test]
    fn a_chain_that_no_call_could_name_has_no_path() {
        let name = "n".repeat(255);
        let entries: Vec<(u32, u32, &str)> = (3..60).map(|inode| (inode, inode - 1, name.as_str())).collect();
        let found = paths(&entries, &[3, 17, 18, 19, 59]);
        let lengths: Vec<_> = found.iter().map(|path| path.as_ref().map(String::len)).collect();
        assert_eq!(lengths, [Some(260), Some(4 + 15 * 256), None, None, None]);
    }
}
