//! The map of a mounted file system, as the kernel reports it (GETFSMAP,
//! include/uapi/linux/fsmap.h): ext4 and xfs. Any user may query it; on xfs, one without the right
//! to see owners gets free space and "unknown". It is not atomic: each record is of the time when
//! it was requested.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
};

use crate::{
    error::Refused,
    ioctl,
    tables::{Free, Part, Tables},
};

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Head {
    flags: u32,
    out_flags: u32,
    room: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Raw; 2],
}

const FS_IOC_GETFSMAP: libc::Ioctl = ioctl::read_write(b'X', 59, size_of::<Head>());

const UNWRITTEN: u32 = 0x1;
const ATTRIBUTES: u32 = 0x2;
const EXTENT_MAP: u32 = 0x4;
const SHARED: u32 = 0x8;
const SPECIAL_OWNER: u32 = 0x10;
const LAST: u32 = 0x20;

/// Number of records requested at a time.
const ROOM: usize = 16384;

#[repr(C)]
struct Request {
    head: Head,
    records: [Raw; ROOM],
}

// SAFETY: it contains numbers, and has the size that it states.
unsafe impl ioctl::Request for Request {}

/// Owner of a range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Free,
    /// The file system itself: the value of `layout.part`.
    Part(&'static str),
    /// An inode, by its number.
    Inode(u64),
}

/// A range of the device [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) owner: Owner,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    /// Offset in the file, if it belongs to one.
    pub(crate) offset: u64,
    /// Whether it contains metadata of the inode: attributes, or the map of its extents.
    pub(crate) is_metadata: bool,
    pub(crate) is_unwritten: bool,
    pub(crate) is_shared: bool,
}

/// `FMR_OWNER(type, code)`.
const fn owner(kind: u8, code: u32) -> u64 {
    (kind as u64) << 32 | code as u64
}

/// Owners other than inodes: of any file system, of ext4 (fs/ext4/fsmap.h) and of xfs
/// (fs/xfs/libxfs/xfs_fs.h).
const PARTS: [(u64, &str); 15] = [
    (owner(0, 2), "unknown"),
    (owner(0, 3), "metadata"),
    (owner(b'X', 1), "super block"),
    (owner(b'X', 2), "journal"),
    (owner(b'X', 3), "group headers"),
    (owner(b'X', 4), "free space tree"),
    (owner(b'X', 5), "inode table"),
    (owner(b'X', 6), "reference counts"),
    (owner(b'X', 7), "copy on write"),
    (owner(b'X', 8), "bad blocks"),
    (owner(b'f', 1), "descriptors"),
    (owner(b'f', 2), "reserved descriptors"),
    (owner(b'f', 3), "block bitmap"),
    (owner(b'f', 4), "inode bitmap"),
    (owner(0, 0), "metadata"),
];

impl Raw {
    fn piece(&self) -> Piece {
        let owner = match self.owner {
            number if self.flags & SPECIAL_OWNER == 0 => Owner::Inode(number),
            number if number == owner(0, 1) => Owner::Free,
            number => Owner::Part(PARTS.iter().find(|(code, _)| *code == number).map_or("metadata", |(_, word)| word)),
        };
        Piece {
            owner,
            physical: self.physical,
            length: self.length,
            offset: self.offset,
            is_metadata: self.flags & (ATTRIBUTES | EXTENT_MAP) != 0,
            is_unwritten: self.flags & UNWRITTEN != 0,
            is_shared: self.flags & SHARED != 0,
        }
    }
}

/// Write every range of the device that is not `taken`: free space, and what the file system keeps
/// for itself.
pub(crate) fn write(
    folder: &File,
    device: u64,
    tables: &mut Tables<'_>,
    taken: &mut dyn FnMut(&Piece) -> bool,
) -> Result<(), Refused> {
    let mut failed = None;
    let outcome = pieces(folder.as_raw_fd(), device, |piece| {
        if taken(&piece) {
            return Ok(());
        }
        let (physical, length) = (piece.physical, piece.length);
        let (part, inode) = match piece.owner {
            Owner::Free => ("", None),
            Owner::Part(part) => (part, None),
            Owner::Inode(inode) => ("extent tree", Some(inode)),
        };
        let written = match part {
            "" => tables.free(Free { physical, length, device: 0 }),
            part => tables.part(Part { part, number: None, inode, physical, length, device: 0 }),
        };
        written.map_err(|error| {
            failed = Some(error);
            io::Error::other("not written")
        })
    });
    match (outcome, failed) {
        (_, Some(error)) => Err(Refused::Table(error)),
        (outcome, None) => outcome.map_err(Refused::Kernel),
    }
}

/// Pass every range of the data device of the file system that contains an open file or directory,
/// in order of location.
fn pieces(file: RawFd, device: u64, mut take: impl FnMut(Piece) -> io::Result<()>) -> io::Result<()> {
    let mut request = Box::new(Request { head: Head::default(), records: [Raw::default(); ROOM] });
    let everything =
        Raw { device: u32::MAX, flags: u32::MAX, physical: u64::MAX, owner: u64::MAX, offset: u64::MAX, ..Raw::default() };
    let mut from = Raw::default();
    loop {
        request.head = Head { room: ROOM as u32, keys: [from, everything], ..Head::default() };
        ioctl::query(file, FS_IOC_GETFSMAP, &mut *request)?;
        let records = &request.records[..(request.head.entries as usize).min(ROOM)];
        // A separate log or realtime device has addresses of its own.
        let ours = records.iter().filter(|record| u64::from(record.device) == small_device(device));
        ours.map(Raw::piece).try_for_each(&mut take)?;
        match records.last() {
            Some(last) if last.flags & LAST == 0 => from = *last,
            _ => return Ok(()),
        }
    }
}

/// The kernel's own form of a device number, as from `new_encode_dev`.
fn small_device(device: u64) -> u64 {
    let (major, minor) = (u64::from(libc::major(device)), u64::from(libc::minor(device)));
    (minor & 0xff) | major << 8 | (minor & !0xff) << 12
}
