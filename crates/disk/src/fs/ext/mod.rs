//! ext2, ext3 and ext4, read from their own structures: a block device or an image file, mounted or
//! not.
//!
//! `super_block` and `groups` locate the structures. Threads read windows of inode numbers
//! (`window`): inodes (`inode`), the blocks that point to their blocks (`mapping`), names
//! (`directory`). Their results are taken in order (`scan`): extents go to the tables at once,
//! files wait for their paths (`directory_names`). `claimed_blocks` accounts for every block and
//! reports at the end which are free, and which have no owner. `checksums` are compared if there
//! are any. A file system that was not unmounted is read through its `journal`. Nothing is trusted:
//! inconsistencies are counted (`issues`), and the scan continues.

mod block_set;
mod bytes;
mod checksums;
mod claimed_blocks;
mod crc;
mod directory;
mod directory_names;
mod facts;
mod groups;
mod inode;
mod issues;
mod journal;
mod mapping;
mod opening;
mod refusal;
mod scan;
mod source;
mod super_block;
mod window;
mod write_counters;

use std::{fs::File, path::Path};

use sysdock_mounts::Mount;

use sysdock_table::facts::disk;

use crate::{
    DiskError, Outcome, Target,
    method::{Method, Unable, Work, cores},
    target::TargetKind,
};
use block_set::BlockSet;
use checksums::Checksums;
use groups::Group;
use source::Source;
use super_block::SuperBlock;

pub(super) struct Raw;

impl Method for Raw {
    fn name(&self) -> &'static str {
        scan::METHOD
    }

    fn begins_in(&self, image: &File) -> bool {
        opening::begins_in(image)
    }

    fn takes(&self, target: &Target) -> bool {
        place(target).is_some_and(|(path, _)| File::open(path).is_ok_and(|file| self.begins_in(&file)))
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        let Some((path, mount)) = place(target) else { return Err(Unable::Because(disk::part_of_file_system())) };
        // Each thread requests many blocks at a time, and rarely waits.
        let threads = work.settings.threads_or(cores());
        let request = scan::Request { path, mount, threads, without_names: work.settings.without_names };
        match scan::scan(&request, work.recording, work.cancel, work.report) {
            // The kernel can be asked instead.
            Err(DiskError::Refused(_, why, _)) if mount.is_some() => Err(Unable::Because(why)),
            outcome => Ok(outcome?),
        }
    }
}

/// The device or image of a target, and its mount, if it is mounted as a whole.
fn place(target: &Target) -> Option<(&Path, Option<&Mount>)> {
    let (path, mount) = match &target.place {
        TargetKind::FileSystem(mount) => (mount.source.as_path(), Some(mount)),
        TargetKind::Image(mount) => (target.path.as_path(), mount.as_ref()),
        TargetKind::Within(_) => return None,
    };
    let is_it = mount.is_none_or(|mount| mount.fs_type.starts_with("ext") && mount.is_of(path));
    is_it.then_some((path, mount))
}

/// What is known about a file system before its inodes are read.
struct FileSystem {
    source: Source,
    super_block: SuperBlock,
    groups: Vec<Group>,
    sums: Checksums,
    /// Blocks that were read as nodes or directories. None may occur twice, see `mapping`.
    met: BlockSet,
}

impl FileSystem {
    /// The value of `layout.part` for the blocks of an inode that is not a user's file; `None`: it
    /// is one.
    fn internal_part(&self, number: u32) -> Option<&'static str> {
        let super_block = &self.super_block;
        if super_block.quota_inodes().contains(&number) {
            return Some("quota");
        }
        if number == super_block.orphan_file() {
            return Some("orphan file");
        }
        if Some(number) == super_block.journal_inode() {
            return Some("journal");
        }
        match number {
            1 => Some("bad blocks"),
            inode::ROOT => None,
            number if number < super_block.first_inode => Some("reserved"),
            _ => None,
        }
    }
}
