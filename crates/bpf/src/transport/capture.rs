//! Empties the rings into the spool while the command runs.
//!
//! One thread reads; another syncs the file about once a second, so that a slow disk does not keep
//! the rings from being emptied. No process is woken by an event: waking costs more than recording.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{BpfError, Freezer, NO_CPU, Note, Probes, Ring, Spool, clock_note, transport::hold::Hold};

/// Longest interval between two readings of the rings. At 2 million events a second a ring of 16
/// MiB is full after 125 ms.
const PAUSE: Duration = Duration::from_millis(4);
/// Upper bound for the rate of events on one CPU: 8 million events a second [B/s].
const FASTEST: u64 = 512 << 20;
/// Interval between flushes: what a recorder or machine that dies loses at most.
const FLUSH: Duration = Duration::from_millis(500);
/// Interval between readings of the kernel's counters, and of the programs' sums.
const METERS: Duration = Duration::from_secs(1);

/// What is asked for events while those of programs come by themselves.
pub trait Polled: std::fmt::Debug {
    /// Events since the last call; `all`: also those of values that have not changed.
    fn read(&mut self, all: bool) -> Vec<u8>;
}

/// Moves events from the rings to the spool.
pub struct Capture {
    probes: Option<Probes>,
    spool: Spool,
    stop: Arc<AtomicBool>,
    sync: Option<thread::JoinHandle<Result<(), BpfError>>>,
    /// Freezes the processes while the rings are too full.
    hold: Option<Hold>,
    /// Such as the kernel's counters of the machine.
    polled: Option<Box<dyn Polled>>,
    /// Interval between two readings of the rings.
    pause: Duration,
    /// How long detaching took.
    detached: Duration,
}

/// The interval in which at most a quarter of a small ring fills.
fn pause_for(probes: &Probes) -> Duration {
    let bytes = probes.rings.first().map_or(u64::MAX, Ring::bytes);
    PAUSE.min(Duration::from_nanos((bytes / 4).saturating_mul(1_000_000_000) / FASTEST))
}

/// Totals of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of events that found no room.
    pub dropped: u64,
    /// Size of the spool [B].
    pub bytes: u64,
    /// How long unloading the programs took.
    pub detach: Duration,
}

impl Capture {
    /// Begin with attached probes, and a spool that has its first notes. `hold`: the processes of
    /// this group are frozen rather than that an event is lost; `polled`: read at once, each
    /// second, and at the end.
    ///
    /// # Errors
    /// The spool cannot be written.
    pub fn new(
        probes: Probes,
        mut spool: Spool,
        hold: Option<Freezer>,
        polled: Option<Box<dyn Polled>>,
    ) -> Result<Capture, BpfError> {
        spool.note(&clock_note())?;
        let pause = pause_for(&probes);
        let hold = hold.map(|group| Hold::new(group, probes.rings.iter().map(Ring::level).collect(), pause));
        let stop = Arc::new(AtomicBool::new(false));
        let (syncer, stopped) = (spool.syncer()?, Arc::clone(&stop));
        let sync = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_secs(1));
                syncer.sync()?;
            }
            Ok(())
        });
        let detached = Duration::ZERO;
        let mut capture = Capture { probes: Some(probes), spool, stop, sync: Some(sync), hold, polled, pause, detached };
        capture.measure(true)?;
        Ok(capture)
    }

    /// Read until `is_over`, which is called every few milliseconds. Events that were written by
    /// then are read.
    ///
    /// # Errors
    /// [`BpfError::Full`] or another error of the spool: recording has ended, and what was written
    /// before is whole.
    pub fn run(&mut self, mut is_over: impl FnMut() -> bool) -> Result<(), BpfError> {
        let (mut flushed, mut measured) = (Instant::now(), Instant::now());
        let pause = self.pause;
        loop {
            let over = is_over();
            if over {
                // Calls in progress are no longer recorded; events in the rings are.
                self.detach();
            }
            self.drain()?;
            if over {
                self.measure(true)?;
                self.spool.note(&clock_note())?;
                return self.spool.flush();
            }
            if measured.elapsed() >= METERS {
                measured = Instant::now();
                self.measure(false)?;
            }
            if flushed.elapsed() >= FLUSH {
                flushed = Instant::now();
                self.note_losses()?;
                self.spool.flush()?;
            }
            thread::sleep(pause);
        }
    }

    fn detach(&mut self) {
        if let Some(probes) = &mut self.probes {
            let begun = Instant::now();
            probes.detach();
            self.detached = self.detached.max(begun.elapsed());
        }
    }

    fn drain(&mut self) -> Result<(), BpfError> {
        let (Some(probes), spool) = (&mut self.probes, &mut self.spool) else { return Ok(()) };
        let mut outcome = Ok(());
        for ring in &mut probes.rings {
            let cpu = ring.cpu;
            while outcome.is_ok() {
                match ring.read(&mut |events| spool.append(cpu, events)) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => outcome = Err(error),
                }
            }
        }
        if let Some(hold) = &self.hold {
            hold.release();
        }
        outcome
    }

    /// `all`: also values that have not changed, as at the start and at the end.
    fn measure(&mut self, all: bool) -> Result<(), BpfError> {
        for sums in self.probes.iter_mut().flat_map(|probes| &mut probes.sums) {
            self.spool.append(NO_CPU, &sums.read())?;
        }
        let Some(polled) = &mut self.polled else { return Ok(()) };
        self.spool.append(NO_CPU, &polled.read(all))
    }

    /// Write the losses so far, and the time.
    fn note_losses(&mut self) -> Result<(), BpfError> {
        self.spool.note(&clock_note())?;
        let Some(probes) = &self.probes else { return Ok(()) };
        for ring in &probes.rings {
            let Some((first_ns, last_ns)) = ring.drop_times() else { continue };
            for (kind, count) in ring.dropped().into_iter().enumerate().filter(|(_, count)| *count > 0) {
                self.spool.note(&Note::Drops { cpu: ring.cpu, kind: kind as u8, count, first_ns, last_ns })?;
            }
        }
        Ok(())
    }

    /// End recording: write the last notes, then `end`.
    ///
    /// # Errors
    /// The spool cannot be written, now or when it was synced last.
    pub fn finish(&mut self, end: impl FnOnce(&Totals) -> Note) -> Result<Totals, BpfError> {
        self.detach();
        let written = self.write_end(end);
        // In any case: as long as the other thread has the file, it counts as being recorded.
        self.stop.store(true, Ordering::Relaxed);
        let synced = self.sync.take().map_or(Ok(()), |sync| {
            sync.thread().unpark();
            sync.join().unwrap_or(Ok(()))
        });
        let totals = written?;
        synced?;
        Ok(Totals { bytes: self.spool.bytes(), ..totals })
    }

    /// Close the spool, and keep the programs, without their rings: while they are loaded, the
    /// kernel knows their names.
    #[must_use]
    pub fn into_programs(mut self) -> Option<Probes> {
        let mut probes = self.probes.take()?;
        probes.rings.clear();
        Some(probes)
    }

    fn write_end(&mut self, end: impl FnOnce(&Totals) -> Note) -> Result<Totals, BpfError> {
        self.drain()?;
        self.note_losses()?;
        let totals = self.totals();
        self.spool.note(&end(&totals))?;
        self.spool.flush()?;
        Ok(totals)
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals { bytes: self.spool.bytes(), detach: self.detached, ..Totals::default() };
        for ring in self.probes.iter().flat_map(|probes| &probes.rings) {
            totals.dropped += ring.dropped().iter().sum::<u64>();
        }
        totals
    }
}
