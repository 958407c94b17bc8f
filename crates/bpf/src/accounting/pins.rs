//! Programs that outlive the process that loaded them: their links and maps are pinned in a folder
//! of a BPF file system, which is named after the programs and their settings, so that others are
//! never mistaken for them. Where all users may write to that file system, they can make folders of
//! any name: the end of the name is random, and folders of others are left alone.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use libbpf_rs::{Link, MapCore, MapHandle, Object};
use rustc_hash::FxHashMap;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
    process::geteuid,
    rand::{GetRandomFlags, getrandom},
};
use sysdock_table::codes;

use super::OBJECT;
use crate::{
    live,
    probes::{ProbeError, Step, failed},
};

const PREFIX: &str = "sysdock-agent-";
const ITERATOR: &str = "list_threads";
const MAPS: [&str; 10] =
    ["accounts", "processes", "sums", "ended", "files", "files_left_out", "names", "groups", "mounts", "lost"];

/// Loaded programs.
pub(super) struct Loaded {
    pub(super) maps: FxHashMap<&'static str, MapHandle>,
    pub(super) iterator: Link,
    pub(super) links: Vec<Link>,
    pub(super) generation: String,
    pub(super) is_found: bool,
    /// Held while a process reads the pinned maps.
    pub(super) lock: Option<File>,
}

/// Why jobs cannot be accounted, or pinned programs cannot be removed.
#[derive(Debug)]
pub enum AccountingError {
    /// The kernel does not load the programs.
    Probe(ProbeError),
    /// An agent is running on this node.
    AgentRuns,
    /// A folder or file cannot be accessed.
    Io(io::Error),
}

codes!(AccountingError { Probe: "probe", AgentRuns: "agent-runs", Io: "io" });

impl AccountingError {
    /// The same error as one of this step.
    fn of(self, step: Step) -> AccountingError {
        match self {
            AccountingError::Io(error) => ProbeError::new(step, &error).into(),
            other => other,
        }
    }
}

impl From<ProbeError> for AccountingError {
    fn from(error: ProbeError) -> Self {
        AccountingError::Probe(error)
    }
}

impl From<io::Error> for AccountingError {
    fn from(error: io::Error) -> Self {
        AccountingError::Io(error)
    }
}

pub(super) fn load_or_find(settings: &[u8], pins: Option<&Path>) -> Result<Loaded, AccountingError> {
    let Some(pins) = pins else { return Ok(load(settings)?) };
    let name = format!("{PREFIX}{:08x}", crc32c::crc32c_append(crc32c::crc32c(OBJECT), settings));
    let take_over = |error: AccountingError| error.of(Step::TakeOver);
    for folder in own_folders(pins, &name).map_err(|error| take_over(error.into()))? {
        let lock = lock(&folder).map_err(take_over)?;
        if let Ok(found) = find(&folder) {
            return Ok(Loaded { lock: Some(lock), ..found });
        }
    }
    // Pinned programs of another version, with other settings, or incomplete ones.
    remove(pins).map_err(take_over)?;
    let loaded = load(settings)?;
    let folder =
        create(pins, &name).map_err(|error| ProbeError::new(Step::KeepPrograms, &format!("{}: {error}", pins.display())))?;
    pin(loaded, &folder)
}

/// Folders of this user whose names begin like this.
fn own_folders(pins: &Path, name: &str) -> io::Result<Vec<PathBuf>> {
    let mut own = Vec::new();
    for entry in fs::read_dir(pins)? {
        let entry = entry?;
        // One that is removed meanwhile is nobody's.
        let is_own = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if is_own && entry.file_name().to_string_lossy().starts_with(name) {
            own.push(entry.path());
        }
    }
    Ok(own)
}

/// Make a folder that only this user may open: a user who can open it can lock it.
fn create(pins: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = [0; 8];
    getrandom(&mut number, GetRandomFlags::empty())?;
    let folder = pins.join(format!("{name}-{:016x}", u64::from_ne_bytes(number)));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// Lock the folder in which an agent pins its programs. The kernel releases the lock when the
/// process ends.
fn lock(folder: &Path) -> Result<File, AccountingError> {
    let file = File::open(folder)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(AccountingError::AgentRuns),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Remove what ended agents pinned in this folder, which ends their programs. Returns the number of
/// agents.
///
/// # Errors
/// A folder or file cannot be removed, or an agent is running.
pub fn remove(pins: &Path) -> Result<usize, AccountingError> {
    let folders = own_folders(pins, PREFIX)?;
    for folder in &folders {
        let _lock = lock(folder)?;
        for pinned in fs::read_dir(folder)? {
            fs::remove_file(pinned?.path())?;
        }
        fs::remove_dir(folder)?;
    }
    Ok(folders.len())
}

fn load(settings: &[u8]) -> Result<Loaded, ProbeError> {
    let object = live::load_with(OBJECT, &[(".rodata.settings", settings)])?;
    let mut links = Vec::new();
    let mut iterator = None;
    for program in object.progs_mut() {
        let link = program.attach().map_err(failed(Step::Attach))?;
        if program.name() == ITERATOR { iterator = Some(link) } else { links.push(link) }
    }
    let maps = handles(&object)?;
    let generation = generation(&maps["sums"]).map_err(|error| unknown_generation(&error))?;
    Ok(Loaded { maps, iterator: iterator.expect("the object has it"), links, generation, is_found: false, lock: None })
}

fn handles(object: &Object) -> Result<FxHashMap<&'static str, MapHandle>, ProbeError> {
    let find = |name: &&'static str| {
        let map = object.maps().find(|map| map.name() == *name).expect("the object has this map");
        Ok((*name, MapHandle::try_from(&map).map_err(failed(Step::KeepMap))?))
    };
    MAPS.iter().map(find).collect()
}

fn find(folder: &Path) -> libbpf_rs::Result<Loaded> {
    let mut maps = FxHashMap::default();
    for name in MAPS {
        maps.insert(name, MapHandle::from_pinned_path(folder.join(name))?);
    }
    let iterator = Link::open(folder.join(ITERATOR))?;
    // Pinned last: without this file, the folder is incomplete.
    fs::metadata(folder.join("complete"))?;
    let generation = generation(&maps["sums"])?;
    Ok(Loaded { maps, iterator, links: Vec::new(), generation, is_found: true, lock: None })
}

fn pin(mut loaded: Loaded, folder: &Path) -> Result<Loaded, AccountingError> {
    let refused = |error: io::Error| ProbeError::new(Step::KeepPrograms, &format!("{}: {error}", folder.display()));
    loaded.lock = Some(lock(folder).map_err(|error| error.of(Step::KeepPrograms))?);
    for (name, map) in &mut loaded.maps {
        map.pin(folder.join(name)).map_err(failed(Step::KeepMap))?;
    }
    for (number, link) in loaded.links.iter_mut().enumerate() {
        link.pin(folder.join(format!("link_{number}"))).map_err(failed(Step::KeepProgram))?;
    }
    loaded.iterator.pin(folder.join(ITERATOR)).map_err(failed(Step::KeepProgram))?;
    fs::hard_link(folder.join("lost"), folder.join("complete")).map_err(refused)?;
    Ok(loaded)
}

/// The id of the boot, and the id of a map, which the kernel never reuses.
fn generation(map: &MapHandle) -> io::Result<String> {
    let info = libbpf_rs::MapInfo::new(map.as_fd()).map_err(io::Error::other)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(format!("{}-{}", boot.trim(), info.info.id))
}

fn unknown_generation(error: &io::Error) -> ProbeError {
    ProbeError::new(Step::IdentifyBoot, error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::chown;

    use super::*;

    #[test]
    fn folders_of_others_are_left_alone() {
        let pins = tempfile::tempdir().expect("a folder");
        let own = create(pins.path(), PREFIX).expect("it is made");
        assert_eq!(fs::metadata(&own).expect("it is there").mode() & 0o777, 0o700);
        fs::write(pins.path().join("sysdock-agent-file"), "").expect("a file");
        let other = pins.path().join("sysdock-agent-x");
        fs::create_dir(&other).expect("it is made");
        fs::write(other.join("pinned"), "").expect("a file");
        if geteuid().is_root() {
            chown(&other, Some(12_345), None).expect("root may");
            let _locked = lock(&other).expect("it is locked");
            assert_eq!(own_folders(pins.path(), PREFIX).expect("they are read"), std::slice::from_ref(&own));
            assert_eq!(remove(pins.path()).expect("it goes"), 1);
            assert!(other.join("pinned").exists() && !own.exists());
        }
    }
}
