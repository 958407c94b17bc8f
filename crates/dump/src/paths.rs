//! Paths of files: from an entry of a folder to the root, across mounts (`d_path` of fs/d_path.c).

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use sysdock_symbols::btf::Field;

use crate::{error::Fault, kernel::Kernel};

/// More components than any path has.
const MOST_STEPS: usize = 4096;
const NAME_BYTES: u64 = 255;

/// Offsets of members, and a cache of paths.
pub(crate) struct Paths<'k> {
    kernel: &'k Kernel,
    name: Field,
    length: Field,
    parent: Field,
    hashed: Option<Field>,
    root: Field,
    /// Offset of the `vfsmount` in a mount.
    in_mount: u64,
    mount_parent: Field,
    mount_point: Field,
    /// Paths of folders, by mount and entry.
    known: RefCell<FxHashMap<(u64, u64), String>>,
}

/// An entry of a folder in a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MountedEntry {
    /// The `vfsmount` to which files refer.
    pub(crate) mount: u64,
    pub(crate) entry: u64,
}

impl<'k> Paths<'k> {
    pub(crate) fn of(kernel: &'k Kernel) -> Result<Paths<'k>, Fault> {
        Ok(Paths {
            kernel,
            name: kernel.field("dentry", "d_name.name")?,
            length: kernel.field("dentry", "d_name.len")?,
            parent: kernel.field("dentry", "d_parent")?,
            hashed: kernel.field("dentry", "d_hash.pprev").ok(),
            root: kernel.field("vfsmount", "mnt_root")?,
            in_mount: kernel.field("mount", "mnt")?.offset,
            mount_parent: kernel.field("mount", "mnt_parent")?,
            mount_point: kernel.field("mount", "mnt_mountpoint")?,
            known: RefCell::default(),
        })
    }

    /// The root of a mount.
    pub(crate) fn root_of(&self, mount: u64) -> Result<MountedEntry, Fault> {
        Ok(MountedEntry { mount, entry: self.kernel.number(mount, self.root)? })
    }

    /// The last component of a path.
    pub(crate) fn name(&self, entry: u64) -> Result<String, Fault> {
        let length = self.kernel.number(entry, self.length)?;
        if length > NAME_BYTES {
            return Err(Fault::TooLong);
        }
        let bytes = self.kernel.memory.bytes(self.kernel.number(entry, self.name)?, length)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The path, with the suffix that the kernel adds to a removed file.
    pub(crate) fn path(&self, place: MountedEntry) -> Result<String, Fault> {
        let mut path = self.folder(place)?;
        let is_root = self.kernel.number(place.entry, self.parent)? == place.entry;
        if let Some(hashed) = self.hashed
            && !is_root
            && self.kernel.number(place.entry, hashed)? == 0
        {
            path.push_str(" (deleted)");
        }
        Ok(path)
    }

    fn folder(&self, place: MountedEntry) -> Result<String, Fault> {
        let mut names: Vec<String> = Vec::new();
        // Entries on the way, with the number of names below each.
        let mut passed: Vec<(MountedEntry, usize)> = Vec::new();
        let mut at = place;
        let mut path = loop {
            if passed.len() > MOST_STEPS {
                return Err(Fault::Cycle);
            }
            if let Some(known) = self.known.borrow().get(&(at.mount, at.entry)) {
                break known.clone();
            }
            passed.push((at, names.len()));
            match self.above(at)? {
                Some((above, name)) => {
                    names.extend(name);
                    at = above;
                }
                None => break String::new(),
            }
        };
        for (passed, below) in passed.into_iter().rev() {
            for name in names.drain(below..).rev() {
                path = format!("{}/{name}", path.trim_end_matches('/'));
            }
            let shown = if path.is_empty() { "/".into() } else { path.clone() };
            self.known.borrow_mut().insert((passed.mount, passed.entry), shown);
        }
        Ok(if path.is_empty() { "/".into() } else { path })
    }

    /// The entry above, and the name in it; without a name, this is the root of a mount. `None`: it
    /// is a root.
    fn above(&self, place: MountedEntry) -> Result<Option<(MountedEntry, Option<String>)>, Fault> {
        if place.entry == self.kernel.number(place.mount, self.root)? {
            let mount = place.mount.wrapping_sub(self.in_mount);
            let above = self.kernel.number(mount, self.mount_parent)?;
            if above == mount {
                return Ok(None);
            }
            let entry = self.kernel.number(mount, self.mount_point)?;
            return Ok(Some((MountedEntry { mount: above.wrapping_add(self.in_mount), entry }, None)));
        }
        let parent = self.kernel.number(place.entry, self.parent)?;
        if parent == place.entry {
            return Ok(None);
        }
        Ok(Some((MountedEntry { entry: parent, ..place }, Some(self.name(place.entry)?))))
    }
}
