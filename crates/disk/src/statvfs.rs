//! Size and free space of a mounted file system (statvfs(3)).

use std::{io, path::Path};

/// Result of statvfs(3) [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatVfs {
    pub(crate) block_bytes: u64,
    pub(crate) size_bytes: u64,
    pub(crate) free_bytes: u64,
}

pub(crate) fn statvfs(path: &Path) -> io::Result<StatVfs> {
    let space = rustix::fs::statvfs(path)?;
    let blocks = |count: u64| count.saturating_mul(space.f_frsize);
    Ok(StatVfs { block_bytes: space.f_bsize, size_bytes: blocks(space.f_blocks), free_bytes: blocks(space.f_bfree) })
}
