//! The devices below a folder: which they are, what they have transferred so far, and their limits.

use std::{
    collections::BTreeSet,
    fs,
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::fstat;
use sysdock_mounts::Mount;
use sysdock_table::path_of;

/// Major and minor number of a device.
type Number = (u32, u32);

const SECTOR: u64 = 512;

/// Where a file system keeps its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// On these block devices.
    Devices(BTreeSet<Number>),
    /// Only in memory.
    Memory,
    /// On a server, in a program, or at a place that the kernel does not report.
    NotKnown,
}

/// The file system that contains a folder.
#[derive(Clone, Debug)]
pub(crate) struct FileSystem {
    pub(crate) mount: Option<Mount>,
    pub(crate) below: Below,
}

/// Bytes that devices have transferred so far, for all processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl FileSystem {
    /// The file system of an open folder.
    pub(crate) fn of(folder: impl AsFd) -> Self {
        let mount = path_of(&folder).ok().and_then(|path| sysdock_mounts::of(&path).ok().flatten());
        let below = fstat(folder).map_or(Below::NotKnown, |found| below(found.st_dev, mount.as_ref(), 0));
        FileSystem { mount, below }
    }

    /// Its type, as the kernel names it.
    pub(crate) fn kind(&self) -> &str {
        self.mount.as_ref().map_or("unknown", |mount| mount.fs_type.as_str())
    }

    /// `None`: the kernel does not count for it.
    pub(crate) fn counters(&self) -> Option<Counters> {
        let Below::Devices(numbers) = &self.below else { return None };
        numbers.iter().try_fold(Counters::default(), |sum, number| {
            let text = fs::read_to_string(format!("/sys/dev/block/{}:{}/stat", number.0, number.1)).ok()?;
            let fields: Vec<u64> = text.split_ascii_whitespace().filter_map(|field| field.parse().ok()).collect();
            Some(Counters { read: sum.read + fields.get(2)? * SECTOR, written: sum.written + fields.get(6)? * SECTOR })
        })
    }

    /// Limits that a control group of ours sets for its devices, as text.
    pub(crate) fn limits(&self) -> Vec<String> {
        let Below::Devices(numbers) = &self.below else { return Vec::new() };
        let numbers: BTreeSet<Number> = numbers.iter().flat_map(|number| [*number, whole_disk(*number)]).collect();
        let mut found = Vec::new();
        for folder in groups("blkio").into_iter().chain(groups("")) {
            for name in [
                "io.max",
                "blkio.throttle.read_bps_device",
                "blkio.throttle.write_bps_device",
                "blkio.throttle.read_iops_device",
                "blkio.throttle.write_iops_device",
            ] {
                let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
                let of_ours = |line: &&str| numbers.iter().any(|n| line.starts_with(&format!("{}:{} ", n.0, n.1)));
                found.extend(text.lines().filter(of_ours).map(|line| format!("{name} {line}")));
            }
        }
        found
    }

    /// Its facts for the table of the environment: name and value.
    pub(crate) fn facts(&self) -> Vec<(String, Option<String>)> {
        let mount = self.mount.as_ref();
        let text = |value: Option<&str>| value.map(str::to_string);
        let mut facts = vec![
            ("type".to_string(), text(mount.map(|mount| mount.fs_type.as_str()))),
            ("mount point".to_string(), mount.map(|mount| mount.point.to_string_lossy().into_owned())),
            ("source".to_string(), mount.map(|mount| mount.source.to_string_lossy().into_owned())),
            ("mount options".to_string(), text(mount.map(|mount| mount.options.as_str()))),
        ];
        match &self.below {
            Below::Devices(numbers) => numbers.iter().for_each(|number| facts.extend(device_facts(*number))),
            Below::Memory => facts.push(("device".into(), Some("none: it lies in memory".into()))),
            Below::NotKnown => facts.push(("device".into(), None)),
        }
        facts.extend(self.limits().into_iter().map(|limit| ("control group limit".to_string(), Some(limit))));
        facts
    }
}

/// How many times the CPU limit of a control group of ours was reached so far.
pub(crate) fn cpu_throttled() -> u64 {
    let counts = groups("cpu").into_iter().chain(groups("")).filter_map(|folder| {
        let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok())
    });
    counts.sum()
}

/// The kernel's facts about a device.
fn device_facts(number: Number) -> Vec<(String, Option<String>)> {
    let folder = PathBuf::from(format!("/sys/dev/block/{}:{}", number.0, number.1));
    let name = fs::canonicalize(&folder).ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let name = name.unwrap_or_else(|| format!("{}:{}", number.0, number.1));
    let disk = if folder.join("queue").is_dir() { folder.clone() } else { folder.join("..") };
    let queue =
        ["rotational", "read_ahead_kb", "scheduler", "write_cache", "nr_requests", "max_sectors_kb", "logical_block_size"];
    let read = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_string());
    let mut facts: Vec<_> = queue.iter().map(|fact| (format!("{name} {fact}"), read(disk.join("queue").join(fact)))).collect();
    facts.push((
        format!("{name} size"),
        read(folder.join("size")).and_then(|text| Some(format!("{} B", text.parse::<u64>().ok()? * SECTOR))),
    ));
    if let Some(file) = read(folder.join("loop/backing_file")) {
        facts.push((format!("{name} backing file"), Some(file)));
    }
    facts
}

/// What is below files of a device, by its number; for overlays, below the folder that receives writes.
fn below(device: u64, mount: Option<&Mount>, depth: u32) -> Below {
    /// Limit for overlays on overlays.
    const DEEPEST: u32 = 4;
    let number = (libc::major(device), libc::minor(device));
    if number.0 != 0 && Path::new(&format!("/sys/dev/block/{}:{}", number.0, number.1)).exists() {
        return Below::Devices([number].into());
    }
    let Some(mount) = mount else { return Below::NotKnown };
    match mount.fs_type.as_str() {
        "tmpfs" | "ramfs" | "devtmpfs" => Below::Memory,
        "overlay" if depth < DEEPEST => {
            let upper = mount.options.split(',').find_map(|option| option.strip_prefix("upperdir="));
            let upper = upper.map(Path::new).filter(|upper| upper.is_absolute() && upper.is_dir());
            upper.map_or(Below::NotKnown, |upper| {
                let device = fs::metadata(upper).map_or(0, |status| status.dev());
                below(device, sysdock_mounts::of(upper).ok().flatten().as_ref(), depth + 1)
            })
        }
        "btrfs" => btrfs(&mount.source),
        _ => Below::NotKnown,
    }
}

/// The devices of the btrfs that contains this one.
fn btrfs(source: &Path) -> Below {
    let Ok(status) = fs::metadata(source) else { return Below::NotKnown };
    if !status.file_type().is_block_device() {
        return Below::NotKnown;
    }
    let ours = (libc::major(status.rdev()), libc::minor(status.rdev()));
    let number = |path: PathBuf| {
        let text = fs::read_to_string(path.join("dev")).ok()?;
        let (major, minor) = text.trim().split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    for system in entries(Path::new("/sys/fs/btrfs")) {
        let devices: BTreeSet<Number> = entries(&system.join("devices")).into_iter().filter_map(number).collect();
        if devices.contains(&ours) {
            return Below::Devices(devices);
        }
    }
    Below::Devices([ours].into())
}

/// The disk of a partition; for a disk the disk itself.
fn whole_disk(number: Number) -> Number {
    let above = format!("/sys/dev/block/{}:{}/../dev", number.0, number.1);
    let text = fs::read_to_string(above).unwrap_or_default();
    let parsed = text.trim().split_once(':').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parsed.unwrap_or(number)
}

/// The control group of this process in a hierarchy, and its ancestors; `` is the hierarchy of
/// version 2.
fn groups(controller: &str) -> Vec<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let ours = text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let matches = controllers.split(',').any(|name| name == controller);
        fields.next().filter(|_| matches)
    });
    let Some(ours) = ours else { return Vec::new() };
    let roots: &[&str] = if controller.is_empty() { &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] } else { &["/sys/fs/cgroup"] };
    let mut found = Vec::new();
    for root in roots {
        let root = Path::new(root).join(controller);
        let folder = root.join(ours.trim_start_matches('/'));
        found.extend(folder.ancestors().take_while(|above| above.starts_with(&root)).map(Path::to_path_buf));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_no_device() {
        let of = FileSystem::of(fs::File::open("/dev/shm").unwrap());
        assert_eq!((of.kind(), &of.below), ("tmpfs", &Below::Memory));
        assert!(of.counters().is_none() && of.limits().is_empty());
    }

    #[test]
    fn what_the_kernel_shows_of_itself_is_on_no_device() {
        assert_eq!(FileSystem::of(fs::File::open("/proc").unwrap()).below, Below::NotKnown);
    }
}
