//! Memory of a fixed size that contains the newest frames of a spool, compressed: the oldest are
//! overwritten.
//!
//! It is the memory of a BPF map, so it belongs to the kernel, and is part of a crash dump that
//! leaves out the pages of programs. docs/reference/flight-memory.md describes how it is found
//! there.
//!
//! A page with the *head* (below) precedes the *area*. Records follow one another in the area, each
//! at a multiple of 8, none across its end. Their *positions* count all bytes since the start; a
//! record is at its position modulo the size of the area.
//!
//! Head, little-endian: magic (8), version (u32), bytes before the area (u32), size of the area
//! (u64), position of the oldest record (u64), position after the newest (u64).
//!
//! Record, little-endian, 48 bytes: magic (8), compressed size (u32), uncompressed size (u32),
//! flags (u32; 1: a segment begins here), CRC-32C of the compressed bytes (u32), its position
//! (u64), `CLOCK_MONOTONIC` when it was stored (u64, ns), CRC-32C of the header so far (u32), 0
//! (u32). The compressed bytes follow: one frame of zstd, which contains whole frames of a spool.

use std::{
    io, mem,
    os::fd::{AsFd, AsRawFd},
    sync::atomic::{AtomicU64, Ordering},
};

use libbpf_rs::{MapHandle, MapType};

use crate::transport::spool::{HEADER as FRAME_HEADER, Sink, monotonic_ns};
use memmap2::{MmapMut, MmapOptions};

pub(super) const MAGIC: [u8; 8] = *b"\xf5sdfligh";
const RECORD: [u8; 8] = *b"\xf5sdrecrd";
pub(super) const VERSION: u32 = 1;
/// Bytes before the area.
pub(super) const HEAD: usize = 4096;
/// Size of a record's header [B].
pub(super) const HEADER: usize = 48;
const CHECKED: usize = 40;
/// Offsets in the head.
pub(super) const OLDEST: usize = 24;
pub(super) const NEWEST: usize = 32;
/// Flag of a record: a segment begins here.
pub(super) const BEGINS: u32 = 1;
/// Level of compression: fast, and leaves a seventh of the size of system-call events.
const LEVEL: i32 = 1;
/// Name of the map in the kernel and in crash dumps.
pub const MAP: &str = "sysdock_flight";
/// Size of the map's entries [B]: a single value is limited to 2 GiB.
const ENTRY: usize = 1 << 20;

/// The memory of a map, mapped into this process; the kernel does not touch it.
struct Mapping {
    memory: MmapMut,
    _map: Option<MapHandle>,
}

impl Mapping {
    /// Allocate memory in the kernel.
    fn of_map(bytes: usize) -> io::Result<Mapping> {
        let options = libbpf_sys::bpf_map_create_opts {
            sz: mem::size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
            map_flags: libbpf_sys::BPF_F_MMAPABLE,
            ..libbpf_sys::bpf_map_create_opts::default()
        };
        let entries = bytes.div_ceil(ENTRY);
        let map = MapHandle::create(MapType::Array, Some(MAP), 4, ENTRY as u32, entries as u32, &options);
        let map = map.map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error.to_string()))?;
        // SAFETY: nothing else refers to the memory of the new map.
        let memory = unsafe { MmapOptions::new().len(entries * ENTRY).map_mut(map.as_fd().as_raw_fd()) }?;
        Ok(Mapping { memory, _map: Some(map) })
    }

    fn slice(&self, at: usize, length: usize) -> &[u8] {
        &self.memory[at..at + length]
    }

    fn slice_mut(&mut self, at: usize, length: usize) -> &mut [u8] {
        &mut self.memory[at..at + length]
    }

    /// Set a number in the head. A reader of the machine's memory sees it only together with the
    /// records before it.
    fn publish(&self, at: usize, value: u64) {
        // SAFETY: within the mapping, which is aligned to pages.
        let word = unsafe { &*self.memory.as_ptr().add(at).cast::<AtomicU64>() };
        word.store(value, Ordering::Release);
    }
}

/// Header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) packed: u32,
    pub(super) unpacked: u32,
    pub(super) flags: u32,
    pub(super) crc: u32,
    pub(super) position: u64,
    pub(super) time_ns: u64,
}

impl Header {
    fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(&RECORD);
        for (at, number) in [(8, self.packed), (12, self.unpacked), (16, self.flags), (20, self.crc)] {
            out[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        out[24..32].copy_from_slice(&self.position.to_le_bytes());
        out[32..40].copy_from_slice(&self.time_ns.to_le_bytes());
        let crc = crc32c::crc32c(&out[..CHECKED]);
        out[40..44].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None`: there is no record here.
    pub(super) fn parse(bytes: &[u8; HEADER]) -> Option<Header> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let is_one = bytes[..8] == RECORD && u32_at(40) == crc32c::crc32c(&bytes[..CHECKED]);
        is_one.then(|| Header {
            packed: u32_at(8),
            unpacked: u32_at(12),
            flags: u32_at(16),
            crc: u32_at(20),
            position: u64_at(24),
            time_ns: u64_at(32),
        })
    }

    /// The position after the record at a position; without a record, the next beginning of the
    /// area.
    pub(super) fn next(header: Option<&Header>, position: u64, capacity: u64) -> u64 {
        header.map_or((position / capacity + 1) * capacity, |header| position + header.length())
    }

    /// Size of the whole record [B].
    fn length(&self) -> u64 {
        (HEADER as u64 + u64::from(self.packed)).next_multiple_of(8)
    }
}

/// The newest frames.
pub(crate) struct Store {
    mapping: Mapping,
    /// Size of the area [B].
    capacity: u64,
    oldest: u64,
    newest: u64,
    press: zstd::bulk::Compressor<'static>,
    plain: Vec<u8>,
    packed: Vec<u8>,
    /// Bytes that were stored since the start, before compression.
    pub(crate) unpacked: u64,
}

impl Store {
    /// Allocate this many bytes at once.
    ///
    /// # Errors
    /// The kernel has no memory for it, or does not allow it.
    pub(crate) fn create(bytes: usize) -> io::Result<Store> {
        Store::of(Mapping::of_map(bytes)?)
    }

    fn of(mut mapping: Mapping) -> io::Result<Store> {
        let capacity = (mapping.memory.len() - HEAD) as u64 & !7;
        let head = mapping.slice_mut(0, HEAD);
        head[8..12].copy_from_slice(&VERSION.to_le_bytes());
        head[12..16].copy_from_slice(&(HEAD as u32).to_le_bytes());
        head[16..24].copy_from_slice(&capacity.to_le_bytes());
        head[..8].copy_from_slice(&MAGIC);
        let press = zstd::bulk::Compressor::new(LEVEL)?;
        let (plain, packed) = (Vec::new(), Vec::new());
        Ok(Store { mapping, capacity, oldest: 0, newest: 0, press, plain, packed, unpacked: 0 })
    }

    /// Size of the area [B].
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Position of the oldest record.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Position after the newest record.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Begin a segment with these frames. Returns its position.
    ///
    /// # Errors
    /// They do not fit into the area.
    pub(crate) fn begin_segment(&mut self, frames: &[u8]) -> io::Result<u64> {
        self.push(frames, BEGINS)
    }

    /// Compress and store frames. Returns their position.
    fn push(&mut self, frames: &[u8], flags: u32) -> io::Result<u64> {
        let mut packed = mem::take(&mut self.packed);
        packed.resize(zstd::zstd_safe::compress_bound(frames.len()), 0);
        let stored = self.press.compress_to_buffer(frames, &mut packed[..]);
        let stored = stored.and_then(|length| self.push_packed(&packed[..length], frames.len(), flags));
        self.packed = packed;
        stored
    }

    fn push_packed(&mut self, packed: &[u8], unpacked: usize, flags: u32) -> io::Result<u64> {
        let length = (HEADER + packed.len()).next_multiple_of(8) as u64;
        if length > self.capacity {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let left = self.capacity - self.newest % self.capacity;
        if left < length {
            self.make_room(left);
            // Clear the magic, so that no old record seems to start here.
            let at = HEAD + (self.newest % self.capacity) as usize;
            self.mapping.slice_mut(at, 8).fill(0);
            self.newest += left;
        }
        self.make_room(length);
        let position = self.newest;
        let at = HEAD + (position % self.capacity) as usize;
        self.mapping.slice_mut(at + HEADER, packed.len()).copy_from_slice(packed);
        let (crc, time_ns) = (crc32c::crc32c(packed), monotonic_ns());
        let header = Header { packed: packed.len() as u32, unpacked: unpacked as u32, flags, crc, position, time_ns };
        self.mapping.slice_mut(at, HEADER).copy_from_slice(&header.bytes());
        self.newest += length;
        self.mapping.publish(NEWEST, self.newest);
        self.unpacked += unpacked as u64;
        Ok(position)
    }

    /// Drop the oldest records until this many bytes are free after the newest.
    fn make_room(&mut self, bytes: u64) {
        while self.newest + bytes > self.oldest + self.capacity {
            self.oldest = self.after(self.oldest);
        }
        self.mapping.publish(OLDEST, self.oldest);
    }

    fn header(&self, position: u64) -> Option<Header> {
        let offset = (position % self.capacity) as usize;
        if self.capacity as usize - offset < HEADER {
            return None;
        }
        Header::parse(self.mapping.slice(HEAD + offset, HEADER).first_chunk()?).filter(|header| header.position == position)
    }

    /// The position of the next record.
    fn after(&self, position: u64) -> u64 {
        Header::next(self.header(position).as_ref(), position, self.capacity)
    }

    /// Copy all records from a position on.
    pub(crate) fn copy(&self, from: u64) -> Records {
        let mut records = Vec::new();
        let mut at = from.max(self.oldest);
        while at < self.newest {
            if let Some(header) = self.header(at) {
                let packed = self.mapping.slice(HEAD + (at % self.capacity) as usize + HEADER, header.packed as usize);
                records.push(Record { header, packed: packed.into() });
            }
            at = self.after(at);
        }
        Records(records)
    }
}

impl Sink for Store {
    fn write(&mut self, header: &[u8; FRAME_HEADER], payload: &[u8]) -> io::Result<()> {
        let mut plain = mem::take(&mut self.plain);
        plain.clear();
        plain.extend(header);
        plain.extend(payload);
        let stored = self.push(&plain, 0);
        self.plain = plain;
        stored.map(drop)
    }

    /// Frames that are too large are not written at all, so nothing needs to be cut.
    fn cut(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Copies of records, in order.
pub(crate) struct Records(Vec<Record>);

struct Record {
    header: Header,
    packed: Vec<u8>,
}

impl Records {
    /// Pass the frames of all records to `take`. Only the first segment keeps its beginning; the
    /// beginnings of later ones repeat what is known.
    ///
    /// # Errors
    /// Those of `take`; or a record cannot be uncompressed.
    pub(crate) fn unpack(self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut unpacker = zstd::bulk::Decompressor::new()?;
        for (index, Record { header, packed }) in self.0.into_iter().enumerate() {
            if index > 0 && header.flags & BEGINS != 0 {
                continue;
            }
            take(&unpacker.decompress(&packed, header.unpacked as usize)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Store {
    /// A store in memory of this process.
    pub(super) fn in_memory(bytes: usize) -> Store {
        Store::of(Mapping { memory: MmapMut::map_anon(bytes).unwrap(), _map: None }).unwrap()
    }

    /// All of its memory, with the head.
    pub(super) fn memory(&self) -> &[u8] {
        self.mapping.slice(0, self.mapping.memory.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn store(bytes: usize) -> Store {
        Store::in_memory(bytes)
    }

    fn unpacked(store: &Store, from: u64) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut take = |frames: &[u8]| {
            all.push(frames.to_vec());
            Ok(())
        };
        store.copy(from).unpack(&mut take).unwrap();
        all
    }

    #[test]
    fn the_newest_records_are_there_whole_and_in_order() {
        let mut random = Random(5);
        for _ in 0..30 {
            let mut store = store(HEAD + 4096 + 8 * random.below(1000) as usize);
            let mut written: Vec<Vec<u8>> = Vec::new();
            for _ in 0..200 {
                let payload: Vec<u8> = (0..random.below(2000)).map(|_| random.below(256) as u8).collect();
                store.write(&[7; FRAME_HEADER], &payload).unwrap();
                written.push([&[7; FRAME_HEADER][..], &payload].concat());
                let there = unpacked(&store, 0);
                assert!(!there.is_empty() && there[..] == written[written.len() - there.len()..]);
                // Random bytes cannot be compressed: a large part of the area is used.
                let held: usize = there.iter().map(Vec::len).sum();
                assert!(held > store.capacity as usize / 3 || there.len() == written.len());
            }
        }
    }

    #[test]
    fn the_beginning_of_the_first_segment_only_is_kept() {
        let mut store = store(1 << 20);
        let mut begun = Vec::new();
        for segment in 0..3u8 {
            let known = [&[segment; FRAME_HEADER][..], b"known"].concat();
            begun.push(store.begin_segment(&known).unwrap());
            store.write(&[segment; FRAME_HEADER], b"events").unwrap();
        }
        let ends = |from| unpacked(&store, from).iter().map(|one| (one[0], one.len() - FRAME_HEADER)).collect::<Vec<_>>();
        assert_eq!(ends(begun[0]), [(0, 5), (0, 6), (1, 6), (2, 6)]);
        assert_eq!(ends(begun[1]), [(1, 5), (1, 6), (2, 6)]);
        assert_eq!(ends(store.newest()), []);
    }

    #[test]
    fn the_head_says_where_records_lie() {
        let mut store = store(HEAD + 4096);
        for _ in 0..300 {
            store.write(&[1; FRAME_HEADER], &[2; 300]).unwrap();
        }
        let number = |at: usize| u64::from_le_bytes(store.mapping.slice(at, 8).try_into().unwrap());
        assert_eq!(store.mapping.slice(0, 8), MAGIC);
        assert_eq!((number(16), number(OLDEST), number(NEWEST)), (4096, store.oldest, store.newest));
        // Walk the records as a reader of memory does.
        let mut at = number(OLDEST);
        let mut records = 0;
        while at < number(NEWEST) {
            records += u64::from(store.header(at).is_some());
            at = store.after(at);
        }
        assert!(records > 10 && at == store.newest);
    }

    #[test]
    fn what_is_larger_than_the_area_is_refused_and_harms_nothing() {
        let mut store = store(HEAD + 4096);
        store.write(&[1; FRAME_HEADER], b"small").unwrap();
        let mut random = Random(9);
        let large: Vec<u8> = (0..9000).map(|_| random.below(256) as u8).collect();
        assert!(store.write(&[1; FRAME_HEADER], &large).is_err());
        assert_eq!(unpacked(&store, 0).len(), 1);
    }
}
