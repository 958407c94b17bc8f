//! A mounted xfs with a reverse map (rmapbt): the kernel reports the owner of every range of the
//! device (GETFSMAP), and many inodes at a time (`bulkstat`). Names are read from the folders. A
//! mounted xfs is never read raw: what is in memory differs from what is on the device.

mod bulkstat;
mod scan;

use std::{fs::File, os::unix::fs::FileExt};

use sysdock_table::facts::disk;

use crate::{
    Outcome, Target,
    method::{Method, Unable, Work},
};

pub(super) struct ReverseMap;

impl Method for ReverseMap {
    fn name(&self) -> &'static str {
        scan::METHOD
    }

    fn mounted_only(&self, image: &File) -> Option<&'static str> {
        let mut magic = [0; 4];
        (image.read_exact_at(&mut magic, 0).is_ok() && magic == *b"XFSB").then_some("xfs")
    }

    fn takes(&self, target: &Target) -> bool {
        target.mounted_as_a_whole().is_some_and(|mount| mount.fs_type == "xfs")
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        let Some(mount) = target.mounted_as_a_whole() else { return Err(Unable::Because(disk::not_mounted())) };
        scan::scan(mount, work)
    }
}
