//! A recorder that is always on: recent events stay in memory, and become a recording when a user
//! requests it or a trigger fires ([`triggers`]).
//!
//! Events pass through the rings as in any recording. Frames go to a [`store`] of a fixed size
//! instead of a file. Time is divided into *segments*. At the beginning of each, everything that
//! later events refer to, and the kernel side would not report again, is written ([`known`]), and
//! the kernel side forgets which paths and stacks it has reported, so that each segment can be read
//! with the later ones and without the earlier ones.

pub(crate) mod known;
pub(crate) mod recovery;
pub(crate) mod store;
pub(crate) mod triggers;

use std::{
    collections::VecDeque,
    io::{self, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    BpfError, End, Meters, NO_CPU, Note, Polled, Probes, Reason, Ring, Spool, Start, clock_note,
    events::{self, EVENT_EXEC, EVENT_EXIT, EVENT_FORK, Kinds},
    task_events,
    transport::{ring, spool::monotonic_ns},
};

use known::{KNOWN_KINDS, Known};
use store::{Records, Store};
use triggers::{Cause, Lookout, Trigger};

/// Interval between readings of the kernel's counters.
const SECOND: Duration = Duration::from_secs(1);
/// A segment is this part of the time that is kept, within the limits below.
const SEGMENTS: u32 = 6;
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);
/// A segment takes at most this part of the memory.
const LEAST_SEGMENTS: u64 = 8;
/// Interval at which buffered events of the user side are written.
const FLUSH: Duration = Duration::from_secs(1);

/// Finds processes.
pub(crate) type Processes = Box<dyn Fn() -> Vec<u32>>;

/// What a flight recorder keeps, and how much memory that may take.
pub struct Flying {
    /// Time that is kept, if the memory is enough.
    pub keep: Duration,
    /// Memory for the kept events [B].
    pub memory: usize,
    /// What makes it write a recording.
    pub triggers: Vec<Trigger>,
    /// Finds the recorded processes in /proc.
    pub processes: Processes,
    /// The first note of each recording.
    pub start: Start,
}

/// A period of time.
struct Segment {
    /// Position of its first record.
    position: u64,
    begun_ns: u64,
    /// Number of events that each ring had lost when it began, by kind.
    lost: Vec<[u64; ring::KINDS]>,
}

pub struct Flight {
    probes: Probes,
    meters: Option<Meters>,
    spool: Spool<Store>,
    known: Known,
    lookout: Lookout,
    flying: Flying,
    segments: VecDeque<Segment>,
    /// Kinds of events that are examined as they pass.
    kinds: Kinds,
    measured: Instant,
    flushed: Instant,
    begun: Instant,
    cause: Option<Cause>,
}

/// How much it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Size of the memory [B].
    pub memory: u64,
    /// Part of the memory that is in use [B].
    pub used: u64,
    /// Time since the oldest event [ns].
    pub time_ns: u64,
    /// Bytes of events since the start, as the rings contained them.
    pub events_bytes: u64,
    /// Number of events lost since the start.
    pub lost: u64,
}

impl Flight {
    /// Begin with attached probes. `tasks`: events about the existing threads, and about their
    /// images.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn begin(probes: Probes, tasks: &[u8], meters: Option<Meters>, flying: Flying) -> Result<Flight, BpfError> {
        let memory = Path::new("memory");
        let store = Store::create(flying.memory).map_err(|error| BpfError::spool(memory, error))?;
        let mut known = Known::default();
        known.tasks_are(tasks);
        let lookout = Lookout::new(&flying.triggers);
        let kinds = KNOWN_KINDS.and(lookout.kinds);
        let (spool, now) = (Spool::of(store, memory), Instant::now());
        let (measured, flushed, begun) = (now, now, now);
        let mut flight = Flight {
            probes,
            meters,
            spool,
            known,
            lookout,
            flying,
            segments: VecDeque::new(),
            kinds,
            measured,
            flushed,
            begun,
            cause: None,
        };
        flight.begin_segment()?;
        flight.measure(true)?;
        Ok(flight)
    }

    /// State of each family.
    #[must_use]
    pub fn families(&self) -> &[sysdock_table::FamilyState] {
        &self.probes.families
    }

    /// Take the events in the rings; to be called some hundred times a second. Returns the first
    /// trigger since the last call.
    ///
    /// # Errors
    /// The events cannot be stored.
    pub fn step(&mut self) -> Result<Option<Cause>, BpfError> {
        self.drain()?;
        if self.measured.elapsed() >= SECOND {
            self.measured = Instant::now();
            self.measure(false)?;
            let pressed = self.lookout.second(monotonic_ns());
            self.cause = self.cause.take().or(pressed);
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flushed = Instant::now();
            self.spool.note(&clock_note())?;
            self.spool.flush()?;
        }
        if self.begun.elapsed() >= self.segment_time() || self.segment_bytes() > self.spool.sink().capacity() / LEAST_SEGMENTS {
            self.begin_segment()?;
        }
        Ok(self.cause.take())
    }

    fn segment_time(&self) -> Duration {
        (self.flying.keep / SEGMENTS).clamp(SHORTEST, LONGEST)
    }

    /// Size of the current segment [B].
    fn segment_bytes(&mut self) -> u64 {
        let begun = self.segments.back().map_or(0, |segment| segment.position);
        self.spool.sink().newest() - begun
    }

    fn drain(&mut self) -> Result<(), BpfError> {
        let now_ns = monotonic_ns();
        let Flight { probes, spool, known, lookout, kinds, cause, .. } = self;
        for ring in &mut probes.rings {
            let cpu = ring.cpu;
            let mut take = |events: &[u8]| {
                let found = scan(events, *kinds, known, lookout);
                *cause = cause.take().or(found);
                spool.append(cpu, events)
            };
            while ring.read(&mut take)? {}
        }
        known.settle(now_ns);
        Ok(())
    }

    /// `all`: also values that have not changed.
    fn measure(&mut self, all: bool) -> Result<(), BpfError> {
        for sums in &mut self.probes.sums {
            self.spool.append(NO_CPU, &sums.read())?;
        }
        let Some(meters) = &mut self.meters else { return Ok(()) };
        self.spool.append(NO_CPU, &meters.read(all))
    }

    fn begin_segment(&mut self) -> Result<(), BpfError> {
        self.begun = Instant::now();
        self.drain()?;
        let begun_ns = monotonic_ns();
        self.measure(true)?;
        self.spool.flush()?;
        let lost: Vec<[u64; ring::KINDS]> = self.probes.rings.iter().map(Ring::dropped).collect();
        self.find_tasks_if_lost(&lost);
        self.probes.forget();
        let known = self.known.begin_segment(&self.probes.images());
        let mut beginning = Spool::of(Vec::new(), Path::new("memory"));
        // Also for a reader that finds it in the memory of a kernel that has stopped.
        let (families, since_ns) = (self.probes.families.clone(), Some(begun_ns));
        beginning.note(&Note::Start(Box::new(Start { families, since_ns, ..self.flying.start.clone() })))?;
        beginning.note(&clock_note())?;
        beginning.append(NO_CPU, &known)?;
        for sums in &self.probes.sums {
            beginning.append(NO_CPU, &sums.so_far())?;
        }
        let sockets = self.meters.as_mut().map(|meters| meters.sockets(true));
        beginning.append(NO_CPU, &sockets.unwrap_or_default())?;
        beginning.flush()?;
        let stored = self.spool.sink().begin_segment(beginning.sink());
        let position = stored.map_err(|error| BpfError::spool(Path::new("memory"), error))?;
        self.segments.push_back(Segment { position, begun_ns, lost });
        self.forget_overwritten();
        Ok(())
    }

    /// If events about threads were lost, find the threads in /proc.
    fn find_tasks_if_lost(&mut self, lost: &[[u64; ring::KINDS]]) {
        let Some(last) = self.segments.back() else { return };
        let about_tasks = [EVENT_FORK, EVENT_EXEC, EVENT_EXIT];
        let is_lost = lost
            .iter()
            .zip(&last.lost)
            .any(|(now, then)| about_tasks.iter().any(|kind| now[usize::from(*kind)] != then[usize::from(*kind)]));
        if is_lost {
            let there = task_events((self.flying.processes)());
            self.known.tasks_are(&there);
        }
    }

    fn forget_overwritten(&mut self) {
        let oldest = self.spool.sink().oldest();
        while self.segments.front().is_some_and(|segment| segment.position < oldest) {
            self.segments.pop_front();
        }
    }

    /// How much it holds now.
    #[must_use]
    pub fn held(&mut self) -> Held {
        self.forget_overwritten();
        let time_ns = self.segments.front().map_or(0, |segment| monotonic_ns().saturating_sub(segment.begun_ns));
        let lost = self.probes.rings.iter().map(|ring| ring.dropped().iter().sum::<u64>()).sum();
        let store = self.spool.sink();
        let used = store.newest() - store.oldest();
        Held { memory: store.capacity(), used, time_ns, events_bytes: store.unpacked, lost }
    }

    /// Name of the program of a thread.
    #[must_use]
    pub fn name(&mut self, tid: u32) -> Option<String> {
        self.known.settle(u64::MAX);
        self.known.name(tid)
    }

    /// Copy the events for a recording: from the beginning of the kept time until now.
    ///
    /// # Errors
    /// The newest events cannot be stored.
    pub fn take(&mut self, cause: &Cause) -> Result<Dump, BpfError> {
        self.drain()?;
        self.measure(true)?;
        self.spool.note(&clock_note())?;
        self.spool.flush()?;
        self.forget_overwritten();
        let from_ns = monotonic_ns().saturating_sub(u64::try_from(self.flying.keep.as_nanos()).unwrap_or(u64::MAX));
        let first = self.segments.iter().rev().find(|segment| segment.begun_ns <= from_ns).or(self.segments.front());
        let Some(Segment { position, begun_ns, lost }) = first else {
            return Err(BpfError::spool(Path::new("memory"), io::ErrorKind::OutOfMemory.into()));
        };
        let mut notes = lost_since(&self.probes.rings, lost, *begun_ns);
        notes.push(Note::Mark { monotonic_ns: cause.at_ns, tid: cause.tid, what: cause.what.clone() });
        let (position, begun_ns) = (*position, *begun_ns);
        Ok(Dump { notes, records: self.spool.sink().copy(position), time_ns: monotonic_ns().saturating_sub(begun_ns) })
    }
}

/// Examine events as they pass.
#[inline]
fn scan(events: &[u8], kinds: Kinds, known: &mut Known, lookout: &mut Lookout) -> Option<Cause> {
    let (mut rest, mut cause) = (events, None);
    while let Some((event, after)) = events::split(rest) {
        if kinds.has(event.kind) {
            known.see(&event);
            let found = lookout.see(&event);
            cause = cause.or(found);
        }
        rest = after;
    }
    cause
}

/// Notes about events that found no room since a segment began.
fn lost_since(rings: &[Ring], before: &[[u64; ring::KINDS]], begun_ns: u64) -> Vec<Note> {
    let mut notes = Vec::new();
    for (ring, before) in rings.iter().zip(before) {
        let Some((first_ns, last_ns)) = ring.drop_times() else { continue };
        for (kind, (now, then)) in ring.dropped().into_iter().zip(before).enumerate().filter(|(_, (now, then))| now > then) {
            let first_ns = first_ns.max(begun_ns);
            notes.push(Note::Drops { cpu: ring.cpu, kind: kind as u8, count: now - then, first_ns, last_ns });
        }
    }
    notes
}

/// A copy of the events, for a recording.
pub struct Dump {
    notes: Vec<Note>,
    records: Records,
    /// Time that it covers [ns].
    pub time_ns: u64,
}

impl Dump {
    /// Write it as a spool.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        let frames = |notes: &[Note]| {
            let mut spool = Spool::of(Vec::new(), &PathBuf::new());
            notes.iter().try_for_each(|note| spool.note(note)).map_err(io::Error::other)?;
            io::Result::Ok(std::mem::take(spool.sink()))
        };
        out.write_all(&frames(&self.notes)?)?;
        self.records.unpack(|records| out.write_all(records))?;
        out.write_all(&frames(&[Note::End(End { reason: Reason::Done, ..End::default() })])?)?;
        out.flush()
    }
}
