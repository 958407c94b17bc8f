//! Size and free space of a mounted file system (statvfs(3)).

use std::{io, os::unix::ffi::OsStrExt, path::Path};

/// Result of statvfs(3) [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatVfs {
    pub(crate) block_bytes: u64,
    pub(crate) size_bytes: u64,
    pub(crate) free_bytes: u64,
}

pub(crate) fn statvfs(path: &Path) -> io::Result<StatVfs> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let mut space = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends in NUL, and the kernel fills the struct unless it fails.
    let space = unsafe {
        if libc::statvfs(path.as_ptr(), space.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        space.assume_init()
    };
    let blocks = |count: u64| count.saturating_mul(space.f_frsize);
    Ok(StatVfs { block_bytes: space.f_bsize, size_bytes: blocks(space.f_blocks), free_bytes: blocks(space.f_bfree) })
}
