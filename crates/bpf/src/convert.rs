//! From a spool to the tables of a recording.
//!
//! Twice over the spool: [`Survey`] finds what is whole, and where files lie; then all events are merged by time and become rows. Calls stand
//! in the order of their ends, as in a log of strace. Of all that grows with the recording, only paths and lives stay in memory.

use std::{collections::VecDeque, path::Path};

use rustc_hash::FxHashMap;
use sysdock_calls::{
    ABOUT, CallRows, Issue, Issues, MappingRows, Objects, RESTARTED_CALLS, SignalRows, write_commands, write_paths,
    write_processes,
};
use sysdock_table::{Cancel, Ending, Manifest, Progress, ROWS_PER_PART, Recording, Source, rows};

use crate::{
    BpfError, End, Note, Reason, SPOOL, Start,
    aio::UnderWay,
    clock::Clock,
    events::{Raw, Signal, kind},
    families::{CACHE, FAULTS, URING},
    faults::FaultRows,
    file_cache::PageIoRows,
    meanings::Meanings,
    places::Places,
    stacks::Stacks,
    streams::Merge,
    survey::Survey,
    threads::{Thread, Threads},
    words,
};

/// A call that moved a position: its end, life and row.
type Move = (i64, u32, u64);

/// Word for this recorder in recording.json.
const RECORDER: &str = "kernel";

/// Tables that a conversion fills. Listed from the start: an empty table is a statement, a missing one is not.
const TABLES: [&str; 8] = ["calls", "commands", "import_issues", "mappings", "paths", "processes", "signals", "stacks"];

/// Events after which progress is reported, and a request to stop is heeded.
const EVENTS_PER_REPORT: u64 = 65_536;

/// What recording.json says of a recording that the kernel recorder begins.
#[must_use]
pub fn manifest() -> Manifest {
    Manifest::new(RECORDER, "events", ABOUT)
}

/// Fill the tables of a recording from a spool, and its manifest. Nobody may be writing the spool any more.
///
/// Returns how recording ended: [`Ending::EndOfInput`] if all of it is there, [`Ending::Interrupted`] if the user, or whoever killed the
/// recorder, stopped it, or if `cancel` stopped the conversion, [`Ending::WriteError`] if the disk was full, [`Ending::InputError`] if parts of
/// the spool are damaged. The caller finishes the recording
/// with it and then removes the spool.
///
/// # Errors
/// [`BpfError::NotASpool`] if nothing can be read of it, [`BpfError::InUse`], [`BpfError::Spool`]; [`BpfError::Table`] if the recording cannot
/// be written. The spool is never changed.
pub fn convert(
    spool: &Path,
    recording: &mut Recording,
    cancel: &Cancel,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ending, BpfError> {
    let survey = Survey::of(spool, cancel)?;
    for table in TABLES {
        recording.manifest.tables.entry(table.into()).or_default();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let story = Story::of(&survey);
    for (family, table) in [(FAULTS, "file_faults"), (CACHE, "file_cache")] {
        if story.start.records(family) {
            recording.manifest.tables.entry(table.into()).or_default();
        }
    }
    let mut conversion = Conversion::new(recording, &survey, cores > 1);
    conversion.describe_source(spool, &survey);
    conversion.sees_rings = story.start.records(URING);
    let (bytes, events) = (survey.bytes, survey.total());
    let (mut merge, places, images, codes) = {
        let Survey { file, streams, places, images, codes, .. } = survey;
        (Merge::new(file, streams).map_err(|error| BpfError::spool(spool, error))?, places, images, codes)
    };
    conversion.places = places;
    conversion.stacks.frames.images = images;
    conversion.stacks.codes = codes;
    let Start { pid, directory, .. } = &story.start;
    conversion.command = (pid.map_or(-1, i64::from), directory.clone().unwrap_or_default().into_bytes());
    let mut done = 0u64;
    while let Some(event) = merge.next().map_err(|error| BpfError::spool(spool, error))? {
        conversion.event(&event)?;
        done += 1;
        if done.is_multiple_of(EVENTS_PER_REPORT) {
            conversion.checkpoint_if_due()?;
            let bytes_done = (u128::from(bytes) * u128::from(done) / u128::from(events.max(1))) as u64;
            progress(Progress { bytes_done, bytes_total: Some(bytes), lines: done });
            if cancel.requested() {
                break;
            }
        }
    }
    conversion.finish(&story)?;
    Ok(if cancel.requested() { Ending::Interrupted } else { story.ending() })
}

/// Make the tables of a folder whose recorder died, from the spool that it left. What an earlier attempt left is made anew; the
/// table `environment`, which comes not from the spool, is kept. The caller removes the spool.
///
/// # Errors
/// As for [`convert`]; [`BpfError::Table`] with [`sysdock_table::TableError::Exists`] if the folder is no unfinished recording.
pub fn salvage(folder: &Path, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<Manifest, BpfError> {
    let spool = folder.join(SPOOL);
    // Whoever still writes it is found before anything is changed.
    drop(crate::frames::Frames::open(&spool)?);
    let mut recording = Recording::reopen(folder, manifest(), &["environment"])?;
    let outcome = convert(&spool, &mut recording, cancel, progress);
    let ending = match &outcome {
        Ok(ending) => *ending,
        Err(BpfError::Table(_)) => Ending::WriteError,
        Err(_) => Ending::InputError,
    };
    let finished = recording.finish(ending);
    outcome?;
    Ok(finished?)
}

/// What the notes tell.
#[derive(Debug, Default)]
struct Story {
    start: Start,
    end: Option<End>,
    /// Lost events by kind.
    lost: Vec<(u8, u64)>,
    /// Events that cannot be read, in frames that can.
    broken: u64,
    unknown: u64,
    events: u64,
    /// Whether bytes before the end are missing.
    damaged: bool,
}

impl Story {
    fn of(survey: &Survey) -> Self {
        let mut story = Story {
            broken: survey.broken + survey.broken_notes,
            unknown: survey.unknown(),
            events: survey.total(),
            damaged: survey.damages > 0,
            ..Story::default()
        };
        let mut drops: FxHashMap<(u32, u8), u64> = FxHashMap::default();
        for note in &survey.notes {
            match note {
                Note::Start(start) => story.start = start.clone(),
                Note::Drops { cpu, kind, count, .. } => {
                    let most = drops.entry((*cpu, *kind)).or_default();
                    *most = (*most).max(*count);
                }
                Note::End(end) => story.end = Some(end.clone()),
                Note::Clock { .. } | Note::Unknown => {}
            }
        }
        for ((_, kind), count) in drops {
            match story.lost.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => story.lost.push((kind, count)),
            }
        }
        story
    }

    fn ending(&self) -> Ending {
        match self.end.as_ref().map(|end| end.reason) {
            Some(Reason::Done) if self.damaged => Ending::InputError,
            Some(Reason::Done) => Ending::EndOfInput,
            Some(Reason::Full) => Ending::WriteError,
            Some(Reason::Interrupted) | None => Ending::Interrupted,
        }
    }
}

/// A conversion under way.
pub(crate) struct Conversion<'a> {
    pub(crate) recording: &'a mut Recording,
    pub(crate) clock: Clock,
    pub(crate) meanings: Meanings,
    pub(crate) threads: Threads,
    pub(crate) places: Places,
    pub(crate) objects: Objects,
    pub(crate) rows: CallRows,
    signals: SignalRows,
    pub(crate) mappings: MappingRows,
    pub(crate) faults: FaultRows,
    pub(crate) page_io: PageIoRows,
    pub(crate) stacks: Stacks,
    pub(crate) issues: Issues,
    /// Numbers of errors and open flags in the rows; -1: none yet.
    pub(crate) errno_numbers: Vec<i16>,
    pub(crate) open_flag_numbers: FxHashMap<u64, i16>,
    pub(crate) full_path: Vec<u8>,
    /// By process and descriptor, the last calls that moved the position.
    pub(crate) last_moves: FxHashMap<(i32, i32), VecDeque<Move>>,
    /// Process id of the command, -1 if there is none, and the directory that it was started in.
    pub(crate) command: (i64, Vec<u8>),
    pub(crate) unknown_paths: u64,
    /// Calls that set up an io_uring.
    pub(crate) rings: u64,
    /// Whether what those do was recorded.
    pub(crate) sees_rings: bool,
    pub(crate) restarted: u64,
    pub(crate) aio: UnderWay,
    first_ns: Option<i64>,
    last_ns: i64,
    /// Rows at the last checkpoint.
    rows_written: u64,
}

impl<'a> Conversion<'a> {
    fn new(recording: &'a mut Recording, survey: &Survey, beside: bool) -> Self {
        let pairs = survey.notes.iter().filter_map(|note| match note {
            Note::Clock { monotonic_ns, realtime_ns } => Some((*monotonic_ns, *realtime_ns)),
            _ => None,
        });
        Conversion {
            recording,
            clock: Clock::new(pairs),
            meanings: Meanings::new(),
            threads: Threads::default(),
            places: Places::default(),
            objects: Objects::default(),
            rows: CallRows::new(beside),
            signals: SignalRows::default(),
            mappings: MappingRows::default(),
            faults: FaultRows::default(),
            page_io: PageIoRows::default(),
            stacks: Stacks::default(),
            issues: Issues::default(),
            errno_numbers: vec![-1; 4096],
            open_flag_numbers: FxHashMap::default(),
            full_path: Vec::new(),
            last_moves: FxHashMap::default(),
            command: (-1, Vec::new()),
            unknown_paths: 0,
            rings: 0,
            sees_rings: false,
            restarted: 0,
            aio: UnderWay::default(),
            first_ns: None,
            last_ns: i64::MIN,
            rows_written: 0,
        }
    }

    fn event(&mut self, event: &Raw<'_>) -> Result<(), BpfError> {
        let at_ns = self.clock.epoch_ns(event.at_ns().unwrap_or(0));
        let gone = match event.kind {
            kind::STACK => {
                event.stack().iter().for_each(|part| self.stacks.part(part));
                return Ok(());
            }
            kind::PYTHON => {
                event.python().iter().for_each(|frames| self.stacks.python(frames));
                return Ok(());
            }
            kind::CALL => return event.call().map_or(Ok(()), |call| self.call(&call)),
            kind::FORK => event.fork().and_then(|fork| self.threads.fork(&fork, at_ns)),
            kind::EXEC => event.exec().and_then(|exec| self.threads.exec(&exec, at_ns)),
            kind::EXIT => event.exit().and_then(|exit| self.threads.exit(&exit, at_ns)),
            kind::FAULT => return event.fault().map_or(Ok(()), |fault| self.fault(&fault)),
            kind::PAGE_IO => return event.page_io().map_or(Ok(()), |request| self.page_io(&request, at_ns)),
            kind::SIGNAL => return event.signal().map_or(Ok(()), |signal| self.signal(&signal, at_ns)),
            kind::AIO_SUBMIT => return event.aio_submit().map_or(Ok(()), |operation| self.aio_submitted(&operation, at_ns)),
            kind::AIO_DONE => return event.aio_done().map_or(Ok(()), |operation| self.aio_reaped(&operation, at_ns)),
            kind::TASK => {
                let begun_ns = self.clock.epoch_ns(self.clock.first_ns());
                let gone = event.task().and_then(|task| self.threads.task(&task, at_ns, begun_ns));
                return self.give_up_interrupted(gone.as_ref());
            }
            _ => None,
        };
        self.seen(at_ns, at_ns);
        self.give_up_interrupted(gone.as_ref())
    }

    /// The thread of an id. Most calls are of threads that are known.
    #[inline]
    pub(crate) fn thread(&mut self, tid: u32, now_ns: i64) -> usize {
        match self.threads.find(tid) {
            Some(index) => index,
            None => self.threads.thread(tid, None, now_ns),
        }
    }

    /// A thread is no longer there: its interrupted calls stay so.
    fn give_up_interrupted(&mut self, thread: Option<&Thread>) -> Result<(), BpfError> {
        thread.into_iter().flat_map(|thread| &thread.interrupted).try_for_each(|row| self.push(row))
    }

    fn signal(&mut self, event: &Signal, at_ns: i64) -> Result<(), BpfError> {
        self.seen(at_ns, at_ns);
        let thread = self.thread(event.tid, at_ns);
        let sender = words::has_sender(event.signal, event.code, event.sender_pid);
        let row = rows::Signals {
            ts_ns: at_ns,
            life_id: self.threads.get_mut(thread).life as i32,
            signal: words::signal(event.signal).into(),
            code: Some(words::signal_code(event.signal, event.code).into()),
            sender_pid: sender.then_some(event.sender_pid.cast_signed()),
        };
        if self.signals.push(&row) {
            self.signals.flush(self.recording)?;
        }
        Ok(())
    }

    /// Something took this time.
    #[inline]
    pub(crate) fn seen(&mut self, from_ns: i64, to_ns: i64) {
        self.first_ns = Some(self.first_ns.map_or(from_ns, |first| first.min(from_ns)));
        self.last_ns = self.last_ns.max(to_ns);
    }

    /// Parts are of a size at which readers can still divide their work.
    fn checkpoint_if_due(&mut self) -> Result<(), BpfError> {
        if self.rows.total() - self.rows_written >= ROWS_PER_PART {
            self.rows_written = self.rows.total();
            self.rows.flush(self.recording, self.meanings.calls.names())?;
            self.recording.checkpoint()?;
        }
        Ok(())
    }

    /// What the spool itself lacks.
    fn describe_source(&mut self, spool: &Path, survey: &Survey) {
        let path = spool.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.recording.manifest.capture_mut().sources =
            vec![Source { path, bytes: survey.bytes, lines: survey.total(), temporary: true, ..Source::default() }];
        let Survey { damaged_bytes, damages, cut_bytes, broken, broken_notes, .. } = *survey;
        let detail = format!("{damaged_bytes} bytes in {damages} places are damaged");
        self.issues.add_many(Issue::DamagedInput, 0, damages, detail);
        let detail = format!("the last {cut_bytes} bytes are no whole frame: the recorder was stopped while it wrote them");
        self.issues.add_many(Issue::DamagedInput, 0, u64::from(cut_bytes > 0), detail);
        self.issues.add_many(Issue::BrokenEvent, 0, broken + broken_notes, format!("{broken} events, {broken_notes} notes"));
        self.issues.add_many(Issue::UnknownEvent, 0, survey.unknown(), format!("{} events", survey.unknown()));
    }

    /// Write what is left, and the manifest's part of the story.
    fn finish(&mut self, story: &Story) -> Result<(), BpfError> {
        for thread in self.threads.running() {
            for row in std::mem::take(&mut self.threads.get_mut(thread).interrupted) {
                self.push(&row)?;
            }
        }
        self.aio_left()?;
        self.count_issues();
        self.count_stack_issues();
        self.rows.flush(self.recording, self.meanings.calls.names())?;
        self.signals.flush(self.recording)?;
        self.mappings.flush(self.recording, true)?;
        self.faults.flush(self.recording)?;
        self.page_io.flush(self.recording, true)?;
        self.stacks.write(self.recording)?;
        self.issues.flush(self.recording)?;
        write_processes(self.recording, &self.threads.lives, &[String::new()])?;
        write_paths(self.recording, &self.objects)?;
        write_commands(self.recording, &self.threads.commands.names)?;
        self.describe(story);
        Ok(())
    }

    fn describe(&mut self, story: &Story) {
        let lives = &self.threads.lives;
        let manifest = &mut self.recording.manifest;
        manifest.cover(self.first_ns.unwrap_or(0), self.last_ns);
        let capture = manifest.capture_mut();
        capture.total = story.events + story.broken;
        capture.understood = story.events - story.unknown;
        capture.counts.insert(RESTARTED_CALLS.into(), self.restarted);
        capture.issues = self.issues.counts.iter().map(|(issue, count)| ((*issue).into(), *count)).collect();
        let kind = if self.clock.is_known() { "epoch" } else { "relative" };
        capture.clock = sysdock_table::Clock {
            kind: kind.into(),
            resolution_ns: 1,
            has_durations: true,
            durations: "elapsed".into(),
            includes_tracer: false,
            stamps: "entry".into(),
            note: Some(self.clock.note()),
        };
        describe_command(manifest, story, lives);
        for (kind, count) in &story.lost {
            let capture = manifest.capture_mut();
            capture.lost = sum(capture.lost, *count);
            if let Some(table) = table_of(*kind).and_then(|table| manifest.tables.get_mut(table)) {
                table.lost = sum(table.lost, *count);
            }
        }
    }
}

/// A count that readers, whose integers have a sign, can read.
fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other).min(i64::MAX.cast_unsigned())
}

/// The table that lacks the lost events of a kind.
fn table_of(event: u8) -> Option<&'static str> {
    match event {
        kind::CALL | kind::AIO_SUBMIT | kind::AIO_DONE => Some("calls"),
        kind::PATH => Some("paths"),
        kind::FORK | kind::EXEC | kind::EXIT | kind::TASK => Some("processes"),
        kind::SIGNAL => Some("signals"),
        kind::FAULT => Some("file_faults"),
        kind::PAGE_IO => Some("file_cache"),
        kind::STACK | kind::MAPPED | kind::PROGRAM | kind::PYTHON | kind::PYTHON_CODE => Some("stacks"),
        _ => None,
    }
}

fn describe_command(manifest: &mut Manifest, story: &Story, lives: &[sysdock_calls::Life]) {
    let Start { command, directory, host, options, families, pid } = &story.start;
    manifest.command = manifest.command.take().or_else(|| command.clone());
    manifest.directory = manifest.directory.take().or_else(|| directory.clone());
    manifest.host = manifest.host.take().or_else(|| host.clone());
    let capture = manifest.capture_mut();
    capture.families.truncate(1);
    capture.families.extend_from_slice(families);
    if capture.options.is_empty() {
        capture.options.clone_from(options);
    }
    let first = pid.and_then(|pid| lives.iter().find(|life| life.tid == pid.cast_signed()));
    if let Some(end) = &story.end {
        manifest.exit_code = end.exit_code;
        manifest.exit_signal = end.exit_signal.map(words::signal);
    } else if let Some(first) = first {
        manifest.exit_code = first.exit_code;
        manifest.exit_signal.clone_from(&first.exit_signal);
    }
}
