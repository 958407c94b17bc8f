//! A control group (version 2) of the recording's own: whatever the command starts is created in it, and the kernel side tells its processes
//! from others by one comparison.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::keeper::Keeper;

/// A group is named for its recorder.
const PREFIX: &str = "sysdock-";

/// A control group. One that was made goes when this is dropped, or when the recorder dies; processes that are left in it move to the one
/// above.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    /// Takes it down. None: it is not ours.
    _keeper: Option<Keeper>,
}

/// Holds the processes of a group still. Needs no rights once it is there.
#[derive(Debug)]
pub struct Freezer {
    file: File,
    keeper: Keeper,
}

impl Freezer {
    /// Hold all its processes still, or let them go on.
    ///
    /// # Errors
    /// The group is gone, or it would stay frozen if this process died.
    pub fn freeze(&mut self, still: bool) -> io::Result<()> {
        if still && !self.keeper.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.file.write_all(if still { b"1" } else { b"0" })
    }
}

impl Group {
    /// Make one below the group of this process.
    ///
    /// # Errors
    /// No control groups of version 2, or no permission to make one.
    pub fn create() -> io::Result<Group> {
        let above = own_folder()?;
        remove_abandoned(&above);
        let folder = above.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder)?;
        match Keeper::start(&folder, true) {
            Ok(keeper) => Ok(Group { folder, _keeper: Some(keeper) }),
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(error)
            }
        }
    }

    /// One that is there.
    ///
    /// # Errors
    /// There is none at this path.
    pub fn at(path: &Path) -> io::Result<Group> {
        fs::metadata(path.join("cgroup.procs"))?;
        Ok(Group { folder: path.into(), _keeper: None })
    }

    /// The id by which the kernel knows it.
    ///
    /// # Errors
    /// It is gone.
    pub fn id(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.folder)?.ino())
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Put a process into it.
    ///
    /// # Errors
    /// No permission, or no such process.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// What holds its processes still. They go on when this process ends, however it ends.
    ///
    /// # Errors
    /// No permission, or no process can be made that sees to it.
    pub fn freezer(&self) -> io::Result<Freezer> {
        let file = File::options().write(true).open(self.folder.join("cgroup.freeze"))?;
        Ok(Freezer { file, keeper: Keeper::start(&self.folder, false)? })
    }

    /// The processes in it and in the groups in it.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let listed = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
            found.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            folders.extend(entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()));
        }
        found
    }

    /// Whether a process is left in it.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.folder.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
    }
}

/// Remove the groups of recorders that were killed, and their keepers too. One with processes in it stays: the kernel refuses. Those go on if they were held still.
fn remove_abandoned(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::write(entry.path().join("cgroup.freeze"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folder of the group that this process is in.
fn own_folder() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    // Fields: proc(5), /proc/pid/mountinfo; the type stands after a lone dash.
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    let mount = mount.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no control groups of version 2 are mounted"))?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Ok(Path::new(mount).join(own.trim_start_matches('/')))
}
