//! From a path to a file system that can be read: checks whether it is one, whether it is mounted,
//! and whether its journal must be replayed.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use sysdock_table::{Fact, facts::disk as facts};

use super::{
    FileSystem,
    block_set::BlockSet,
    bytes::le16,
    checksums::Checksums,
    groups,
    inode::{Content, Raw},
    issues::{Issues, word},
    journal,
    mapping::{Mapping, Reading},
    refusal::Refusal,
    source::Source,
    super_block::{self, SuperBlock, compat, incompat},
};
use crate::{error::Remedy, extent::Extent};

/// An open file system.
pub(super) struct Opened {
    pub(super) fs: FileSystem,
    pub(super) file: File,
    /// Whether the kernel uses it, and replays its journal by itself.
    pub(super) is_in_use: bool,
    /// What was found while opening it, for `file_systems.reason`.
    pub(super) notes: Vec<Fact>,
    pub(super) issues: Issues,
}

/// Whether an ext2, ext3 or ext4 file system begins in a file.
pub(crate) fn begins_in(file: &File) -> bool {
    let mut magic = [0; 2];
    file.read_exact_at(&mut magic, super_block::PLACE + 0x38).is_ok() && le16(&magic, 0) == 0xef53
}

pub(super) fn open(path: &Path, is_mounted: bool) -> Result<Opened, Refusal> {
    let mut file = File::open(path)?;
    let is_device = file.metadata()?.file_type().is_block_device();
    let room = file.seek(SeekFrom::End(0))?;
    if !begins_in(&file) {
        return Err(Refusal::NoFileSystem);
    }
    let is_in_use = is_mounted || is_device && is_held(path);
    if !is_device {
        refuse_below_mount(path)?;
    }
    if room < super_block::PLACE + super_block::BYTES as u64 {
        return Err(Refusal::Because(facts::cut_in_super_block(), Remedy::CopyAgain));
    }
    let mut source = Source::new(file.try_clone()?, 1024);
    let read = |source: &Source| source.read_bytes(super_block::PLACE, super_block::BYTES);
    let mut super_block = SuperBlock::parse(&read(&source)?, room)?;
    source.block_bytes = super_block.block_bytes;
    let (mut notes, mut issues) = (Vec::new(), Issues::default());
    if super_block.has_incompat(incompat::NEEDS_RECOVERY) && !is_in_use {
        let (next, note) = replay(source, super_block, room, &mut issues)?;
        (source, super_block) = next;
        notes.push(note);
    } else if is_in_use && super_block.has_incompat(incompat::NEEDS_RECOVERY) {
        notes.push(facts::journal_of_kernel());
    }
    let fs = assemble(source, super_block, is_in_use, &mut issues);
    check(&fs, &mut issues);
    Ok(Opened { fs, file, is_in_use, notes, issues })
}

/// Report wrong checksums of the super block and of groups.
fn check(fs: &FileSystem, issues: &mut Issues) {
    let again = || {
        let bytes = fs.source.read_bytes(super_block::PLACE, super_block::BYTES);
        bytes.is_ok_and(|bytes| fs.sums.super_block_holds(&bytes))
    };
    let is_wrong = !fs.sums.super_block_holds(&fs.super_block.bytes) && fs.sums.stays_wrong(again);
    issues.add(word::BROKEN_SUPER_BLOCK, u64::from(is_wrong), facts::super_block_checksum);
    groups::check(fs, issues);
}

fn assemble(source: Source, super_block: SuperBlock, is_live: bool, issues: &mut Issues) -> FileSystem {
    let (groups, _) = groups::read(&source, &super_block, issues);
    let met = BlockSet::new(super_block.blocks);
    let sums = Checksums::of(&super_block, is_live);
    FileSystem { source, super_block, groups, sums, met }
}

/// Make a mounted file system write back pending data, so that it gets a location (syncfs(2)). A
/// failure to do so is not ours to report.
pub(super) fn write_back(mount_point: &Path) {
    if let Ok(folder) = File::open(mount_point) {
        let _ = rustix::fs::syncfs(&folder);
    }
}

/// Whether the kernel holds a device exclusively, as it does while the device is mounted, in any
/// name space.
fn is_held(path: &Path) -> bool {
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(path);
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Refuse an image below a mounted loop device: it is older than what is mounted.
fn refuse_below_mount(path: &Path) -> Result<(), Refusal> {
    let status = fs::metadata(path)?;
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let Ok(backing) = fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        let is_same = fs::metadata(backing.trim_end_matches('\n'))
            .is_ok_and(|other| (other.dev(), other.ino()) == (status.dev(), status.ino()));
        let device = Path::new("/dev").join(entry.file_name());
        if is_same && is_held(&device) {
            return Err(Refusal::Because(facts::image_of_mounted(device.to_string_lossy().into_owned()), Remedy::ScanMounted));
        }
    }
    Ok(())
}

/// Read the journal, and the super block with it replayed.
fn replay(
    source: Source,
    super_block: SuperBlock,
    room: u64,
    issues: &mut Issues,
) -> Result<((Source, SuperBlock), Fact), Refusal> {
    let Some(number) = super_block.journal_inode() else {
        let why = if super_block.has_compat(compat::HAS_JOURNAL) { facts::journal_elsewhere() } else { facts::no_journal() };
        return Err(Refusal::Because(facts::not_unmounted(why), Remedy::ApplyJournal));
    };
    let fs = assemble(source, super_block, false, &mut Issues::default());
    let extents = extents_of(&fs, number)
        .ok_or_else(|| Refusal::Because(facts::not_unmounted(facts::journal_not_found()), Remedy::ApplyJournal))?;
    let replay = journal::replay(&fs.source, &fs.super_block, &extents)?;
    let note = facts::journal_replayed(replay.transactions, replay.blocks());
    issues.add(word::JOURNAL_DAMAGED, replay.damaged, facts::copies_left_out);
    issues.add(word::JOURNAL_DAMAGED, u64::from(replay.ends_damaged), facts::journal_ends_damaged);
    issues.add(word::NOT_REPLAYED, u64::from(replay.has_fast_commits), facts::fast_commits);
    let mut source = fs.source;
    source.set_replay(replay);
    let block = source.block(super_block::PLACE / source.block_bytes)?;
    let at = (super_block::PLACE % source.block_bytes) as usize;
    let super_block = SuperBlock::parse(&block[at..], room)?;
    Ok(((source, super_block), note))
}

/// The extents of one inode.
fn extents_of(fs: &FileSystem, number: u32) -> Option<Vec<Extent>> {
    let super_block = &fs.super_block;
    let place = number.checked_sub(1)?;
    let table = fs.groups.get((place / super_block.inodes_per_group) as usize)?.inode_table?;
    let at = u64::from(place % super_block.inodes_per_group) * super_block.inode_bytes as u64;
    let block = fs.source.block(table + at / super_block.block_bytes).ok()?;
    let at = (at % super_block.block_bytes) as usize;
    let raw = Raw { number, bytes: block.get(at..at + super_block.inode_bytes)? };
    let mut mapping = Mapping::default();
    let mut issues = Issues::default();
    let seeds = [fs.sums.of_inode(raw)];
    let mut reading = Reading { fs, issues: &mut issues, numbers: &[number], seeds: &seeds };
    match raw.content(super_block) {
        Content::Extents => mapping.add_tree(raw.i_block(), &mut reading),
        Content::Indirect => mapping.add_pointers(raw.i_block(), &mut reading),
        Content::None | Content::Inline => return None,
    }
    mapping.read_nodes(&mut reading);
    let mut extents = Vec::new();
    mapping.extents_of(0, super_block.block_bytes, 0, &mut extents);
    (mapping.broken.is_empty() && !extents.is_empty()).then_some(extents)
}

/// The kernel's name of a block device.
pub(super) fn device_name(path: &Path) -> io::Result<Option<String>> {
    let status = fs::metadata(path)?;
    if !status.file_type().is_block_device() {
        return Ok(None);
    }
    let (major, minor) = (libc::major(status.rdev()), libc::minor(status.rdev()));
    let link = fs::read_link(format!("/sys/dev/block/{major}:{minor}"))?;
    Ok(link.file_name().map(|name| name.to_string_lossy().into_owned()))
}
