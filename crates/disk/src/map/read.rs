//! Reads a recording as a [`Space`].

use std::{collections::BTreeMap, path::Path};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Class, Damage, Group, MapError, Piece, Space,
    columns::{Rows, Tables},
};
use crate::{
    extent::{Extent, flag},
    fragments::Fragments,
};

/// Content of the table of the file system.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub fs_type: String,
    pub source: String,
    /// Several devices are laid out one after another, ordered by number.
    pub devices: Vec<Device>,
    /// Number of invalid rows: without a length, or at a negative offset.
    pub wrong_rows: u64,
    /// Number of extents without a location: in the inode, or not yet on the device.
    pub nowhere: u64,
}

/// A device of a file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub number: i64,
    /// Empty: unknown, or missing.
    pub path: String,
    /// Its beginning on the map [B].
    pub start: u64,
}

/// A recording of a disk.
#[derive(Debug)]
pub struct Recorded {
    pub facts: Facts,
    pub space: Space,
    /// Ordered by address.
    pub groups: Vec<Group>,
    /// Inode numbers by [`Piece::owner`].
    pub inodes: Vec<i64>,
}

/// Read the tables of a recording; everything at or below the path `find` is lit.
///
/// # Errors
/// [`MapError`]: a table is missing or damaged, or nothing has that path.
pub fn read(folder: &Path, find: Option<&str>) -> Result<Recorded, MapError> {
    let tables = Tables::open(folder)?;
    if !tables.has("file_systems") {
        return Err(MapError::NoTable(folder.into(), "file_systems"));
    }
    let mut reader = Reader::default();
    reader.file_system(&tables)?;
    reader.devices(&tables)?;
    reader.internal_inodes(&tables)?;
    if let Some(path) = find {
        reader.search(&tables, path)?;
    }
    reader.extents(&tables)?;
    reader.free_space(&tables)?;
    reader.layout(&tables)?;
    reader.finish(folder)
}

#[derive(Default)]
struct Reader {
    facts: Facts,
    size: u64,
    block: u64,
    /// Inodes of the file system itself.
    internal: FxHashSet<i64>,
    lit: FxHashSet<i64>,
    devices: BTreeMap<i64, OnDevice>,
    inodes: Vec<i64>,
    owners: FxHashMap<i64, u32>,
    file: OneFile,
}

/// What is known about a device.
#[derive(Default)]
struct OnDevice {
    path: String,
    size: u64,
    pieces: Vec<Piece>,
    groups: Vec<Group>,
}

impl OnDevice {
    /// Add a range of a file. If it continues after stripes on other devices, it is joined to the
    /// last range.
    fn add_striped(&mut self, piece: Piece) {
        let goes_on = |last: &&mut Piece| {
            let is_after = last.start.saturating_add(last.length) == piece.start;
            is_after && !piece.is_break && (last.owner, last.class, last.is_lit) == (piece.owner, piece.class, piece.is_lit)
        };
        match self.pieces.last_mut().filter(goes_on) {
            Some(last) => last.length = last.length.saturating_add(piece.length),
            None => self.pieces.push(piece),
        }
    }
}

/// The extents of one file, until the next one begins.
#[derive(Default)]
struct OneFile {
    inode: Option<i64>,
    fragments: Fragments,
    is_striped: bool,
    /// With the device and the number of fragments up to there.
    pieces: Vec<(i64, Piece, u32)>,
}

impl Reader {
    fn file_system(&mut self, tables: &Tables) -> Result<(), MapError> {
        let columns = ["fs_type", "source", "block_bytes", "size_bytes"];
        tables.read("file_systems", &columns, |rows| {
            if self.size == 0 && rows.count() > 0 {
                (self.block, self.size) = (positive(rows.numbers("block_bytes")?[0]), positive(rows.numbers("size_bytes")?[0]));
                (self.facts.fs_type, self.facts.source) = (rows.first_text("fs_type")?, rows.first_text("source")?);
            }
            Ok(())
        })
    }

    /// Read the devices that are listed; older recordings list none.
    fn devices(&mut self, tables: &Tables) -> Result<(), MapError> {
        tables.read("devices", &["device", "path", "size_bytes"], |rows| {
            let paths = rows.all_texts("path")?;
            let rows = rows.numbers("device")?.into_iter().zip(rows.numbers("size_bytes")?).zip(paths);
            for ((number, size), path) in rows {
                let device = self.devices.entry(number.unwrap_or(0)).or_default();
                (device.path, device.size) = (path, positive(size));
            }
            Ok(())
        })
    }

    fn internal_inodes(&mut self, tables: &Tables) -> Result<(), MapError> {
        tables.read("inodes", &["inode", "kind"], |rows| {
            let is_internal = rows.texts("kind", |kind| kind == Some("internal"))?;
            let inodes = rows.numbers("inode")?.into_iter().zip(is_internal);
            self.internal.extend(inodes.filter_map(|(inode, is_internal)| inode.filter(|_| is_internal)));
            Ok(())
        })
    }

    /// Find the files at a path, or below it.
    fn search(&mut self, tables: &Tables, path: &str) -> Result<(), MapError> {
        let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
        let is_found = |text: Option<&str>| {
            let rest = text.and_then(|text| text.strip_prefix(path));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || path == "/")
        };
        let mut ids = FxHashSet::default();
        tables.read("paths", &["path_id", "path"], |rows| {
            let found = rows.texts("path", is_found)?;
            ids.extend(rows.numbers("path_id")?.into_iter().zip(found).filter_map(|(id, found)| id.filter(|_| found)));
            Ok(())
        })?;
        tables.read("inodes", &["inode", "path_id"], |rows| {
            let rows = rows.numbers("inode")?.into_iter().zip(rows.numbers("path_id")?);
            self.lit.extend(rows.filter_map(|(inode, id)| inode.filter(|_| id.is_some_and(|id| ids.contains(&id)))));
            Ok(())
        })?;
        if self.lit.is_empty() { Err(MapError::NotFound(path.into())) } else { Ok(()) }
    }

    fn extents(&mut self, tables: &Tables) -> Result<(), MapError> {
        let columns =
            ["inode", "logical_bytes", "physical_bytes", "length_bytes", "stored_bytes", "flags", "device", "address_bytes"];
        tables.read("extents", &columns, |rows| {
            let (inodes, flags) = (rows.numbers("inode")?, rows.texts("flags", flag_bits)?);
            let (logical, physical) = (rows.numbers("logical_bytes")?, rows.numbers("physical_bytes")?);
            let (length, stored) = (rows.numbers("length_bytes")?, rows.numbers("stored_bytes")?);
            let (devices, addresses) = (rows.numbers("device")?, rows.numbers_if_there("address_bytes")?);
            for row in 0..rows.count() {
                let inode = inodes[row].unwrap_or(-1);
                if self.file.inode != Some(inode) {
                    self.end_of_file();
                    self.file.inode = Some(inode);
                }
                let (place, length) = (physical[row].filter(|_| flags[row] & flag::NOWHERE == 0), length[row]);
                let stored = stored[row].map(|stored| positive(Some(stored)));
                let device = devices[row].unwrap_or(0);
                let extent = Extent {
                    logical: positive(logical[row]),
                    physical: positive(place),
                    length: positive(length),
                    stored,
                    flags: if place.is_none() { flags[row] | flag::DELAYED } else { flags[row] },
                    device: device as u32,
                };
                let address = addresses.as_ref().and_then(|addresses| addresses[row]);
                self.extent(extent, device, place, address);
            }
            Ok(())
        })?;
        self.end_of_file();
        Ok(())
    }

    fn extent(&mut self, extent: Extent, device: i64, place: Option<i64>, address: Option<i64>) {
        match address {
            None => self.file.fragments.add(&extent),
            // A further stripe of a compressed extent.
            Some(_) if extent.length == 0 && extent.stored.is_some() => {}
            Some(_) => self.file.fragments.add(&Extent { physical: positive(address), device: 0, ..extent }),
        }
        self.file.is_striped |= address.is_some();
        let taken = extent.stored.unwrap_or(extent.length);
        match place {
            None => self.facts.nowhere += 1,
            Some(place) if place < 0 || taken == 0 => self.facts.wrong_rows += 1,
            Some(_) => {
                let class = match extent.flags {
                    flags if flags & flag::COMPRESSED != 0 => Class::Compressed,
                    flags if flags & flag::UNWRITTEN != 0 => Class::Unwritten,
                    _ => Class::Unfragmented,
                };
                let piece = Piece { start: extent.physical, length: taken, class, ..Piece::default() };
                self.file.pieces.push((device, piece, self.file.fragments.count()));
            }
        }
    }

    /// Classify the extents of a file, which depends on all of them.
    fn end_of_file(&mut self) {
        let file = std::mem::take(&mut self.file);
        let Some(inode) = file.inode else { return };
        let number = self.inodes.len() as u32;
        let owner = *self.owners.entry(inode).or_insert(number);
        if owner == number {
            self.inodes.push(inode);
        }
        let is_broken = file.fragments.count() > 1;
        let (is_internal, is_lit) = (self.internal.contains(&inode), self.lit.contains(&inode));
        let mut last = 1;
        for (device, mut piece, fragment) in file.pieces {
            // Compressed extents are small by design, and not counted as fragments.
            piece.is_break = fragment > last && !is_internal && piece.class != Class::Compressed;
            last = fragment;
            piece.class = match piece.class {
                _ if is_internal => Class::Metadata,
                Class::Unfragmented if is_broken => Class::Contiguous,
                class => class,
            };
            (piece.owner, piece.is_lit) = (owner, is_lit);
            let on_device = self.devices.entry(device).or_default();
            if file.is_striped {
                on_device.add_striped(piece);
            } else {
                on_device.pieces.push(piece);
            }
        }
    }

    fn free_space(&mut self, tables: &Tables) -> Result<(), MapError> {
        tables.read("free_extents", &["physical_bytes", "length_bytes", "device"], |rows| {
            let classes = vec![Class::Free; rows.count()];
            self.plain(rows, &classes)
        })
    }

    fn layout(&mut self, tables: &Tables) -> Result<(), MapError> {
        tables.read("layout", &["part", "number", "physical_bytes", "length_bytes", "device"], |rows| {
            let parts = rows.texts("part", |part| match part {
                Some("group") => None,
                Some("unknown") => Some(Class::Unknown),
                _ => Some(Class::Metadata),
            })?;
            let numbers = rows.numbers("number")?;
            let (starts, lengths) = (rows.numbers("physical_bytes")?, rows.numbers("length_bytes")?);
            let devices = rows.numbers("device")?;
            for row in (0..rows.count()).filter(|row| parts[*row].is_none()) {
                let number = numbers[row].unwrap_or(-1) as i32;
                let device = devices[row].unwrap_or(0);
                let group = Group { device, number, start: positive(starts[row]), length: positive(lengths[row]) };
                self.devices.entry(device).or_default().groups.push(group);
            }
            self.plain(rows, &parts)
        })
    }

    /// Add rows that belong to no file; those without a class are left out.
    fn plain(&mut self, rows: &Rows, classes: &[impl Into<Option<Class>> + Copy]) -> Result<(), Damage> {
        let (starts, lengths) = (rows.numbers("physical_bytes")?, rows.numbers("length_bytes")?);
        let devices = rows.numbers("device")?;
        for row in 0..rows.count() {
            let Some(class) = classes[row].into() else { continue };
            if starts[row].is_none_or(|start| start < 0) || positive(lengths[row]) == 0 {
                self.facts.wrong_rows += 1;
                continue;
            }
            let (start, length) = (positive(starts[row]), positive(lengths[row]));
            let piece = Piece { start, length, owner: Piece::NO_OWNER, class, ..Piece::default() };
            self.devices.entry(devices[row].unwrap_or(0)).or_default().pieces.push(piece);
        }
        Ok(())
    }

    /// Lay the devices out one after another.
    fn finish(mut self, folder: &Path) -> Result<Recorded, MapError> {
        let is_one = self.devices.len() <= 1;
        let (mut pieces, mut groups, mut base) = (Vec::new(), Vec::new(), 0_u64);
        for (number, device) in std::mem::take(&mut self.devices) {
            let ends = device.pieces.iter().map(|piece| piece.start.saturating_add(piece.length));
            let known = ends.chain(device.groups.iter().map(|group| group.start.saturating_add(group.length))).max().unwrap_or(0);
            self.facts.devices.push(Device { number, path: device.path, start: base });
            if is_one {
                pieces = device.pieces;
                groups = device.groups;
                base = if self.size == 0 { known } else { self.size };
                continue;
            }
            pieces.extend(device.pieces.into_iter().map(|piece| Piece { start: piece.start.saturating_add(base), ..piece }));
            groups.extend(device.groups.into_iter().map(|group| Group { start: group.start.saturating_add(base), ..group }));
            // Older recordings do not state the size of a device: it ends with the last known
            // range.
            base = base.saturating_add(known.max(device.size));
        }
        let size = base.max(if self.facts.devices.is_empty() { self.size } else { 0 });
        if size == 0 {
            return Err(MapError::Empty(folder.into()));
        }
        groups.sort_unstable_by_key(|group| group.start);
        let space = Space::new(size, self.block, pieces);
        Ok(Recorded { facts: self.facts, space, groups, inodes: self.inodes })
    }
}

/// 0 for a missing or negative value.
fn positive(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

fn flag_bits(words: Option<&str>) -> u8 {
    let bit = |word: &str| flag::WORDS.iter().position(|known| *known == word).map_or(0, |bit| 1 << bit);
    words.unwrap_or("").split('+').map(bit).sum()
}
