//! What each line of a log adds to the tables.

use sysdock_calls::{
    CallRow, Issue, NONE, object_id,
    syscalls::{Class, Requested, Shape},
};
use sysdock_table::{Fact, TableError, facts::issues as facts, rows};

use crate::{
    bounds,
    chunk::{Line, Parsed},
    fields::{self, TextRanges},
    files::Held,
    import::Import,
    line::{self, Kind},
    merge::Item,
    resolve, text,
    threads::Half,
};

impl Import<'_> {
    pub(crate) fn line(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        self.lines += 1;
        if self.lines == 1 {
            self.first_line = String::from_utf8_lossy(&item.text[..item.text.len().min(60)]).into_owned();
        }
        if self.mixed.is_some() { self.mixed_line(item) } else { self.one_line(item) }
    }

    /// A line that is not a program's output.
    #[inline]
    pub(crate) fn one_line(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        self.place = (item.source, item.line_number);
        let Some(line) = item.line else { return self.issue(Issue::LongLine, item, None) };
        if matches!(line.kind, Kind::Call | Kind::Resumed | Kind::Signal | Kind::Exit) {
            self.in_summary = false;
        }
        if line.kind == Kind::Frame {
            let known = self.stacks.frame(item.text);
            return if known { Ok(()) } else { self.issue(Issue::UnknownLine, item, None) };
        }
        self.stacks.close(&mut self.rows);
        if !bounds::is_time(item.time_ns) {
            return self.issue(Issue::ImpossibleNumber, item, Some(facts::after_2200()));
        }
        if item.tid.is_none() || item.text.first() == Some(&b'[') || self.terminals[item.session as usize].is_used() {
            return self.terminal_line(item, line);
        }
        self.event_line(item, line)
    }

    /// A line of a log that names the thread of each line.
    pub(crate) fn event_line(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        match line.kind {
            Kind::Call => self.call(item, line),
            Kind::Truss(kind) => self.truss(item, line, kind),
            Kind::Resumed => self.resumed(item, line),
            Kind::Signal => self.signal(item),
            Kind::Exit => self.exit(item),
            Kind::Summary => {
                self.in_summary = true;
                Ok(())
            }
            Kind::Extra if !line.ended && item.event.is_empty() => self.issue(Issue::CutLine, item, None),
            Kind::Notice | Kind::Extra | Kind::Frame => Ok(()),
            Kind::Unknown if self.in_summary && line::is_summary_row(item.text) => Ok(()),
            Kind::Unknown if !line.ended => self.issue(Issue::CutLine, item, None),
            Kind::Unknown if self.take_written(item, true).is_some() => Ok(()),
            Kind::Unknown => self.issue(Issue::UnknownLine, item, None),
        }
    }

    /// The thread of a line.
    #[inline]
    fn thread(&mut self, item: &Item<'_>) -> Result<usize, TableError> {
        match self.system.threads.find(item.session, item.tid.unwrap_or(0)) {
            Some(index) => Ok(index),
            None => self.new_thread(item),
        }
    }

    #[cold]
    fn new_thread(&mut self, item: &Item<'_>) -> Result<usize, TableError> {
        let tid = item.tid.unwrap_or(0);
        let (index, guessed) = self.system.thread(item.session, tid, item.time_ns);
        if guessed {
            self.issue(Issue::ParentGuessed, item, Some(facts::several_in_fork("tid", tid)))?;
        }
        Ok(index)
    }

    fn call(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        let event = item.event;
        let thread = self.thread(item)?;
        let places = &line.places;
        match line.parsed {
            Parsed::Begun => self.begin(item, thread, places),
            // The last line lacks both the newline and the duration that other lines have, so its
            // result may be cut too.
            Parsed::Whole if !line.ended && self.has_durations && places.end.dur_ns().is_none() => {
                self.issue(Issue::CutLine, item, None)
            }
            Parsed::Whole => {
                self.drop_half(item, thread)?;
                self.finish_call(thread, places.number, &places.call(event), item.time_ns, None)
            }
            _ if !line.ended => self.issue(Issue::CutLine, item, None),
            Parsed::Failed(error) => match fields::killed(event, &mut self.joined) {
                true => self.finish_joined(item, thread, item.time_ns, None),
                false => self.broken_call(item, error),
            },
            Parsed::Nothing | Parsed::Ended => self.issue(Issue::UnknownLine, item, None),
        }
    }

    /// Begin a call that ends on a later line.
    pub(crate) fn begin(&mut self, item: &Item<'_>, thread: usize, places: &TextRanges) -> Result<(), TableError> {
        self.note_time(item.time_ns);
        self.drop_half(item, thread)?;
        let text = fields::unfinished(item.event).unwrap_or(item.event);
        let call = places.call(item.event);
        let (_, (_, shape)) = self.calls.look_up(places.number, call.name);
        let held = self.system.hold(thread, shape, call.arguments.get(shape.descriptor()));
        let place = (item.source, item.line_number);
        let mut half = self.spare_halves.pop().unwrap_or_default();
        half.text.clear();
        half.text.extend_from_slice(text);
        (half.places, half.started_ns, half.place, half.held) = (*places, item.time_ns, place, held);
        (half.forks, half.shown) = (*shape == Shape::Fork, false);
        self.system.threads.begin_half(thread, half);
        if call.name == b"write" {
            self.enters_write(self.system.threads.get(thread).tid);
        }
        Ok(())
    }

    /// If a thread begins a call while another one is open, report that the end of the open one is
    /// lost.
    #[inline]
    pub(crate) fn drop_half(&mut self, item: &Item<'_>, thread: usize) -> Result<(), TableError> {
        match self.system.threads.take_half(thread) {
            Some(half) => self.lost_end(item, thread, &half),
            None => Ok(()),
        }
    }

    #[cold]
    fn lost_end(&mut self, item: &Item<'_>, thread: usize, half: &Half) -> Result<(), TableError> {
        let name = String::from_utf8_lossy(fields::name(&half.text)).into_owned();
        self.issue(Issue::StartWithoutEnd, item, Some(facts::start_at_line(name, half.place.1)))?;
        self.open_call(thread, half)
    }

    fn resumed(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        let thread = self.thread(item)?;
        let Some((name, tail)) = fields::resumed(item.event) else {
            let issue = if item.ended() { Issue::UnknownLine } else { Issue::CutLine };
            return self.issue(issue, item, None);
        };
        let fits = self.system.threads.get(thread).half().is_some_and(|half| half.places.name_in(&half.text) == name);
        if !fits {
            self.drop_half(item, thread)?;
            return self.end_only(item, thread, name, tail);
        }
        let mut half = self.system.threads.take_half(thread).expect("it fits");
        let done = if matches!(line.parsed, Parsed::Ended) {
            let call = half.places.ended_by(&half.text, &line.places.end, item.event);
            self.finish_call(thread, half.places.number, &call, half.started_ns, half.held.as_ref())
        } else {
            self.joined.clear();
            self.joined.extend_from_slice(&half.text);
            self.joined.extend_from_slice(tail);
            self.finish_joined(item, thread, half.started_ns, half.held.as_ref())
        };
        half.held = None;
        self.spare_halves.push(half);
        done
    }

    /// Finish the call with its whole text in `joined`.
    fn finish_joined(&mut self, item: &Item<'_>, thread: usize, started_ns: i64, held: Option<&Held>) -> Result<(), TableError> {
        let joined = std::mem::take(&mut self.joined);
        let mut places = TextRanges::default();
        let done = match fields::parse(&joined, &mut places) {
            Ok(()) => self.finish_call(thread, places.number, &places.call(&joined), started_ns, held),
            Err(_) if !item.ended() => self.issue(Issue::CutLine, item, None),
            Err(error) => self.issue(Issue::BrokenCall, item, Some(facts::both_halves(error.fact()))),
        };
        self.joined = joined;
        done
    }

    /// The end of a call that began before the log (the tracer was attached during the call): name,
    /// result and time, but no arguments.
    fn end_only(&mut self, item: &Item<'_>, thread: usize, name: &[u8], tail: &[u8]) -> Result<(), TableError> {
        self.joined.clear();
        self.joined.extend_from_slice(name);
        self.joined.push(b'(');
        self.joined.extend_from_slice(tail);
        let joined = std::mem::take(&mut self.joined);
        let mut places = TextRanges::default();
        let done = match fields::parse(&joined, &mut places) {
            Ok(()) => {
                let detail = facts::without_arguments(String::from_utf8_lossy(name).into_owned());
                self.issue(Issue::ResumedWithoutStart, item, Some(detail))?;
                let call = places.call(&joined);
                let started_ns = item.time_ns.saturating_sub(call.dur_ns.unwrap_or(0));
                let (number, &(class, shape)) = self.calls.look_up(places.number, name);
                if let Some(what) = bounds::impossible(&shape, &call) {
                    return self.note(Issue::ImpossibleNumber, what);
                }
                let mut row = self.row(thread, number, class, started_ns);
                self.fill_result(&mut row, &call);
                if matches!(shape, Shape::Transfer(..) | Shape::Between { .. } | Shape::ReceiveMessage) {
                    row.transferred = row.result;
                }
                self.push(thread, &row)
            }
            Err(_) if !item.ended() => self.issue(Issue::CutLine, item, None),
            Err(error) => self.issue(Issue::BrokenCall, item, Some(error.fact())),
        };
        self.joined = joined;
        done
    }

    /// Add a row for a call that never ended.
    pub(crate) fn open_call(&mut self, thread: usize, half: &Half) -> Result<(), TableError> {
        let row = self.half_row(thread, half);
        self.push(thread, &row)
    }

    fn half_row(&mut self, thread: usize, half: &Half) -> CallRow {
        let call = half.places.call(&half.text);
        let (number, &(class, shape)) = self.calls.look_up(half.places.number, call.name);
        let mut row = self.row(thread, number, class, half.started_ns);
        if let Some(held) = &half.held {
            let fd = resolve::descriptor(call.arguments.get(shape.descriptor())).and_then(|(fd, _)| resolve::shown(fd));
            row.fd = fd.unwrap_or(-1);
            row.object = object_id(held.file.object.get());
        }
        if let Shape::Transfer(Requested::Argument(index), _) = shape {
            row.requested = text::leading_number(call.arguments.get(index)).unwrap_or(NONE);
        }
        row
    }

    pub(crate) fn row(&self, thread: usize, call: u16, class: Class, ts_ns: i64) -> CallRow {
        let thread = self.system.threads.get(thread);
        let task = u32::try_from(thread.task).expect("fewer than 2^32 threads");
        let comm = thread.program.as_ref().map_or(-1, |program| program.comm_id);
        CallRow::begun(ts_ns, task, comm, call, class)
    }

    fn signal(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let body = item.event.strip_prefix(b"--- ").and_then(|body| body.strip_suffix(b" ---")).unwrap_or_default();
        if body.starts_with(b"stopped by ") {
            return Ok(()); // a stop, not a delivery
        }
        // `SIGCHLD {si_signo=...}`; old versions print `SIGCHLD (Child exited) @ 0 (0)` and
        // `{si_signo=SIGCHLD, ...} (Child exited)`
        let name = body.strip_prefix(b"{si_signo=").unwrap_or(body);
        let name = &name[..name.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()];
        if !name.starts_with(b"SIG") {
            return self.issue(Issue::UnknownLine, item, None);
        }
        let thread = self.thread(item)?;
        let field = |name: &[u8]| {
            let at = memchr::memmem::find(body, name)? + name.len();
            Some(body[at..].split(|byte| matches!(byte, b',' | b'}' | b' ')).next().unwrap_or_default())
        };
        self.note_time(item.time_ns);
        let row = rows::Signals {
            ts_ns: item.time_ns,
            task_id: self.system.threads.get(thread).task as i32,
            signal: String::from_utf8_lossy(&name[..name.len().min(24)]),
            code: field(b"si_code=").map(|code| String::from_utf8_lossy(&code[..code.len().min(32)])),
            sender_pid: field(b"si_pid=").and_then(text::leading_number).and_then(|pid| i32::try_from(pid).ok()),
        };
        if self.signals.push(&row) {
            self.signals.flush(self.recording)?;
        }
        Ok(())
    }

    fn exit(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let body = item.event.strip_prefix(b"+++ ").and_then(|body| body.strip_suffix(b" +++")).unwrap_or_default();
        let thread = self.thread(item)?;
        if let Some(winner) = body.strip_prefix(b"superseded by execve in pid ") {
            let Some(winner) = text::leading_number(winner).and_then(|tid| i32::try_from(tid).ok()) else {
                return self.issue(Issue::UnknownLine, item, None);
            };
            if let Some(half) = self.system.threads.take_half(thread) {
                self.open_call(thread, &half)?;
            }
            self.system.threads.supersede(thread, winner, item.time_ns);
            return Ok(());
        }
        let task = self.system.threads.get(thread).task;
        let row = &mut self.system.threads.tasks[task];
        if let Some(code) = body.strip_prefix(b"exited with ") {
            row.exit_code = text::leading_number(code).and_then(|code| i32::try_from(code).ok());
        } else if let Some(signal) = body.strip_prefix(b"killed by ") {
            let signal = signal.split(|byte| *byte == b' ').next().unwrap_or_default();
            row.exit_signal = Some(String::from_utf8_lossy(&signal[..signal.len().min(24)]).into_owned());
        } else {
            return self.issue(Issue::UnknownLine, item, None);
        }
        self.note_time(item.time_ns);
        // The thread was killed during the call, so its missing end is not an error of the log.
        if let Some(half) = self.system.threads.take_half(thread) {
            self.open_call(thread, &half)?;
        }
        self.give_up_interrupted(thread)?;
        // strace prints the stack of exit_group below this line.
        self.stacks.belong_to(self.system.threads.get(thread).last_row);
        self.system.threads.end(thread, item.time_ns);
        Ok(())
    }

    /// Count an event and extend the time range to include it.
    pub(crate) fn note_time(&mut self, time_ns: i64) {
        self.events += 1;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(time_ns);
    }

    pub(crate) fn issue(&mut self, issue: Issue, item: &Item<'_>, detail: Option<Fact>) -> Result<(), TableError> {
        self.issue_at((item.source, item.line_number), issue, item.text, detail)
    }

    pub(crate) fn issue_at(
        &mut self,
        place: (usize, u64),
        issue: Issue,
        text: &[u8],
        detail: Option<Fact>,
    ) -> Result<(), TableError> {
        if self.issues.add(issue, place, text, detail) {
            self.issues.flush(self.recording)?;
        }
        Ok(())
    }

    /// Report an issue of the current line without its text.
    pub(crate) fn note(&mut self, issue: Issue, detail: Fact) -> Result<(), TableError> {
        self.issue_at(self.place, issue, b"", Some(detail))
    }
}
