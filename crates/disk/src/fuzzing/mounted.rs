//! Scans of what is mounted, with answers of a kernel that does not exist.

use std::path::Path;

use sysdock_mounts::{self as mounts, Mount};
use sysdock_table::{Cancel, Recording};

use crate::{
    DiskError, Settings, Target,
    batch::{Batch, Inode},
    fiemap::Fiemap,
    fs::METHODS,
    ioctl::answers,
    method::{Unable, Work},
    target::TargetKind,
};

/// A folder that is scanned as if a file system were mounted there, with a kernel that gives any answers.
pub struct Mounted(Mount);

impl Mounted {
    /// At a folder that is there.
    ///
    /// # Panics
    /// If nothing is mounted above it.
    #[must_use]
    pub fn at(folder: &Path) -> Mounted {
        let mut mount = mounts::of(folder).expect("/proc lists the mounts").expect("something is mounted");
        mount.point = folder.into();
        Mounted(mount)
    }

    /// Scan it as btrfs (`b`), as xfs (`x`), or request the extents of files (any other first byte); the answers stand after that byte.
    ///
    /// # Panics
    /// If the recording cannot be written: what the kernel answers is never a reason.
    pub fn scan(&self, data: &[u8], recording: &mut Recording) {
        let Some((method, answers)) = data.split_first() else { return };
        answers::set(Some(answers));
        match method {
            b'b' => self.scan_as("btrfs", recording),
            b'x' => self.scan_as("xfs", recording),
            _ => extents(),
        }
        answers::set(None);
    }

    fn scan_as(&self, fs_type: &str, recording: &mut Recording) {
        let mut mount = self.0.clone();
        mount.fs_type = fs_type.into();
        let target = Target { path: mount.point.clone(), place: TargetKind::FileSystem(mount) };
        let (cancel, settings) = (Cancel::default(), Settings { threads: 1, without_names: false });
        let work = &mut Work { recording, settings, cancel: &cancel, report: &mut |_| {}, why_not: None };
        let method = METHODS.iter().find(|method| method.takes(&target)).expect("a method takes it");
        if let Err(Unable::Failed(DiskError::Table(error))) = method.scan(&target, work) {
            panic!("{error}");
        }
    }
}

/// The extents of files, counted as those of all files are.
fn extents() {
    let mut found = Vec::new();
    while Fiemap::new().extents(-1, &mut found).is_ok() {
        Batch::default().add(Inode::default(), None, &found);
    }
}
