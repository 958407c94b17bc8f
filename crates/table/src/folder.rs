//! A folder that only one user may write to.
//!
//! Recorders often run as root, in folders that belong to others. So all files are made, replaced and removed by way of the folder's
//! descriptor, links are never followed, and a file that is there is never written to. What holds the folder is checked once, when it is
//! opened: from then on only its owner, who could do it anyway, can put another one in its place.

use std::{
    ffi::{CStr, OsString},
    fs::{self, File},
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, fsync, mkdirat, openat, renameat, unlinkat},
    io::Errno,
    process::geteuid,
};

use crate::TableError;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Others may write.
const OTHERS_WRITE: u32 = 0o022;

/// Whose the files are, and who may read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// User and group that they are given to, where this is not who writes them: the user who called sudo.
    pub owner: Option<(u32, u32)>,
    /// Whether others may read them: they hold paths and arguments of programs.
    pub shared: bool,
}

impl Access {
    fn user(&self) -> u32 {
        self.owner.map_or_else(|| geteuid().as_raw(), |(user, _)| user)
    }

    fn of_files(&self) -> Mode {
        Mode::from_raw_mode(if self.shared { 0o644 } else { 0o600 })
    }

    fn of_folders(&self) -> Mode {
        Mode::from_raw_mode(if self.shared { 0o755 } else { 0o700 })
    }

    /// Give it to its owner, with its mode whatever the umask is.
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
    /// Whether this process made it: no other is ever removed.
    made: bool,
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Folder {
    /// Make it, or take one that is there and empty.
    ///
    /// # Errors
    /// [`TableError::Exists`]: it is not empty, a file or a link; [`TableError::Stranger`] if it belongs to another user;
    /// [`TableError::Io`].
    pub fn create(path: &Path, access: Access) -> Result<Folder, TableError> {
        let path: PathBuf = path.components().collect();
        let failed = |error: Errno| TableError::Io(path.clone(), error.into());
        let missing = path.ancestors().skip(1).take_while(|above| !names_something(above)).count();
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(|error| TableError::Io(path.clone(), error))?;
        }
        let made = match mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
        let descriptor = openat(CWD, &path, FOLDER, Mode::empty()).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => TableError::Exists(path.clone()),
            error => failed(error),
        })?;
        let folder = Folder { descriptor, path, access, made };
        if !made {
            folder.refuse_strangers()?;
            folder.refuse_full()?;
        }
        folder.access.settle(&folder.descriptor, access.of_folders()).map_err(|error| folder.failed(error))?;
        // Until now others may have been able to put something into it.
        folder.refuse_full()?;
        // What is written into it is lost with its name.
        for above in folder.path.ancestors().skip(1).take(missing + 1) {
            sync_names(above).map_err(|error| folder.failed(error))?;
        }
        Ok(folder)
    }

    /// Open one that is there, to change what is in it.
    ///
    /// # Errors
    /// [`TableError::Stranger`] if it belongs to another user, [`TableError::OthersWrite`] if others may write to it;
    /// [`TableError::Io`], also for a link.
    pub fn open(path: &Path, access: Access) -> Result<Folder, TableError> {
        let path: PathBuf = path.components().collect();
        let descriptor = openat(CWD, &path, FOLDER, Mode::empty()).map_err(|error| TableError::Io(path.clone(), error.into()))?;
        let mut folder = Folder { descriptor, path, access, made: false };
        let mode = folder.refuse_strangers()?;
        if mode & OTHERS_WRITE != 0 {
            return Err(TableError::OthersWrite(folder.path));
        }
        // What is added may be read by those who may read the rest.
        folder.access.shared |= mode & 0o004 != 0;
        Ok(folder)
    }

    /// A folder in it, which is made if it is not there.
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
        let folder = Folder { descriptor, path, access: self.access, made };
        if made {
            let settled = folder.access.settle(&folder.descriptor, folder.access.of_folders());
            settled.map_err(|error| folder.failed(error))?;
        } else if folder.refuse_strangers()? & OTHERS_WRITE != 0 {
            return Err(TableError::OthersWrite(folder.path));
        }
        Ok(folder)
    }

    /// Its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Make a file that is not there.
    ///
    /// # Errors
    /// Also where there is one of this name, or a link.
    pub fn create_file(&self, name: &str) -> io::Result<File> {
        self.new_file(name, OFlags::WRONLY)
    }

    /// Make a file that is not there; what is written goes to its end, and it can be read.
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

    /// Open a file to write after what is there.
    ///
    /// # Errors
    /// Also where it is not there, or is a link.
    pub fn open_appended(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.descriptor, name, flags, Mode::empty())?))
    }

    /// Open a file to read it.
    ///
    /// # Errors
    /// Also where it is a link.
    pub fn open_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(&self.descriptor, name, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// Put a file with this content in the place of the one that is there, in one step, so that a reader never sees half of it. It is
    /// on the disk then, whatever becomes of the machine.
    ///
    /// # Errors
    /// The file that was there stays.
    pub fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let fresh = format!("{name}.new");
        // A writer that was killed may have left one.
        self.remove(&fresh)?;
        let mut file = self.create_file(&fresh)?;
        let written = file.write_all(content).and_then(|()| file.sync_data());
        let renamed = written.and_then(|()| Ok(renameat(&self.descriptor, &fresh, &self.descriptor, name)?));
        if renamed.is_err() {
            let _ = self.remove(&fresh);
        }
        renamed.and_then(|()| self.sync())
    }

    /// Give a file another name; one that has it goes, in the same step.
    ///
    /// # Errors
    /// What the file system says.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Remove a file, if it is there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(&self.descriptor, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Remove the folder, if this process made it and nothing is in it.
    pub fn remove_made(self) {
        if self.made {
            let _ = fs::remove_dir(&self.path);
        }
    }

    /// Bring to the disk which files there are.
    ///
    /// # Errors
    /// What the file system says; one that cannot do it (some network file systems) is no error.
    pub fn sync(&self) -> io::Result<()> {
        sync_folder(&self.descriptor)
    }

    /// What is in it.
    ///
    /// # Errors
    /// What the file system says.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name: &CStr = entry.file_name();
            if name != c"." && name != c".." {
                names.push(OsString::from_vec(name.to_bytes().to_vec()));
            }
        }
        Ok(names)
    }

    /// Its mode, if it belongs to who is to write to it.
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

/// Whether there is something of this name. The empty path is the working directory.
fn names_something(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.symlink_metadata().is_ok()
}

/// Bring the names in another user's folder to the disk. Who may write to it need not be allowed to read it, and only reading can sync it.
fn sync_names(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    match openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(folder) => sync_folder(&folder),
        Err(Errno::ACCESS | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn sync_folder(folder: impl AsFd) -> io::Result<()> {
    match fsync(folder) {
        Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
