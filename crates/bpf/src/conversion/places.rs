//! Things that later events refer to by an id: files with path and kind, mapped code of processes,
//! functions of Python.

use rustc_hash::FxHashMap;
use sysdock_calls::{Kind, ObjectId, Objects};

use crate::{
    families::paths::Path,
    stacks::{images::Images, python::Codes},
};

const S_IFMT: u16 = 0o170_000;
/// Magic numbers of file systems without a disk, whose files are the kernel's own objects
/// (statfs(2), linux/magic.h): proc, sysfs, cgroup, cgroup2, debugfs, tracefs, securityfs,
/// configfs, selinuxfs, smackfs, bpf, pstore, efivarfs, binfmt_misc, fusectl, mqueue, resctrl.
const VIRTUAL: [u32; 17] = [
    0x9fa0,
    0x6265_6572,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0xf97c_ff8c,
    0x4341_5d53,
    0xcafe_4a11,
    0x6165_676c,
    0xde5e_81e4,
    0x4249_4e4d,
    0x6573_5543,
    0x1980_0202,
    0x0765_5821,
];
const PIPEFS: u32 = 0x5049_5045;
const SOCKFS: u32 = 0x534f_434b;
const ANON_INODEFS: u32 = 0x0904_1934;
const NSFS: u32 = 0x6e73_6673;
const PIDFS: u32 = 0x5049_4446;

/// Paths from path events.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// Index into `names` for each id.
    ids: FxHashMap<u64, u32>,
    /// All paths that were reported, with their true kinds. Most of them become rows of `paths`;
    /// some are only bases of relative paths.
    names: Objects,
    /// Index into `names` by device and inode number, for events without an id. A later path
    /// replaces an earlier one.
    inodes: FxHashMap<(u32, u64), u32>,
    /// The row of each path, from its first use on.
    rows: Vec<Option<ObjectId>>,
    buffer: Vec<u8>,
    /// Inode number and size by id, for binaries whose content is read.
    files: FxHashMap<u64, (u64, u64)>,
    pub(crate) keeps_files: bool,
    /// Whether the machine was not rebooted since the recording.
    pub(crate) is_this_boot: bool,
    pub(crate) images: Images,
    pub(crate) codes: Codes,
}

impl Places {
    /// Add the path of an event.
    pub(crate) fn add(&mut self, event: &Path<'_>) {
        self.buffer.clear();
        let kind = name(event, &mut self.buffer);
        let place = self.names.intern(&self.buffer);
        self.names.set_kind(place, kind);
        self.ids.insert(event.id, place);
        self.inodes.insert((event.device, event.inode), place);
        self.rows.resize(self.names.len(), None);
        if self.keeps_files && event.mode & S_IFMT == 0o100_000 {
            self.files.insert(event.id, (event.inode, event.size));
        }
    }

    /// The path for an id.
    pub(crate) fn path(&self, id: u64) -> Option<&[u8]> {
        self.ids.get(&id).map(|place| self.names.name(*place))
    }

    /// Inode number and size of a file, if its path was reported.
    pub(crate) fn file(&self, id: u64) -> Option<(u64, u64)> {
        self.files.get(&id).copied()
    }

    /// The row in `paths` for an id.
    #[inline]
    pub(crate) fn object(&mut self, id: u64, objects: &mut Objects) -> Option<ObjectId> {
        let place = *self.ids.get(&id)?;
        Some(self.row(place, objects))
    }

    /// The row in `paths` for an inode, by device and number.
    fn object_of_inode(&mut self, inode: (u32, u64), objects: &mut Objects) -> Option<ObjectId> {
        let place = *self.inodes.get(&inode)?;
        Some(self.row(place, objects))
    }

    /// The file of a request to a device. A file that is read before any event names it is known by
    /// its inode only.
    pub(crate) fn object_of_request(&mut self, id: u64, inode: (u32, u64), objects: &mut Objects) -> Option<ObjectId> {
        self.object(id, objects).or_else(|| self.object_of_inode(inode, objects))
    }

    #[inline]
    fn row(&mut self, place: u32, objects: &mut Objects) -> ObjectId {
        *self.rows[place as usize].get_or_insert_with(|| {
            let object = objects.intern(self.names.name(place));
            objects.set_kind(object, self.names.kind(place));
            object
        })
    }

    /// The row of a path that a program gave. Its kind is known if any process had the file open.
    pub(crate) fn named(&self, path: &[u8], objects: &mut Objects) -> ObjectId {
        let known = objects.len();
        let object = objects.intern(path);
        if object as usize == known
            && let Some(place) = self.names.find(path)
        {
            objects.set_kind(object, self.names.kind(place));
        }
        object
    }
}

/// Write the path of a file to `out`, in the form of `/proc/PID/fd`, and return the kind of the
/// file.
fn name(event: &Path<'_>, out: &mut Vec<u8>) -> Kind {
    let kind = kind(event);
    let inode = event.inode;
    let numbered = |word: &str, out: &mut Vec<u8>| out.extend_from_slice(format!("{word}:[{inode}]").as_bytes());
    match (event.no_directory, event.magic) {
        (true, PIPEFS) => numbered("pipe", out),
        (true, SOCKFS) => numbered("socket", out),
        // The kernel generates its own name for these files each time it is requested.
        (true, NSFS) => numbered("ns", out),
        (true, PIDFS) => numbered("pidfd", out),
        (true, ANON_INODEFS) => {
            out.extend_from_slice(b"anon_inode:");
            out.extend_from_slice(event.names().next().unwrap_or_default());
        }
        _ => join(event, out),
    }
    kind
}

/// Join names, which the event lists from the leaf to the root.
fn join(event: &Path<'_>, out: &mut Vec<u8>) {
    let mut names: Vec<&[u8]> = event.names().collect();
    if event.no_directory && names.len() > 1 {
        // The root of a tree that is not mounted is named `/`.
        names.pop_if(|name| *name == b"/");
    }
    if event.cut || (event.no_directory && names.len() > 1) {
        out.extend_from_slice(b"...");
    }
    for name in names.iter().rev() {
        if !name.starts_with(b"/") {
            out.push(b'/');
        }
        out.extend_from_slice(name);
    }
    if event.no_directory && matches!(out[..], [] | [b'/']) {
        out.clear();
        out.extend_from_slice(format!("inode:[{}]", event.inode).as_bytes());
    } else if out.is_empty() {
        out.push(b'/');
    }
}

fn kind(event: &Path<'_>) -> Kind {
    let memory_file = || event.names().next().is_some_and(|name| name.starts_with(b"memfd:"));
    match (event.mode & S_IFMT, event.magic) {
        (_, PIPEFS) => Kind::Pipe,
        (_, SOCKFS) => Kind::Socket,
        (_, ANON_INODEFS | PIDFS | NSFS) => Kind::Anonymous,
        (_, magic) if VIRTUAL.contains(&magic) => Kind::Virtual,
        (0o100_000, _) if event.no_directory && memory_file() => Kind::Anonymous,
        (0o040_000, _) => Kind::Directory,
        (0o020_000 | 0o060_000, _) => Kind::Device,
        (0o010_000, _) => Kind::Pipe,
        (0o140_000, _) => Kind::Socket,
        // A link itself may be opened (O_PATH).
        (0o100_000 | 0o120_000, _) => Kind::File,
        _ if event.no_directory => Kind::Anonymous,
        _ => Kind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{events, testing};

    fn reported(names: &[&str], mode: u16, magic: u32, flags: u16) -> (String, Kind) {
        let bytes = testing::place(9, names, mode, magic, flags).bytes();
        let (event, _) = events::split(&bytes).unwrap();
        let mut places = Places::default();
        places.add(&Path::of(&event).unwrap());
        let mut objects = Objects::default();
        let object = places.object(9, &mut objects).unwrap();
        assert_eq!(places.path(9).unwrap(), objects.name(object));
        (String::from_utf8(objects.name(object).to_vec()).unwrap(), objects.kind(object))
    }

    /// Names from the leaf on, mode, magic, flags; the expected path and kind.
    type Case = (&'static [&'static str], u16, u32, u16, &'static str, Kind);

    #[test]
    fn files_are_named_as_the_kernel_names_them() {
        const EXT4: u32 = 0xef53;
        const TMPFS: u32 = 0x0102_1994;
        let cases: [Case; 21] = [
            (&["passwd", "etc"], 0o100_644, EXT4, 0, "/etc/passwd", Kind::File),
            (&["etc"], 0o040_755, EXT4, 0, "/etc", Kind::Directory),
            (&[], 0o040_755, EXT4, 0, "/", Kind::Directory),
            (&["gone", "tmp"], 0o100_644, EXT4, 1, "/tmp/gone", Kind::File),
            (&["leaf", "deep"], 0o100_644, EXT4, 2, ".../deep/leaf", Kind::File),
            (&["null", "dev"], 0o020_666, TMPFS, 0, "/dev/null", Kind::Device),
            (&["vda", "dev"], 0o060_660, TMPFS, 0, "/dev/vda", Kind::Device),
            (&["x", "shm", "dev"], 0o100_600, TMPFS, 0, "/dev/shm/x", Kind::File),
            (&["stat", "1", "proc"], 0o100_444, 0x9fa0, 0, "/proc/1/stat", Kind::Virtual),
            (&["1", "proc"], 0o040_555, 0x9fa0, 0, "/proc/1", Kind::Virtual),
            (&["fifo", "tmp"], 0o010_600, EXT4, 0, "/tmp/fifo", Kind::Pipe),
            (&["sock", "run"], 0o140_600, EXT4, 0, "/run/sock", Kind::Socket),
            (&[""], 0o010_600, PIPEFS, 4, "pipe:[4242]", Kind::Pipe),
            (&["TCP"], 0o140_777, SOCKFS, 4, "socket:[4242]", Kind::Socket),
            (&["[eventpoll]"], 0o600, ANON_INODEFS, 4, "anon_inode:[eventpoll]", Kind::Anonymous),
            (&["memfd:x"], 0o100_777, TMPFS, 4, "/memfd:x", Kind::Anonymous),
            (&["/"], 0o100_444, NSFS, 4, "ns:[4242]", Kind::Anonymous),
            (&["SYSV0000002a"], 0o100_600, TMPFS, 4, "/SYSV0000002a", Kind::File),
            (&["leaf", "torn", "/"], 0o100_600, EXT4, 4, ".../torn/leaf", Kind::File),
            (&["/"], 0o100_600, EXT4, 4, "inode:[4242]", Kind::File),
            (&["odd\n\u{e9}"], 0o100_600, EXT4, 0, "/odd\n\u{e9}", Kind::File),
        ];
        for (names, mode, magic, flags, name, kind) in cases {
            assert_eq!(reported(names, mode, magic, flags), (name.into(), kind), "{names:?}");
        }
    }

    #[test]
    fn a_path_that_a_program_gives_has_the_kind_that_was_reported() {
        let mut places = Places::default();
        let bytes = testing::place(9, &["x", "tmp"], 0o040_755, 0xef53, 0).bytes();
        places.add(&Path::of(&events::split(&bytes).unwrap().0).unwrap());
        let mut objects = Objects::default();
        let (one, other) = (places.named(b"/tmp/x", &mut objects), places.named(b"/tmp/y", &mut objects));
        assert_eq!((objects.kind(one), objects.kind(other)), (Kind::Directory, Kind::File));
        assert_eq!(places.object(9, &mut objects), Some(one));
        assert_eq!(places.object(10, &mut objects), None);
    }
}
