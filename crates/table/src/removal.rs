//! Removing what lies in an open folder, by descriptors only.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat, unlinkat},
    io::Errno,
};

use crate::folder::names_in;

/// Remove entries of a folder that are ours: files, and folders with what is ours in them. What is
/// mounted there, and folders that are not empty then, stay.
///
/// # Errors
/// Those of the file system; what was gone already is no error.
pub fn remove_entries(folder: BorrowedFd<'_>, is_ours: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
    const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    for name in names_in(folder)?.iter().filter(|name| is_ours(name)) {
        let Ok(found) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_folder && found.st_dev == fstat(folder)?.st_dev {
            remove_entries(openat(folder, name, FOLDER, Mode::empty())?.as_fd(), is_ours)?;
        }
        gone(unlinkat(folder, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() }))?;
    }
    Ok(())
}

/// The result of a removal: what is gone already is no error.
///
/// # Errors
/// All others.
pub fn gone(removed: Result<(), Errno>) -> io::Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
