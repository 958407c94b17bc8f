//! From log text to the tables of a recording.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use chrono::NaiveDate;
use sysdock_table::{Cancel, Ending, Progress, Recording, Source, TableError};

use crate::{
    effects::Context,
    fields::{self, Call, Returned},
    input::Input,
    line::Kind,
    merge::{Feed, Item, Merge, Step},
    rows::{self, CallRow, CallRows, Issue, Issues, NONE, SignalRow, SignalRows},
    syscalls::{Asked, Calls, Class, Shape},
    system::System,
    text,
    threads::Half,
};

/// How to read logs.
#[derive(Debug, Default)]
pub struct Options {
    /// Date of the first line, for logs that hold times of day only.
    pub date: Option<NaiveDate>,
    /// Working directory of the first process, where the recorder knows it.
    pub directory: Option<PathBuf>,
}

/// Why an import gave nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum ImportError {
    /// The input cannot be opened or read.
    Input(PathBuf, io::Error),
    /// The input holds no line.
    Empty(PathBuf),
    /// No line was understood: this is no strace log. The line numbers looked at, and the first line's beginning.
    NotStrace(PathBuf, u64, String),
    /// The recording cannot be written.
    Table(TableError),
}

impl From<TableError> for ImportError {
    fn from(error: TableError) -> Self {
        ImportError::Table(error)
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Input(path, error) => write!(f, "{}: {error}", path.display()),
            ImportError::Empty(path) => write!(f, "{}: empty", path.display()),
            ImportError::NotStrace(path, lines, _) => write!(f, "{}: nothing understood in {lines} lines", path.display()),
            ImportError::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}

/// Tables that an import fills. Listed from the start: an empty table is a statement, a missing one is not.
const TABLES: [&str; 6] = ["calls", "commands", "import_issues", "paths", "processes", "signals"];

/// Lines after which progress is reported. An input of which nothing was understood by then is refused without reading all of it.
const LINES_PER_REPORT: u64 = 4096;

/// Logs that were opened but not yet read.
pub struct Logs {
    merge: Merge,
}

impl Logs {
    /// Open logs; `-` is standard input.
    ///
    /// # Errors
    /// [`ImportError::Input`] if one cannot be opened; [`ImportError::Empty`] if one is an empty file.
    pub fn open(paths: &[PathBuf], options: &Options) -> Result<Self, ImportError> {
        let mut feeds = Vec::new();
        for path in paths {
            let failed = |error| ImportError::Input(path.clone(), error);
            let input = Input::inspect(path).map_err(failed)?;
            // Of a -ff set, threads that were born and killed at once may have left empty files.
            if input.size == Some(0) && paths.len() == 1 {
                return Err(ImportError::Empty(path.clone()));
            }
            feeds.push(Feed::open(input, options.date).map_err(failed)?);
        }
        Ok(Logs { merge: Merge::new(feeds) })
    }

    /// Read everything into the tables `calls`, `signals`, `import_issues`, `processes`, `paths`, `commands`, and fill in the manifest.
    ///
    /// Returns how it ended; the caller finishes the recording. On cancellation the tables hold what was read so far.
    ///
    /// # Errors
    /// [`ImportError::NotStrace`] if nothing was understood, [`ImportError::Empty`] if there was no line, [`ImportError::Table`] if the
    /// recording cannot be written; closed parts stay readable.
    pub fn import(
        self,
        recording: &mut Recording,
        options: &Options,
        cancel: &Cancel,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Ending, ImportError> {
        let mut merge = self.merge;
        for table in TABLES {
            recording.manifest.tables.entry(table.into()).or_default();
        }
        recording.manifest.sources = merge.feeds.iter().map(|feed| source(&feed.input.path)).collect();
        let mut import = Import::new(recording, options);
        let ending = import.read(&mut merge, cancel, progress)?;
        import.judge(&merge)?;
        import.finish(&mut merge, ending)
    }
}

fn source(path: &Path) -> Source {
    let path = if path == Path::new("-") { "<stdin>".into() } else { path.to_string_lossy().into_owned() };
    Source { path, ..Source::default() }
}

/// An import under way.
struct Import<'a> {
    recording: &'a mut Recording,
    system: System,
    calls: Calls,
    rows: CallRows,
    signals: SignalRows,
    issues: Issues,
    lines: u64,
    /// Lines that only a strace log has.
    events: u64,
    first_line: String,
    in_summary: bool,
    has_durations: bool,
    first_ns: Option<i64>,
    last_ns: i64,
    joined: Vec<u8>,
}

impl<'a> Import<'a> {
    fn new(recording: &'a mut Recording, options: &Options) -> Self {
        let cwd = options.directory.as_ref().map(|path| path.as_os_str().as_encoded_bytes().to_vec());
        Import {
            recording,
            system: System { first_cwd: cwd, ..System::default() },
            calls: Calls::new(),
            rows: CallRows::default(),
            signals: SignalRows::default(),
            issues: Issues::default(),
            lines: 0,
            events: 0,
            first_line: String::new(),
            in_summary: false,
            has_durations: false,
            first_ns: None,
            last_ns: i64::MIN,
            joined: Vec::new(),
        }
    }

    fn read(&mut self, merge: &mut Merge, cancel: &Cancel, progress: &mut dyn FnMut(Progress)) -> Result<Ending, ImportError> {
        loop {
            match merge.next() {
                Step::End => return Ok(Ending::EndOfInput),
                Step::Interrupted => {}
                Step::Item(item) => self.line(&item)?,
            }
            if self.lines.is_multiple_of(LINES_PER_REPORT) {
                if self.lines == LINES_PER_REPORT {
                    self.judge(merge)?;
                }
                progress(Progress { bytes_done: merge.bytes(), bytes_total: merge.size(), lines: self.lines });
            }
            if cancel.requested() {
                return Ok(Ending::Interrupted);
            }
        }
    }

    /// Refuse an input of which nothing was understood.
    fn judge(&self, merge: &Merge) -> Result<(), ImportError> {
        let path = || merge.feeds[0].input.path.clone();
        match (self.lines, self.events) {
            (0, _) => Err(ImportError::Empty(path())),
            (lines, 0) => Err(ImportError::NotStrace(path(), lines, self.first_line.clone())),
            _ => Ok(()),
        }
    }

    fn line(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        self.lines += 1;
        if self.lines == 1 {
            self.first_line = String::from_utf8_lossy(&item.text[..item.text.len().min(60)]).into_owned();
        }
        if item.too_long {
            return self.issue(Issue::LongLine, item, None);
        }
        let kind = crate::line::kind(item.event);
        if matches!(kind, Kind::Call | Kind::Resumed | Kind::Signal | Kind::Exit) {
            self.events += 1;
            self.in_summary = false;
            self.first_ns.get_or_insert(item.time_ns);
            self.last_ns = self.last_ns.max(item.time_ns);
        }
        match kind {
            Kind::Call => self.call(item),
            Kind::Resumed => self.resumed(item),
            Kind::Signal => self.signal(item),
            Kind::Exit => self.exit(item),
            Kind::Summary => {
                self.in_summary = true;
                Ok(())
            }
            Kind::Extra if !item.ended && item.event.is_empty() => self.issue(Issue::CutLine, item, None),
            Kind::Notice | Kind::Extra => Ok(()),
            Kind::Unknown if self.in_summary => Ok(()),
            Kind::Unknown if !item.ended => self.issue(Issue::CutLine, item, None),
            Kind::Unknown => self.issue(Issue::UnknownLine, item, None),
        }
    }

    /// The thread of a line.
    fn thread(&mut self, item: &Item<'_>) -> Result<usize, TableError> {
        let tid = item.tid.unwrap_or(0);
        let (index, guessed) = self.system.thread(tid, item.time_ns);
        if guessed {
            self.issue(Issue::ParentGuessed, item, Some(format!("tid {tid}: several threads were in fork")))?;
        }
        Ok(index)
    }

    fn call(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let event = item.event;
        let thread = self.thread(item)?;
        if let Some(text) = fields::unfinished(event) {
            return self.begin(item, thread, text);
        }
        match fields::parse(event) {
            // The last line, without its newline and without the duration that the others have: the result may be cut too.
            Ok(call) if !item.ended && self.has_durations && call.dur_ns.is_none() => self.issue(Issue::CutLine, item, None),
            Ok(call) => self.finish_call(thread, &call, item.time_ns, None),
            Err(_) if !item.ended => self.issue(Issue::CutLine, item, None),
            Err(error) => match fields::killed(event, &mut self.joined) {
                true => self.finish_joined(item, thread, item.time_ns, None),
                false => self.issue(Issue::BrokenCall, item, Some(format!("{error:?}"))),
            },
        }
    }

    /// A call whose end comes later.
    fn begin(&mut self, item: &Item<'_>, thread: usize, text: &[u8]) -> Result<(), TableError> {
        self.drop_half(item, thread)?;
        let name = fields::name(text);
        let (_, (_, shape)) = self.calls.number(name);
        let body = text.get(name.len() + 1..).unwrap_or_default();
        let held = self.system.hold(thread, shape, body);
        let place = (item.source, item.line_number);
        self.system.threads.get_mut(thread).half = Some(Half { text: text.to_vec(), started_ns: item.time_ns, place, held });
        Ok(())
    }

    /// A thread begins a call while one is open: its end is lost.
    fn drop_half(&mut self, item: &Item<'_>, thread: usize) -> Result<(), TableError> {
        let Some(half) = self.system.threads.get_mut(thread).half.take() else { return Ok(()) };
        let name = String::from_utf8_lossy(fields::name(&half.text)).into_owned();
        self.issue(Issue::StartWithoutEnd, item, Some(format!("{name} of line {}", half.place.1)))?;
        self.open_call(thread, &half)
    }

    fn resumed(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let thread = self.thread(item)?;
        let Some((name, tail)) = fields::resumed(item.event) else {
            let issue = if item.ended { Issue::UnknownLine } else { Issue::CutLine };
            return self.issue(issue, item, None);
        };
        let fits = self.system.threads.get(thread).half.as_ref().is_some_and(|half| fields::name(&half.text) == name);
        if !fits {
            self.drop_half(item, thread)?;
            return self.end_only(item, thread, name, tail);
        }
        let half = self.system.threads.get_mut(thread).half.take().expect("it fits");
        self.joined.clear();
        self.joined.extend_from_slice(&half.text);
        self.joined.extend_from_slice(tail);
        self.finish_joined(item, thread, half.started_ns, half.held)
    }

    /// Finish the call whose whole text is in `joined`.
    fn finish_joined(
        &mut self,
        item: &Item<'_>,
        thread: usize,
        started_ns: i64,
        held: Option<std::rc::Rc<crate::files::OpenFile>>,
    ) -> Result<(), TableError> {
        let joined = std::mem::take(&mut self.joined);
        let done = match fields::parse(&joined) {
            Ok(call) => self.finish_call(thread, &call, started_ns, held),
            Err(_) if !item.ended => self.issue(Issue::CutLine, item, None),
            Err(error) => self.issue(Issue::BrokenCall, item, Some(format!("joined: {error:?}"))),
        };
        self.joined = joined;
        done
    }

    /// The end of a call whose start is not in the log (the tracer was attached in mid-call): no arguments, but name, result, time.
    fn end_only(&mut self, item: &Item<'_>, thread: usize, name: &[u8], tail: &[u8]) -> Result<(), TableError> {
        let detail = format!("{}: its arguments are missing", String::from_utf8_lossy(name));
        self.issue(Issue::ResumedWithoutStart, item, Some(detail))?;
        self.joined.clear();
        self.joined.extend_from_slice(name);
        self.joined.push(b'(');
        self.joined.extend_from_slice(tail);
        let joined = std::mem::take(&mut self.joined);
        if let Ok(call) = fields::parse(&joined) {
            let started_ns = item.time_ns.saturating_sub(call.dur_ns.unwrap_or(0));
            let (number, (class, shape)) = self.calls.number(name);
            let mut row = self.row(thread, number, class, started_ns);
            self.fill_result(&mut row, &call.returned, call.dur_ns);
            if matches!(shape, Shape::Transfer(..) | Shape::Between { .. } | Shape::ReceiveMessage) {
                row.moved = row.result;
            }
            self.joined = joined;
            return self.push(thread, row);
        }
        self.joined = joined;
        Ok(())
    }

    fn finish_call(
        &mut self,
        thread: usize,
        call: &Call<'_>,
        started_ns: i64,
        held: Option<std::rc::Rc<crate::files::OpenFile>>,
    ) -> Result<(), TableError> {
        let (number, (class, shape)) = self.calls.number(call.name);
        let mut row = self.row(thread, number, class, started_ns);
        let facts = self.system.apply(shape, class, &Context { thread, call, held, started_ns });
        if row.comm < 0 {
            // The first exec names the program that it starts.
            row.comm = self.comm(thread);
        }
        self.fill_result(&mut row, &call.returned, call.dur_ns);
        row.fd = facts.fd.unwrap_or(-1);
        row.object = facts.object.map_or(-1, |object| object as i32);
        row.offset = facts.offset.unwrap_or(NONE);
        row.asked = facts.asked.unwrap_or(NONE);
        row.moved = facts.moved.unwrap_or(NONE);
        row.class = facts.class.unwrap_or(class) as u8;
        self.push(thread, row)
    }

    /// A call that never ended.
    fn open_call(&mut self, thread: usize, half: &Half) -> Result<(), TableError> {
        let row = self.half_row(thread, half);
        self.push(thread, row)
    }

    fn half_row(&mut self, thread: usize, half: &Half) -> CallRow {
        let name = fields::name(&half.text);
        let (number, (class, shape)) = self.calls.number(name);
        let mut row = self.row(thread, number, class, half.started_ns);
        let arguments = fields::partial_arguments(half.text.get(name.len() + 1..).unwrap_or_default());
        if let Some(file) = &half.held {
            row.fd = crate::effects::first_descriptor(&arguments).unwrap_or(-1);
            row.object = file.object.get().map_or(-1, |object| object as i32);
        }
        if let Shape::Transfer(Asked::Argument(index), _) = shape {
            row.asked = text::leading_number(arguments.get(index)).unwrap_or(NONE);
        }
        row
    }

    fn row(&self, thread: usize, call: u16, class: Class, ts_ns: i64) -> CallRow {
        let thread = self.system.threads.get(thread);
        CallRow {
            ts_ns,
            dur_ns: NONE,
            offset: NONE,
            asked: NONE,
            moved: NONE,
            result: NONE,
            pid: thread.pid,
            tid: thread.tid,
            comm: thread.program.as_ref().map_or(-1, |program| program.comm_id),
            fd: -1,
            object: -1,
            call,
            errno: -1,
            class: class as u8,
        }
    }

    fn comm(&self, thread: usize) -> i32 {
        self.system.threads.get(thread).program.as_ref().map_or(-1, |program| program.comm_id)
    }

    fn fill_result(&mut self, row: &mut CallRow, returned: &Returned<'_>, dur_ns: Option<i64>) {
        row.result = returned.value.unwrap_or(NONE);
        row.errno = returned.errno.map_or(-1, |errno| self.rows.errnos.number(errno));
        row.dur_ns = dur_ns.unwrap_or(NONE);
        self.has_durations |= dur_ns.is_some();
    }

    fn push(&mut self, thread: usize, row: CallRow) -> Result<(), TableError> {
        let life = self.system.threads.get(thread).life;
        self.push_of(life, row)
    }

    fn push_of(&mut self, life: usize, row: CallRow) -> Result<(), TableError> {
        self.system.threads.lives[life].calls += 1;
        self.last_ns = self.last_ns.max(row.ts_ns.saturating_add(row.dur_ns.max(0)));
        if self.rows.push(row) {
            // Before the write: it may close a part and save recording.json.
            self.note_coverage();
            self.rows.flush(self.recording, self.calls.names())?;
        }
        Ok(())
    }

    fn signal(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let thread = self.thread(item)?;
        let body = item.event.strip_prefix(b"--- ").and_then(|body| body.strip_suffix(b" ---")).unwrap_or_default();
        let Some(space) = memchr::memchr(b' ', body).filter(|_| body.starts_with(b"SIG")) else {
            return Ok(()); // `--- stopped by SIGSTOP ---`: a stop, not a delivery
        };
        let field = |name: &[u8]| {
            let at = memchr::memmem::find(body, name)? + name.len();
            Some(body[at..].split(|byte| matches!(byte, b',' | b'}' | b' ')).next().unwrap_or_default())
        };
        let words = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let at = self.system.threads.get(thread);
        let row = SignalRow {
            ts_ns: item.time_ns,
            pid: at.pid,
            tid: at.tid,
            signal: words(&body[..space.min(24)]),
            code: field(b"si_code=").map(|code| words(&code[..code.len().min(32)])),
            sender_pid: field(b"si_pid=").and_then(text::leading_number).and_then(|pid| i32::try_from(pid).ok()),
        };
        if self.signals.push(row) {
            self.signals.flush(self.recording)?;
        }
        Ok(())
    }

    fn exit(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let body = item.event.strip_prefix(b"+++ ").and_then(|body| body.strip_suffix(b" +++")).unwrap_or_default();
        let thread = self.thread(item)?;
        if let Some(winner) = body.strip_prefix(b"superseded by execve in pid ") {
            if let Some(winner) = text::leading_number(winner).and_then(|tid| i32::try_from(tid).ok()) {
                if let Some(half) = self.system.threads.get_mut(thread).half.take() {
                    self.open_call(thread, &half)?;
                }
                self.system.threads.supersede(thread, winner, item.time_ns);
            }
            return Ok(());
        }
        let life = self.system.threads.get(thread).life;
        let row = &mut self.system.threads.lives[life];
        if let Some(code) = body.strip_prefix(b"exited with ") {
            row.exit_code = text::leading_number(code).and_then(|code| i32::try_from(code).ok());
        } else if let Some(signal) = body.strip_prefix(b"killed by ") {
            let signal = signal.split(|byte| *byte == b' ').next().unwrap_or_default();
            row.exit_signal = Some(String::from_utf8_lossy(&signal[..signal.len().min(24)]).into_owned());
        } else {
            return self.issue(Issue::UnknownLine, item, None);
        }
        // Killed in a call: the call never ended, which is no fault of the log.
        if let Some(half) = self.system.threads.get_mut(thread).half.take() {
            self.open_call(thread, &half)?;
        }
        self.system.threads.end(thread, item.time_ns);
        Ok(())
    }

    fn issue(&mut self, issue: Issue, item: &Item<'_>, detail: Option<String>) -> Result<(), TableError> {
        if self.issues.add(issue, (item.source, item.line_number), item.text, detail) {
            self.issues.flush(self.recording)?;
        }
        Ok(())
    }

    fn note_coverage(&mut self) {
        let manifest = &mut self.recording.manifest;
        manifest.lines_total = self.lines;
        manifest.lines_understood = self.lines - self.issues.lines_lost;
        manifest.started_ns = self.first_ns.unwrap_or(0);
        manifest.duration_ns = self.last_ns.saturating_sub(manifest.started_ns).max(0);
        manifest.clock.has_durations = self.has_durations;
    }

    /// Write what is left and say how complete it is.
    fn finish(mut self, merge: &mut Merge, mut ending: Ending) -> Result<Ending, ImportError> {
        let open: Vec<usize> =
            self.system.threads.running().filter(|(_, thread)| thread.half.is_some()).map(|(index, _)| index).collect();
        for thread in open {
            let Some(half) = self.system.threads.get_mut(thread).half.take() else { continue };
            let tid = self.system.threads.get(thread).tid;
            let detail = format!("{} of tid {tid} has no end", String::from_utf8_lossy(fields::name(&half.text)));
            self.issues.add(Issue::UnfinishedAtEnd, half.place, &half.text, Some(detail));
            self.open_call(thread, &half)?;
        }
        for (source, feed) in merge.feeds.iter().enumerate() {
            if let Some(error) = feed.failure() {
                self.issues.add(
                    Issue::DamagedInput,
                    (source, 0),
                    b"",
                    Some(format!("{error}, behind line {}", feed.line_number)),
                );
                ending = Ending::InputError;
            }
        }
        self.rows.flush(self.recording, self.calls.names())?;
        self.signals.flush(self.recording)?;
        self.issues.flush(self.recording)?;
        rows::write_processes(self.recording, &self.system.threads.lives)?;
        rows::write_paths(self.recording, &self.system.objects)?;
        rows::write_commands(self.recording, &self.system.commands.names)?;
        self.describe(merge);
        Ok(ending)
    }

    fn describe(&mut self, merge: &Merge) {
        self.note_coverage();
        let lives = &self.system.threads.lives;
        let manifest = &mut self.recording.manifest;
        manifest.clock = merge.feeds[0].clock.describe(self.has_durations);
        manifest.has_exits = lives.iter().all(|life| life.end_ns.is_some());
        manifest.issues = self.issues.counts.iter().map(|(issue, count)| ((*issue).into(), *count)).collect();
        if let Some(first) = lives.first() {
            manifest.exit_code = first.exit_code;
            manifest.exit_signal.clone_from(&first.exit_signal);
            if manifest.command.is_none() {
                manifest.command = first.program.as_ref().map(|program| program.command.clone());
            }
        }
        for (source, feed) in manifest.sources.iter_mut().zip(&merge.feeds) {
            source.bytes = feed.bytes();
            source.lines = feed.line_number;
        }
    }
}
