//! Picks a method for a target, and runs it.

use std::{fs::File, os::unix::fs::FileExt, path::Path};

use sysdock_table::{Cancel, Progress, Recording, facts::disk as facts};

use crate::{
    DiskError, Outcome, Remedy, Settings, Target,
    fs::METHODS,
    method::{Method, Unable, Work},
    target::TargetKind,
};

impl Target {
    /// Examine a path. A plain file counts as an image if a file system begins in it.
    ///
    /// # Errors
    /// [`DiskError::Io`] if it does not exist, or may not be accessed.
    pub fn of(path: &Path) -> Result<Target, DiskError> {
        target(&METHODS, path)
    }
}

/// The meaning of a path for these methods.
pub(crate) fn target(methods: &[&dyn Method], path: &Path) -> Result<Target, DiskError> {
    Target::at(path, |file| methods.iter().any(|method| method.begins_in(file)))
}

/// Read the locations of files into the tables of a recording.
///
/// # Errors
/// [`DiskError`]: nothing can be read there, or the recording cannot be written.
pub fn scan(
    target: &Target,
    recording: &mut Recording,
    settings: Settings,
    cancel: &Cancel,
    report: &mut dyn FnMut(Progress),
) -> Result<Outcome, DiskError> {
    scan_by(&METHODS, target, Work { recording, settings, cancel, report, why_not: None })
}

/// Scan with the first of these methods that is able to.
pub(crate) fn scan_by(methods: &[&dyn Method], target: &Target, mut work: Work<'_>) -> Result<Outcome, DiskError> {
    if matches!(target.place, TargetKind::Within(_)) {
        refuse_unmounted(methods, target)?;
    }
    for method in methods.iter().filter(|method| method.takes(target)) {
        match method.scan(target, &mut work) {
            Ok(outcome) => return Ok(outcome),
            Err(Unable::Because(why)) => work.why_not = Some(why),
            Err(Unable::Failed(error)) => return Err(error),
        }
    }
    let why = why_unknown(&target.path);
    if matches!(why, DiskError::NoFileSystem(_)) {
        refuse_unmounted(methods, target)?;
    }
    Err(why)
}

/// Refuse an image of xfs: it is not meant as one file of the file system that contains it.
fn refuse_unmounted(methods: &[&dyn Method], target: &Target) -> Result<(), DiskError> {
    let may_be_image = match &target.place {
        TargetKind::FileSystem(_) | TargetKind::Image(Some(_)) => false,
        TargetKind::Image(None) => true,
        TargetKind::Within(_) => target.path.is_file(),
    };
    let Some(image) = may_be_image.then(|| File::open(&target.path).ok()).flatten() else { return Ok(()) };
    match methods.iter().find_map(|method| method.mounted_only(&image)) {
        None => Ok(()),
        Some(kind) => {
            let why = facts::only_while_mounted(kind);
            Err(DiskError::Refused(target.path.clone(), why, Remedy::MountImage))
        }
    }
}

/// Why no file system was found in a device or image: there is none, or its beginning cannot be
/// read.
fn why_unknown(path: &Path) -> DiskError {
    let mut start = [0; 4096];
    match File::open(path).and_then(|file| file.read_at(&mut start, 0)) {
        Ok(_) => DiskError::NoFileSystem(path.into()),
        Err(error) => DiskError::Io(path.into(), error),
    }
}
