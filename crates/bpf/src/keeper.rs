//! A process that outlives the recorder, whatever ends it: it thaws a frozen control group, and
//! removes it.
//!
//! States: *waiting* (the recorder holds the writing end of a pipe) -> *cleaning up* (that end is
//! closed: the recorder ended, or was killed) -> ended. It keeps the rights that the recorder gives
//! up, and uses them for nothing else. It is a copy of the recorder in which only the calling
//! thread continues, so it makes nothing but system calls: no memory, no locks.

use std::{
    ffi::CString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, RawFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    ptr,
};

use crate::companion::Companion;

/// Attempts to remove a group, two milliseconds apart: a process that has just ended may still be
/// counted.
const TRIES: usize = 500;

/// A waiting keeper. Dropping it makes it clean up, and waits until that is done.
#[derive(Debug)]
pub(crate) struct Keeper(Companion);

/// Data that the copy needs.
struct Kept {
    /// Descriptors of the parent group and of the group.
    above: RawFd,
    group: RawFd,
    /// Name in the parent group; `None`: the group is not to be removed.
    name: Option<CString>,
}

impl Keeper {
    /// Keep the group in this folder, and remove it at the end if it is the recorder's `own`.
    ///
    /// # Errors
    /// No process can be created, or the group does not exist.
    pub(crate) fn start(folder: &Path, own: bool) -> io::Result<Keeper> {
        let group = File::open(folder)?;
        let above = File::open(folder.parent().unwrap_or(folder))?;
        let name = folder.file_name().filter(|_| own).map(|name| CString::new(name.as_bytes())).transpose()?;
        let kept = Kept { above: above.as_raw_fd(), group: group.as_raw_fd(), name };
        // SAFETY: the copy makes system calls only.
        unsafe { Companion::start(|wait| keep(wait, &kept)).map(Keeper) }
    }

    /// Whether the keeper still runs.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.is_alive()
    }
}

/// Main function of the copy.
///
/// # Safety
/// Only in a process that was just forked.
unsafe fn keep(wait: RawFd, kept: &Kept) {
    // SAFETY: system calls with numbers, and with buffers and strings that live through them.
    unsafe {
        // It must survive the end of the session, and must not keep the recorder's streams open.
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"sysdock-keeper".as_ptr());
        let moved = [wait, kept.above, kept.group].map(|fd| libc::fcntl(fd, libc::F_DUPFD, 10));
        for (number, fd) in (0..).zip(moved) {
            libc::dup2(fd, number);
        }
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        let mut nothing = [0u8; 1];
        libc::read(0, nothing.as_mut_ptr().cast(), 1);
        clear_up(1, 2, kept.name.as_deref());
    }
}

/// Thaw the group, and remove it; remaining processes move to the parent group.
///
/// # Safety
/// Only in a process that was just forked.
unsafe fn clear_up(above: RawFd, group: RawFd, name: Option<&std::ffi::CStr>) {
    // SAFETY: as for `keep`.
    unsafe {
        write_to(group, c"cgroup.freeze", b"0");
        let Some(name) = name else { return };
        for _ in 0..TRIES {
            if libc::unlinkat(above, name.as_ptr(), libc::AT_REMOVEDIR) == 0 || *libc::__errno_location() == libc::ENOENT {
                return;
            }
            move_processes(group, above);
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 2_000_000 };
            libc::nanosleep(&raw const pause, ptr::null_mut());
        }
    }
}

/// # Safety
/// As for [`clear_up`].
unsafe fn move_processes(from: RawFd, to: RawFd) {
    let mut list = [0u8; 4096];
    // SAFETY: as for `keep`; the buffer is as long as stated.
    unsafe {
        let file = libc::openat(from, c"cgroup.procs".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let got = libc::read(file, list.as_mut_ptr().cast(), list.len());
        libc::close(file);
        for pid in list[..usize::try_from(got).unwrap_or(0)].split(|byte| *byte == b'\n').filter(|pid| !pid.is_empty()) {
            write_to(to, c"cgroup.procs", pid);
        }
    }
}

/// # Safety
/// As for [`clear_up`].
unsafe fn write_to(folder: RawFd, name: &std::ffi::CStr, text: &[u8]) {
    // SAFETY: as for `keep`.
    unsafe {
        let file = libc::openat(folder, name.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        libc::write(file, text.as_ptr().cast(), text.len());
        libc::close(file);
    }
}
