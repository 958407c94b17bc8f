//! Imports the text of a log into the tables of a recording.

use std::{
    collections::VecDeque,
    fs::File,
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::NaiveDate;
use sysdock_calls::{ABOUT, CallRows, Issue, Issues, MappingRows, RESTARTED_CALLS, SignalRows, syscalls::Calls};
use sysdock_table::{
    Cancel, Ending, Manifest, Progress, ROWS_PER_PART, Recording, Source, TableError, codes, facts::issues as facts,
};

use crate::{
    aio::UnderWay,
    align::{Estimate, Sightings},
    effects::STEPS_AT_FIRST,
    fields,
    foreign::{Sign, Tool},
    format::Format,
    input::Input,
    merge::{Feed, Merge, Step},
    output::Mixed,
    sessions,
    sockets::Sockets,
    stacks::Stacks,
    system::System,
    terminal::Terminal,
    threads::Half,
    truss::{self, Columns},
    waits::Waits,
};

/// Options for reading logs.
#[derive(Debug, Default)]
pub struct Options {
    /// Date of the first line, for logs with times of day only.
    pub date: Option<NaiveDate>,
    /// Working directory of the first process, if the recorder knows it.
    pub directory: Option<PathBuf>,
    /// Offset to add to the times of a log [ns], by the name of a log or host.
    pub offsets: Vec<(String, i64)>,
    /// Number of threads; 0: one per core.
    pub threads: usize,
    /// Continue to read a file that is still being written, until cancelled.
    pub follow: bool,
    /// A running tracer writes the log.
    pub live: bool,
    /// Name of the input if its path is not one (a pipe from a recorder).
    pub name: Option<String>,
    /// The logs are from truss, with these time columns. `None`: detect both.
    pub truss_columns: Option<Columns>,
}

/// Reason why an import failed.
#[derive(Debug)]
pub enum ImportError {
    /// The input cannot be opened or read.
    Input(PathBuf, io::Error),
    /// The input has no lines.
    Empty(PathBuf),
    /// No line was understood: this is not a strace log. Number of lines examined, beginning of the
    /// first line, and the tool that it looks like.
    NotStrace(PathBuf, u64, String, Option<Tool>),
    /// The log is from another tool, with lines that may look like calls.
    Foreign(PathBuf, Sign),
    /// An offset names a log that is not among the inputs.
    NoSuchLog(String, Vec<String>),
    /// The recording cannot be written.
    Table(TableError),
}

impl From<TableError> for ImportError {
    fn from(error: TableError) -> Self {
        ImportError::Table(error)
    }
}

codes!(ImportError {
    Input: "input",
    Empty: "empty",
    NotStrace: "not-strace",
    Foreign: "foreign",
    NoSuchLog: "no-such-log",
    Table: "table",
});

/// The initial manifest of a recording made from a log, live or imported.
#[must_use]
pub fn manifest(recorder: &str) -> Manifest {
    Manifest::new(recorder, "lines", ABOUT)
}

/// Number of lines between progress reports. An input without a single line understood by then is
/// refused without reading the rest.
const LINES_PER_REPORT: u64 = 4096;
/// Number of lines between readings of the clock.
const LINES_PER_LOOK: u64 = 1024;

/// Logs that were opened but not read yet.
pub struct Logs {
    merge: Merge,
    /// Name of each session.
    sessions: Vec<String>,
}

impl Logs {
    /// Open logs; `-` is standard input.
    ///
    /// # Errors
    /// [`ImportError::Input`] if one cannot be opened; [`ImportError::Empty`] if one is an empty
    /// file.
    pub fn open(paths: &[PathBuf], options: &Options) -> Result<Self, ImportError> {
        let mut feeds = Vec::new();
        for path in paths {
            let failed = |error| ImportError::Input(path.clone(), error);
            let input = Input::inspect(path).map_err(failed)?;
            // In a -ff set, threads that were killed right after their creation may have left empty
            // files.
            if input.size == Some(0) && paths.len() == 1 {
                return Err(ImportError::Empty(path.clone()));
            }
            let mut feed = Feed::open(input, paths.len(), options.date, options.follow).map_err(failed)?;
            feed.truss_columns = options.truss_columns;
            feeds.push(feed);
        }
        if feeds.len() > 1 {
            feeds.iter_mut().for_each(Feed::examine);
        }
        let sessions = sessions::assign(&mut feeds);
        sessions::shift(&mut feeds, &sessions, &options.offsets)?;
        Ok(Logs { merge: Merge::new(feeds), sessions })
    }

    /// A log that a recorder writes into a pipe.
    ///
    /// # Errors
    /// [`ImportError::Input`] if it cannot be read.
    pub fn of_pipe(pipe: File, options: &Options) -> Result<Self, ImportError> {
        let feed = Feed::open(Input::of_pipe(pipe), 1, options.date, false);
        let mut feed = feed.map_err(|error| ImportError::Input(PathBuf::from("<pipe>"), error))?;
        feed.format = Some(Format::Strace);
        Ok(Logs { merge: Merge::new(vec![feed]), sessions: vec![String::new()] })
    }

    /// Read everything into the tables `calls`, `signals`, `import_issues`, `processes`, `paths`,
    /// `commands`, and fill in the manifest.
    ///
    /// Returns how it ended; the caller finishes the recording. On cancellation the tables have
    /// what was read so far.
    ///
    /// # Errors
    /// [`ImportError::NotStrace`] if nothing was understood, [`ImportError::Empty`] if there was no
    /// line, [`ImportError::Table`] if the recording cannot be written; closed parts stay readable.
    pub fn import(
        self,
        recording: &mut Recording,
        options: &Options,
        cancel: &Cancel,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Ending, ImportError> {
        let (mut merge, sessions) = (self.merge, self.sessions);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 { cores } else { options.threads };
        merge.parse_ahead(threads - 1);
        for table in sysdock_calls::TABLES {
            recording.manifest.tables.entry((*table).into()).or_default();
        }
        recording.manifest.capture_mut().sources = merge.feeds.iter().map(|feed| source(&feed.input.path, options)).collect();
        for (source, feed) in recording.manifest.capture_mut().sources.iter_mut().zip(&merge.feeds) {
            source.offset_ns = feed.shift_ns;
        }
        let mut import = Import::new(recording, options, &merge, sessions, threads > 1);
        let ending = import.read(&mut merge, cancel, progress)?;
        import.judge(&merge, true)?;
        import.finish(&mut merge, ending)
    }

    /// Read everything and write nothing. Returns lines, those that are missing from the tables, and calls; `None` if it was refused.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn rebuild(self, recording: &mut Recording, options: &Options) -> Option<(u64, u64, u64)> {
        let (mut merge, sessions) = (self.merge, self.sessions);
        recording.manifest.capture_mut().sources = merge.feeds.iter().map(|feed| source(&feed.input.path, options)).collect();
        let mut import = Import::new(recording, options, &merge, sessions, false);
        import.read(&mut merge, &Cancel::default(), &mut |_| {}).ok()?;
        import.judge(&merge, true).ok()?;
        import.complete(&merge, Ending::EndOfInput).ok()?;
        Some((import.lines + merge.left_out(), import.issues.lines_lost, import.rows.total()))
    }

    /// Read everything without writing, and estimate the offsets between the clocks of the logs, by
    /// name; `None` if no shared file shows it. `recording` is a scratch folder.
    ///
    /// # Errors
    /// As for [`Logs::import`].
    pub fn compare_clocks(
        self,
        recording: &mut Recording,
        options: &Options,
        cancel: &Cancel,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<(String, Option<Estimate>)>, ImportError> {
        let (mut merge, sessions) = (self.merge, self.sessions);
        let mut import = Import::new(recording, options, &merge, sessions.clone(), false);
        import.sightings = Some(Sightings::default());
        import.read(&mut merge, cancel, progress)?;
        import.judge(&merge, true)?;
        let count = u32::try_from(sessions.len()).expect("fewer than 2^32 logs");
        let estimates = import.sightings.as_ref().map_or_else(Vec::new, |sightings| sightings.offsets(count));
        Ok(sessions.into_iter().zip(estimates).collect())
    }
}

fn source(path: &Path, options: &Options) -> Source {
    let path = match &options.name {
        Some(name) => name.clone(),
        None if path == Path::new("-") => "<stdin>".into(),
        None => path.to_string_lossy().into_owned(),
    };
    // Only a pipe from a recorder has a name.
    Source { path, temporary: options.name.is_some(), ..Source::default() }
}

/// Refuse logs of other tools that the lines read so far reveal.
fn refuse_foreign(merge: &Merge) -> Result<(), ImportError> {
    let foreign = merge.feeds.iter().find_map(|feed| Some((feed.input.path.clone(), feed.foreign()?)));
    foreign.map_or(Ok(()), |(path, sign)| Err(ImportError::Foreign(path, sign)))
}

/// An import in progress.
pub(crate) struct Import<'a> {
    pub(crate) recording: &'a mut Recording,
    pub(crate) system: System,
    pub(crate) calls: Calls,
    pub(crate) rows: CallRows,
    pub(crate) signals: SignalRows,
    pub(crate) mappings: MappingRows,
    pub(crate) stacks: Stacks,
    pub(crate) waits: Waits,
    pub(crate) sockets: Sockets,
    pub(crate) aio: UnderWay,
    /// State of each session's terminal log.
    pub(crate) terminals: Vec<Terminal>,
    /// Names of the sessions.
    sessions: Vec<String>,
    follow: bool,
    /// What had been read when it was first asked to stop [B].
    read_before_stop: Option<u64>,
    live: bool,
    /// Whether a killed import can be repeated: all inputs are files that are read to their ends.
    repeatable: bool,
    /// Sightings of files, if clocks are to be compared.
    pub(crate) sightings: Option<Sightings>,
    pub(crate) issues: Issues,
    pub(crate) lines: u64,
    started: Instant,
    last_checkpoint: Instant,
    pub(crate) rows_since_checkpoint: u64,
    /// Whether the last read was interrupted before it found a line.
    idle: bool,
    /// Number of calls, signals and exits that were understood: only a strace log has them.
    pub(crate) events: u64,
    /// Beginning of the first line, for the error message if nothing is understood.
    pub(crate) first_line: String,
    /// A call that continues after a program's output.
    pub(crate) mixed: Option<Box<Mixed>>,
    /// Threads that entered `write` most recently.
    pub(crate) writers: VecDeque<i32>,
    /// Lines that were taken for output are being read again.
    pub(crate) giving_back: bool,
    /// Number of lines of programs' own output within calls.
    pub(crate) output_lines: u64,
    /// Inside the table that `-c` and `-C` print.
    pub(crate) in_summary: bool,
    pub(crate) has_durations: bool,
    /// Time of the first event, and end of the last one.
    pub(crate) first_ns: Option<i64>,
    pub(crate) last_ns: i64,
    /// Both halves of a call, joined.
    pub(crate) joined: Vec<u8>,
    /// Halves that are done, kept to reuse their buffers.
    #[expect(clippy::vec_box, reason = "they go from here to threads and back, and are large")]
    pub(crate) spare_halves: Vec<Box<Half>>,
    /// Number of interrupted calls that were started again: lines that became part of another
    /// line's call.
    pub(crate) restarted_calls: u64,
    /// Source and number of the current line.
    pub(crate) place: (usize, u64),
    pub(crate) truss: truss::State,
}

impl<'a> Import<'a> {
    fn new(recording: &'a mut Recording, options: &Options, merge: &Merge, sessions: Vec<String>, in_parallel: bool) -> Self {
        let cwd = options.directory.as_ref().map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        Import {
            recording,
            system: System {
                first_cwd: cwd,
                merged: merge.feeds.len() > 1,
                rename_steps: STEPS_AT_FIRST,
                no_clock: merge.feeds.len() > 1 && merge.feeds.iter().any(|feed| !feed.has_clock()),
                ..System::default()
            },
            terminals: sessions.iter().map(|_| Terminal::default()).collect(),
            sessions,
            follow: options.follow,
            read_before_stop: None,
            live: options.live,
            repeatable: !options.follow && !options.live && merge.feeds.iter().all(|feed| feed.input.size.is_some()),
            sightings: None,
            calls: Calls::new(),
            rows: CallRows::new(in_parallel),
            signals: SignalRows::default(),
            mappings: MappingRows::default(),
            stacks: Stacks::default(),
            waits: Waits::default(),
            sockets: Sockets::default(),
            aio: UnderWay::default(),
            issues: Issues::default(),
            lines: 0,
            started: Instant::now(),
            last_checkpoint: Instant::now(),
            rows_since_checkpoint: 0,
            idle: false,
            events: 0,
            first_line: String::new(),
            in_summary: false,
            has_durations: false,
            first_ns: None,
            last_ns: i64::MIN,
            joined: Vec::new(),
            spare_halves: Vec::new(),
            restarted_calls: 0,
            mixed: None,
            writers: VecDeque::new(),
            giving_back: false,
            output_lines: 0,
            place: (0, 0),
            truss: truss::State::default(),
        }
    }

    fn read(&mut self, merge: &mut Merge, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<Ending, ImportError> {
        loop {
            match merge.next() {
                Step::End => {
                    self.end_mixed()?;
                    return Ok(Ending::EndOfInput);
                }
                Step::Interrupted if self.follow && self.all_ended() => return Ok(Ending::EndOfInput),
                Step::Interrupted => self.idle = true,
                Step::Line(source) => {
                    self.idle = false;
                    if self.lines == 0 {
                        refuse_foreign(merge)?;
                    }
                    self.line(&merge.item(source))?;
                    // Most lines need nothing else.
                    let common = self.rows_since_checkpoint < ROWS_PER_PART && !self.lines.is_multiple_of(LINES_PER_LOOK);
                    if common && !cancel.requested() {
                        continue;
                    }
                }
            }
            if self.rows_since_checkpoint >= ROWS_PER_PART || self.checkpoint_is_due() {
                self.checkpoint(merge)?;
            }
            if self.idle || self.lines.is_multiple_of(LINES_PER_REPORT) {
                if self.lines == LINES_PER_REPORT {
                    self.judge(merge, false)?;
                }
                progress(Progress { bytes_done: merge.bytes(), bytes_total: merge.size(), lines: self.lines + merge.left_out() });
            }
            if cancel.requested() && self.may_stop(merge) {
                return Ok(Ending::Interrupted);
            }
        }
    }

    /// Whether an import that is to stop does so here. All of a followed log that was read before
    /// is in the recording.
    fn may_stop(&mut self, merge: &Merge) -> bool {
        let read = *self.read_before_stop.get_or_insert(merge.bytes());
        !self.follow || self.idle || merge.bytes() > read
    }

    /// Whether every process that was seen has ended, so that a followed log will not grow.
    fn all_ended(&self) -> bool {
        !self.system.threads.tasks.is_empty() && self.system.threads.all_ended()
    }

    /// The first checkpoint is after ten seconds, or after one second while a program is traced;
    /// later ones come after a tenth of the elapsed time. A killed recorder loses no more than
    /// that, and long recordings do not consist of thousands of parts. Files need none: the parts of
    /// their recordings do not depend on how fast they were read.
    fn checkpoint_is_due(&self) -> bool {
        let first = Duration::from_secs(if self.live { 1 } else { 10 });
        // Reading the clock costs more than reading a line.
        !self.repeatable
            && (self.idle || self.lines.is_multiple_of(LINES_PER_LOOK))
            && self.rows_since_checkpoint > 0
            && self.last_checkpoint.elapsed() >= first.max(self.started.elapsed() / 10)
    }

    /// Make everything read so far readable, whatever happens next.
    fn checkpoint(&mut self, merge: &Merge) -> Result<(), TableError> {
        self.write_out(merge, false)?;
        self.recording.checkpoint()?;
        self.rows_since_checkpoint = 0;
        self.last_checkpoint = Instant::now();
        Ok(())
    }

    /// Refuse an input if nothing was understood, or if little was, without a single call that a
    /// kernel has.
    fn judge(&self, merge: &Merge, is_end: bool) -> Result<(), ImportError> {
        refuse_foreign(merge)?;
        let feed = &merge.feeds[0];
        let path = || feed.input.path.clone();
        let lines = self.lines + merge.left_out();
        // A log may begin with other text.
        let by_chance = is_end && self.events <= self.calls.unlisted() && self.issues.lines_lost > lines / 2;
        match lines {
            0 => Err(ImportError::Empty(path())),
            _ if self.events == 0 || by_chance => {
                Err(ImportError::NotStrace(path(), lines, self.first_line.clone(), feed.likeness))
            }
            _ => Ok(()),
        }
    }

    /// Write the rest, and state how complete it is.
    fn finish(mut self, merge: &mut Merge, ending: Ending) -> Result<Ending, ImportError> {
        let ending = self.complete(merge, ending)?;
        self.write_out(merge, true)?;
        Ok(ending)
    }

    /// Close the calls and threads without an end in the log.
    fn complete(&mut self, merge: &Merge, mut ending: Ending) -> Result<Ending, TableError> {
        self.end_mixed()?;
        let open: Vec<usize> =
            self.system.threads.running().filter(|(_, thread)| thread.half().is_some()).map(|(index, _)| index).collect();
        for thread in open {
            let Some(half) = self.system.threads.take_half(thread) else { continue };
            let tid = self.system.threads.tasks[self.system.threads.get(thread).task].tid;
            let detail = facts::no_end(String::from_utf8_lossy(fields::name(&half.text)).into_owned(), tid);
            self.issues.add(Issue::UnfinishedAtEnd, half.place, &half.text, Some(detail));
            self.open_call(thread, &half)?;
        }
        let interrupted: Vec<usize> =
            self.system.threads.running().filter(|(_, thread)| !thread.interrupted.is_empty()).map(|(index, _)| index).collect();
        for thread in interrupted {
            self.give_up_interrupted(thread)?;
        }
        self.lost_starts()?;
        self.never_reaped()?;
        self.end_killed()?;
        for (source, feed) in merge.feeds.iter().enumerate() {
            for what in feed.wrapped() {
                self.issues.add(Issue::Wrapped, (source, 0), b"", Some(what));
            }
            if let Some(error) = feed.failure() {
                self.issues.add(
                    Issue::DamagedInput,
                    (source, 0),
                    b"",
                    Some(facts::read_error(error.to_string(), feed.line_number)),
                );
                ending = Ending::InputError;
            }
        }
        Ok(ending)
    }

    /// Write all rows and the import's part of the manifest; at the end, also sums over all rows.
    fn write_out(&mut self, merge: &Merge, is_end: bool) -> Result<(), TableError> {
        self.stacks.close(&mut self.rows);
        self.rows.flush(self.recording, self.calls.names(), is_end)?;
        self.signals.flush(self.recording)?;
        self.mappings.flush(self.recording, true)?;
        self.stacks.write(self.recording)?;
        self.issues.flush(self.recording)?;
        sysdock_calls::write_processes(self.recording, &self.system.threads.tasks, &self.sessions)?;
        sysdock_calls::write_paths(self.recording, &self.system.objects)?;
        sysdock_calls::write_commands(self.recording, &self.system.commands.names)?;
        if is_end {
            self.write_path(merge)?;
            self.sockets.write(self.recording)?;
        }
        self.describe(merge);
        Ok(())
    }

    /// Write the critical path, only if all times come from one clock and one command.
    fn write_path(&mut self, merge: &Merge) -> Result<(), TableError> {
        if !self.has_durations || self.truss.seen || self.sessions.len() != 1 || !merge.feeds[0].has_clock() {
            return Ok(());
        }
        let System { objects, threads, .. } = &self.system;
        self.waits.write(self.recording, self.calls.names(), objects, &threads.tasks, self.last_ns)
    }

    fn describe(&mut self, merge: &Merge) {
        let tasks = &self.system.threads.tasks;
        let manifest = &mut self.recording.manifest;
        manifest.cover(self.first_ns.unwrap_or(0), self.last_ns);
        let capture = manifest.capture_mut();
        capture.total = self.lines + merge.left_out();
        capture.understood = capture.total - self.issues.lines_lost;
        capture.counts.insert(RESTARTED_CALLS.into(), self.restarted_calls);
        if self.output_lines > 0 {
            capture.counts.insert("output_lines".into(), self.output_lines);
        }
        capture.clock = merge.feeds[0].describe_clock(self.has_durations);
        if merge.feeds[0].times.is_some() {
            capture.recorder = "truss-log".into();
        }
        capture.issues = self.issues.counts.iter().map(|(issue, count)| ((*issue).into(), *count)).collect();
        for (source, feed) in capture.sources.iter_mut().zip(&merge.feeds) {
            source.bytes = feed.bytes();
            source.lines = feed.line_number;
        }
        if let Some(first) = tasks.first() {
            manifest.exit_code = first.exit_code;
            manifest.exit_signal.clone_from(&first.exit_signal);
            if manifest.command.is_none() {
                manifest.command = first.program.as_ref().map(|program| program.command.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// Calls in the recording of a log of 500 calls, if the import is to stop before it begins.
    fn calls_at_once(follow: bool) -> u64 {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let text = (0..500).fold(String::new(), |mut text, number| {
            writeln!(text, "4242 1700000000.{number:06} close(3) = 0").unwrap();
            text
        });
        std::fs::write(&log, text).unwrap();
        let options = Options { follow, threads: 1, ..Options::default() };
        let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("test", "events", "calls")).unwrap();
        let cancel = Cancel::default();
        cancel.request();
        let ending = Logs::open(&[log], &options).unwrap().import(&mut recording, &options, &cancel, &mut |_| {}).unwrap();
        assert_eq!(ending, Ending::Interrupted);
        recording.finish(ending).unwrap().tables["calls"].rows
    }

    #[test]
    fn following_stops_behind_what_was_read() {
        assert_eq!(calls_at_once(true), 500);
        assert!(calls_at_once(false) < 500);
    }
}
