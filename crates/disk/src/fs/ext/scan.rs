//! A scan from the first window to the last row.

use std::{
    mem,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
};

use sysdock_table::{Cancel, Facts, NULL, Progress, Recording, TableError, facts::disk};

use super::{
    FileSystem,
    claimed_blocks::{ClaimedBlocks, Found},
    directory_names::AllNames,
    facts,
    groups::{self, Fixed},
    inode::ROOT,
    issues::{Issues, word},
    opening::{self, Opened},
    window::{Row, Window},
    write_counters::WriteCounters,
};
use sysdock_mounts::Mount;

use crate::{
    DiskError, Outcome,
    batch::{File, Inode, Kind},
    error::fact_of,
    method::ending,
    parallel::in_order,
    paths::{self, NeedsPath, Paths},
    small_tables::{BROKEN_OFF, DeviceRow, FileSystemRow, write_issues},
    tables::{Free, Part, Tables},
};

/// Size of the part of inode tables that a window covers [B].
const WINDOW_BYTES: u64 = 2 << 20;
const MOST_INODES: u64 = 8192;

/// The value of `file_systems.method`.
pub(super) const METHOD: &str = "raw";

/// What to scan.
pub(super) struct Request<'a> {
    /// A block device or an image file.
    pub(super) path: &'a Path,
    /// The mount, if it is mounted as a whole.
    pub(super) mount: Option<&'a Mount>,
    /// Number of threads that read.
    pub(super) threads: usize,
    /// Whether directories are not read.
    pub(super) without_names: bool,
}

/// What is kept of each file until its path is known. It is small, because there is one for every
/// file.
#[derive(Clone, Copy)]
struct Kept {
    number: u32,
    kind: Kind,
    /// Whether some directory should name it.
    is_linked: bool,
}

/// State of a scan.
struct Scan<'a> {
    fs: FileSystem,
    space: ClaimedBlocks,
    issues: Issues,
    kept: Vec<Kept>,
    names: AllNames,
    unread: u64,
    files: u64,
    cancel: &'a Cancel,
    threads: usize,
    without_names: bool,
}

/// Read an ext2, ext3 or ext4 file system into the tables of a recording.
///
/// # Errors
/// [`DiskError`]: it cannot be read in its present state, or the recording cannot be written.
pub(super) fn scan(
    request: &Request<'_>,
    recording: &mut Recording,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    let failed = |error| DiskError::Io(request.path.into(), error);
    if let Some(mount) = request.mount {
        opening::write_back(&mount.point);
    }
    let Opened { fs, file, is_in_use, mut notes, issues } =
        opening::open(request.path, request.mount.is_some()).map_err(|refusal| refusal.at(request.path))?;
    let device_name = opening::device_name(request.path).unwrap_or(None);
    let moment = || WriteCounters::now(&file, &fs.source, &fs.super_block, device_name.as_deref()).map_err(failed);
    let before = moment()?;
    let mut scan = Scan::new(fs, issues, request, cancel);
    let mut tables = if request.without_names { Tables::new(recording) } else { Tables::with_late_paths(recording) };
    scan.run(&mut tables, request, report)?;
    tables.finish()?;
    let after = WriteCounters::now(&file, &scan.fs.source, &scan.fs.super_block, device_name.as_deref());
    let is_one = after.as_ref().is_ok_and(|after| before == *after);
    if let Some(blocks) = after.as_ref().ok().and_then(WriteCounters::delayed_blocks).filter(|blocks| *blocks > 0) {
        notes.push(disk::not_written_back(blocks));
    }
    let fs_type = scan.fs.super_block.fs_type();
    let how = if is_in_use { disk::through_its_device(fs_type) } else { disk::own_structures(fs_type) };
    let reason: Facts = std::iter::once(how).chain(notes).collect();
    let row = scan.file_system_row(request, &reason, if is_one { "one" } else { "many" });
    row.write(recording)?;
    DeviceRow::write(&[DeviceRow::only(&row)], recording)?;
    let mut issues = scan.issues.details();
    // Its first block was readable, and no longer is: the device disappeared.
    issues.extend(
        after
            .as_ref()
            .err()
            .map(|error| (BROKEN_OFF, disk::broken_off(request.path.to_string_lossy().into_owned(), fact_of(error)))),
    );
    write_issues(&issues, request.path, recording)?;
    let ending = ending(cancel, after.is_err());
    let facts = facts::of(&scan.fs.super_block, request.mount.map(|mount| mount.options.as_str()));
    Ok(Outcome { ending, method: METHOD, reason, files: scan.files, unread: scan.unread, example: None, facts, issues })
}

impl<'a> Scan<'a> {
    fn new(fs: FileSystem, issues: Issues, request: &Request<'_>, cancel: &'a Cancel) -> Self {
        let space = ClaimedBlocks::new(&fs.super_block);
        let names = AllNames::new(fs.super_block.inodes);
        let Request { threads, without_names, .. } = *request;
        Scan { fs, space, issues, kept: Vec::new(), names, unread: 0, files: 0, cancel, threads, without_names }
    }

    fn run(
        &mut self,
        tables: &mut Tables<'_>,
        request: &Request<'_>,
        report: &mut dyn FnMut(Progress),
    ) -> Result<(), TableError> {
        self.fixed_parts(tables)?;
        self.windows(tables, report)?;
        if self.cancel.requested() {
            return Ok(());
        }
        if self.without_names {
            return self.rest(tables);
        }
        let has_root = self.kept.iter().any(|file| file.number == ROOT && file.kind == Kind::Directory);
        self.issues.add(word::BROKEN_INODE, u64::from(!has_root), disk::no_root_directory);
        self.unconnected();
        let prefix = request.mount.map_or(PathBuf::new(), |mount| mount.point.clone());
        self.paths(prefix.as_os_str().as_encoded_bytes(), tables)?;
        self.rest(tables)
    }

    fn bytes(&self, blocks: u64) -> u64 {
        blocks * self.fs.super_block.block_bytes
    }

    /// Write groups, and the parts at fixed locations in them.
    fn fixed_parts(&mut self, tables: &mut Tables<'_>) -> Result<(), TableError> {
        let super_block = &self.fs.super_block;
        for group in 0..super_block.groups {
            let (first, count) = (super_block.group_first_block(group), super_block.group_blocks(group));
            tables.part(self.part(&Fixed { part: "group", group: Some(group), first, count }, None))?;
        }
        let mut parts = Vec::new();
        groups::fixed(super_block, &self.fs.groups, |fixed| parts.push(fixed));
        for fixed in parts {
            self.space.claim_fixed(&fixed, &mut self.issues);
            tables.part(self.part(&fixed, None))?;
        }
        Ok(())
    }

    fn part(&self, fixed: &Fixed, inode: Option<u32>) -> Part {
        Part {
            part: fixed.part,
            number: fixed.group.and_then(|group| i32::try_from(group).ok()),
            inode: inode.map(u64::from),
            physical: self.bytes(fixed.first),
            length: self.bytes(fixed.count),
            device: 0,
        }
    }

    /// Read all inodes.
    fn windows(&mut self, tables: &mut Tables<'_>, report: &mut dyn FnMut(Progress)) -> Result<(), TableError> {
        let inodes = u64::from(self.fs.super_block.inodes);
        // The bitmaps of many groups are adjacent.
        let bitmaps = self.fs.groups.iter().flat_map(|group| [group.inode_bitmap, group.block_bitmap]);
        bitmaps.flatten().for_each(|block| self.fs.source.request_ahead(block, 1));
        let width = (WINDOW_BYTES / self.fs.super_block.inode_bytes as u64).clamp(16, MOST_INODES);
        let (space, cancel, with_names) = (&self.space, self.cancel, !self.without_names);
        let (issues, kept, names) = (&mut self.issues, &mut self.kept, &mut self.names);
        let (unread, files, fs) = (&mut self.unread, &mut self.files, &self.fs);
        let count = inodes.div_ceil(width);
        let read = |number: u64| {
            let first = 1 + number * width;
            let end = (first + width).min(inodes + 1);
            if cancel.requested() { Window::default() } else { Window::read(fs, first as u32..end as u32, with_names, space) }
        };
        in_order(count, self.threads.min(count as usize).max(1), read, |window| {
            take(&window, fs.super_block.block_bytes, space, issues, tables)?;
            *unread += window.unread;
            *files += window.rows.iter().filter(|row| row.kind != Kind::Internal).count() as u64;
            issues.merge(window.issues);
            if with_names {
                names.add(window.names);
                kept.extend(window.rows.iter().map(Row::kept));
            }
            window.rows.iter().try_for_each(|row| tables.file(&row.file(), None))?;
            report(Progress { bytes_done: 0, bytes_total: None, lines: *files });
            Ok(())
        })
    }

    /// Report inodes that should have a name, and names without an inode.
    fn unconnected(&mut self) {
        let mut rows = self.kept.iter().map(|file| file.number).peekable();
        let mut nameless = 0;
        let mut example = 0;
        for named in self.names.named() {
            while rows.next_if(|row| *row < named).is_some() {}
            if rows.next_if_eq(&named).is_none() {
                nameless += 1;
                example = named;
            }
        }
        self.issues.add(word::NAME_WITHOUT_INODE, nameless, || disk::name_without_inode(example));
    }

    fn paths(&mut self, prefix: &[u8], tables: &mut Tables<'_>) -> Result<(), TableError> {
        let kept = mem::take(&mut self.kept);
        let nameless = paths::write(
            kept.iter().map(Kept::needs_path),
            Paths::new(&self.names, u64::from(ROOT), prefix),
            self.cancel,
            tables,
        )?;
        self.issues.add(word::NO_NAME, nameless.count, || disk::no_name(nameless.example));
        Ok(())
    }

    /// Write free space, and what is neither free nor owned.
    fn rest(&mut self, tables: &mut Tables<'_>) -> Result<(), TableError> {
        let bytes = |blocks: u64| blocks * self.fs.super_block.block_bytes;
        let mut outcome = Ok(());
        self.space.rest(&self.fs, &mut self.issues, |found| {
            if outcome.is_err() {
                return;
            }
            outcome = match found {
                Found::Free(first, count) => tables.free(Free { physical: bytes(first), length: bytes(count), device: 0 }),
                Found::Unclaimed(first, count, is_shared) => {
                    let part = if is_shared { "rest of cluster" } else { "unknown" };
                    tables.part(Part { part, number: None, inode: None, physical: bytes(first), length: bytes(count), device: 0 })
                }
            };
        });
        let unreadable = self.fs.source.unreadable.load(Ordering::Relaxed);
        self.issues.add(word::UNREADABLE_BLOCK, unreadable, disk::blocks_unreadable);
        outcome
    }

    fn file_system_row(&self, request: &Request<'_>, reason: &Facts, moment: &'static str) -> FileSystemRow {
        let super_block = &self.fs.super_block;
        let free: u64 = self.fs.groups.iter().map(|group| u64::from(group.free_clusters)).sum();
        let mount = request.mount;
        FileSystemRow {
            fs_type: mount.map_or_else(|| super_block.fs_type().into(), |mount| mount.fs_type.clone()),
            source: mount.map_or(request.path, |mount| &mount.source).to_string_lossy().into_owned(),
            mount_point: mount.map(|mount| mount.point.to_string_lossy().into_owned()),
            label: super_block.label(),
            uuid: Some(super_block.uuid()),
            block_bytes: super_block.block_bytes,
            size_bytes: super_block.size_bytes(),
            free_bytes: Some(self.bytes(free * super_block.cluster_blocks)),
            method: METHOD,
            reason: reason.clone(),
            files: self.files,
            unread_files: self.unread,
            is_whole: true,
            moment,
        }
    }
}

impl Kept {
    fn needs_path(&self) -> NeedsPath {
        NeedsPath { number: u64::from(self.number), kind: self.kind, is_linked: self.is_linked }
    }
}

impl Row {
    fn kept(&self) -> Kept {
        Kept { number: self.number, kind: self.kind, is_linked: self.links > 0 && self.kind != Kind::Internal }
    }

    fn file(&self) -> File {
        File {
            inode: Inode {
                number: u64::from(self.number),
                kind: self.kind,
                size: self.size,
                links: u32::from(self.links),
                modified_ns: Some(self.modified_ns).filter(|ns| *ns != NULL),
            },
            allocated: self.allocated,
            extents: self.extents,
            fragments: self.fragments,
            forgiving_fragments: Some(self.forgiving),
            has_name: false,
        }
    }
}

/// Write the extents of the files of a window, and the blocks that the file system keeps for them.
/// Attributes, which files may share, are claimed in order.
fn take(
    window: &Window,
    block_bytes: u64,
    space: &ClaimedBlocks,
    issues: &mut Issues,
    tables: &mut Tables<'_>,
) -> Result<(), TableError> {
    let mut extents = window.extents.iter();
    for row in &window.rows {
        for extent in extents.by_ref().take(row.extents as usize) {
            tables.extent(u64::from(row.number), extent)?;
        }
    }
    let keep = |inode: u32, part, first: u64, count: u64, tables: &mut Tables<'_>| {
        let (physical, length) = (first * block_bytes, count * block_bytes);
        tables.part(Part { part, number: None, inode: Some(u64::from(inode)), physical, length, device: 0 })
    };
    for (inode, part, first, count) in &window.parts {
        keep(*inode, *part, *first, *count, tables)?;
    }
    for (inode, block) in &window.attributes {
        if space.claim_attributes(*block, *inode, issues) {
            keep(*inode, "attributes", *block, 1, tables)?;
        }
    }
    Ok(())
}
