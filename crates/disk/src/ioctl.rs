//! Numbers of ioctls (include/uapi/asm-generic/ioctl.h).

/// `_IOR(kind, number, size)`.
pub(crate) const fn read(kind: u8, number: u8, bytes: usize) -> libc::Ioctl {
    (2 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64) as libc::Ioctl
}

/// `_IOWR(kind, number, size)`.
pub(crate) const fn read_write(kind: u8, number: u8, bytes: usize) -> libc::Ioctl {
    (3 << 30 | (bytes as u64) << 16 | (kind as u64) << 8 | number as u64) as libc::Ioctl
}
