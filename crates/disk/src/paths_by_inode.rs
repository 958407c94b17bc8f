//! The path of every inode below a folder, from the content of the folders.

use std::{
    collections::hash_map::Entry,
    path::Path,
    sync::{Mutex, PoisonError},
};

use rustc_hash::FxHashMap;

/// Paths one after another, indexed by inode. Of several names of a file the first by its bytes is
/// kept, because threads find them in any order.
#[derive(Debug, Default)]
pub(crate) struct PathsByInode {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    of_inode: FxHashMap<u64, u32>,
}

impl PathsByInode {
    pub(crate) fn add(&mut self, inode: u64, path: &[u8]) {
        let Ok(number) = u32::try_from(self.ends.len()) else { return };
        match self.of_inode.entry(inode) {
            Entry::Occupied(kept) if path >= path_at(&self.bytes, &self.ends, *kept.get()) => return,
            place => drop(place.insert_entry(number)),
        }
        self.bytes.extend_from_slice(path);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn of(&self, inode: u64) -> Option<&[u8]> {
        self.of_inode.get(&inode).map(|number| path_at(&self.bytes, &self.ends, *number))
    }
}

/// The path at this index.
fn path_at<'a>(bytes: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &bytes[start..ends[number]]
}

/// Paths that several threads find.
#[derive(Debug, Default)]
pub(crate) struct SharedPaths(Mutex<PathsByInode>);

impl SharedPaths {
    /// With the folder where the search begins.
    pub(crate) fn of(root: &Path, inode: u64) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let mut names = PathsByInode::default();
        names.add(inode, root.as_os_str().as_bytes());
        SharedPaths(Mutex::new(names))
    }

    /// Add the paths of one folder.
    pub(crate) fn add_all<'a>(&self, found: impl Iterator<Item = (u64, &'a [u8])>) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.for_each(|(inode, path)| names.add(inode, path));
    }

    pub(crate) fn into_names(self) -> PathsByInode {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
