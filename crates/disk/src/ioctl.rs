//! Numbers of ioctls (include/uapi/asm-generic/ioctl.h), and queries by them.

use std::{io, os::fd::RawFd};

#[cfg(feature = "fuzzing")]
pub(crate) mod answers;

/// `_IOR(kind, number, size)`.
pub(crate) const fn read(kind: u8, number: u8, bytes: usize) -> libc::Ioctl {
    (2 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64) as libc::Ioctl
}

/// `_IOW(kind, number, size)`.
pub(crate) const fn write(kind: u8, number: u8, bytes: usize) -> libc::Ioctl {
    (1 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64) as libc::Ioctl
}

/// `_IOWR(kind, number, size)`.
pub(crate) const fn read_write(kind: u8, number: u8, bytes: usize) -> libc::Ioctl {
    (3 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64) as libc::Ioctl
}

/// A request into which the kernel writes its answer.
///
/// # Safety
/// Any bytes are a valid value: it consists of numbers only. It is at least as large as the ioctl
/// requires, by the ioctl's number or by a size in the request itself.
pub(crate) unsafe trait Request {}

/// Query the kernel about an open file.
pub(crate) fn query<T: Request>(file: RawFd, number: libc::Ioctl, request: &mut T) -> io::Result<()> {
    #[cfg(feature = "fuzzing")]
    if let Some(answered) = answers::answer(request) {
        return answered;
    }
    // SAFETY: by the contract of `Request`; it lives through the call.
    match unsafe { libc::ioctl(file, number, std::ptr::from_mut(request)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
