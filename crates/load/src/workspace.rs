//! The folder that a run creates for its files, and leftovers of killed runs.
//!
//! Its name begins with `.sysdock-load-`; a file `owner` in it names its creator. A folder is
//! removed only if that file names an ended process of this machine, and only entries with names
//! that workers use are removed in it.

use std::{
    ffi::OsStr,
    fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{LoadError, guarded::guarded};

const PREFIX: &str = ".sysdock-load-";
const OWNER: &str = "owner";
const FIRST_LINE: &str = "made by sysdock load";

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

/// A folder of this run.
pub(crate) struct Workspace {
    pub(crate) path: PathBuf,
    patience: Duration,
}

impl Workspace {
    /// Create a folder in `directory`, and remove the leftovers of killed runs there. Also returns
    /// the leftovers that stay, and why.
    ///
    /// # Errors
    ///
    /// The directory is none, cannot be written, or does not answer.
    pub(crate) fn create(directory: &Path, patience: Duration) -> Result<(Self, Vec<Leftover>), LoadError> {
        let failed = |error| LoadError::Io(directory.to_path_buf(), error);
        guarded(patience, || fs::metadata(directory).map(drop)).map_err(failed)?;
        let directory = fs::canonicalize(directory).map_err(failed)?;
        if !directory.is_dir() {
            return Err(LoadError::NotADirectory(directory));
        }
        let left = leftovers(&directory, patience);
        let (host, pid) = (fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default(), std::process::id());
        // Several hosts may work in one directory.
        let path = directory.join(format!("{PREFIX}{}-{pid}-{}", host.trim(), start_of(pid).unwrap_or(0)));
        let failed = |error| LoadError::Io(path.clone(), error);
        // The identity of this process, not of the copy that writes it.
        let owner = identity(pid);
        guarded(patience, || {
            fs::DirBuilder::new().mode(0o700).create(&path)?;
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path.join(OWNER))?;
            io::Write::write_all(&mut file, owner.as_bytes())
        })
        .map_err(failed)?;
        Ok((Workspace { path, patience }, left))
    }

    /// Remove what the workers created, and keep the folder.
    pub(crate) fn clear(&self, keep: &[&str]) -> io::Result<()> {
        guarded(self.patience, || {
            remove_entries(&self.path, &|name| keep.iter().any(|kept| name == OsStr::new(kept)) || name == OsStr::new(OWNER))
        })
    }

    /// Remove the folder with its content.
    ///
    /// # Errors
    ///
    /// Something stays: the next start removes it.
    pub(crate) fn remove(self) -> io::Result<()> {
        guarded(self.patience, || remove(&self.path))
    }
}

/// Remove the leftovers of killed runs. Returns those that stay, and why.
fn leftovers(directory: &Path, patience: Duration) -> Vec<Leftover> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut stay = Vec::new();
    for path in
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())).map(|entry| entry.path())
    {
        match owner_of(&path) {
            Owner::Gone => {
                if guarded(patience, || remove(&path)).is_err() {
                    stay.push((path, Stays::CannotBeRemoved));
                }
            }
            Owner::Alive => {}
            Owner::Elsewhere => stay.push((path, Stays::Elsewhere)),
            Owner::NotOurs => stay.push((path, Stays::NotOurs)),
        }
    }
    stay
}

/// The creator of a folder.
enum Owner {
    Alive,
    Gone,
    Elsewhere,
    NotOurs,
}

fn owner_of(path: &Path) -> Owner {
    let user = rustix::process::geteuid().as_raw();
    let is_ours = fs::symlink_metadata(path).is_ok_and(|status| status.is_dir() && status.uid() == user);
    let options = fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).clone();
    let text = options.open(path.join(OWNER)).and_then(|file| io::read_to_string(io::Read::take(file, 4096)));
    let (true, Ok(text)) = (is_ours, text) else { return Owner::NotOurs };
    let mut lines = text.lines();
    let (Some(FIRST_LINE), Some(machine), Some(process)) = (lines.next(), lines.next(), lines.next()) else {
        return Owner::NotOurs;
    };
    let (host, boot) = machine.split_once(' ').unwrap_or((machine, ""));
    let (our_host, our_boot) = (host_and_namespace(), boot_id());
    if host != our_host {
        return Owner::Elsewhere;
    }
    let lives = process.split_once(' ').is_some_and(|(pid, start)| {
        let now = pid.parse().ok().and_then(start_of);
        now.is_some() && now == start.parse().ok()
    });
    if boot == our_boot && lives { Owner::Alive } else { Owner::Gone }
}

/// Content of the file with the owner.
fn identity(pid: u32) -> String {
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

fn remove(path: &Path) -> io::Result<()> {
    // The owner is removed last, so that an interrupted removal can be resumed.
    remove_entries(path, &|name| name == OsStr::new(OWNER))?;
    if fs::read_dir(path)?.flatten().any(|entry| entry.file_name() != OWNER) {
        return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
    }
    match fs::remove_file(path.join(OWNER)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(path)
}

/// Remove entries that workers created: files and directories, and those in the directories.
fn remove_entries(path: &Path, keep: &dyn Fn(&OsStr) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if keep(&entry.file_name()) || !is_a_workers(&entry.file_name()) {
            continue;
        }
        let gone = match entry.file_type()?.is_dir() {
            true => remove_entries(&entry.path(), &|_| false).and_then(|()| fs::remove_dir(entry.path())),
            false => fs::remove_file(entry.path()),
        };
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a name is that of a worker's entry: a word, then numbers with dashes between them.
fn is_a_workers(name: &OsStr) -> bool {
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
        let (workspace, stay) = Workspace::create(directory.path(), PATIENCE).unwrap();
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
        let (first, _) = Workspace::create(directory.path(), PATIENCE).unwrap();
        assert!(matches!(owner_of(&first.path), Owner::Alive));
        assert!(leftovers(directory.path(), PATIENCE).is_empty());
        assert!(first.path.exists());
        first.remove().unwrap();
    }

    #[test]
    fn what_no_worker_made_stays() {
        let directory = tempfile::tempdir().unwrap();
        let dead = left_by(directory.path(), "dead", &format!("{FIRST_LINE}\n{} x\n1 1\n", host_and_namespace()));
        fs::write(dead.join("thesis.tex"), "x").unwrap();
        let (workspace, stay) = Workspace::create(directory.path(), PATIENCE).unwrap();
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
