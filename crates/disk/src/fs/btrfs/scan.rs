//! A scan of btrfs from the first question to the last row: what is in use, then the files of one subvolume after another.

use std::{fs::File, io, os::fd::AsRawFd};

use sysdock_table::{Progress, TableError};

use super::{
    chunks::Chunks,
    devices,
    files::{self, Reading, Subvolume},
    map::{self, Map},
    used::used,
};
use crate::{
    DiskError, Outcome,
    batch::Kind,
    method::{Unable, Work},
    mounted::{Devices, Told},
    mounts::Mount,
    paths::{self, NeedsPath},
    small_tables::DeviceRow,
    statvfs::{StatVfs, statvfs},
    tables::Tables,
};

/// The word of `file_systems.method`.
pub(super) const METHOD: &str = "tree";

/// Scan a mounted btrfs.
pub(super) fn scan(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| DiskError::Io(mount.point.clone(), error);
    let folder = File::open(&mount.point).map_err(failed)?;
    let file = folder.as_raw_fd();
    let chunks = match Chunks::of(file) {
        Ok(chunks) => chunks,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(Unable::Because(format!("its trees are shown to root only ({error})")));
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(Unable::Because(error.to_string())),
        Err(error) => return Err(failed(error).into()),
    };
    let facts = map::facts(file).map_err(failed)?;
    let space = statvfs(&mount.point).map_err(failed)?;
    if facts.has_stripe_tree {
        return Err(Unable::Because(
            "it has a tree of its own for where stripes lie (raid_stripe_tree), which is not read".into(),
        ));
    }
    let (threads, without_names) = (work.settings.asking_threads(), work.settings.without_names);
    let used = used(file, &chunks, facts.node_bytes, threads).map_err(failed)?;
    let mut tables = if without_names { Tables::new(work.recording) } else { Tables::with_late_paths(work.recording) };
    let mut scan = Scan {
        mount,
        reading: Reading { file, threads, cancel: work.cancel, without_names },
        map: Map::new(&chunks, &used),
        report: work.report,
    };
    let mut broken = None;
    for subvolume in files::subvolumes(file).map_err(failed)? {
        broken = scan.files(&subvolume, &mut tables)?;
        if broken.is_some() {
            break;
        }
    }
    let issues = scan.map.issues();
    // Without all files it is not known which pieces are nobody's.
    let free = scan.map.rest(if broken.is_some() { "unknown" } else { "unreferenced" }, &mut tables)?;
    let files = tables.taken;
    tables.finish()?;
    let devices = devices::devices(file, &facts, &chunks, &free);
    let told = Told {
        mount,
        path: &mount.point,
        uuid: Some(facts.uuid),
        space: of_devices(space, chunks.devices.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size))),
        is_whole: true,
        moment: "unknown",
        method: METHOD,
        reason: reason(&chunks, &devices),
        files,
        unread: 0,
        issues,
        broken,
        devices: Devices::All(devices),
    };
    let facts = made(&chunks);
    Ok(Outcome { facts, ..told.outcome(work)? })
}

/// btrfs counts room for files, and each copy as the whole; here the size is that of all devices.
fn of_devices(room: StatVfs, size_bytes: u64) -> StatVfs {
    let copies = match room.size_bytes {
        0 => 1,
        // Devices hold a little more than files have room for.
        files => (size_bytes.saturating_add(files / 2) / files).max(1),
    };
    StatVfs { size_bytes, free_bytes: room.free_bytes.saturating_mul(copies), ..room }
}

/// Why by this method, and what the map is of.
fn reason(chunks: &Chunks, devices: &[DeviceRow]) -> String {
    let mut reason = String::from("btrfs shows its trees to root");
    if devices.len() > 1 {
        let profiles: Vec<String> =
            chunks.profiles().into_iter().map(|(content, profile)| format!("{content} {profile}")).collect();
        reason += &format!("; it lies on {} devices ({})", devices.len(), profiles.join(", "));
    }
    let missing: Vec<String> =
        devices.iter().filter(|device| device.is_missing).map(|device| device.number.to_string()).collect();
    if !missing.is_empty() {
        reason += &format!("; missing: device {}, of which the trees still tell what should lie there", missing.join(" and "));
    }
    reason
}

/// How it was made, for `environment`.
fn made(chunks: &Chunks) -> Vec<(String, String)> {
    let profiles = chunks.profiles().into_iter().map(|(content, profile)| (format!("profile of {content}"), profile));
    std::iter::once(("devices".into(), chunks.devices.len().to_string())).chain(profiles).collect()
}

/// What is at hand while files are read.
struct Scan<'a> {
    mount: &'a Mount,
    reading: Reading<'a>,
    map: Map<'a>,
    report: &'a mut dyn FnMut(Progress),
}

impl Scan<'_> {
    /// The files of a subvolume, and their paths. Returns why these are not all: its tree could not be read on.
    fn files(&mut self, subvolume: &Subvolume, tables: &mut Tables<'_>) -> Result<Option<io::Error>, TableError> {
        let mut kept: Vec<(u64, Kind)> = Vec::new();
        let (names, broken) = files::files(self.reading, subvolume, |batch| {
            if !self.reading.without_names {
                kept.extend(batch.files.iter().map(|file| (file.inode.number, file.inode.kind)));
            }
            (self.report)(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
            let map = &mut self.map;
            tables.batch_by(batch, |tables, inode, extent| map.extent(inode, extent, tables))
        })?;
        let files = kept.into_iter().map(|(number, kind)| (files::within_subvolume(number), kind));
        // One without a name was removed, and is still open.
        let files = files.map(|(number, kind)| NeedsPath { number, kind, is_linked: false });
        let paths = subvolume.paths(&names, self.mount.point.as_os_str().as_encoded_bytes());
        paths::write(files, paths, self.reading.cancel, tables)?;
        Ok(broken)
    }
}
