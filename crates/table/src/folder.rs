//! A folder that only one user may write to.
//!
//! Recorders often run as root, in folders that belong to others. So the folder is reached without
//! following links of others (`walk.rs`), all files are created, replaced and removed through its
//! descriptor, links are never followed, and an existing file is never written to.

use std::{
    ffi::{CStr, OsStr, OsString},
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{
        AtFlags, Dir, Gid, Mode, OFlags, StatxFlags, Uid, XattrFlags, fchmod, fchown, fgetxattr, fsetxattr, fstat, fsync,
        mkdirat, openat, renameat, statx, unlinkat,
    },
    io::Errno,
    process::geteuid,
};
use sha2::{Digest, Sha256};

use crate::{
    TableError,
    removal::{gone, remove_empty},
    walk::{Reached, open_made, walk},
};

pub(crate) const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Name of the attribute that says which file this is.
const IDENTITY: &CStr = c"user.sysdock.identity";
/// Mode bits by which other users may write.
const OTHERS_WRITE: u32 = 0o022;

/// Owner of the files, and who may read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// User and group that the files are given to, if not those of the process: the user who called
    /// sudo.
    pub owner: Option<(u32, u32)>,
    /// Whether other users may read the files. They contain paths and arguments of programs.
    pub shared: bool,
}

impl Access {
    /// The user who called sudo.
    fn caller(&self) -> Option<u32> {
        self.owner.map(|(user, _)| user)
    }

    fn user(&self) -> u32 {
        self.owner.map_or_else(|| geteuid().as_raw(), |(user, _)| user)
    }

    fn of_files(&self) -> Mode {
        Mode::from_raw_mode(if self.shared { 0o644 } else { 0o600 })
    }

    fn of_folders(&self) -> Mode {
        Mode::from_raw_mode(if self.shared { 0o755 } else { 0o700 })
    }

    /// Set the owner, and the mode independently of the umask.
    fn settle(&self, file: impl AsFd, mode: Mode) -> io::Result<()> {
        if let Some((user, group)) = self.owner.filter(|(user, _)| geteuid().as_raw() != *user) {
            fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        }
        Ok(fchmod(&file, mode)?)
    }
}

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
    access: Access,
    /// The folder that contains it, if this process created it: no other folder is ever removed.
    made_in: Option<OwnedFd>,
    /// Whether all that is in the folder is of this process.
    fresh: bool,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Folder {
    /// Create a folder, or use an existing one that is empty.
    ///
    /// # Errors
    /// [`TableError::Exists`]: it is not empty, a file or a link; [`TableError::Stranger`] if it
    /// belongs to another user; [`TableError::StrangersLink`] on the way to it;
    /// [`TableError::Io`].
    pub fn create(path: &Path, access: Access) -> Result<Folder, TableError> {
        let path: PathBuf = path.components().collect();
        let failed = |error: Errno| TableError::Io(path.clone(), error.into());
        let (above, name) = above_and_name(&path);
        let Reached { folder: above, made: missing } = walk(above, access.caller(), Some(Mode::from_raw_mode(0o777)))?;
        let made = match mkdirat(&above, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
        let opened = if made { open_made(&above, name, FOLDER) } else { openat(&above, name, FOLDER, Mode::empty()) };
        let descriptor = opened.map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => TableError::Exists(path.clone()),
            error => failed(error),
        })?;
        // The content would be lost with the name of the folder.
        sync_names(&above, missing).map_err(|error| TableError::Io(path.clone(), error))?;
        let folder = Folder { descriptor, path, access, made_in: made.then_some(above), fresh: true };
        if !made {
            folder.refuse_strangers()?;
            folder.refuse_full()?;
        }
        folder.access.settle(&folder.descriptor, access.of_folders()).map_err(|error| folder.failed(error))?;
        // Until here other users may have been able to create files in it.
        folder.refuse_full()?;
        Ok(folder)
    }

    /// Open an existing folder, to change its content.
    ///
    /// # Errors
    /// [`TableError::Stranger`] if it belongs to another user, [`TableError::OthersWrite`] if
    /// others may write to it; [`TableError::StrangersLink`] on the way to it; [`TableError::Io`],
    /// also for a link.
    pub fn open(path: &Path, access: Access) -> Result<Folder, TableError> {
        let path: PathBuf = path.components().collect();
        let (above, name) = above_and_name(&path);
        let above = walk(above, access.caller(), None)?.folder;
        let descriptor =
            openat(&above, name, FOLDER, Mode::empty()).map_err(|error| TableError::Io(path.clone(), error.into()))?;
        let mut folder = Folder { descriptor, path, access, made_in: None, fresh: false };
        let mode = folder.refuse_strangers()?;
        if mode & OTHERS_WRITE != 0 {
            return Err(TableError::OthersWrite(folder.path));
        }
        // Whoever may read the existing files may read added ones.
        folder.access.shared |= mode & 0o004 != 0;
        Ok(folder)
    }

    /// Open a folder of our own, and create it if it does not exist.
    ///
    /// # Errors
    /// As for [`Folder::open`].
    pub fn ensure(path: &Path, access: Access) -> Result<Folder, TableError> {
        match Folder::open(path, access) {
            Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => Folder::create(path, access),
            opened => opened,
        }
    }

    /// Open a folder inside this one, and create it if it does not exist.
    ///
    /// # Errors
    /// As for [`Folder::open`].
    pub fn subfolder(&self, name: &str) -> Result<Folder, TableError> {
        let path = self.path.join(name);
        let failed = |error: Errno| TableError::Io(path.clone(), error.into());
        let made = match mkdirat(&self.descriptor, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
        let descriptor = openat(&self.descriptor, name, FOLDER, Mode::empty()).map_err(failed)?;
        let made_in =
            made.then(|| self.descriptor.try_clone()).transpose().map_err(|error| TableError::Io(path.clone(), error))?;
        let folder = Folder { descriptor, path, access: self.access, made_in, fresh: self.fresh };
        if made {
            let settled = folder.access.settle(&folder.descriptor, folder.access.of_folders());
            settled.map_err(|error| folder.failed(error))?;
        } else if folder.refuse_strangers()? & OTHERS_WRITE != 0 {
            return Err(TableError::OthersWrite(folder.path));
        }
        Ok(folder)
    }

    /// Path of the folder, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Create a file for writing.
    ///
    /// # Errors
    /// Also if a file or link of this name exists.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        self.new_file(name, OFlags::WRONLY)
    }

    /// Create a file for reading and appending.
    ///
    /// # Errors
    /// As for [`Folder::create_file`].
    pub fn create_appended(&self, name: &str) -> io::Result<File> {
        self.new_file(name, OFlags::RDWR | OFlags::APPEND)
    }

    fn new_file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = self.access.of_files();
        let file = File::from(openat(&self.descriptor, name, NEW_FILE | flags, mode)?);
        self.access.settle(&file, mode)?;
        Ok(file)
    }

    /// Open an existing file for appending.
    ///
    /// # Errors
    /// Also if it does not exist, or is a link.
    pub fn open_appended(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.descriptor, name, flags, Mode::empty())?))
    }

    /// Open a file for reading.
    ///
    /// # Errors
    /// Also if it is a link.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&self.descriptor, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Replace a file in one step, so that a reader never sees half of it. The new content is
    /// durable when this returns.
    ///
    /// # Errors
    /// The old file stays.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        self.replace_with(name, content, |_| ())
    }

    /// The same, and note in an attribute of the file which one it is, and its content. So a reader
    /// knows what was made here, whatever it states: what was unpacked, copied or changed is another
    /// file, or has another content (`python/sysdock/recording/made_here.py`). In a folder that was
    /// there before, only what was so noted stays so. Some file systems have no such attributes, or
    /// no times of creation: what is made there is read as if it were a stranger's.
    ///
    /// # Errors
    /// As for [`Folder::replace`].
    pub fn replace_noted(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let is_ours = self.fresh || self.is_noted(name);
        self.replace_with(name, content, |file| {
            if let Some(identity) = identity(file, content).filter(|_| is_ours) {
                let _ = fsetxattr(file, IDENTITY, identity.as_bytes(), XattrFlags::empty());
            }
        })
    }

    /// Whether a file is the one that was noted, with the same content.
    fn is_noted(&self, name: &str) -> bool {
        let Ok(mut file) = self.open_file(name) else { return false };
        let (mut noted, mut content) = ([0; 256], Vec::new());
        let Ok(length) = fgetxattr(&file, IDENTITY, &mut noted) else { return false };
        file.read_to_end(&mut content).is_ok()
            && identity(&file, &content).is_some_and(|found| noted.get(..length) == Some(found.as_bytes()))
    }

    fn replace_with(&self, name: &str, content: &[u8], note: impl FnOnce(&File)) -> io::Result<()> {
        let fresh = format!("{name}.new");
        // A writer that was killed may have left this file.
        self.remove(&fresh)?;
        let mut file = self.create_file(&fresh)?;
        let written = file.write_all(content).map(|()| note(&file)).and_then(|()| file.sync_data());
        let renamed = written.and_then(|()| Ok(renameat(&self.descriptor, &fresh, &self.descriptor, name)?));
        if renamed.is_err() {
            let _ = self.remove(&fresh);
        }
        renamed.and_then(|()| self.sync())
    }

    /// Rename a file. A file of the new name is replaced in the same step.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Remove a file, if it exists.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        gone(unlinkat(&self.descriptor, name, AtFlags::empty()))
    }

    /// Remove the folder, if this process created it and it is empty.
    pub fn remove_made(self) {
        let Some(above) = &self.made_in else { return };
        let (_, name) = above_and_name(&self.path);
        let _ = remove_empty(above, name, &self.descriptor);
    }

    /// Make the list of files durable.
    ///
    /// # Errors
    /// Those of the file system; one that does not support it (some network file systems) is no
    /// error.
    pub fn sync(&self) -> io::Result<()> {
        sync_folder(&self.descriptor)
    }

    /// Names of the files in the folder.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        names_in(&self.descriptor)
    }

    /// The mode, if the folder belongs to the user who is to write to it.
    fn refuse_strangers(&self) -> Result<u32, TableError> {
        let found = fstat(&self.descriptor).map_err(|error| self.failed(error.into()))?;
        if found.st_uid == self.access.user() {
            Ok(found.st_mode)
        } else {
            Err(TableError::Stranger(self.path.clone(), found.st_uid))
        }
    }

    fn refuse_full(&self) -> Result<(), TableError> {
        let names = self.names().map_err(|error| self.failed(error))?;
        if names.is_empty() { Ok(()) } else { Err(TableError::Exists(self.path.clone())) }
    }

    fn failed(&self, error: io::Error) -> TableError {
        TableError::Io(self.path.clone(), error)
    }
}

/// Names in an open folder, whose descriptor itself need not be readable (`O_PATH`).
///
/// # Errors
/// Those of the file system.
pub fn names_in(folder: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::new(openat(folder, ".", FOLDER, Mode::empty())?)? {
        let entry = entry?;
        let name: &CStr = entry.file_name();
        if name != c"." && name != c".." {
            names.push(OsString::from_vec(name.to_bytes().to_vec()));
        }
    }
    Ok(names)
}

/// The folder that contains a path, and its name there. A path that ends in `..`, or has no name, is
/// `.` in itself.
fn above_and_name(path: &Path) -> (&Path, &OsStr) {
    match (path.parent(), path.file_name()) {
        (Some(above), Some(name)) => (above, name),
        _ => (path, OsStr::new(".")),
    }
}

/// Which file this is, with which content: its inode, when that was created, and a hash.
fn identity(file: impl AsFd, content: &[u8]) -> Option<String> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(file, c"", AtFlags::EMPTY_PATH, wanted).ok()?;
    let (created, hash) = (found.stx_btime, Sha256::digest(content));
    let is_known = StatxFlags::from_bits_retain(found.stx_mask).contains(wanted);
    is_known.then(|| format!("{} {}.{:09} {hash:x}", found.stx_ino, created.tv_sec, created.tv_nsec))
}

/// Make the names in a folder, and in as many of its ancestors, durable. A process that may write to
/// another user's folder is not always allowed to read it, and syncing requires reading.
fn sync_names(folder: &OwnedFd, ancestors: usize) -> io::Result<()> {
    let mut place = ".".to_string();
    for _ in 0..=ancestors {
        match openat(folder, &place, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(folder) => sync_folder(&folder)?,
            Err(Errno::ACCESS | Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        place += "/..";
    }
    Ok(())
}

fn sync_folder(folder: impl AsFd) -> io::Result<()> {
    match fsync(folder) {
        Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
