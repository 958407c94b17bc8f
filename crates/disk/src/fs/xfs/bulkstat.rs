//! What xfs reports about itself (FSGEOMETRY), its inodes, many at a time (BULKSTAT), and the
//! extents that they own.
//!
//! Formats: fs/xfs/libxfs/xfs_fs.h of Linux.

use std::{io, ops::Range, os::fd::RawFd};

use crate::{
    batch::{Batch, Inode, Kind},
    extent::{Extent, flag},
    fsmap::{Owner, Piece},
    ioctl,
    paths_by_inode::PathsByInode,
};

/// The parts of `struct xfs_fsop_geom` that are used.
#[repr(C)]
struct Geometry {
    block_bytes: u32,
    _realtime_extent: u32,
    group_blocks: u32,
    groups: u32,
    _log_to_inode_share: [u32; 4],
    data_blocks: u64,
    _realtime: [u64; 2],
    log_start: u64,
    uuid: [u8; 16],
    _stripe: [u32; 2],
    _version: i32,
    flags: u32,
    _rest: [u8; 256 - 96],
}

// SAFETY: it contains numbers, and has the size that the number of the ioctl states.
unsafe impl ioctl::Request for Geometry {}

const XFS_IOC_FSGEOMETRY: libc::Ioctl = ioctl::read(b'X', 126, size_of::<Geometry>());
const HAS_RMAPBT: u32 = 1 << 19;

/// Facts that xfs reports about itself.
pub(super) struct Facts {
    pub(super) has_owners: bool,
    pub(super) uuid: [u8; 16],
    pub(super) group_bytes: u64,
    pub(super) size_bytes: u64,
}

pub(super) fn facts(file: RawFd) -> io::Result<Facts> {
    // SAFETY: all bits of a struct of numbers may be zero.
    let mut geometry: Geometry = unsafe { std::mem::zeroed() };
    ioctl::query(file, XFS_IOC_FSGEOMETRY, &mut geometry)?;
    let bytes = |blocks: u64| blocks.saturating_mul(u64::from(geometry.block_bytes));
    Ok(Facts {
        has_owners: geometry.flags & HAS_RMAPBT != 0,
        uuid: geometry.uuid,
        group_bytes: bytes(u64::from(geometry.group_blocks)),
        size_bytes: bytes(geometry.data_blocks),
    })
}

/// `struct xfs_bulk_ireq`.
#[repr(C)]
#[derive(Default)]
struct Head {
    inode: u64,
    flags: u32,
    room: u32,
    entries: u32,
    group: u32,
    reserved: [u64; 5],
}

/// `struct xfs_bulkstat`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Raw {
    inode: u64,
    size: u64,
    blocks: u64,
    xflags: u64,
    times: [i64; 4],
    owner: [u32; 4],
    times_ns: [u32; 4],
    sizes: [u32; 4],
    links: u32,
    extents: u32,
    attribute_extents: u32,
    version: u16,
    fork_offset: u16,
    sick: u16,
    checked: u16,
    mode: u16,
    pad: u16,
    extents64: u64,
    reserved: [u64; 6],
}

const XFS_IOC_BULKSTAT: libc::Ioctl = ioctl::read(b'X', 127, size_of::<Head>());
const ROOM: usize = 2048;
/// Index in `times` and `times_ns`.
const MODIFIED: usize = 1;

/// Pass the inodes in use of a range of numbers, in order, to `take`, until it returns `false`.
/// Needs `CAP_SYS_ADMIN`.
pub(super) fn inodes(file: RawFd, numbers: Range<u64>, take: &mut dyn FnMut(&Inode) -> io::Result<bool>) -> io::Result<()> {
    #[repr(C)]
    struct Request {
        head: Head,
        inodes: [Raw; ROOM],
    }
    // SAFETY: it contains numbers, and has the size that it states.
    unsafe impl ioctl::Request for Request {}
    let mut request = Box::new(Request { head: Head::default(), inodes: [Raw::default(); ROOM] });
    request.head.room = ROOM as u32;
    request.head.inode = numbers.start;
    loop {
        ioctl::query(file, XFS_IOC_BULKSTAT, &mut *request)?;
        let entries = (request.head.entries as usize).min(ROOM);
        if entries == 0 {
            return Ok(());
        }
        for raw in &request.inodes[..entries] {
            if raw.inode >= numbers.end || !take(&inode(raw))? {
                return Ok(());
            }
        }
    }
}

fn inode(raw: &Raw) -> Inode {
    let modified_ns = raw.times[MODIFIED].checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(raw.times_ns[MODIFIED].into()));
    Inode { number: raw.inode, kind: Kind::of_mode(raw.mode.into()), size: raw.size, links: raw.links, modified_ns }
}

/// Extents of files, collected in order of location, and returned in order of files.
#[derive(Default)]
pub(super) struct Owned(Vec<(u64, Extent)>);

impl Owned {
    /// Add an extent of a file's data; `false`: it is something else.
    pub(super) fn take(&mut self, piece: &Piece) -> bool {
        let Owner::Inode(inode) = piece.owner else { return false };
        if piece.is_metadata {
            return false;
        }
        let flags = if piece.is_unwritten { flag::UNWRITTEN } else { 0 } | if piece.is_shared { flag::SHARED } else { 0 };
        let (logical, physical, length) = (piece.offset, piece.physical, piece.length);
        self.0.push((inode, Extent { logical, physical, length, flags, ..Extent::default() }));
        true
    }

    /// Sort by file. Returns ranges of inode numbers with about equally many extents, which cover
    /// all possible numbers.
    pub(super) fn sorted(&mut self, ranges: usize) -> Vec<Range<u64>> {
        self.0.sort_unstable_by_key(|(inode, extent)| (*inode, extent.logical));
        let mut begins: Vec<u64> = (1..ranges).filter_map(|part| Some(self.0.get(self.0.len() * part / ranges)?.0)).collect();
        begins.dedup();
        let ends = begins.iter().copied().chain([u64::MAX]);
        std::iter::once(0).chain(begins.iter().copied()).zip(ends).map(|(begin, end)| begin..end).collect()
    }

    /// Pass the inodes of a range with their extents, ordered by number, until `full` returns true.
    /// Returns how many inodes have extents but no facts, because they were created or removed
    /// between the two queries or, after an error, because they were not reported.
    pub(super) fn files(
        &self,
        file: RawFd,
        numbers: Range<u64>,
        names: &PathsByInode,
        full: &mut dyn FnMut(Batch) -> bool,
    ) -> (u64, io::Result<()>) {
        let begin = self.0.partition_point(|(inode, _)| *inode < numbers.start);
        let end = self.0.partition_point(|(inode, _)| *inode < numbers.end);
        let (mut batch, mut extents, mut left, mut gone) = (Batch::default(), Vec::new(), &self.0[begin..end], 0);
        let outcome = inodes(file, numbers, &mut |inode| {
            let known = left.iter().take_while(|(number, _)| *number < inode.number).count();
            gone += left[..known].chunk_by(|one, other| one.0 == other.0).count() as u64;
            left = &left[known..];
            let own = left.iter().take_while(|(number, _)| *number == inode.number).count();
            extents.clear();
            extents.extend(left[..own].iter().map(|(_, extent)| *extent));
            left = &left[own..];
            batch.add(*inode, names.of(inode.number), &extents);
            Ok(!batch.is_full() || full(std::mem::take(&mut batch)))
        });
        full(batch);
        (gone + left.chunk_by(|one, other| one.0 == other.0).count() as u64, outcome)
    }
}
