//! Sums of reads and writes by file.

use std::{cell::RefCell, io, rc::Rc};

use libbpf_rs::{RingBuffer, RingBufferBuilder};
use rustc_hash::FxHashMap;

use super::Sums;
use crate::{
    events::{FileKey, FileName, FileSum, Layout, PATH_CUT, PATH_DELETED, PATH_NO_DIRECTORY, until_nul},
    probes::{ProbeError, Step, failed},
};

pub(super) const OBJECT: &[u8] = programs!("live_files");

/// Number of names that the kernel side remembers as sent. Earlier ones are kept until there are as
/// many again.
const MOST_NAMES: usize = 32_768;

/// Inode, device and generation.
type Key = (u64, u32, u32);

/// Names that the kernel side sent.
#[derive(Default)]
struct Names {
    last: FxHashMap<Key, Vec<u8>>,
    before: FxHashMap<Key, Vec<u8>>,
}

impl Names {
    fn add(&mut self, key: Key, path: Vec<u8>) {
        if self.last.len() >= MOST_NAMES {
            self.before = std::mem::take(&mut self.last);
        }
        self.last.insert(key, path);
    }

    fn get(&self, key: &Key) -> Option<&Vec<u8>> {
        self.last.get(key).or_else(|| self.before.get(key))
    }
}

/// A file, and the system calls on it.
#[derive(Clone, Debug, Default)]
pub struct UsedFile {
    /// Path; any bytes. Empty: unknown.
    pub path: Vec<u8>,
    /// Number of calls that read.
    pub reads: u64,
    /// Number of calls that wrote.
    pub writes: u64,
    /// Number of calls that waited until the file was on the disk.
    pub syncs: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total duration of the calls [ns].
    pub time_ns: u64,
    /// The process that used the file last.
    pub pid: u32,
    /// Name of that process; any bytes.
    pub user: Vec<u8>,
}

/// Counts calls on files.
pub struct FileSums {
    ring: RingBuffer<'static>,
    names: Rc<RefCell<Names>>,
    sums: Sums,
}

impl FileSums {
    /// Begin to count.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or the kernel lacks a feature.
    pub fn begin() -> Result<FileSums, ProbeError> {
        let sums = Sums::begin(OBJECT)?;
        let names = Rc::new(RefCell::new(Names::default()));
        let kept = Rc::clone(&names);
        let mut builder = RingBufferBuilder::new();
        let map = sums.map("names");
        let keep = move |bytes: &[u8]| {
            keep_name(&mut kept.borrow_mut(), bytes);
            0
        };
        builder.add(&map, keep).map_err(failed(Step::ReadNames))?;
        let ring = builder.build().map_err(failed(Step::ReadNames))?;
        Ok(FileSums { ring, names, sums })
    }

    /// The sums since the last call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<Vec<UsedFile>> {
        let sums = self.sums.take::<FileKey, FileSum>()?;
        // The kernel side sends a name after the first sum of its file.
        self.ring.consume().map_err(io::Error::other)?;
        let names = self.names.borrow();
        Ok(sums.into_iter().map(|(key, sum)| used(&sum, names.get(&number(&key)))).collect())
    }

    /// Number of calls that found no room since counting began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sums.lost()
    }
}

fn number(key: &FileKey) -> Key {
    (key.inode, key.device, key.generation)
}

fn used(sum: &FileSum, path: Option<&Vec<u8>>) -> UsedFile {
    UsedFile {
        path: path.cloned().unwrap_or_default(),
        reads: sum.reads,
        writes: sum.writes,
        syncs: sum.syncs,
        read_bytes: sum.read_bytes,
        written_bytes: sum.written_bytes,
        time_ns: sum.time_ns,
        pid: sum.pid,
        user: until_nul(&sum.comm).to_vec(),
    }
}

fn keep_name(names: &mut Names, bytes: &[u8]) {
    let Some(event) = FileName::read(bytes) else { return };
    let Some(path) = bytes.get(FileName::BYTES..).and_then(|all| all.get(..event.length as usize)) else { return };
    names.add(number(&event.key), path_of(path, u32::from(event.flags)));
}

/// A path from its names, which are ordered from the leaf to the root, each after its length.
pub(crate) fn path_of(mut names: &[u8], flags: u32) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    while let Some((length, rest)) = names.split_first() {
        let (name, rest) = rest.split_at_checked(usize::from(*length)).unwrap_or((rest, &[]));
        parts.push(name);
        names = rest;
    }
    let mut path = Vec::new();
    if flags & PATH_NO_DIRECTORY != 0 {
        path.extend(parts.first().copied().unwrap_or_default());
    } else {
        path.extend(if flags & PATH_CUT != 0 { &b"..."[..] } else { b"" });
        parts.iter().rev().for_each(|part| {
            path.push(b'/');
            path.extend(*part);
        });
    }
    if flags & PATH_DELETED != 0 {
        path.extend(b" (deleted)");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_put_together_from_the_root() {
        let names = b"\x01c\x02bb\x03aaa";
        assert_eq!(path_of(names, 0), b"/aaa/bb/c");
        assert_eq!(path_of(names, PATH_CUT | PATH_DELETED), b".../aaa/bb/c (deleted)");
        assert_eq!(path_of(b"\x07memfd:x", PATH_NO_DIRECTORY), b"memfd:x");
        // Broken: the available part is shown.
        assert_eq!(path_of(b"\x09ab", 0), b"/ab");
        assert_eq!(path_of(b"", 0), b"");
    }

    #[test]
    fn names_that_are_cut_are_left_out() {
        let mut names = Names::default();
        let mut bytes = vec![0; FileName::BYTES];
        FileName { key: FileKey { inode: 7, device: 1, generation: 0 }, flags: 0, count: 1, length: 2 }.write(&mut bytes);
        keep_name(&mut names, &bytes);
        keep_name(&mut names, &bytes[..4]);
        assert!(names.last.is_empty());
        bytes.extend(b"\x01a");
        keep_name(&mut names, &bytes);
        assert_eq!(names.get(&(7, 1, 0)), Some(&b"/a".to_vec()));
    }
}
