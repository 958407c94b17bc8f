//! The spool: the events of the rings, unparsed, in a file that only grows while recording.
//!
//! A *frame* is a header and a payload: complete events of one CPU in the form of its ring, or
//! notes. Frames of a CPU are in order. A recorder that is killed leaves whole frames and perhaps
//! the beginning of another; [`Frames`](crate::transport::frames::Frames) reads them.
//!
//! Header, little-endian, 48 bytes: magic (8), version (u16), kind (u8), 0 (u8), CPU (u32), length
//! of the payload (u32), its CRC-32C (u32), position of its first event in the ring's count of
//! bytes (u64), `CLOCK_MONOTONIC` when it was written (u64, ns), CRC-32C of the header so far
//! (u32), 0 (u32).

use std::{
    fs::{self, File},
    io::{self, IoSlice, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fs::{FlockOperation, flock},
    time::{ClockId, clock_gettime},
};
use sysdock_table::Folder;

use crate::{BpfError, Note};

/// Name of the spool in the folder of a recording.
pub const SPOOL: &str = "spool";

pub(crate) const MAGIC: [u8; 8] = *b"\xf5sdspool";
pub(crate) const VERSION: u16 = 2;
pub(crate) const HEADER: usize = 48;
/// Bytes of the header that its own checksum covers.
const CHECKED: usize = 40;
/// Size of events at which a frame is written [B]: few writes, and little that a killed recorder
/// loses.
pub(crate) const FRAME_BYTES: usize = 256 << 10;
/// Longest payload: the largest ring, with the end of its last event [B].
pub(crate) const LONGEST: u32 = (64 << 20) + (64 << 10);
/// CPU of events that were in no ring: those that the user side found in /proc.
pub const NO_CPU: u32 = u32::MAX;

/// Kind of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Events = 1,
    Notes = 2,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    pub(crate) cpu: u32,
    pub(crate) length: u32,
    pub(crate) crc: u32,
    pub(crate) position: u64,
    pub(crate) time_ns: u64,
}

impl FrameHeader {
    pub(crate) fn bytes(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10] = self.kind as u8;
        out[12..16].copy_from_slice(&self.cpu.to_le_bytes());
        out[16..20].copy_from_slice(&self.length.to_le_bytes());
        out[20..24].copy_from_slice(&self.crc.to_le_bytes());
        out[24..32].copy_from_slice(&self.position.to_le_bytes());
        out[32..40].copy_from_slice(&self.time_ns.to_le_bytes());
        let crc = crc32c::crc32c(&out[..CHECKED]);
        out[40..44].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// `None`: it is no header, a damaged one, or one of another version.
    pub(crate) fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let kind = match bytes[10] {
            1 => FrameKind::Events,
            2 => FrameKind::Notes,
            _ => return None,
        };
        let header =
            FrameHeader { kind, cpu: u32_at(12), length: u32_at(16), crc: u32_at(20), position: u64_at(24), time_ns: u64_at(32) };
        let whole = bytes[..8] == MAGIC
            && bytes[8..10] == VERSION.to_le_bytes()
            && u32_at(40) == crc32c::crc32c(&bytes[..CHECKED])
            && header.length <= LONGEST;
        whole.then_some(header)
    }
}

/// Destination of frames.
pub(crate) trait Sink {
    /// Append a frame, or nothing of it.
    fn write(&mut self, header: &[u8; HEADER], payload: &[u8]) -> io::Result<()>;

    /// Drop everything after `end` bytes.
    fn cut(&mut self, end: u64) -> io::Result<()>;
}

impl Sink for File {
    fn write(&mut self, header: &[u8; HEADER], payload: &[u8]) -> io::Result<()> {
        write_both(self, header, payload)
    }

    fn cut(&mut self, end: u64) -> io::Result<()> {
        self.set_len(end)
    }
}

impl Sink for Vec<u8> {
    fn write(&mut self, header: &[u8; HEADER], payload: &[u8]) -> io::Result<()> {
        self.extend(header);
        self.extend(payload);
        Ok(())
    }

    fn cut(&mut self, end: u64) -> io::Result<()> {
        self.truncate(usize::try_from(end).unwrap_or(usize::MAX));
        Ok(())
    }
}

/// Writes a spool. Other users may not read it, because it contains paths and arguments.
#[derive(Debug)]
pub struct Spool<S = File> {
    sink: S,
    path: PathBuf,
    lanes: Vec<Lane>,
    bytes: u64,
    /// Events could not be written, so no later ones are. A smaller frame may fit where a larger
    /// one did not, and nothing would show what is missing between them.
    is_cut: bool,
}

/// Events of one CPU that are not written yet.
#[derive(Debug)]
struct Lane {
    cpu: u32,
    /// Position of the first event in `events`.
    position: u64,
    events: Vec<u8>,
}

impl Spool<File> {
    /// Create the file in the folder of a recording. It must not exist. Its lock distinguishes a
    /// running recorder from one that died.
    ///
    /// # Errors
    /// [`BpfError::Spool`], [`BpfError::Full`].
    pub fn create(folder: &Folder) -> Result<Self, BpfError> {
        let path = folder.path().join(SPOOL);
        let file = folder.create_appended(SPOOL).map_err(|error| BpfError::spool(&path, error))?;
        if !lock(&file) {
            return Err(BpfError::InUse(path));
        }
        // Content that is synced later would be lost with the file's name.
        folder.sync().map_err(|error| BpfError::spool(&path, error))?;
        Ok(Spool::of(file, &path))
    }

    /// A handle that syncs the file in another thread: a slow disk must not keep the rings from
    /// being emptied.
    ///
    /// # Errors
    /// [`BpfError::Spool`] if there are too many open files.
    pub fn syncer(&self) -> Result<Syncer, BpfError> {
        let file = self.sink.try_clone().map_err(|error| BpfError::spool(&self.path, error))?;
        Ok(Syncer { file, path: self.path.clone() })
    }
}

#[allow(private_bounds, reason = "made in this crate only")]
impl<S: Sink> Spool<S> {
    /// A spool that is written to `sink`; errors name it by this path.
    pub(crate) fn of(sink: S, path: &Path) -> Self {
        Spool { sink, path: path.into(), lanes: Vec::new(), bytes: 0, is_cut: false }
    }

    /// The destination of frames.
    pub(crate) fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Add complete events as they are in the ring of a CPU, unparsed. They reach the file when a
    /// frame is full, or at [`Spool::flush`].
    ///
    /// # Errors
    /// [`BpfError::Full`]: what was written before is whole; nothing more can be recorded, and
    /// later events are ignored. [`BpfError::Spool`]: the same.
    pub fn append(&mut self, cpu: u32, events: &[u8]) -> Result<(), BpfError> {
        if events.is_empty() || self.is_cut {
            return Ok(());
        }
        let lane = self.lane(cpu, events);
        let held = &self.lanes[lane].events;
        if held.is_empty() && events.len() >= FRAME_BYTES {
            // At least the size of a frame, so it need not be copied.
            self.flush()?;
            return self.write_events(lane, Some(events)).inspect_err(|_| self.cut(self.bytes));
        }
        self.lanes[lane].events.extend_from_slice(events);
        if self.lanes[lane].events.len() >= FRAME_BYTES { self.flush() } else { Ok(()) }
    }

    /// Index of the lane for these events. Their first four bytes are the low half of the ring's
    /// count of bytes; a gap in it is kept.
    fn lane(&mut self, cpu: u32, events: &[u8]) -> usize {
        let low = events.first_chunk().map_or(0, |low| u32::from_le_bytes(*low));
        let Some(index) = self.lanes.iter().position(|lane| lane.cpu == cpu) else {
            self.lanes.push(Lane { cpu, position: u64::from(low), events: Vec::new() });
            return self.lanes.len() - 1;
        };
        let lane = &mut self.lanes[index];
        if lane.events.is_empty() {
            let gap = low.wrapping_sub(lane.position as u32);
            lane.position = lane.position.wrapping_add(u64::from(gap));
        }
        index
    }

    /// Write a note at once. Buffered events may follow it.
    ///
    /// # Errors
    /// As for [`Spool::append`].
    pub fn note(&mut self, note: &Note) -> Result<(), BpfError> {
        let mut text = serde_json::to_vec(note).map_err(|error| BpfError::spool(&self.path, error.into()))?;
        text.push(b'\n');
        self.frame(FrameKind::Notes, NO_CPU, 0, &text)
    }

    /// Write the buffered events of all CPUs or, if there is no room for that, of none, because a
    /// thread may have moved from one to another.
    ///
    /// # Errors
    /// As for [`Spool::append`].
    pub fn flush(&mut self) -> Result<(), BpfError> {
        let begin = self.bytes;
        let written = (0..self.lanes.len()).try_for_each(|lane| self.write_events(lane, None));
        written.inspect_err(|_| self.cut(begin))
    }

    /// Ignore all later events, and drop those after `end`.
    fn cut(&mut self, end: u64) {
        self.is_cut = true;
        self.lanes.clear();
        if self.sink.cut(end).is_ok() {
            self.bytes = end;
        }
    }

    /// Size of the file [B].
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Write the events of a lane, or `instead`, as a frame.
    fn write_events(&mut self, lane: usize, instead: Option<&[u8]>) -> Result<(), BpfError> {
        let Lane { cpu, position, .. } = self.lanes[lane];
        let mut held = std::mem::take(&mut self.lanes[lane].events);
        let events = instead.unwrap_or(&held);
        let written = if events.is_empty() { Ok(()) } else { self.frame(FrameKind::Events, cpu, position, events) };
        self.lanes[lane].position = position.wrapping_add(events.len() as u64);
        held.clear();
        self.lanes[lane].events = held;
        written
    }

    fn frame(&mut self, kind: FrameKind, cpu: u32, position: u64, payload: &[u8]) -> Result<(), BpfError> {
        let too_long = |_| BpfError::spool(&self.path, io::ErrorKind::InvalidInput.into());
        let length = u32::try_from(payload.len()).map_err(too_long)?;
        let header = FrameHeader { kind, cpu, length, crc: crc32c::crc32c(payload), position, time_ns: monotonic_ns() };
        if let Err(error) = self.sink.write(&header.bytes(), payload) {
            // Half a frame would only be garbage to skip. If even this fails, the reader skips it.
            let _ = self.sink.cut(self.bytes);
            return Err(BpfError::spool(&self.path, error));
        }
        self.bytes += (HEADER + payload.len()) as u64;
        Ok(())
    }
}

/// Syncs a spool.
#[derive(Debug)]
pub struct Syncer {
    file: File,
    path: PathBuf,
}

impl Syncer {
    /// `fdatasync`: what was flushed before survives a power failure.
    ///
    /// # Errors
    /// [`BpfError::Full`], if the file system detects that only now; [`BpfError::Spool`].
    pub fn sync(&self) -> Result<(), BpfError> {
        self.file.sync_data().map_err(|error| BpfError::spool(&self.path, error))
    }
}

fn write_both(mut file: &File, header: &[u8], payload: &[u8]) -> io::Result<()> {
    let mut slices = [IoSlice::new(header), IoSlice::new(payload)];
    let mut slices = &mut slices[..];
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Take the lock that a recorder holds; false: another process has it.
pub(crate) fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// `CLOCK_MONOTONIC` as in events: in a time namespace ours differs from the kernel's own,
/// time_namespaces(7).
#[must_use]
pub fn monotonic_ns() -> u64 {
    static AHEAD_NS: OnceLock<i64> = OnceLock::new();
    let ahead_ns = AHEAD_NS.get_or_init(|| offset_of(&fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default()));
    clock_ns(ClockId::Monotonic).wrapping_sub(*ahead_ns).cast_unsigned()
}

/// Offset of a time namespace [ns], from a line for each clock, `monotonic SECONDS NANOSECONDS`; 0
/// if there is none.
fn offset_of(offsets: &str) -> i64 {
    let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    let mut fields = line.unwrap_or_default().split_whitespace().map(|field| field.parse::<i64>().unwrap_or(0));
    let (seconds, nanoseconds) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

fn clock_ns(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Both clocks now. The real one is read between two readings of the other; of a few tries the one
/// with the shortest interval is used.
#[must_use]
pub fn clock_note() -> Note {
    let read = || {
        let before = monotonic_ns();
        let realtime_ns = clock_ns(ClockId::Realtime);
        let width = monotonic_ns() - before;
        (width, before + width / 2, realtime_ns)
    };
    let (_, monotonic_ns, realtime_ns) = (0..5).map(|_| read()).min().unwrap_or_default();
    Note::Clock { monotonic_ns, realtime_ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{testing, transport::frames::Frames};

    #[test]
    fn the_offset_of_a_time_namespace_is_that_of_its_monotonic_clock() {
        assert_eq!(offset_of("monotonic           -3         500000000\nboottime            9         0\n"), -2_500_000_000);
        assert_eq!(offset_of(""), 0);
    }

    #[test]
    fn frames_hold_what_was_appended_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SPOOL);
        let mut spool = testing::try_spool_in(folder.path()).unwrap();
        let mut random = testing::Random(3);
        let mut appended = [Vec::new(), Vec::new()];
        let mut positions = [65_536u32; 2];
        for _ in 0..400 {
            let cpu = random.below(2) as usize;
            let mut span = vec![random.below(256) as u8; (8 + 8 * random.below(1200)) as usize];
            span[..4].copy_from_slice(&positions[cpu].to_le_bytes());
            positions[cpu] += span.len() as u32;
            spool.append(cpu as u32, &span).unwrap();
            appended[cpu].extend(span);
        }
        let large = vec![7; FRAME_BYTES * 2];
        spool.append(1, &large).unwrap();
        appended[1].extend(&large);
        assert!(matches!(Frames::open(&path), Err(BpfError::InUse(_))), "the writer holds it");
        spool.flush().unwrap();
        spool.syncer().unwrap().sync().unwrap();
        assert_eq!(spool.bytes(), std::fs::metadata(&path).unwrap().len());
        drop(spool);

        let (mut frames, mut payload) = (Frames::open(&path).unwrap(), Vec::new());
        let mut read: [Vec<u8>; 2] = Default::default();
        while let Some((header, _)) = frames.next(&mut payload).unwrap() {
            let lane = &mut read[header.cpu as usize];
            assert_eq!(header.position & 0xffff_ffff, u64::from(u32::from_le_bytes(payload[..4].try_into().unwrap())));
            lane.extend(&payload);
        }
        assert!(read == appended);
        assert_eq!((frames.damaged_bytes, frames.cut_bytes), (0, 0));
    }

    #[test]
    fn a_full_disk_is_an_error_of_its_own() {
        let full = File::options().append(true).open("/dev/full").unwrap();
        let mut spool = Spool::of(full, Path::new("rec/spool"));
        spool.append(0, &[0; 8]).unwrap();
        assert!(matches!(spool.flush(), Err(BpfError::Full(_))));
        assert_eq!(spool.bytes(), 0);
    }

    #[test]
    fn nothing_is_written_after_events_that_were_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SPOOL);
        let mut spool = testing::try_spool_in(folder.path()).unwrap();
        spool.append(0, &[1; 64]).unwrap();
        spool.flush().unwrap();
        let written = spool.bytes();
        spool.append(0, &[2; 64]).unwrap();
        spool.append(1, &[3; 64]).unwrap();
        let writable = std::mem::replace(&mut spool.sink, File::open(&path).unwrap());
        assert!(spool.flush().is_err());
        spool.sink = writable;
        spool.append(1, &[4; 64]).unwrap();
        spool.flush().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), written);
        spool.note(&clock_note()).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() > written);
    }

    #[test]
    fn a_spool_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        drop(testing::try_spool_in(folder.path()).unwrap());
        assert!(matches!(testing::try_spool_in(folder.path()), Err(BpfError::Spool(..))));
    }

    #[test]
    fn both_clocks_are_read_together() {
        let Note::Clock { monotonic_ns: first, realtime_ns } = clock_note() else { panic!("no clock") };
        let Note::Clock { monotonic_ns: second, realtime_ns: later } = clock_note() else { panic!("no clock") };
        assert!(second >= first && (later - realtime_ns) - (second - first).cast_signed() < 1_000_000_000);
    }
}
