//! Puts the addresses of btrfs on its devices, and tells what no file told: metadata, what is no longer referred to, what is free.

use std::{io, mem::MaybeUninit, os::fd::RawFd};

use sysdock_table::TableError;

use super::{Chunks, Used};
use crate::{
    batch::{Batch, flag},
    ioctl,
    tables::{Free, Part, Tables},
};

/// `struct btrfs_ioctl_fs_info_args`: the parts that are used.
#[repr(C)]
struct Info {
    _most_device: u64,
    _devices: u64,
    uuid: [u8; 16],
    node_bytes: u32,
    _rest: [u8; 1024 - 36],
}

const BTRFS_IOC_FS_INFO: libc::Ioctl = ioctl::read(0x94, 31, size_of::<Info>());

/// What btrfs says of itself.
pub(crate) struct Facts {
    pub(crate) uuid: [u8; 16],
    pub(crate) node_bytes: u64,
}

pub(crate) fn facts(file: RawFd) -> io::Result<Facts> {
    let mut info = MaybeUninit::<Info>::zeroed();
    // SAFETY: the kernel fills the struct, which has the size that the number of the ioctl states; all its bits are valid.
    let info = unsafe {
        if libc::ioctl(file, BTRFS_IOC_FS_INFO, info.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        info.assume_init()
    };
    Ok(Facts { uuid: info.uuid, node_bytes: u64::from(info.node_bytes) })
}

/// What is in use, and which of it files refer to.
pub(crate) struct Map<'a> {
    chunks: &'a Chunks,
    used: &'a [Used],
    /// Address and length of what files refer to.
    referenced: Vec<(u64, u64)>,
}

impl<'a> Map<'a> {
    pub(crate) fn new(chunks: &'a Chunks, used: &'a [Used]) -> Self {
        Map { chunks, used, referenced: Vec::new() }
    }

    /// Addresses of a batch become places on devices: those of the first copy. (How many pieces a file is in was counted by address, as
    /// `filefrag` does.)
    pub(crate) fn place(&mut self, batch: &mut Batch) {
        for extent in batch.extents.iter_mut().filter(|extent| extent.flags & flag::NOWHERE == 0) {
            let address = extent.physical;
            self.referenced.push((address, extent.stored.unwrap_or(extent.length)));
            let number = self.used.partition_point(|piece| piece.address <= address);
            if number.checked_sub(1).is_some_and(|number| self.used[number].is_shared) {
                extent.flags |= flag::SHARED;
            }
            if let Some((device, place)) = self.chunks.places(address).next() {
                (extent.device, extent.physical) = (device, place);
            }
        }
    }

    /// All that is not a file's: metadata, further copies of data, extents or parts of them that no file refers to any more, free space.
    /// `unclaimed` is the word for pieces of data that no file has.
    pub(crate) fn rest(mut self, unclaimed: &'static str, tables: &mut Tables<'_>) -> Result<(), TableError> {
        for chunk in &self.chunks.all {
            for (device, physical) in &chunk.copies {
                let (device, physical) = (*device, *physical);
                let part = Part { part: "group", number: None, inode: None, physical, length: chunk.length, device };
                tables.part(part)?;
            }
        }
        self.referenced.sort_unstable();
        let mut left = self.referenced.as_slice();
        for piece in self.used {
            let end = piece.address + piece.length;
            if piece.is_metadata {
                self.part(tables, "metadata", piece.address, piece.length, 0)?;
                continue;
            }
            let mut at = piece.address;
            let mine = left.iter().take_while(|(address, _)| *address < end).count();
            for (address, length) in &left[..mine] {
                if *address > at {
                    self.part(tables, unclaimed, at, address - at, 0)?;
                }
                at = at.max((address + length).min(end));
            }
            left = &left[mine..];
            if end > at {
                self.part(tables, unclaimed, at, end - at, 0)?;
            }
            self.part(tables, "copy", piece.address, piece.length, 1)?;
        }
        for (device, physical, length) in self.chunks.free(self.used) {
            tables.free(Free { physical, length, device })?;
        }
        Ok(())
    }

    /// A piece in all its copies, but for the first ones.
    fn part(
        &self,
        tables: &mut Tables<'_>,
        part: &'static str,
        address: u64,
        length: u64,
        without: usize,
    ) -> Result<(), TableError> {
        for (device, physical) in self.chunks.places(address).skip(without) {
            tables.part(Part { part, number: None, inode: None, physical, length, device })?;
        }
        Ok(())
    }
}
