//! A mounted xfs that keeps its reverse map (rmapbt): the kernel names the owner of every piece of the device (GETFSMAP), and gives all inodes at
//! once (`bulkstat`). Names come from reading the folders. A mounted xfs is never read raw: what is in memory differs from what is on the device.

mod bulkstat;
mod scan;

use crate::{
    Outcome, Target,
    method::{Method, Unable, Work},
};

/// The method.
pub(super) struct ReverseMap;

impl Method for ReverseMap {
    fn word(&self) -> &'static str {
        scan::METHOD
    }

    fn takes(&self, target: &Target) -> bool {
        target.mounted_as_a_whole().is_some_and(|mount| mount.fs_type == "xfs")
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        let Some(mount) = target.mounted_as_a_whole() else { return Err(Unable::Because("it is not mounted".into())) };
        scan::scan(mount, work)
    }
}
