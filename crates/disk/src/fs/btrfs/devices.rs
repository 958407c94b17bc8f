//! Names of the devices of a btrfs, and which of them are missing.

use std::{ffi::CStr, fs, os::fd::RawFd};

use rustc_hash::FxHashMap;

use super::{Chunks, Facts};
use crate::{
    ioctl,
    small_tables::{DeviceRow, hyphenated},
};

/// `struct btrfs_ioctl_dev_info_args`.
#[repr(C)]
struct Info {
    number: u64,
    uuid: [u8; 16],
    allocated: u64,
    size: u64,
    file_system: [u8; 16],
    unused: [u64; 377],
    path: [u8; 1024],
}

// SAFETY: it contains numbers, and has the size that the number of the ioctl states.
unsafe impl ioctl::Request for Info {}

const BTRFS_IOC_DEV_INFO: libc::Ioctl = ioctl::read_write(0x94, 30, size_of::<Info>());

/// The path of a device. `None`: it has none, for example because it was absent when the others
/// were mounted.
fn path(file: RawFd, number: u32) -> Option<String> {
    let mut info = Box::new(Info {
        number: u64::from(number),
        uuid: [0; 16],
        allocated: 0,
        size: 0,
        file_system: [0; 16],
        unused: [0; 377],
        path: [0; 1024],
    });
    ioctl::query(file, BTRFS_IOC_DEV_INFO, &mut *info).ok()?;
    let path = CStr::from_bytes_until_nul(&info.path).ok()?.to_string_lossy();
    (!path.is_empty()).then(|| path.into_owned())
}

/// Rows of all devices in the chunk tree; `free` is the free space of each.
pub(crate) fn devices(file: RawFd, facts: &Facts, chunks: &Chunks, free: &FxHashMap<u32, u64>) -> Vec<DeviceRow> {
    let mut allocated = FxHashMap::<u32, u64>::default();
    for chunk in &chunks.all {
        for (device, _) in &chunk.slots {
            let sum = allocated.entry(*device).or_default();
            *sum = sum.saturating_add(chunk.slot_bytes());
        }
    }
    let folder = format!("/sys/fs/btrfs/{}/devinfo", hyphenated(facts.uuid));
    let row = |(number, size): &(u32, u64)| {
        let path = path(file, *number);
        // Kernels before 5.6 do not have this file.
        let is_missing =
            fs::read_to_string(format!("{folder}/{number}/missing")).map_or(path.is_none(), |word| word.trim() == "1");
        DeviceRow {
            number: *number,
            path,
            size_bytes: *size,
            allocated_bytes: Some(allocated.get(number).copied().unwrap_or(0)),
            free_bytes: Some(free.get(number).copied().unwrap_or(0)),
            is_missing,
        }
    };
    chunks.devices.iter().map(row).collect()
}
