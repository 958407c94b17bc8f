//! A scan of btrfs from the first query to the last row: what is in use, then the files of one
//! subvolume after another.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
};

use sysdock_table::{Fact, Facts, Progress, TableError, facts::disk};

use super::{
    chunks::{Chunks, Unread},
    devices,
    files::{self, Names, Reading, Subvolume},
    map::{self, Map},
    read_state::ReadState,
    used::used,
};
use sysdock_mounts::Mount;

use crate::{
    DiskError, Outcome,
    batch::{Batch, Kind},
    error::{Refused, fact_of},
    method::{Unable, Work},
    mounted::{Devices, MountedScan},
    paths::{self, NeedsPath},
    small_tables::DeviceRow,
    statvfs::{StatVfs, statvfs},
    tables::Tables,
};

/// The value of `file_systems.method`.
pub(super) const METHOD: &str = "tree";

/// Number of times that everything is read, until it belongs to one committed state.
const TRIES: usize = 4;
/// Limit for files and extents that are held until their state is known [about 60 bytes each]; with
/// more, rows are written at once.
const MOST_HELD: usize = 1 << 20;

/// Scan a mounted btrfs.
pub(super) fn scan(mount: &Mount, work: &mut Work<'_>) -> Result<Outcome, Unable> {
    let failed = |error| DiskError::Io(mount.point.clone(), error);
    let folder = File::open(&mount.point).map_err(failed)?;
    let file = folder.as_raw_fd();
    let mut chunks = chunks_of(file, mount)?;
    let facts = map::facts(file).map_err(failed)?;
    let space = statvfs(&mount.point).map_err(failed)?;
    if facts.has_stripe_tree {
        return Err(Unable::Because(disk::own_stripe_tree()));
    }
    let (threads, without_names) = (work.settings.query_threads(), work.settings.without_names);
    let mut tables = if without_names { Tables::new(work.recording) } else { Tables::with_late_paths(work.recording) };
    for turn in 1.. {
        let before = ReadState::settled(file);
        chunks = if turn == 1 && before == ReadState::Unknown { chunks } else { chunks_of(file, mount)? };
        let used = used(file, &chunks, facts.node_bytes, threads).map_err(failed)?;
        let mut scan = Scan {
            mount,
            reading: Reading { file, threads, cancel: work.cancel, without_names },
            map: Map::new(&chunks, &used),
            report: work.report,
            held: Vec::new(),
            count: 0,
        };
        let broken = scan.all(&mut tables).map_err(|refused| refused.at(&mount.point))?;
        let moment = before.after(file);
        let is_final = scan.has_begun() || broken.is_some() || work.cancel.requested() || turn == TRIES;
        if moment == ReadState::Changing && !is_final {
            continue;
        }
        scan.write_held(&mut tables)?;
        let issues = scan.map.issues();
        // Unless all files were read, it is unknown which extents have no owner.
        let free = scan.map.rest(if broken.is_some() { "unknown" } else { "unreferenced" }, &mut tables)?;
        let files = tables.taken;
        tables.finish()?;
        let devices = devices::devices(file, &facts, &chunks, &free);
        let scan = MountedScan {
            mount,
            path: &mount.point,
            uuid: Some(facts.uuid),
            space: of_devices(space, chunks.devices.iter().fold(0, |sum: u64, (_, size)| sum.saturating_add(*size))),
            is_whole: true,
            moment: moment.name(),
            method: METHOD,
            reason: reason(&chunks, &devices).into_iter().chain(changes(moment, turn)).collect(),
            files,
            unread: 0,
            issues,
            broken,
            devices: Devices::All(devices),
        };
        let facts = made(&chunks);
        return Ok(Outcome { facts, ..scan.outcome(work)? });
    }
    unreachable!("the last turn returns")
}

fn chunks_of(file: RawFd, mount: &Mount) -> Result<Chunks, Unable> {
    Chunks::of(file).map_err(|unread| match unread {
        Unread::Invalid(why) => Unable::Because(why),
        Unread::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Unable::Because(disk::trees_for_root_only(error.to_string()))
        }
        Unread::Io(error) if error.kind() == io::ErrorKind::InvalidData => Unable::Because(fact_of(&error)),
        Unread::Io(error) => DiskError::Io(mount.point.clone(), error).into(),
    })
}

/// Text for `reason` of a file system that was written to meanwhile.
fn changes(moment: ReadState, turns: usize) -> Option<Fact> {
    (moment == ReadState::Changing).then(|| disk::written_meanwhile(turns))
}

/// btrfs reports the room for files, of all copies together. Here the size is that of all devices.
fn of_devices(room: StatVfs, size_bytes: u64) -> StatVfs {
    let copies = match room.size_bytes {
        0 => 1,
        // Devices have a little more room than files can use.
        files => (size_bytes.saturating_add(files / 2) / files).max(1),
    };
    StatVfs { size_bytes, free_bytes: room.free_bytes.saturating_mul(copies), ..room }
}

/// Why this method was used, and what the map covers.
fn reason(chunks: &Chunks, devices: &[DeviceRow]) -> Facts {
    let mut reason = Facts::from(disk::trees_of_btrfs());
    if devices.len() > 1 {
        let profiles: Vec<String> =
            chunks.profiles().into_iter().map(|(content, profile)| format!("{content} {profile}")).collect();
        reason.push(disk::several_devices(devices.len(), profiles.join(", ")));
    }
    let missing: Vec<String> =
        devices.iter().filter(|device| device.is_missing).map(|device| device.number.to_string()).collect();
    if !missing.is_empty() {
        reason.push(disk::device_missing(missing.join(", ")));
    }
    reason
}

/// How the file system was made, for `environment`.
fn made(chunks: &Chunks) -> Vec<(String, String)> {
    let profiles = chunks.profiles().into_iter().map(|(content, profile)| (format!("profile of {content}"), profile));
    std::iter::once(("devices".into(), chunks.devices.len().to_string())).chain(profiles).collect()
}

/// Files of a subvolume that wait for their rows and, once all are read, their names.
struct Held {
    subvolume: Subvolume,
    batches: Vec<Batch>,
    /// Files that have rows, but no paths yet.
    written: Vec<(u64, Kind)>,
    names: Option<Names>,
}

/// State while files are read.
struct Scan<'a> {
    mount: &'a Mount,
    reading: Reading<'a>,
    map: Map<'a>,
    report: &'a mut dyn FnMut(Progress),
    held: Vec<Held>,
    /// Number of files and extents that were read.
    count: usize,
}

impl Scan<'_> {
    /// Whether rows were written already, so that reading cannot be repeated.
    fn has_begun(&self) -> bool {
        self.count > MOST_HELD
    }

    /// Read the files of all subvolumes. Returns why some are missing: a tree could not be read to
    /// its end.
    fn all(&mut self, tables: &mut Tables<'_>) -> Result<Option<io::Error>, Refused> {
        for subvolume in files::subvolumes(self.reading.file).map_err(Refused::Kernel)? {
            self.held.push(Held { subvolume: subvolume.clone(), batches: Vec::new(), written: Vec::new(), names: None });
            let (names, broken) =
                files::files(self.reading, &subvolume, |batch| self.take(batch, tables)).map_err(Refused::Table)?;
            if let Some(held) = self.held.last_mut() {
                held.names = Some(names);
            }
            if self.has_begun() {
                self.write(tables).map_err(Refused::Table)?;
            }
            if broken.is_some() {
                return Ok(broken);
            }
        }
        Ok(None)
    }

    /// Hold some files, or write them and all that are held.
    fn take(&mut self, batch: &mut Batch, tables: &mut Tables<'_>) -> Result<(), TableError> {
        self.count = self.count.saturating_add(batch.files.len() + batch.extents.len());
        if let Some(held) = self.held.last_mut() {
            held.batches.push(std::mem::take(batch));
        }
        (self.report)(Progress { bytes_done: 0, bytes_total: None, lines: tables.taken });
        if self.has_begun() { self.write(tables) } else { Ok(()) }
    }

    /// Write the rows of all held files after the last one was read: it is known by now which files
    /// share what.
    fn write_held(&mut self, tables: &mut Tables<'_>) -> Result<(), TableError> {
        if !self.has_begun() {
            for batch in self.held.iter().flat_map(|held| &held.batches) {
                batch.each_extent(|inode, extent| self.map.own(inode, extent));
            }
        }
        self.write(tables)
    }

    /// Write the rows of held files, and the paths of subvolumes that are complete.
    fn write(&mut self, tables: &mut Tables<'_>) -> Result<(), TableError> {
        let mut held = std::mem::take(&mut self.held);
        for one in &mut held {
            for batch in std::mem::take(&mut one.batches) {
                if !self.reading.without_names {
                    one.written.extend(batch.files.iter().map(|file| (file.inode.number, file.inode.kind)));
                }
                let map = &mut self.map;
                tables.batch_by(&batch, |tables, inode, extent| map.extent(inode, extent, tables))?;
            }
            if let Some(names) = &one.names {
                self.paths(&one.subvolume, names, &one.written, tables)?;
            }
        }
        held.retain(|one| one.names.is_none());
        self.held = held;
        Ok(())
    }

    fn paths(
        &self,
        subvolume: &Subvolume,
        names: &Names,
        files: &[(u64, Kind)],
        tables: &mut Tables<'_>,
    ) -> Result<(), TableError> {
        let files = files.iter().map(|(number, kind)| (files::within_subvolume(*number), *kind));
        // A file without a name was removed, and is still open.
        let files = files.map(|(number, kind)| NeedsPath { number, kind, is_linked: false });
        let paths = subvolume.paths(names, self.mount.point.as_os_str().as_encoded_bytes());
        paths::write(files, paths, self.reading.cancel, tables)?;
        Ok(())
    }
}
