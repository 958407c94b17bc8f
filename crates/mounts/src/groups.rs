//! Control groups of version 2: their mount point, and their paths.

use std::{
    collections::HashMap,
    fs,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

/// Limit for the nesting of groups; deeper ones have no path.
const DEEPEST: usize = 32;

/// Mount point of control groups.
#[must_use]
pub fn mount_point() -> Option<PathBuf> {
    crate::all().ok()?.into_iter().find(|mount| mount.fs_type == "cgroup2").map(|mount| mount.point)
}

/// Add the paths of all groups below the mount point, by their ids: the inode numbers of their
/// folders.
pub fn add_names<S: std::hash::BuildHasher>(root: &Path, names: &mut HashMap<u64, Vec<u8>, S>) {
    add_below(root, root, DEEPEST, names);
}

fn add_below<S: std::hash::BuildHasher>(root: &Path, folder: &Path, depth: usize, names: &mut HashMap<u64, Vec<u8>, S>) {
    let (Ok(found), Some(depth)) = (fs::metadata(folder), depth.checked_sub(1)) else { return };
    let path = folder.strip_prefix(root).unwrap_or(folder);
    names.insert(found.ino(), [b"/", path.as_os_str().as_bytes()].concat());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_below(root, &entry.path(), depth, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paths_from_the_root() {
        let root = std::env::temp_dir().join(format!("sysdock-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b")).expect("folders");
        let mut names = HashMap::new();
        add_names(&root, &mut names);
        let id = fs::metadata(root.join("a/b")).expect("it is there").ino();
        assert_eq!((names.len(), names[&id].as_slice()), (3, &b"/a/b"[..]));
        fs::remove_dir_all(&root).expect("it goes");
    }
}
