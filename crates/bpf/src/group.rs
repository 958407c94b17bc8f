//! A control group (version 2) for a recording: everything that the command starts is created in
//! it, so the kernel side recognizes its processes by one comparison.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::keeper::Keeper;

/// Prefix of the names of groups; the recorder's pid follows.
const PREFIX: &str = "sysdock-";

/// A control group. A group that was created is removed when this is dropped, or when the recorder
/// dies; remaining processes move to the parent group.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    /// Removes the group. `None`: the group is not ours.
    _keeper: Option<Keeper>,
}

/// Freezes the processes of a group. Needs no rights once it is open.
#[derive(Debug)]
pub struct Freezer {
    file: File,
    keeper: Keeper,
}

impl Freezer {
    /// Freeze all processes, or let them continue.
    ///
    /// # Errors
    /// The group does not exist any more, or it would stay frozen if this process died.
    pub fn freeze(&mut self, still: bool) -> io::Result<()> {
        if still && !self.keeper.is_alive() {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.file.write_all(if still { b"1" } else { b"0" })
    }
}

impl Group {
    /// Create a group below the one of this process.
    ///
    /// # Errors
    /// There are no control groups of version 2, or no permission to create one.
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

    /// Open an existing group.
    ///
    /// # Errors
    /// There is none at this path.
    pub fn at(path: &Path) -> io::Result<Group> {
        fs::metadata(path.join("cgroup.procs"))?;
        Ok(Group { folder: path.into(), _keeper: None })
    }

    /// The kernel's id of the group.
    ///
    /// # Errors
    /// The group does not exist any more.
    pub fn id(&self) -> io::Result<u64> {
        Ok(fs::metadata(&self.folder)?.ino())
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Move a process into the group.
    ///
    /// # Errors
    /// No permission, or no such process.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// A freezer of its processes. They continue when this process ends, however it ends.
    ///
    /// # Errors
    /// No permission, or the process that ensures this cannot be created.
    pub fn freezer(&self) -> io::Result<Freezer> {
        let file = File::options().write(true).open(self.folder.join("cgroup.freeze"))?;
        Ok(Freezer { file, keeper: Keeper::start(&self.folder, false)? })
    }

    /// The processes of the group and of its descendants.
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

    /// Whether the group contains a process.
    #[must_use]
    pub fn is_populated(&self) -> bool {
        fs::read_to_string(self.folder.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
    }
}

/// Remove the groups of recorders that were killed together with their keepers. The kernel refuses
/// to remove a group with processes; frozen ones continue.
fn remove_abandoned(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::write(entry.path().join("cgroup.freeze"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Folder of the group that this process is in.
fn own_folder() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    // Fields: proc(5), /proc/pid/mountinfo; the type follows a single dash.
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|line| line.split(' ').nth(4));
    // None of version 2 is mounted.
    let mount = mount.ok_or(io::ErrorKind::NotFound)?;
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/");
    Ok(Path::new(mount).join(own.trim_start_matches('/')))
}
