//! Removing what lies in an open folder, by descriptors only.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, BorrowedFd},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, fstat, openat, statat, unlinkat},
    io::Errno,
};

use crate::{
    folder::{FOLDER, names_in},
    walk::is_name_of,
};

/// Remove entries of a folder that are ours: files, and folders with what is ours in them. What is
/// mounted there, and folders that are not empty then, stay.
///
/// # Errors
/// Those of the file system; what was gone already is no error.
pub fn remove_entries(folder: BorrowedFd<'_>, is_ours: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
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

/// Remove a folder with all that is in it, if it is the one that was made: with this device and
/// inode. Returns whether it was there.
///
/// # Errors
/// Those of the file system.
pub fn remove_folder(above: BorrowedFd<'_>, name: &OsStr, made: (u64, u64)) -> io::Result<bool> {
    let folder = match openat(above, name, FOLDER, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    let found = fstat(&folder)?;
    if (found.st_dev, found.st_ino) != made {
        return Ok(false);
    }
    remove_entries(folder.as_fd(), &|_| true)?;
    remove_empty(above, name, &folder)?;
    Ok(true)
}

/// Remove an empty folder, if its name still stands for it.
///
/// # Errors
/// Those of the file system.
pub fn remove_empty(above: impl AsFd, name: &OsStr, folder: impl AsFd) -> io::Result<()> {
    if is_name_of(&above, name, folder) { gone(unlinkat(above, name, AtFlags::REMOVEDIR)) } else { Ok(()) }
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
