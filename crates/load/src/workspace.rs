//! The folder that a run creates for its files, and leftovers of killed runs.
//!
//! Its name begins with `.sysdock-load-`; a file `owner` in it names its creator. A folder is
//! removed only if that file names an ended process of this machine, and only entries with names
//! that workers use are removed in it.
//!
//! The measured directory may belong to anybody. It is opened once; from then on everything is
//! reached through descriptors, and nothing through a path ([`Workspace::enter`]).

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, mkdirat, openat, syncfs, unlinkat};
use sysdock_table::{TableError, gone, names_in, open_folder, path_of, remove_empty, remove_entries};

use crate::{LoadError, Settings, actor::Actor, guarded::guarded};

const PREFIX: &str = ".sysdock-load-";
const OWNER: &str = "owner";
const FIRST_LINE: &str = "made by sysdock load";
/// Longest file with the creator [B].
const LONGEST_OWNER: u64 = 4096;

const LINKS_NEVER: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const FOLDER: OFlags = LINKS_NEVER.union(OFlags::DIRECTORY);

/// A folder of another run that stays, and why.
pub type Leftover = (PathBuf, Stays);

/// Why a folder of another run is not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// Its run is gone, but it cannot be removed.
    CannotBeRemoved,
    /// Its run is on another host, or in another container, and may be alive.
    Elsewhere,
    /// Sysdock did not make it, or another user did.
    NotOurs,
}

/// The directory that is measured.
struct Target {
    directory: OwnedFd,
    /// Its path when it was opened, for messages.
    path: PathBuf,
    actor: Actor,
    patience: Duration,
}

impl Target {
    fn open(directory: &Path, settings: &Settings) -> Result<Target, LoadError> {
        let failed = |error| LoadError::Io(directory.to_path_buf(), error);
        guarded(settings.patience, || fs::metadata(directory).map(drop)).map_err(failed)?;
        let opened = open_folder(directory, settings.caller).map_err(|error| match error {
            TableError::Io(path, error) if error.kind() == io::ErrorKind::NotADirectory => LoadError::NotADirectory(path),
            TableError::Io(path, error) => LoadError::Io(path, error),
            error => error.into(),
        })?;
        let (path, actor) = (path_of(&opened).map_err(failed)?, Actor::of(&opened).map_err(failed)?);
        Ok(Target { directory: opened, path, actor, patience: settings.patience })
    }

    /// Run `work` as the actor.
    fn guarded(&self, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        guarded(self.patience, || {
            self.actor.become_user()?;
            work()
        })
    }
}

/// A folder of this run.
pub(crate) struct Workspace {
    within: Target,
    folder: OwnedFd,
    name: OsString,
    /// Its path when it was created, for messages.
    pub(crate) path: PathBuf,
}

impl AsFd for Workspace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }
}

impl Workspace {
    /// Create a folder in `directory`, and remove the leftovers of killed runs there. Also returns
    /// the leftovers that stay, and why.
    ///
    /// # Errors
    ///
    /// The directory is none, cannot be written, does not answer, or its path is a link of a
    /// stranger.
    pub(crate) fn create(directory: &Path, settings: &Settings) -> Result<(Self, Vec<Leftover>), LoadError> {
        let within = Target::open(directory, settings)?;
        let left = leftovers(&within);
        let (host, pid) = (fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(), std::process::id());
        // Several hosts may work in one directory.
        let name = OsString::from(format!("{PREFIX}{}-{pid}-{}", host.trim(), start_of(pid).unwrap_or(0)));
        let path = within.path.join(&name);
        let failed = |error| LoadError::Io(path.clone(), error);
        // The identity of this process, not of the copy that writes it.
        let owner = identity(pid);
        within.guarded(|| make(&within.directory, &name, &owner)).map_err(failed)?;
        let folder = open_made(&within, &name).map_err(failed)?;
        Ok((Workspace { within, folder, name, path }, left))
    }

    /// Make the folder the working directory of this process, which has one thread, and become the
    /// user who works in it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        self.within.actor.become_user()?;
        Ok(rustix::process::fchdir(&self.folder)?)
    }

    /// Sync the file system.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.within.guarded(|| Ok(syncfs(openat(&self.folder, ".", FOLDER, Mode::empty())?)?))
    }

    /// Remove what the workers created, and keep the folder.
    pub(crate) fn clear(&self, keep: &[&str]) -> io::Result<()> {
        let is_to_go = |name: &OsStr| is_a_workers(name) && !keep.iter().any(|kept| name == *kept);
        self.within.guarded(|| remove_entries(self.folder.as_fd(), &is_to_go))
    }

    /// Remove the folder with its content.
    ///
    /// # Errors
    ///
    /// Something stays: the next start removes it.
    pub(crate) fn remove(self) -> io::Result<()> {
        self.within.guarded(|| remove(&self.within.directory, &self.name, self.folder.as_fd()))
    }
}

fn make(directory: &OwnedFd, name: &OsStr, owner: &str) -> io::Result<()> {
    mkdirat(directory, name, Mode::RWXU)?;
    let folder = openat(directory, name, FOLDER, Mode::empty())?;
    let flags = LINKS_NEVER | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = openat(&folder, OWNER, flags, Mode::RUSR | Mode::WUSR)?;
    io::Write::write_all(&mut File::from(file), owner.as_bytes())
}

/// Open the folder that was just made, as a place for other calls.
fn open_made(within: &Target, name: &OsStr) -> io::Result<OwnedFd> {
    let folder = openat(&within.directory, name, FOLDER | OFlags::PATH, Mode::empty())?;
    if fstat(&folder)?.st_uid == within.actor.user() { Ok(folder) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Remove the leftovers of killed runs. Returns those that stay, and why.
fn leftovers(within: &Target) -> Vec<Leftover> {
    let mut stay = Vec::new();
    for name in names_in(&within.directory).unwrap_or_default() {
        if !name.as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let why = match creator_of(within, &name) {
            Some((_, Creator::Alive)) => continue,
            Some((folder, Creator::Gone)) => match within.guarded(|| remove(&within.directory, &name, folder.as_fd())) {
                Ok(()) => continue,
                Err(_) => Stays::CannotBeRemoved,
            },
            Some((_, Creator::Elsewhere)) => Stays::Elsewhere,
            Some((_, Creator::Unknown)) | None => Stays::NotOurs,
        };
        stay.push((within.path.join(name), why));
    }
    stay
}

/// A folder and its creator; `None`: it is no folder of this user.
fn creator_of(within: &Target, name: &OsStr) -> Option<(OwnedFd, Creator)> {
    let folder = openat(&within.directory, name, FOLDER | OFlags::PATH, Mode::empty()).ok()?;
    if fstat(&folder).ok()?.st_uid != within.actor.user() {
        return None;
    }
    let file = File::from(openat(&folder, OWNER, LINKS_NEVER | OFlags::NONBLOCK, Mode::empty()).ok()?);
    let text = io::read_to_string(io::Read::take(file, LONGEST_OWNER)).ok()?;
    Some((folder, Creator::of(&text)))
}

/// The creator of a folder, by the file that it wrote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Creator {
    Alive,
    Gone,
    Elsewhere,
    Unknown,
}

impl Creator {
    pub(crate) fn of(text: &str) -> Creator {
        let mut lines = text.lines();
        let (Some(FIRST_LINE), Some(machine), Some(process)) = (lines.next(), lines.next(), lines.next()) else {
            return Creator::Unknown;
        };
        let (host, boot) = machine.split_once(' ').unwrap_or((machine, ""));
        if host != host_and_namespace() {
            return Creator::Elsewhere;
        }
        let lives = process.split_once(' ').is_some_and(|(pid, start)| {
            let now = pid.parse().ok().and_then(start_of);
            now.is_some() && now == start.parse().ok()
        });
        if boot == boot_id() && lives { Creator::Alive } else { Creator::Gone }
    }
}

/// Content of the file with the owner.
pub(crate) fn identity(pid: u32) -> String {
    format!("{FIRST_LINE}\n{} {}\n{pid} {}\n", host_and_namespace(), boot_id(), start_of(pid).unwrap_or(0))
}

/// Process ids are unique only within one namespace of one host.
fn host_and_namespace() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().replace(' ', "_");
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}/{}", read("/proc/sys/kernel/hostname"), namespace.display())
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// When a process began, in ticks since boot (field 22 of proc_pid_stat(5)). `None`: it has ended.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") { None } else { fields.get(19)?.parse().ok() }
}

/// Remove a folder, if its name still stands for it.
fn remove(directory: &OwnedFd, name: &OsStr, folder: BorrowedFd<'_>) -> io::Result<()> {
    // The owner is removed last, so that an interrupted removal can be resumed.
    remove_entries(folder, &is_a_workers)?;
    if names_in(folder)?.iter().any(|name| name != OWNER) {
        return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
    }
    gone(unlinkat(folder, OWNER, AtFlags::empty()))?;
    remove_empty(directory, name, folder)
}

/// Whether a name is that of a worker's entry: a word, then numbers with dashes between them.
pub(crate) fn is_a_workers(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let number = name.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let word = &name[..name.len() - number.len()];
    ["data", "shared", "dshared", "log", "w", "d", "f", "r", "s"].contains(&word)
        && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn settings() -> Settings {
        Settings { patience: PATIENCE, ..Settings::default() }
    }

    fn left_by(directory: &Path, name: &str, owner: &str) -> PathBuf {
        let path = directory.join(format!("{PREFIX}{name}"));
        fs::create_dir_all(path.join("d0")).unwrap();
        fs::write(path.join("d0/f0-17"), "").unwrap();
        fs::write(path.join("data"), "x").unwrap();
        fs::write(path.join(OWNER), owner).unwrap();
        path
    }

    #[test]
    fn what_a_dead_run_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let machine = format!("{FIRST_LINE}\n{} {}\n", host_and_namespace(), boot_id());
        let dead = left_by(directory.path(), "dead", &format!("{machine}4194305 1\n"));
        let before_the_boot = left_by(directory.path(), "boot", &identity(1).replace(&boot_id(), "another"));
        let alive = left_by(directory.path(), "alive", &identity(std::process::id()));
        let reused = left_by(directory.path(), "reused", &format!("{machine}{} 1\n", std::process::id()));
        let elsewhere = left_by(directory.path(), "elsewhere", &format!("{FIRST_LINE}\nnode7/pid:[1] x\n1 1\n"));
        let a_users = left_by(directory.path(), "own", "my notes\n");
        let no_owner = directory.path().join(".sysdock-load-plain");
        fs::create_dir(&no_owner).unwrap();
        let (workspace, stay) = Workspace::create(directory.path(), &settings()).unwrap();
        assert!(![&dead, &before_the_boot, &reused].iter().any(|path| path.exists()));
        assert!([&alive, &elsewhere, &a_users, &no_owner].iter().all(|path| path.exists()));
        let mut named: Vec<_> = stay.into_iter().map(|(path, _)| path).collect();
        named.sort();
        let mut expected = [elsewhere, a_users, no_owner];
        expected.sort();
        assert_eq!(named, expected.iter().map(|path| fs::canonicalize(path).unwrap()).collect::<Vec<_>>());
        let path = workspace.path.clone();
        fs::write(path.join("w3"), "x").unwrap();
        workspace.remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn two_at_once_leave_each_other_alone() {
        let directory = tempfile::tempdir().unwrap();
        let (first, _) = Workspace::create(directory.path(), &settings()).unwrap();
        assert!(matches!(creator_of(&first.within, &first.name), Some((_, Creator::Alive))));
        assert!(leftovers(&first.within).is_empty());
        assert!(first.path.exists());
        first.remove().unwrap();
    }

    #[test]
    fn what_no_worker_made_stays() {
        let directory = tempfile::tempdir().unwrap();
        let dead = left_by(directory.path(), "dead", &format!("{FIRST_LINE}\n{} x\n1 1\n", host_and_namespace()));
        fs::write(dead.join("thesis.tex"), "x").unwrap();
        let (workspace, stay) = Workspace::create(directory.path(), &settings()).unwrap();
        assert_eq!(stay.len(), 1);
        assert!(dead.join("thesis.tex").exists() && !dead.join("data").exists());
        workspace.remove().unwrap();
    }

    #[test]
    fn a_directory_that_does_not_answer_is_not_waited_for() {
        let late = guarded(Duration::from_millis(50), || {
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        });
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let failed = guarded(PATIENCE, || Err(io::Error::from_raw_os_error(libc::EROFS)));
        assert_eq!(failed.unwrap_err().raw_os_error(), Some(libc::EROFS));
    }
}
