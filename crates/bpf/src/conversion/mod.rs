//! Converts a spool to the tables of a recording.
//!
//! The spool is read twice: [`Survey`] finds which parts are whole, and the paths of files; then
//! all events are merged by time and become rows. Calls are ordered by their ends, as in a log of
//! strace. Of everything that grows with the recording, only paths, tasks and (up to a bound) times
//! on no CPU stay in memory.

pub(crate) mod clock;
pub(crate) mod owners;
pub(crate) mod places;
mod spool_notes;
mod streams;
mod survey;
pub(crate) mod threads;
pub(crate) mod waits;

use std::path::Path;

use sysdock_calls::{ABOUT, Issue, Issues, Objects, object_id};
use sysdock_table::{Cancel, Ending, Folder, Manifest, Progress, Recording, Source, TableError, facts::issues as facts};

use crate::{
    BpfError, Note, SPOOL, Start,
    events::Raw,
    families::{
        self, Families, Family,
        stacks::rows::{StackRows, Whose},
    },
    stacks::kernel::KernelNames,
    transport::frames::Frames,
};

use clock::Clock;
use places::Places;
use spool_notes::SpoolNotes;
use streams::Merge;
use survey::Survey;
use threads::{Thread, Threads};
use waits::Waits;

/// The manifest of a recording of the kernel recorder.
#[must_use]
pub fn manifest() -> Manifest {
    Manifest::new("kernel", "events", ABOUT)
}

/// Number of events between reports of progress and checks for a request to stop.
const EVENTS_PER_REPORT: u64 = 65_536;

/// Fill the tables of a recording, and its manifest, from a spool. No process may still be writing
/// the spool.
///
/// Returns how recording ended: [`Ending::EndOfInput`] if the spool is complete,
/// [`Ending::Interrupted`] if the user, or whatever killed the recorder, stopped it, or if `cancel`
/// stopped the conversion, [`Ending::WriteError`] if the disk was full, [`Ending::InputError`] if
/// parts of the spool are damaged. The caller finishes the recording with it and then removes the
/// spool.
///
/// # Errors
/// [`BpfError::NotASpool`] if nothing can be read of it, [`BpfError::InUse`], [`BpfError::Spool`];
/// [`BpfError::Table`] if the recording cannot be written. The spool is never changed.
pub fn convert(
    spool: &Path,
    recording: &mut Recording,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ending, BpfError> {
    convert_frames(Frames::open(spool)?, spool, recording, KernelNames::open_later(), cancel, progress)
}

/// Convert the spool that is in the recording's own folder. Functions of the kernel get the names
/// that were opened for it.
///
/// # Errors
/// As for [`convert`].
pub fn convert_own(
    recording: &mut Recording,
    names: KernelNames,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ending, BpfError> {
    let spool = recording.folder().path().join(SPOOL);
    convert_frames(Frames::in_folder(recording.folder())?, &spool, recording, names, cancel, progress)
}

fn convert_frames(
    frames: Frames,
    spool: &Path,
    recording: &mut Recording,
    names: KernelNames,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ending, BpfError> {
    let survey = Survey::of(frames, spool, cancel)?;
    let notes = SpoolNotes::of(&survey);
    for table in families::tables(&notes.start) {
        recording.manifest.tables.entry(table.into()).or_default();
    }
    describe_source(spool, &survey, recording);
    let mut conversion = Conversion::new(recording, names, &survey, notes.start.clone());
    conversion.count_damages(&survey);
    let (bytes, events) = (survey.bytes, survey.events);
    let Survey { file, streams, places, mut families, .. } = survey;
    conversion.places = places;
    let mut merge = Merge::new(file, streams).map_err(|error| BpfError::spool(spool, error))?;
    let mut done = 0u64;
    while let Some(event) = merge.next().map_err(|error| BpfError::spool(spool, error))? {
        conversion.event(&event, &mut families)?;
        done += 1;
        if done.is_multiple_of(EVENTS_PER_REPORT) {
            families.calls().checkpoint_if_due(conversion.recording)?;
            let bytes_done = (u128::from(bytes) * u128::from(done) / u128::from(events.max(1))) as u64;
            progress(Progress { bytes_done, bytes_total: Some(bytes), lines: done });
            if cancel.requested() {
                break;
            }
        }
    }
    conversion.finish(&mut families, &notes)?;
    Ok(match notes.ending() {
        _ if cancel.requested() => Ending::Interrupted,
        // A program that runs makes calls: its start is one.
        Ending::EndOfInput if notes.start.command.is_some() && families.calls().rows() == 0 => Ending::InputError,
        ending => ending,
    })
}

/// Number of events in the spool of this folder, which [`salvage`] can restore.
///
/// # Errors
/// As for [`convert`].
pub fn waiting(folder: &Path) -> Result<u64, BpfError> {
    let spool = folder.join(SPOOL);
    Ok(Survey::of(Frames::open(&spool)?, &spool, &Cancel::default())?.events)
}

/// Make the tables of a folder whose recorder died, from the spool that it left. Tables of an
/// earlier attempt are made again, except `environment`, which does not come from the spool. The
/// spool is removed once the tables are complete.
///
/// # Errors
/// As for [`convert`]; [`BpfError::Table`] with [`sysdock_table::TableError::Exists`] if the folder
/// is no unfinished recording.
pub fn salvage(folder: Folder, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<Manifest, BpfError> {
    // A recorder that still writes the spool is detected before anything is changed.
    drop(Frames::in_folder(&folder)?);
    let mut recording = Recording::reopen(folder, manifest(), &["environment"])?;
    let outcome = convert_own(&mut recording, KernelNames::open_later(), cancel, progress);
    let ending = match &outcome {
        Ok(ending) => *ending,
        Err(BpfError::Table(_)) => Ending::WriteError,
        Err(_) => Ending::InputError,
    };
    if outcome.is_ok() && !cancel.requested() {
        return Ok(finish_converted(recording, ending)?);
    }
    let finished = recording.finish(ending);
    outcome?;
    Ok(finished?)
}

/// Finish a recording whose spool was converted. The spool is removed once the tables are durable.
///
/// # Errors
/// As for [`Recording::finish`]; the spool stays then.
pub fn finish_converted(recording: Recording, ending: Ending) -> Result<Manifest, TableError> {
    recording.finish_and(ending, |folder| {
        // A spool that is not removed does no harm.
        let _ = folder.remove(SPOOL);
    })
}

/// A conversion in progress: the state that families share. Each family keeps its own rows.
pub(crate) struct Conversion<'a> {
    pub(crate) recording: &'a mut Recording,
    /// The first note of the spool: what is recorded.
    pub(crate) start: Start,
    pub(crate) clock: Clock,
    pub(crate) threads: Threads,
    pub(crate) places: Places,
    pub(crate) stacks: StackRows,
    /// Row in `stacks` of the current call; -1: none.
    pub(crate) call_stack: i32,
    pub(crate) names: KernelNames,
    /// The rows of `paths`.
    pub(crate) objects: Objects,
    pub(crate) issues: Issues,
    /// What threads waited for while they were on no CPU.
    pub(crate) waits: Waits,
    /// Number of files that events name but no event gives a path for.
    pub(crate) unknown_paths: u64,
    /// A thread that was found to have ended: its calls may be unfinished.
    pub(crate) gone: Option<Thread>,
    first_ns: Option<i64>,
    last_ns: i64,
}

impl<'a> Conversion<'a> {
    fn new(recording: &'a mut Recording, names: KernelNames, survey: &Survey, start: Start) -> Self {
        let pairs = survey.notes.iter().filter_map(|note| match note {
            Note::Clock { monotonic_ns, realtime_ns } => Some((*monotonic_ns, *realtime_ns)),
            _ => None,
        });
        Conversion {
            recording,
            start,
            clock: Clock::new(pairs),
            threads: Threads::default(),
            places: Places::default(),
            stacks: StackRows::default(),
            call_stack: -1,
            names,
            objects: Objects::default(),
            issues: Issues::default(),
            waits: Waits::default(),
            unknown_paths: 0,
            gone: None,
            first_ns: None,
            last_ns: i64::MIN,
        }
    }

    #[inline]
    fn event(&mut self, event: &Raw<'_>, families: &mut Families) -> Result<(), BpfError> {
        let at_ns = self.clock.epoch_ns(Families::at_ns(event).unwrap_or(0).max(self.start.since_ns.unwrap_or(0)));
        families.event(event, at_ns, self)
    }

    /// When recording began, `CLOCK_MONOTONIC` [ns].
    pub(crate) fn begun_ns(&self) -> u64 {
        self.start.since_ns.unwrap_or_else(|| self.clock.first_ns())
    }

    /// The latest end of everything seen so far [ns, Unix time].
    pub(crate) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// A recording of a command lasts from its first call to its end; one of running processes as
    /// long as they were watched.
    fn see_what_was_watched(&mut self) {
        if self.start.command.is_none() && self.clock.is_known() {
            self.seen(self.clock.epoch_ns(self.begun_ns()), self.clock.epoch_ns(self.clock.last_ns()));
        }
    }

    /// Whether events of a family are recorded.
    pub(crate) fn records(&self, family: &Family) -> bool {
        self.start.records(family.name)
    }

    /// Process id of the command, -1 if there is none.
    pub(crate) fn command_pid(&self) -> i64 {
        self.start.pid.map_or(-1, i64::from)
    }

    /// Working directory in which the command was started.
    pub(crate) fn directory(&self) -> &[u8] {
        self.start.directory.as_deref().unwrap_or_default().as_bytes()
    }

    /// The thread with this id, which is added if it is new. Most calls are of known threads.
    #[inline]
    pub(crate) fn thread(&mut self, tid: u32, now_ns: i64) -> usize {
        match self.threads.find(tid) {
            Some(index) => index,
            None => self.threads.thread(tid, None, now_ns),
        }
    }

    /// The task of a thread, which may have ended: its requests may arrive later.
    pub(crate) fn task(&mut self, tid: u32, now_ns: i64) -> usize {
        self.threads.task_of(tid).unwrap_or_else(|| {
            let thread = self.thread(tid, now_ns);
            self.threads.get_mut(thread).task
        })
    }

    /// Extend the time span of the recording to these times.
    #[inline]
    pub(crate) fn seen(&mut self, from_ns: i64, to_ns: i64) {
        self.first_ns = Some(self.first_ns.map_or(from_ns, |first| first.min(from_ns)));
        self.last_ns = self.last_ns.max(to_ns);
    }

    /// The row in `paths` for a file id; -1: the id is 0, or its path was not reported.
    #[inline]
    pub(crate) fn file(&mut self, id: u64) -> i32 {
        if id == 0 {
            return -1;
        }
        let object = self.places.object(id, &mut self.objects);
        self.unknown_paths += u64::from(object.is_none());
        object_id(object)
    }

    /// The row in `stacks` for the stack of a call or a sample; -1: the id is 0.
    #[inline]
    pub(crate) fn stack(&mut self, id: u64, whose: Whose) -> i32 {
        if id == 0 {
            return -1;
        }
        let pid = self.threads.task_of(whose.0).and_then(|task| u32::try_from(self.threads.process(task as u32)).ok());
        self.stacks.number(id, whose, pid, &self.places, &|ns| self.clock.epoch_ns(ns))
    }

    /// Count damages of the spool as issues.
    fn count_damages(&mut self, survey: &Survey) {
        let Survey { damaged_bytes, damages, cut_bytes, broken, broken_notes, unknown, .. } = *survey;
        let detail = facts::damaged_places(damaged_bytes, damages);
        self.issues.add_many(Issue::DamagedInput, 0, damages, detail);
        let detail = facts::cut_at_end(cut_bytes);
        self.issues.add_many(Issue::DamagedInput, 0, u64::from(cut_bytes > 0), detail);
        self.issues.add_many(Issue::BrokenEvent, 0, broken + broken_notes, facts::broken_events(broken, broken_notes));
        self.issues.add_many(Issue::UnknownEvent, 0, unknown, facts::unknown_events(unknown));
    }

    /// Write the remaining rows, and complete the manifest from the notes.
    fn finish(&mut self, families: &mut Families, notes: &SpoolNotes) -> Result<(), BpfError> {
        self.see_what_was_watched();
        families.finish(self)?;
        notes.write_marks(self.recording, &self.clock, &self.threads)?;
        self.issues.flush(self.recording)?;
        let manifest = &mut self.recording.manifest;
        manifest.cover(self.first_ns.unwrap_or(0), self.last_ns);
        let capture = manifest.capture_mut();
        capture.issues = self.issues.counts.iter().map(|(issue, count)| ((*issue).into(), *count)).collect();
        let kind = if self.clock.is_known() { "epoch" } else { "relative" };
        capture.clock = sysdock_table::Clock {
            kind: kind.into(),
            resolution_ns: 1,
            has_durations: true,
            durations: "elapsed".into(),
            includes_tracer: false,
            stamps: "entry".into(),
            note: self.clock.note(),
        };
        notes.describe(manifest, &self.threads.tasks);
        Ok(())
    }
}

/// Add the spool to the manifest, as a source.
fn describe_source(spool: &Path, survey: &Survey, recording: &mut Recording) {
    let path = spool.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let source = Source { path, bytes: survey.bytes, lines: survey.events, temporary: true, ..Source::default() };
    recording.manifest.capture_mut().sources = vec![source];
}
