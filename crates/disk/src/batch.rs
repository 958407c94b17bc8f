//! Batches of files that threads pass from a method to the tables.

use crate::{
    extent::{Extent, flag},
    fragments::Fragments,
};

/// Type of an inode: the values of `inodes.kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    File,
    Directory,
    Symlink,
    Other,
    /// A file of the file system itself: journal, reserved inodes, quota.
    Internal,
}

pub(crate) const KIND_WORDS: [&str; 5] = ["file", "directory", "symlink", "other", "internal"];

impl Kind {
    /// The kind for the mode of a file.
    pub(crate) fn of_mode(mode: u32) -> Self {
        match mode & libc::S_IFMT {
            libc::S_IFREG => Kind::File,
            libc::S_IFDIR => Kind::Directory,
            libc::S_IFLNK => Kind::Symlink,
            _ => Kind::Other,
        }
    }
}

/// An inode, without its extents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Inode {
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    pub(crate) links: u32,
    pub(crate) modified_ns: Option<i64>,
}

/// A file as a row of `inodes`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) inode: Inode,
    pub(crate) allocated: u64,
    pub(crate) extents: u32,
    pub(crate) fragments: u32,
    pub(crate) forgiving_fragments: Option<u32>,
    pub(crate) has_name: bool,
}

/// Files, their extents, and their names one after another.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) files: Vec<File>,
    pub(crate) extents: Vec<Extent>,
    names: Vec<u8>,
    name_ends: Vec<usize>,
}

impl Batch {
    /// Add a file; `extents` are in the order of the file.
    pub(crate) fn add(&mut self, inode: Inode, path: Option<&[u8]>, extents: &[Extent]) {
        let mut fragments = Fragments::default();
        extents.iter().for_each(|extent| fragments.add(extent));
        let taken = |extent: &Extent| if extent.flags & flag::NOWHERE == 0 { extent.stored.unwrap_or(extent.length) } else { 0 };
        let file = File {
            inode,
            allocated: extents.iter().map(taken).fold(0, u64::saturating_add),
            extents: u32::try_from(extents.len()).unwrap_or(u32::MAX),
            fragments: fragments.count(),
            forgiving_fragments: None,
            has_name: path.is_some(),
        };
        self.extents.extend_from_slice(extents);
        self.add_file(file, path);
    }

    /// Add a file whose extents are passed separately.
    pub(crate) fn add_file(&mut self, file: File, path: Option<&[u8]>) {
        self.files.push(file);
        if let Some(path) = path {
            self.names.extend_from_slice(path);
            self.name_ends.push(self.names.len());
        }
    }

    /// Names, in the order of the files that have one.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.name_ends.iter().copied());
        starts.zip(&self.name_ends).map(|(start, end)| &self.names[start..*end])
    }

    /// Visit each extent, with the number of its file.
    pub(crate) fn each_extent(&self, mut visit: impl FnMut(u64, &Extent)) {
        let mut extents = self.extents.iter();
        for file in &self.files {
            extents.by_ref().take(file.extents as usize).for_each(|extent| visit(file.inode.number, extent));
        }
    }

    /// Whether the batch should be passed on.
    pub(crate) fn is_full(&self) -> bool {
        const MOST: usize = 1 << 12;
        self.files.len() >= MOST || self.extents.len() >= MOST
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}
