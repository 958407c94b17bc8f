//! Paths, from the name of each file and its folder. A path is composed when its row is written;
//! those of folders are cached.

use std::{mem, panic, sync::mpsc, thread};

use rustc_hash::FxHashMap;
use sysdock_table::{Batch, Cancel, TableError, rows::PathsColumns};

use crate::{
    batch::Kind,
    tables::{PathRows, Tables},
};

/// Longest path that is composed: no call can use longer ones (PATH_MAX).
const LONGEST: usize = 4096;

/// Names in the folders of a file system.
pub(crate) trait NamesByInode: Sync {
    /// The folder of an inode, and its name there; of several, one.
    fn name_of(&self, inode: u64) -> Option<(u64, &[u8])>;
}

/// A file whose row lacks its path.
pub(crate) struct NeedsPath {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// Whether some folder should name it.
    pub(crate) is_linked: bool,
}

/// Files that some folder should name, but none does.
#[derive(Clone, Copy, Default)]
pub(crate) struct Nameless {
    pub(crate) count: u64,
    /// The last of them.
    pub(crate) example: u64,
}

/// Whether each of some files has a path, and those paths.
type Paired = (Vec<bool>, Batch<PathsColumns>);

/// Write the paths of `files`, in the order in which they were passed to the tables. A thread
/// composes them.
pub(crate) fn write<N: NamesByInode>(
    files: impl Iterator<Item = NeedsPath> + Send,
    paths: Paths<'_, N>,
    cancel: &Cancel,
    tables: &mut Tables<'_>,
) -> Result<Nameless, TableError> {
    // After those of another tree of files, such as a subvolume.
    let first = tables.next_late_path;
    thread::scope(|scope| {
        let (sender, batches) = mpsc::sync_channel(1);
        let maker = scope.spawn(move || make(files, paths, PathRows::numbered_from(first), cancel, &sender));
        batches.into_iter().try_for_each(|(named, mut paths): Paired| tables.late_paths(&named, &mut paths))?;
        Ok(maker.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    })
}

/// Send the paths of files, many at a time, with whether each of them has one.
fn make<N: NamesByInode>(
    files: impl Iterator<Item = NeedsPath>,
    mut paths: Paths<'_, N>,
    mut rows: PathRows,
    cancel: &Cancel,
    sender: &mpsc::SyncSender<Paired>,
) -> Nameless {
    let mut nameless = Nameless::default();
    let mut named = Vec::new();
    for file in files {
        let path = paths.path(file.number);
        named.push(path.is_some());
        match path {
            Some(path) => drop(rows.add(path, file.kind)),
            None if file.is_linked => nameless = Nameless { count: nameless.count + 1, example: file.number },
            None => {}
        }
        if rows.is_full() && (cancel.requested() || sender.send((mem::take(&mut named), rows.take())).is_err()) {
            return nameless;
        }
    }
    // The receiver has reported why it ended.
    let _ = sender.send((named, rows.take()));
    nameless
}

/// Composes paths, and caches those of directories.
pub(crate) struct Paths<'a, N> {
    names: &'a N,
    /// Ranges of the paths of directories in `text`; `None`: the directory is not connected to the
    /// root.
    known: FxHashMap<u64, Option<(usize, usize)>>,
    text: Vec<u8>,
    last: (u64, Option<(usize, usize)>),
    root: u64,
    path: Vec<u8>,
}

impl<'a, N: NamesByInode> Paths<'a, N> {
    /// `prefix` is the path of the inode `root`, with or without a trailing slash.
    pub(crate) fn new(names: &'a N, root: u64, prefix: &[u8]) -> Self {
        let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
        let place = Some((0, prefix.len()));
        let known = FxHashMap::from_iter([(root, place)]);
        Paths { names, known, text: prefix.to_vec(), last: (root, place), root, path: Vec::new() }
    }

    /// The path of an inode. `None`: it has none.
    pub(crate) fn path(&mut self, inode: u64) -> Option<&[u8]> {
        self.path.clear();
        let (directory, name) = match self.names.name_of(inode) {
            _ if inode == self.root => (inode, None),
            found => found.map(|(directory, name)| (directory, Some(name)))?,
        };
        if self.last.0 != directory {
            self.last = (directory, self.directory(directory));
        }
        let (from, end) = self.last.1?;
        self.path.extend_from_slice(&self.text[from..end]);
        if let Some(name) = name {
            self.path.push(b'/');
            self.path.extend_from_slice(name);
        } else if self.path.is_empty() {
            self.path.push(b'/');
        }
        (self.path.len() <= LONGEST).then_some(&self.path)
    }

    /// The range of the path of a directory in `text`. Directories above it are resolved first,
    /// from the root down.
    fn directory(&mut self, inode: u64) -> Option<(usize, usize)> {
        let mut chain = Vec::new();
        let mut at = inode;
        let mut above = loop {
            if let Some(known) = self.known.get(&at) {
                break *known;
            }
            // A loop ends here, too: a folder that is met again has no path yet.
            self.known.insert(at, None);
            chain.push(at);
            match self.names.name_of(at) {
                Some((directory, _)) => at = directory,
                None => break None,
            }
        };
        for number in chain.into_iter().rev() {
            above = above.and_then(|(from, end)| {
                let (_, name) = self.names.name_of(number)?;
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

    impl NamesByInode for FxHashMap<u64, (u64, &str)> {
        fn name_of(&self, inode: u64) -> Option<(u64, &[u8])> {
            self.get(&inode).map(|(directory, name)| (*directory, name.as_bytes()))
        }
    }

    fn paths(entries: &[(u64, u64, &str)], wanted: &[u64]) -> Vec<Option<String>> {
        let names: FxHashMap<u64, (u64, &str)> =
            entries.iter().map(|(inode, directory, name)| (*inode, (*directory, *name))).collect();
        let mut paths = Paths::new(&names, 2, b"/mnt/");
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
        let entries: Vec<(u64, u64, &str)> = (3..60).map(|inode| (inode, inode - 1, name.as_str())).collect();
        let found = paths(&entries, &[3, 17, 18, 19, 59]);
        let lengths: Vec<_> = found.iter().map(|path| path.as_ref().map(String::len)).collect();
        assert_eq!(lengths, [Some(260), Some(4 + 15 * 256), None, None, None]);
    }
}
