//! How much files were used in a recording of calls, in addition to their locations: the table
//! `file_usage`.

use std::{
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustc_hash::FxHashMap;
use sysdock_table::{Recording, facts::disk as facts, rows};

use crate::{DiskError, fs::METHODS, method::Numbering, target::Target};

/// Values of `import_issues.issue`, explained in docs/reference/import-issues.md.
const GONE: &str = "used_file_gone";
const ELSEWHERE: &str = "used_file_elsewhere";

/// What was found of the files that a list names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Number of files that have a row.
    pub files: u64,
    /// Number of files that no longer exist, or may not be accessed.
    pub gone: u64,
    /// Number of files on another file system, or outside of the folder that was scanned.
    pub elsewhere: u64,
}

/// What was done with a file.
#[derive(Clone, Copy)]
struct Use {
    calls: i64,
    faults: i64,
    read_bytes: i64,
    written_bytes: i64,
    /// `None`: unknown.
    time_ns: Option<i64>,
}

/// Look up the files of a list at their present locations, and write what was done with them.
///
/// The list has entries that end in NUL: calls, page faults, bytes read, bytes written, time in ns
/// (empty: unknown) and path, with tabs between.
///
/// # Errors
/// [`DiskError`]: the list cannot be read, the target is not mounted, or the recording cannot be
/// written.
///
/// # Panics
/// If `method` is not that of an [`crate::Outcome`], which is an error in sysdock.
pub fn add_usage(target: &Target, method: &str, list: &Path, recording: &mut Recording) -> Result<Found, DiskError> {
    let failed = |error| DiskError::Io(list.into(), error);
    let root = target.root()?;
    let method = METHODS.into_iter().find(|known| known.name() == method).expect("the method of a scan");
    let numbering = method.numbering(&root).map_err(|error| DiskError::Io(root.clone(), error))?;
    let mut found = Found::default();
    let mut used = FxHashMap::<u64, Use>::default();
    for entry in fs::read(list).map_err(failed)?.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let (done, path) = parse(entry).ok_or_else(|| DiskError::NoUsageList(list.into()))?;
        match place(&path, &root, &*numbering) {
            Ok(Some(inode)) => {
                used.entry(inode).and_modify(|known| known.add(&done)).or_insert(done);
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

/// The inode number of a file in the scan, if the file is below the root of the scan.
fn place(path: &Path, root: &Path, numbering: &dyn Numbering) -> io::Result<Option<u64>> {
    let path = path.canonicalize()?;
    let status = fs::metadata(&path)?;
    if !path.starts_with(root) || !status.is_file() {
        return Ok(None);
    }
    numbering.inode(&path, &status)
}

fn parse(entry: &[u8]) -> Option<(Use, PathBuf)> {
    let mut fields = entry.splitn(6, |byte| *byte == b'\t');
    let mut number = || std::str::from_utf8(fields.next()?).ok();
    let done = Use {
        calls: number()?.parse().ok()?,
        faults: number()?.parse().ok()?,
        read_bytes: number()?.parse().ok()?,
        written_bytes: number()?.parse().ok()?,
        time_ns: match number()? {
            "" => None,
            time => Some(time.parse().ok()?),
        },
    };
    Some((done, Path::new(std::ffi::OsStr::from_bytes(fields.next()?)).into()))
}

impl Use {
    /// Add the use of another name of the file.
    fn add(&mut self, more: &Use) {
        self.calls = self.calls.saturating_add(more.calls);
        self.faults = self.faults.saturating_add(more.faults);
        self.read_bytes = self.read_bytes.saturating_add(more.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(more.written_bytes);
        self.time_ns = self.time_ns.zip(more.time_ns).map(|(known, more)| known.saturating_add(more));
    }
}

fn write(used: FxHashMap<u64, Use>, recording: &mut Recording) -> Result<(), DiskError> {
    if used.is_empty() {
        return Ok(());
    }
    let mut used: Vec<(u64, Use)> = used.into_iter().collect();
    used.sort_unstable_by_key(|(inode, _)| *inode);
    let row = |(inode, done): (u64, Use)| {
        let Use { calls, faults, read_bytes, written_bytes, time_ns } = done;
        rows::FileUsage { inode: inode.cast_signed(), calls, faults, read_bytes, written_bytes, time_ns }
    };
    Ok(recording.write_rows(used.into_iter().map(row))?)
}

fn write_issues(counts: &[(&'static str, u64)], target: &Target, recording: &mut Recording) -> Result<(), DiskError> {
    let counts: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
    if counts.is_empty() {
        return Ok(());
    }
    let source = target.path.to_string_lossy();
    let row = |(issue, count): &(&'static str, u64)| rows::ImportIssues {
        source: source.as_ref().into(),
        line: 0,
        issue: (*issue).into(),
        understood: true,
        detail: facts::files_of_recording(*count).into(),
        excerpt: None,
    };
    Ok(recording.write_rows(counts.into_iter().map(row))?)
}
