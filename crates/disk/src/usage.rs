//! How much files were used in a recording of calls, beside where they lie: the table `file_usage`.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::{
        fd::AsRawFd,
        unix::{
            ffi::OsStrExt,
            fs::{MetadataExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use sysdock_table::{Column, NULL, Recording};

use crate::{DiskError, fs::btrfs, target::Target};

/// Words of `import_issues.issue`, explained in docs/reference/import-issues.md.
const GONE: &str = "used_file_gone";
const ELSEWHERE: &str = "used_file_elsewhere";

/// What became of the files that a list names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// They have a row.
    pub files: u64,
    /// There is no such file any more, or it may not be looked at.
    pub gone: u64,
    /// They lie on another file system, or outside of the folder that was scanned.
    pub elsewhere: u64,
}

/// Calls, page faults, bytes read, bytes written, time [ns] or [`NULL`].
type Numbers = [i64; 5];

/// Which file system a file must be of, and how its files are numbered.
enum Home {
    Device(u64),
    /// Its subvolumes are devices of their own.
    Btrfs([u8; 16]),
}

/// Look up the files of a list where they are now, and write what was done with them.
///
/// The list has entries that end in NUL: calls, page faults, bytes read, bytes written, time in ns (empty: not known) and path, with tabs
/// between.
///
/// # Errors
/// [`DiskError`]: the list cannot be read, the target is not mounted, or the recording cannot be written.
pub fn add_usage(target: &Target, method: &str, list: &Path, recording: &mut Recording) -> Result<Found, DiskError> {
    let failed = |error| DiskError::Io(list.into(), error);
    let root = target.root()?;
    let home = home(&root, method).map_err(|error| DiskError::Io(root.clone(), error))?;
    let mut found = Found::default();
    let mut used = FxHashMap::<u64, Numbers>::default();
    for entry in fs::read(list).map_err(failed)?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let (numbers, path) = parse(entry).ok_or_else(|| failed(io::Error::other("not a list of used files")))?;
        match place(&path, &root, &home) {
            Ok(Some(inode)) => {
                used.entry(inode).and_modify(|known| add(known, numbers)).or_insert(numbers);
            }
            Ok(None) => found.elsewhere += 1,
            Err(_) => found.gone += 1,
        }
    }
    found.files = used.len() as u64;
    write(used, recording)?;
    write_issues(&[(GONE, found.gone), (ELSEWHERE, found.elsewhere)], target, recording)?;
    Ok(found)
}

fn home(root: &Path, method: &str) -> io::Result<Home> {
    if method == "tree" {
        return Ok(Home::Btrfs(btrfs::facts(File::open(root)?.as_raw_fd())?.uuid));
    }
    Ok(Home::Device(fs::metadata(root)?.dev()))
}

/// The inode of a file as the scan numbers it, if it is a file below the root of the scan.
fn place(path: &Path, root: &Path, home: &Home) -> io::Result<Option<u64>> {
    let path = path.canonicalize()?;
    let status = fs::metadata(&path)?;
    if !path.starts_with(root) || !status.is_file() {
        return Ok(None);
    }
    match home {
        Home::Device(device) => Ok((status.dev() == *device).then_some(status.ino())),
        Home::Btrfs(uuid) => in_btrfs(&path, &status, *uuid),
    }
}

fn in_btrfs(path: &Path, status: &Metadata, uuid: [u8; 16]) -> io::Result<Option<u64>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    // What else is mounted there does not know the question.
    let is_home = btrfs::facts(file.as_raw_fd()).is_ok_and(|facts| facts.uuid == uuid);
    if !is_home {
        return Ok(None);
    }
    Ok(Some(btrfs::inode_in(btrfs::tree_of(file.as_raw_fd())?, status.ino())))
}

fn parse(entry: &[u8]) -> Option<(Numbers, PathBuf)> {
    let mut fields = entry.splitn(6, |byte| *byte == b'\t');
    let mut number = || -> Option<i64> {
        let field = std::str::from_utf8(fields.next()?).ok()?;
        if field.is_empty() { Some(NULL) } else { field.parse().ok() }
    };
    let numbers = [number()?, number()?, number()?, number()?, number()?];
    Some((numbers, Path::new(std::ffi::OsStr::from_bytes(fields.next()?)).into()))
}

/// Another name of a file was used too.
fn add(known: &mut Numbers, more: Numbers) {
    for (known, more) in known.iter_mut().zip(more) {
        *known = if *known == NULL || more == NULL { NULL } else { known.saturating_add(more) };
    }
}

fn write(used: FxHashMap<u64, Numbers>, recording: &mut Recording) -> Result<(), DiskError> {
    if used.is_empty() {
        return Ok(());
    }
    let mut rows: Vec<(u64, Numbers)> = used.into_iter().collect();
    rows.sort_unstable_by_key(|(inode, _)| *inode);
    let number = |at: usize| Column::Int64(rows.iter().map(|(_, numbers)| Some(numbers[at]).filter(|n| *n != NULL)).collect());
    let inodes = Column::Int64(rows.iter().map(|(inode, _)| Some(inode.cast_signed())).collect());
    Ok(recording.write("file_usage", vec![inodes, number(0), number(1), number(2), number(3), number(4)])?)
}

fn write_issues(counts: &[(&str, u64)], target: &Target, recording: &mut Recording) -> Result<(), DiskError> {
    let counts: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    if counts.is_empty() {
        return Ok(());
    }
    let source = target.path.to_string_lossy();
    let columns = vec![
        Column::words(counts.iter().map(|_| Some(&*source))),
        Column::Int64(vec![Some(0); counts.len()]),
        Column::words(counts.iter().map(|(issue, _)| Some(*issue))),
        Column::Bool(vec![true; counts.len()]),
        Column::String(counts.iter().map(|(_, count)| Some(format!("{count} files of the recording"))).collect()),
        Column::String(vec![None; counts.len()]),
    ];
    Ok(recording.write("import_issues", columns)?)
}
