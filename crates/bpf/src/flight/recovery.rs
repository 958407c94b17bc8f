//! Recovers what a flight recorder held when its kernel stopped: its store and its rings, from the
//! memory of that kernel.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    path::PathBuf,
};

use sysdock_table::Fact;

use super::store::{BEGINS, HEAD, HEADER, Header, MAGIC, NEWEST, OLDEST, VERSION};
use crate::{
    End, Note, Reason, Spool,
    transport::{
        ring,
        spool::{FrameHeader, FrameKind, HEADER as FRAME_HEADER, NO_CPU},
    },
};

/// Name of the map of rings in the kernel and in crash dumps (`bpf/ring.h`).
pub const RINGS_MAP: &str = "rings";
/// Longest record: the beginning of a segment, or some frames [B].
const LONGEST_RECORD: u32 = 256 << 20;

/// Elements of an array in the memory of a kernel.
pub struct Elements<'m> {
    /// Distance between elements [B].
    pub stride: u64,
    /// Number of elements.
    pub count: u64,
    /// Fills a buffer from an offset on, with zeros where nothing is known.
    pub read: &'m dyn Fn(u64, &mut [u8]),
}

impl Elements<'_> {
    fn bytes(&self, at: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        (self.read)(at, &mut out);
        out
    }

    fn u64(&self, at: u64) -> u64 {
        let mut out = [0; 8];
        (self.read)(at, &mut out);
        u64::from_le_bytes(out)
    }
}

/// Result of a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number of records of the store.
    pub records: u64,
    /// Number of records that are damaged, or not in the dump.
    pub damaged: u64,
    /// Bytes of events that only the rings contained.
    pub of_rings: u64,
    /// Bytes in the rings that are no complete events: they were being written when the kernel
    /// stopped, or are not in the dump.
    pub incomplete: u64,
}

/// Write the content of a store and its rings as a spool. `None`: there is no store, or nothing
/// that can be read without an earlier part.
///
/// `stopped`: when the kernel stopped (`CLOCK_MONOTONIC`), and why.
///
/// # Errors
/// Those of `out`.
pub fn recover(
    store: &Elements<'_>,
    rings: Option<&Elements<'_>>,
    stopped: Option<(u64, Fact)>,
    out: &mut impl Write,
) -> io::Result<Option<Recovered>> {
    let Some(area) = Area::of(store) else { return Ok(None) };
    let mut found = Recovered::default();
    let mut next = BTreeMap::new();
    let mut since_ns = 0;
    for record in area.records() {
        let Some(frames) = record else {
            found.damaged += 1;
            continue;
        };
        let Some((header, frames)) = frames else { continue };
        let begins = header.flags & BEGINS != 0;
        // Records before the first segment are skipped, because only the beginning of a segment
        // explains what its events refer to. The beginnings of later segments repeat what is known.
        if begins == (found.records == 0) {
            out.write_all(&frames)?;
            since_ns = if begins { header.time_ns } else { since_ns };
            found.records += 1;
        }
        positions(&frames, &mut next);
    }
    if found.records == 0 {
        return Ok(None);
    }
    if let Some(rings) = rings {
        (found.of_rings, found.incomplete) = rest_of(rings, &next, out)?;
    }
    let mut notes = rings.map(|rings| drops(rings, since_ns)).unwrap_or_default();
    notes.extend(stopped.map(|(monotonic_ns, what)| Note::Mark { monotonic_ns, tid: 0, what }));
    notes.push(Note::End(End { reason: Reason::Done, ..End::default() }));
    let mut spool = Spool::of(Vec::new(), &PathBuf::new());
    notes.iter().try_for_each(|note| spool.note(note)).map_err(io::Error::other)?;
    out.write_all(spool.sink())?;
    Ok(Some(found))
}

/// Notes about events that found no room in a ring. How many were lost before the kept time is
/// unknown: if a ring has lost any since then, all of its losses count.
fn drops(rings: &Elements<'_>, since_ns: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    for cpu in 0..rings.count {
        let lost = ring::dropped_in(|at| rings.u64(cpu * rings.stride + at));
        let Some((counts, first_ns, last_ns)) = lost.filter(|(_, _, last_ns)| *last_ns >= since_ns) else { continue };
        let lost = counts.into_iter().enumerate().filter(|(_, count)| *count > 0);
        notes.extend(lost.map(|(kind, count)| {
            let (cpu, kind, first_ns) = (cpu as u32, kind as u8, first_ns.max(since_ns));
            Note::Drops { cpu, kind, count, first_ns, last_ns }
        }));
    }
    notes
}

/// The area of a store that contains records.
struct Area<'s> {
    store: &'s Elements<'s>,
    capacity: u64,
    oldest: u64,
    newest: u64,
}

/// `None`: damaged; `Some(None)`: there is none here.
type Found = Option<Option<(Header, Vec<u8>)>>;

impl Area<'_> {
    fn of<'s>(store: &'s Elements<'s>) -> Option<Area<'s>> {
        let head = store.bytes(0, HEAD);
        let number = |at: usize| u64::from_le_bytes(*head[at..].first_chunk().expect("within the head"));
        let (capacity, oldest, newest) = (number(16), number(OLDEST), number(NEWEST));
        let room = store.stride.saturating_mul(store.count).saturating_sub(HEAD as u64);
        let makes_sense = head[..8] == MAGIC
            && head[8..12] == VERSION.to_le_bytes()
            && (1..=room).contains(&capacity)
            && oldest <= newest
            && newest - oldest <= capacity;
        makes_sense.then_some(Area { store, capacity, oldest, newest })
    }

    /// The records in order.
    fn records(&self) -> impl Iterator<Item = Found> {
        let mut at = self.oldest;
        std::iter::from_fn(move || {
            (at < self.newest).then(|| {
                let header = self.header(at);
                let place = at;
                at = Header::next(header.as_ref(), at, self.capacity);
                match header {
                    Some(header) => self.unpacked(place, header).map(|frames| Some((header, frames))),
                    None => Some(None),
                }
            })
        })
    }

    fn header(&self, position: u64) -> Option<Header> {
        let offset = position % self.capacity;
        if self.capacity - offset < HEADER as u64 {
            return None;
        }
        let bytes = self.store.bytes(HEAD as u64 + offset, HEADER);
        Header::parse(bytes.first_chunk()?).filter(|header| header.position == position)
    }

    fn unpacked(&self, position: u64, header: Header) -> Option<Vec<u8>> {
        let offset = position % self.capacity;
        let fits = u64::from(header.packed) <= self.capacity - offset - HEADER as u64 && header.unpacked <= LONGEST_RECORD;
        let packed = fits.then(|| self.store.bytes(HEAD as u64 + offset + HEADER as u64, header.packed as usize))?;
        let is_whole = crc32c::crc32c(&packed) == header.crc;
        is_whole.then(|| zstd::bulk::decompress(&packed, header.unpacked as usize).ok())?
    }
}

/// For each CPU, the position after the last of its events in these frames.
fn positions(frames: &[u8], next: &mut BTreeMap<u32, u64>) {
    let mut rest = frames;
    while let Some(header) = rest.first_chunk().and_then(|header: &[u8; FRAME_HEADER]| FrameHeader::parse(header)) {
        let Some(after) = rest.get(FRAME_HEADER + header.length as usize..) else { return };
        if header.kind == FrameKind::Events && header.cpu != NO_CPU {
            next.insert(header.cpu, header.position + u64::from(header.length));
        }
        rest = after;
    }
}

/// Write events of the rings after `next`: those that were not read yet, and those that were read
/// and had not reached the store. Returns their size, and the number of bytes that belong to no
/// complete event.
fn rest_of(rings: &Elements<'_>, next: &BTreeMap<u32, u64>, out: &mut impl Write) -> io::Result<(u64, u64)> {
    let (mut bytes, mut incomplete) = (0, 0);
    for cpu in 0..rings.count {
        let start = next.get(&(cpu as u32)).copied();
        let (position, events, left) = ring::left_in(
            rings.stride,
            start,
            |at| rings.u64(cpu * rings.stride + at),
            |at, out| {
                (rings.read)(cpu * rings.stride + at, out);
            },
        );
        incomplete += left;
        if events.is_empty() {
            continue;
        }
        let (length, crc) = (events.len() as u32, crc32c::crc32c(&events));
        let header = FrameHeader { kind: FrameKind::Events, cpu: cpu as u32, length, crc, position, time_ns: 0 };
        out.write_all(&header.bytes())?;
        out.write_all(&events)?;
        bytes += events.len() as u64;
    }
    Ok((bytes, incomplete))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{flight::store::Store, testing::Random, transport::spool::Sink};

    const RING: u64 = 64 << 10;
    const STRIDE: u64 = RING + 4096 + 16_384;

    fn elements<'m>(memory: &'m [u8], stride: u64, read: &'m dyn Fn(u64, &mut [u8])) -> Elements<'m> {
        Elements { stride, count: memory.len() as u64 / stride, read }
    }

    fn reader(memory: &[u8]) -> impl Fn(u64, &mut [u8]) {
        |at, out: &mut [u8]| {
            let known = memory.get(at as usize..).unwrap_or_default();
            let length = known.len().min(out.len());
            out.fill(0);
            out[..length].copy_from_slice(&known[..length]);
        }
    }

    /// A frame of events of a CPU that begin at a position.
    fn frame(cpu: u32, position: u64, payload: &[u8]) -> Vec<u8> {
        let (length, crc) = (payload.len() as u32, crc32c::crc32c(payload));
        let header = FrameHeader { kind: FrameKind::Events, cpu, length, crc, position, time_ns: 1 };
        [&header.bytes()[..], payload].concat()
    }

    /// An event of 16 bytes at a position.
    fn event(position: u64) -> Vec<u8> {
        [&(position as u32).to_le_bytes()[..], &16u16.to_le_bytes(), &[9, 0], &position.to_le_bytes()].concat()
    }

    /// The memory of rings, from the positions of head and tail of each CPU.
    fn rings(cpus: &[(u64, u64)]) -> Vec<u8> {
        let mut memory = vec![0; cpus.len() * STRIDE as usize];
        for (cpu, (head, tail)) in cpus.iter().enumerate() {
            let own = &mut memory[cpu * STRIDE as usize..];
            own[..8].copy_from_slice(&head.to_le_bytes());
            own[64..72].copy_from_slice(&tail.to_le_bytes());
            for position in (head.saturating_sub(RING)..*head).step_by(16) {
                let place = 4096 + (position & (RING - 1)) as usize;
                own[place..place + 16].copy_from_slice(&event(position));
            }
        }
        memory
    }

    fn recovered(store: &[u8], rings: Option<&[u8]>) -> (Option<Recovered>, Vec<u8>) {
        let (of_store, of_rings) = (reader(store), rings.map(reader));
        let rings = rings.zip(of_rings.as_ref()).map(|(memory, read)| elements(memory, STRIDE, read));
        let mut out = Vec::new();
        let found = recover(&elements(store, store.len() as u64, &of_store), rings.as_ref(), None, &mut out).unwrap();
        (found, out)
    }

    fn written() -> Store {
        let mut store = Store::in_memory(1 << 20);
        for segment in 0..3u64 {
            store.begin_segment(&frame(NO_CPU, 0, &[b'A' + segment as u8; 24])).unwrap();
            for part in 0..4 {
                let position = RING + (segment * 4 + part) * 32;
                let events = [event(position), event(position + 16)].concat();
                let whole = frame(1, position, &events);
                store.write(whole[..FRAME_HEADER].first_chunk().unwrap(), &whole[FRAME_HEADER..]).unwrap();
            }
        }
        store
    }

    #[test]
    fn a_store_is_read_from_its_first_segment_on() {
        let store = written();
        let (found, out) = recovered(store.memory(), None);
        assert_eq!(found, Some(Recovered { records: 13, damaged: 0, of_rings: 0, incomplete: 0 }));
        let mut next = BTreeMap::new();
        positions(&out, &mut next);
        assert_eq!(next, BTreeMap::from([(1, RING + 12 * 32)]));
        assert!(out.starts_with(&frame(NO_CPU, 0, b"AAAAAAAAAAAAAAAAAAAAAAAA")));
        let beginnings = |segment: u8| out.windows(24).filter(|window| *window == [b'A' + segment; 24]).count();
        assert_eq!((beginnings(0), beginnings(1), beginnings(2)), (1, 0, 0));
    }

    #[test]
    fn rings_give_what_the_store_does_not_have_also_what_was_taken() {
        let store = written();
        let known = RING + 12 * 32;
        // The store has nothing of the first CPU; of the second it lacks 10 events, of which 4 were
        // taken from the ring.
        let memory = rings(&[(RING + 160, RING + 64), (known + 160, known + 64)]);
        let (found, out) = recovered(store.memory(), Some(&memory));
        assert_eq!(found.unwrap().of_rings, 96 + 160);
        let mut next = BTreeMap::new();
        positions(&out, &mut next);
        assert_eq!(next, BTreeMap::from([(0, RING + 160), (1, known + 160)]));
        // Overwritten bytes are not mistaken for the earlier ones.
        let memory = rings(&[(RING, RING), (known + 2 * RING, known + 2 * RING - 32)]);
        assert_eq!(recovered(store.memory(), Some(&memory)).0.unwrap().of_rings, 32);
        // Events that found no room are counted, if that was after the first segment began.
        for (first, last, lost) in [(0, 0, false), (5, 6, false), (5, u64::MAX, true)] {
            let mut memory = rings(&[(RING, RING), (known, known)]);
            for (at, value) in [(128 + 8 * 9, 70), (ring::FIRST_DROP, first), (ring::FIRST_DROP + 8, last)] {
                memory[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            }
            let out = recovered(store.memory(), Some(&memory)).1;
            assert_eq!(out.windows(12).any(|window| window == b"\"count\":70,\""), lost);
        }
        // An incomplete event ends what can be read; the bytes after it are counted.
        let mut memory = rings(&[(RING + 160, RING), (known, known)]);
        memory[4096 + 64] ^= 1;
        let found = recovered(store.memory(), Some(&memory)).0.unwrap();
        assert_eq!((found.of_rings, found.incomplete), (64, 96));
        // A ring with impossible positions provides nothing.
        for (head, tail) in [(RING, RING + 16), (u64::MAX, 0), (0, 0)] {
            assert_eq!(recovered(store.memory(), Some(&rings(&[(RING, RING), (head, tail)]))).0.unwrap().of_rings, 0);
        }
    }

    #[test]
    fn damage_is_counted_and_never_ends_it() {
        let mut random = Random(3);
        let whole = written();
        for _ in 0..2000 {
            let mut memory = whole.memory()[..16 << 10].to_vec();
            for _ in 0..=random.below(3) {
                let place = random.below(8 << 10) as usize;
                memory[place] = random.below(256) as u8;
            }
            let (found, out) = recovered(&memory, Some(&rings(&[(RING, RING); 2])));
            assert!(found.is_none_or(|found| found.records + found.damaged <= 15));
            // The output consists of whole frames.
            let mut rest = &out[..];
            while let Some(header) = rest.first_chunk().and_then(|header: &[u8; FRAME_HEADER]| FrameHeader::parse(header)) {
                rest = &rest[FRAME_HEADER + header.length as usize..];
            }
            assert!(rest.is_empty());
        }
        assert_eq!(recovered(&[0; 8192], None).0, None);
        assert_eq!(recovered(&whole.memory()[..100], None).0, None);
    }
}
