//! Writes the result of a scan of a mounted file system, whose kernel was queried.

use std::{io, path::Path};

use sysdock_mounts::Mount;

use sysdock_table::{Fact, Facts, facts::disk as facts};

use crate::{
    DiskError,
    error::fact_of,
    method::{Outcome, Work, ending},
    small_tables::{BROKEN_OFF, DeviceRow, FileSystemRow, hyphenated, write_issues},
    statvfs::StatVfs,
};

/// What the kernel reported.
pub(crate) struct MountedScan<'a> {
    pub(crate) mount: &'a Mount,
    /// The folder or file that was queried.
    pub(crate) path: &'a Path,
    pub(crate) uuid: Option<[u8; 16]>,
    /// Queried before anything else: the device may have disappeared since.
    pub(crate) space: StatVfs,
    pub(crate) is_whole: bool,
    /// The value of `file_systems.moment`.
    pub(crate) moment: &'static str,
    /// The value of `file_systems.method`.
    pub(crate) method: &'static str,
    pub(crate) reason: Facts,
    pub(crate) files: u64,
    pub(crate) unread: u64,
    /// What could not be read: values of `import_issues.issue`, and details.
    pub(crate) issues: Vec<(&'static str, Fact)>,
    /// Why the scan is not complete: the kernel stopped answering.
    pub(crate) broken: Option<io::Error>,
    pub(crate) devices: Devices,
}

/// The devices of the file system.
pub(crate) enum Devices {
    /// Unknown.
    Unknown,
    /// One device.
    One,
    /// These devices.
    All(Vec<DeviceRow>),
}

impl MountedScan<'_> {
    /// Write the rows of `file_systems` and `devices` and the issues, and return the outcome.
    pub(crate) fn outcome(self, work: &mut Work<'_>) -> Result<Outcome, DiskError> {
        let MountedScan { mount, space, method, reason, files, unread, mut issues, .. } = self;
        let row = FileSystemRow {
            fs_type: mount.fs_type.clone(),
            source: mount.source.to_string_lossy().into_owned(),
            mount_point: Some(mount.point.to_string_lossy().into_owned()),
            label: None,
            uuid: self.uuid.map(hyphenated),
            block_bytes: space.block_bytes,
            size_bytes: space.size_bytes,
            free_bytes: Some(space.free_bytes),
            method,
            reason: reason.clone(),
            files,
            unread_files: unread,
            is_whole: self.is_whole,
            moment: self.moment,
        };
        row.write(work.recording)?;
        match self.devices {
            Devices::Unknown => DeviceRow::write(&[], work.recording)?,
            Devices::One => DeviceRow::write(&[DeviceRow::only(&row)], work.recording)?,
            Devices::All(devices) => DeviceRow::write(&devices, work.recording)?,
        }
        issues.extend(
            self.broken
                .iter()
                .map(|error| (BROKEN_OFF, facts::broken_off(self.path.to_string_lossy().into_owned(), fact_of(error)))),
        );
        write_issues(&issues, self.path, work.recording)?;
        let ending = ending(work.cancel, self.broken.is_some());
        Ok(Outcome { ending, method, reason, files, unread, example: None, facts: Vec::new(), issues })
    }
}
