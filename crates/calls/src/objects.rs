//! The dictionary of files and other objects: `paths`.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use sysdock_table::{Recording, TableError, readable, rows};

/// Number of an object in `paths`.
pub type ObjectId = u32;

/// The values of `paths.kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Device,
    Virtual,
    Pipe,
    Socket,
    Anonymous,
    Unknown,
}

/// The names of [`Kind`], in its order.
const KIND_WORDS: [&str; 8] = ["file", "directory", "device", "virtual", "pipe", "socket", "anonymous", "unknown"];

/// All objects of a recording. Names are stored one after another in one buffer: millions of paths
/// cost little more than their bytes.
#[derive(Debug, Default)]
pub struct Objects {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    kinds: Vec<Kind>,
    /// Size of each file as far as it is known, else -1 [B]. It is needed for the offset of writes
    /// in append mode.
    sizes: Vec<i64>,
    /// Half of each name's hash with its object, so that growing and searching need not read names.
    index: HashTable<(u32, ObjectId)>,
}

fn hash(name: &[u8]) -> u32 {
    (BuildHasherDefault::<FxHasher>::default().hash_one(name) >> 32) as u32
}

/// The hash that the table uses: it takes places from the lower bits, and a tag from the upper
/// ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(hash)
}

impl Objects {
    /// The object of this name, which is added if it is new. Its kind follows from the name.
    pub fn intern(&mut self, name: &[u8]) -> ObjectId {
        let hashed = hash(name);
        let (bytes, ends) = (&self.bytes, &self.ends);
        let same = |(other, id): &(u32, ObjectId)| *other == hashed && slice(bytes, ends, *id) == name;
        if let Some((_, id)) = self.index.find(spread(hashed), same) {
            return *id;
        }
        let id = ObjectId::try_from(self.ends.len()).expect("fewer than 2^32 paths");
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len());
        self.kinds.push(kind(name));
        self.sizes.push(-1);
        self.index.insert_unique(spread(hashed), (hashed, id), |(hash, _)| spread(*hash));
        id
    }

    /// The object of this name, if it is known.
    pub fn find(&self, name: &[u8]) -> Option<ObjectId> {
        let hashed = hash(name);
        let same = |(other, id): &(u32, ObjectId)| *other == hashed && slice(&self.bytes, &self.ends, *id) == name;
        self.index.find(spread(hashed), same).map(|(_, id)| *id)
    }

    /// The name of an object.
    pub fn name(&self, id: ObjectId) -> &[u8] {
        slice(&self.bytes, &self.ends, id)
    }

    pub fn kind(&self, id: ObjectId) -> Kind {
        self.kinds[id as usize]
    }

    /// Set the kind of an object, if it is known better than by the name.
    pub fn set_kind(&mut self, id: ObjectId, kind: Kind) {
        self.kinds[id as usize] = kind;
    }

    /// Record that a path was read as a directory.
    pub fn set_directory(&mut self, id: ObjectId) {
        let kind = &mut self.kinds[id as usize];
        if matches!(kind, Kind::File | Kind::Unknown) {
            *kind = Kind::Directory;
        }
    }

    /// Size of a file [B], if it is known.
    pub fn size(&self, id: ObjectId) -> Option<i64> {
        Some(self.sizes[id as usize]).filter(|size| *size >= 0)
    }

    /// Set the size of a file [B]; `None`: it is no longer known.
    pub fn set_size(&mut self, id: ObjectId, size: Option<i64>) {
        self.sizes[id as usize] = size.unwrap_or(-1);
    }

    /// Record that a write ended at `end`: the file is at least that long.
    pub fn grow(&mut self, id: ObjectId, end: i64) {
        let size = &mut self.sizes[id as usize];
        if *size >= 0 && *size < end {
            *size = end;
        }
    }

    /// Name and kind of each object, in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        (0..self.ends.len()).map(|id| (slice(&self.bytes, &self.ends, id as ObjectId), self.kinds[id]))
    }

    /// Number of objects.
    #[allow(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
}

/// Size of the names that are written at a time [B]: a column of texts contains 2 GB at most, and
/// is in memory until it is written.
const GROUP_BYTES: usize = 64 << 20;

/// Write `paths`. The recording's next checkpoint, or its end, closes what is written.
pub fn write_paths(recording: &mut Recording, objects: &Objects) -> Result<(), TableError> {
    let mut left = (0..).zip(objects.iter()).peekable();
    let mut is_first = true;
    while is_first || left.peek().is_some() {
        let mut bytes = 0;
        let group = std::iter::from_fn(|| {
            let (path_id, (name, kind)) = left.next_if(|_| bytes < GROUP_BYTES)?;
            let path = readable(name);
            bytes += path.len();
            Some(rows::Paths { path_id, path, kind: KIND_WORDS[kind as usize].into() })
        });
        if is_first { recording.replace_rows(group) } else { recording.write_rows(group) }?;
        is_first = false;
    }
    Ok(())
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], id: ObjectId) -> &'a [u8] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &bytes[start..ends[id]]
}

/// Kind of an object by its name, in the spelling of the kernel and of strace.
fn kind(name: &[u8]) -> Kind {
    const PREFIXES: [(&[u8], Kind); 14] = [
        (b"/dev/shm/", Kind::File),
        (b"/dev/", Kind::Device),
        (b"/proc/", Kind::Virtual),
        (b"/sys/", Kind::Virtual),
        (b"/memfd:", Kind::Anonymous),
        (b"/", Kind::File),
        (b"pipe", Kind::Pipe),
        (b"socket", Kind::Socket),
        (b"TCP", Kind::Socket),
        (b"UDP", Kind::Socket),
        (b"UNIX", Kind::Socket),
        (b"NETLINK", Kind::Socket),
        (b"anon", Kind::Anonymous),
        (b"<", Kind::Unknown),
    ];
    let found = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    match found {
        // `pipe` is a pipe, `pipes.txt` a relative path.
        Some((prefix, kind)) if prefix[0] == b'/' || matches!(name.get(prefix.len()), None | Some(b':' | b'-' | b'v' | b'_')) => {
            *kind
        }
        Some((b"<", kind)) => *kind,
        _ if name.contains(&b'[') && name.contains(&b':') && name.ends_with(b"]") => Kind::Anonymous,
        _ => Kind::File,
    }
}

#[cfg(test)]
mod tests {
    use sysdock_table::{Ending, Manifest};

    use super::*;

    #[test]
    fn names_are_kept_once() {
        let mut objects = Objects::default();
        let ids: Vec<_> = ["/a", "/b", "/a", ""].iter().map(|name| objects.intern(name.as_bytes())).collect();
        assert_eq!(ids, [0, 1, 0, 2]);
        assert_eq!(objects.name(1), b"/b");
        assert_eq!(objects.name(2), b"");
        assert_eq!((objects.find(b"/b"), objects.find(b"/c")), (Some(1), None));
    }

    #[test]
    fn names_that_no_column_holds_together_are_written_in_groups() {
        let folder = tempfile::tempdir().unwrap();
        let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("test", "events", "calls")).unwrap();
        let mut objects = Objects::default();
        let names: Vec<Vec<u8>> = (0..3u8).map(|number| vec![b'a' + number; GROUP_BYTES / 2 + 1]).collect();
        for name in &names {
            objects.intern(name);
        }
        write_paths(&mut recording, &objects).unwrap();
        recording.checkpoint().unwrap();
        write_paths(&mut recording, &objects).unwrap();
        assert_eq!(recording.finish(Ending::EndOfInput).unwrap().tables["paths"].rows, 3);
    }

    #[test]
    fn kinds_follow_names() {
        let cases = [
            ("/etc/passwd", Kind::File),
            ("/dev/null", Kind::Device),
            ("/dev/shm/x", Kind::File),
            ("/proc/1/stat", Kind::Virtual),
            ("pipe:[4242]", Kind::Pipe),
            ("pipe", Kind::Pipe),
            ("pipes.txt", Kind::File),
            ("socket:[1]", Kind::Socket),
            ("TCPv6:[[::1]:80]", Kind::Socket),
            ("UNIX-STREAM:[1->2]", Kind::Socket),
            ("anon_inode:[eventpoll]", Kind::Anonymous),
            ("/memfd:x", Kind::Anonymous),
            ("<stdin>", Kind::Unknown),
        ];
        for (name, expected) in cases {
            assert_eq!(kind(name.as_bytes()), expected, "{name}");
        }
    }
}
