//! What the user means by a path: a whole file system, a folder or file in it, a device, an image.

use std::{
    fs::{File, metadata},
    os::unix::fs::{FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
};

use sysdock_mounts::{self as mounts, Mount};

use sysdock_table::facts::disk as facts;

use crate::error::{DiskError, Remedy};

/// What is to be scanned.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) path: PathBuf,
    pub(crate) place: TargetKind,
}

/// The kind of a target.
#[derive(Clone, Debug)]
pub(crate) enum TargetKind {
    /// A mounted file system, as a whole.
    FileSystem(Mount),
    /// A folder or file of a file system.
    Within(Mount),
    /// A block device or a file that contains a file system; mounted or not.
    Image(Option<Mount>),
}

impl Target {
    /// Examine a path; `begins_in` decides whether a file system begins in a plain file.
    pub(crate) fn at(path: &Path, begins_in: impl Fn(&File) -> bool) -> Result<Target, DiskError> {
        let failed = |error| DiskError::Io(path.into(), error);
        let path = path.canonicalize().map_err(failed)?;
        let status = metadata(&path).map_err(failed)?;
        let kind = status.file_type();
        let place = if kind.is_block_device() {
            TargetKind::Image(mounts::of_device(status.rdev()).map_err(failed)?)
        } else if kind.is_file() && File::open(&path).is_ok_and(|file| begins_in(&file)) {
            TargetKind::Image(None)
        } else if kind.is_dir() || kind.is_file() {
            let none = || DiskError::NoMount(path.clone());
            let mount = mounts::of(&path).map_err(failed)?.ok_or_else(none)?;
            if mount.point == path && mount.root == Path::new("/") {
                TargetKind::FileSystem(mount)
            } else {
                TargetKind::Within(mount)
            }
        } else {
            return Err(DiskError::NoTarget(path));
        };
        Ok(Target { path, place })
    }

    /// The mount that the target is, or is in.
    pub(crate) fn mount(&self) -> Option<&Mount> {
        match &self.place {
            TargetKind::FileSystem(mount) | TargetKind::Within(mount) => Some(mount),
            TargetKind::Image(mount) => mount.as_ref(),
        }
    }

    /// The mount of a whole file system.
    pub(crate) fn mounted_as_a_whole(&self) -> Option<&Mount> {
        self.mount().filter(|_| !matches!(self.place, TargetKind::Within(_)))
    }

    /// The device that contains the target, as the kernel or the user names it; of an image file
    /// the file itself.
    #[must_use]
    pub fn device(&self) -> &Path {
        match &self.place {
            TargetKind::FileSystem(mount) | TargetKind::Within(mount) => &mount.source,
            TargetKind::Image(_) => &self.path,
        }
    }

    /// The folder or file below which its files have their paths.
    ///
    /// # Errors
    /// [`DiskError::Refused`]: it is not mounted.
    pub fn root(&self) -> Result<PathBuf, DiskError> {
        match &self.place {
            TargetKind::FileSystem(mount) | TargetKind::Image(Some(mount)) => Ok(mount.point.clone()),
            TargetKind::Within(_) => Ok(self.path.clone()),
            TargetKind::Image(None) => {
                let why = facts::no_path_leads_there();
                Err(DiskError::Refused(self.path.clone(), why, Remedy::Mount))
            }
        }
    }

    /// Whether it is a device, or a file that contains a file system.
    #[must_use]
    pub fn is_image(&self) -> bool {
        matches!(self.place, TargetKind::Image(_))
    }
}
