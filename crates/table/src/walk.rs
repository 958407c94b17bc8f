//! Opening a folder whose path leads through folders of other users.
//!
//! Another user can put a link in place of any part of a path that lies in a folder of theirs. So a
//! path is followed one name at a time, and a privileged process follows links only of those whom it
//! trusts: root, its own user, and the user who called sudo. What is not a link is a real folder,
//! and other users can only move folders there that they may write to.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, readlinkat, statat},
    io::Errno,
    process::geteuid,
};

use crate::TableError;

const PASSED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Most links of one path, as in the kernel (path_resolution(7)).
const MOST_LINKS: u32 = 40;

/// A folder that was reached, and how many of its ancestors did not exist before.
pub(crate) struct Reached {
    pub(crate) folder: OwnedFd,
    pub(crate) made: usize,
}

/// Open an existing folder, as a place for `openat` and the like: the descriptor itself can neither
/// be read nor written (`O_PATH`), so that only what is done in the folder needs rights.
///
/// `caller`: the user for whom a privileged process works, whose links it follows as well.
///
/// # Errors
/// [`TableError::StrangersLink`] where a privileged process would follow a link of another user;
/// [`TableError::Io`], also for a file.
pub fn open_folder(path: &Path, caller: Option<u32>) -> Result<OwnedFd, TableError> {
    Ok(walk(path, caller, None)?.folder)
}

/// Reach a folder. `mode`: that of missing ones, which are created.
pub(crate) fn walk(path: &Path, caller: Option<u32>, mode: Option<Mode>) -> Result<Reached, TableError> {
    let failed = |error: Errno| TableError::Io(path.into(), error.into());
    let start = |path: &Path| openat(CWD, if path.is_absolute() { "/" } else { "." }, PASSED | OFlags::DIRECTORY, Mode::empty());
    let mut reached = Reached { folder: start(path).map_err(failed)?, made: 0 };
    let mut names = names(path);
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        let next = match openat(&reached.folder, &name, PASSED | OFlags::DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) if mode.is_some() => {
                make(reached.folder.as_fd(), &name, mode.unwrap_or(Mode::RWXU)).map_err(failed)?;
                reached.made += 1;
                open_made(&reached.folder, &name, PASSED | OFlags::DIRECTORY)
            }
            next => next,
        };
        match next {
            Ok(next) => reached.folder = next,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let (target, user) = link(reached.folder.as_fd(), &name).map_err(failed)?;
                links += 1;
                if links > MOST_LINKS {
                    return Err(failed(Errno::LOOP));
                }
                if !is_trusted(user, caller) {
                    return Err(TableError::StrangersLink(path.into(), name, user));
                }
                if target.is_absolute() {
                    reached.folder = start(&target).map_err(failed)?;
                }
                self::names(&target).into_iter().rev().for_each(|name| names.push_front(name));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(reached)
}

/// Names of a path, from the beginning on.
fn names(path: &Path) -> VecDeque<OsString> {
    let is_name = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().filter(is_name).map(|part| part.as_os_str().to_os_string()).collect()
}

fn make(folder: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> Result<(), Errno> {
    match mkdirat(folder, name, mode) {
        // Another process was faster.
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// Open a folder that was just made: neither a link nor something that was mounted on it meanwhile
/// (openat2(2); kernels before 5.6 only refuse links).
pub(crate) fn open_made(above: impl AsFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match openat2(above.as_fd(), name, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => openat(above, name, flags, Mode::empty()),
        opened => opened,
    }
}

/// The target of a link, and the user it belongs to.
fn link(folder: BorrowedFd<'_>, name: &OsStr) -> Result<(PathBuf, u32), Errno> {
    let link = openat(folder, name, PASSED, Mode::empty())?;
    let target = match readlinkat(&link, "", Vec::new()) {
        // Not a link: a file.
        Err(Errno::NOENT | Errno::INVAL) => return Err(Errno::NOTDIR),
        target => target?,
    };
    Ok((OsString::from_vec(target.into_bytes()).into(), fstat(&link)?.st_uid))
}

fn is_trusted(user: u32, caller: Option<u32>) -> bool {
    let own = geteuid();
    !own.is_root() || user == 0 || user == own.as_raw() || Some(user) == caller
}

/// The path of an open folder now, for messages and for looking up its mount.
///
/// # Errors
/// There is no /proc.
pub fn path_of(folder: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", folder.as_fd().as_raw_fd()))
}

/// Whether a name still stands for an open folder.
pub fn is_name_of(above: impl AsFd, name: &OsStr, folder: impl AsFd) -> bool {
    let (Ok(named), Ok(open)) = (statat(above, name, AtFlags::SYMLINK_NOFOLLOW), fstat(folder)) else { return false };
    (named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{lchown, symlink},
    };

    use super::*;

    const NOBODY: u32 = 65534;

    #[test]
    fn a_path_leads_where_the_kernel_says() {
        let base = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(base.path()).unwrap();
        fs::create_dir_all(base.join("a/b")).unwrap();
        fs::write(base.join("file"), "").unwrap();
        symlink("a", base.join("to-a")).unwrap();
        symlink(base.join("to-a/b"), base.join("to-b")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        for path in ["", "a", "a/./b/..", "to-a/b", "to-b", "to-b/../b/"] {
            let found = path_of(open_folder(&base.join(path), None).unwrap()).unwrap();
            assert_eq!(found, fs::canonicalize(base.join(path)).unwrap(), "{path}");
        }
        for (path, errno) in [("file", libc::ENOTDIR), ("file/x", libc::ENOTDIR), ("none", libc::ENOENT), ("loop", libc::ELOOP)] {
            let error = open_folder(&base.join(path), None).unwrap_err();
            assert!(matches!(&error, TableError::Io(_, io) if io.raw_os_error() == Some(errno)), "{path}: {error}");
        }
    }

    #[test]
    fn missing_folders_are_created_where_the_path_leads() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("a")).unwrap();
        symlink("a", base.path().join("to-a")).unwrap();
        let reached = walk(&base.path().join("to-a/b/c"), None, Some(Mode::RWXU)).unwrap();
        assert_eq!(reached.made, 2);
        assert_eq!(path_of(&reached.folder).unwrap(), fs::canonicalize(base.path().join("a/b/c")).unwrap());
    }

    #[test]
    fn root_follows_no_link_of_a_stranger() {
        if !geteuid().is_root() {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("a")).unwrap();
        let link = base.path().join("link");
        symlink("a", &link).unwrap();
        lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
        let refused = open_folder(&link.join("x"), Some(1)).unwrap_err();
        assert!(matches!(refused, TableError::StrangersLink(_, name, NOBODY) if name == "link"));
        assert!(open_folder(&link, Some(NOBODY)).is_ok());
    }
}
