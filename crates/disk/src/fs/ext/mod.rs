//! ext2, ext3 and ext4, read from their own structures: a block device or an image file, mounted or not.
//!
//! `super_block` and `groups` say where things lie. Threads read windows of inode numbers (`window`): inodes (`inode`), the blocks that lead to
//! their blocks (`mapping`), names (`directory`). What they find is taken in order (`scan`): extents go to the tables at once, files wait for
//! their paths (`names`). `space` keeps account of every block and tells at the end which are free, and which nobody claims. A file system that
//! was not unmounted is read through its `journal`. Nothing is trusted: what cannot be is counted (`issues`), and the rest goes on.

mod block_set;
mod bytes;
mod crc32c;
mod directory;
mod facts;
mod groups;
mod inode;
mod issues;
mod journal;
mod mapping;
mod moment;
mod names;
mod opening;
mod refusal;
mod scan;
mod source;
mod space;
mod super_block;
mod window;

use block_set::BlockSet;
use groups::Group;
use source::Source;
use super_block::SuperBlock;

pub(crate) use opening::begins_in;
pub(crate) use scan::{Request, scan};

/// What is known of a file system before its inodes are read.
struct FileSystem {
    source: Source,
    super_block: SuperBlock,
    groups: Vec<Group>,
    /// Blocks that were read as nodes or directories. None may be twice, see `mapping`.
    met: BlockSet,
}

impl FileSystem {
    /// The word of `layout.part` for the blocks of an inode that is no file of users; `None`: it is one.
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
