//! What each line of a log adds to the tables.

use std::rc::Rc;

use sysdock_table::TableError;

use crate::{
    effects::Context,
    fields::{self, Call, Returned},
    files::OpenFile,
    import::Import,
    line::{self, Kind},
    merge::Item,
    resolve,
    rows::{CallRow, Issue, NONE, SignalRow},
    syscalls::{Asked, Class, Shape},
    text,
    threads::Half,
};

impl Import<'_> {
    pub(crate) fn line(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        self.lines += 1;
        if self.lines == 1 {
            self.first_line = String::from_utf8_lossy(&item.text[..item.text.len().min(60)]).into_owned();
        }
        if item.too_long {
            return self.issue(Issue::LongLine, item, None);
        }
        let kind = line::kind(item.event);
        if matches!(kind, Kind::Call | Kind::Resumed | Kind::Signal | Kind::Exit) {
            self.in_summary = false;
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
            Ok(call) => {
                self.drop_half(item, thread)?;
                self.finish_call(thread, &call, item.time_ns, None)
            }
            Err(_) if !item.ended => self.issue(Issue::CutLine, item, None),
            Err(error) => match fields::killed(event, &mut self.joined) {
                true => self.finish_joined(item, thread, item.time_ns, None),
                false => self.issue(Issue::BrokenCall, item, Some(error.words().into())),
            },
        }
    }

    /// A call whose end comes later.
    fn begin(&mut self, item: &Item<'_>, thread: usize, text: &[u8]) -> Result<(), TableError> {
        self.event(item.time_ns);
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
        held: Option<Rc<OpenFile>>,
    ) -> Result<(), TableError> {
        let joined = std::mem::take(&mut self.joined);
        let done = match fields::parse(&joined) {
            Ok(call) => self.finish_call(thread, &call, started_ns, held),
            Err(_) if !item.ended => self.issue(Issue::CutLine, item, None),
            Err(error) => self.issue(Issue::BrokenCall, item, Some(format!("both halves together: {}", error.words()))),
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
        held: Option<Rc<OpenFile>>,
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
    pub(crate) fn open_call(&mut self, thread: usize, half: &Half) -> Result<(), TableError> {
        let row = self.half_row(thread, half);
        self.push(thread, row)
    }

    fn half_row(&mut self, thread: usize, half: &Half) -> CallRow {
        let name = fields::name(&half.text);
        let (number, (class, shape)) = self.calls.number(name);
        let mut row = self.row(thread, number, class, half.started_ns);
        let body = half.text.get(name.len() + 1..).unwrap_or_default();
        if let Some(file) = &half.held {
            row.fd = resolve::first_descriptor(body).unwrap_or(-1);
            row.object = file.object.get().map_or(-1, |object| object as i32);
        }
        if let Shape::Transfer(Asked::Argument(index), _) = shape {
            row.asked = text::leading_number(fields::partial_arguments(body).get(index)).unwrap_or(NONE);
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
        self.rows_since_checkpoint += 1;
        // A call whose start is not in the log began before the first line.
        self.event(row.ts_ns);
        self.last_ns = self.last_ns.max(row.ts_ns.saturating_add(row.dur_ns.max(0)));
        if self.rows.push(row) {
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
        self.event(item.time_ns);
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
        self.event(item.time_ns);
        // Killed in a call: the call never ended, which is no fault of the log.
        if let Some(half) = self.system.threads.get_mut(thread).half.take() {
            self.open_call(thread, &half)?;
        }
        self.system.threads.end(thread, item.time_ns);
        Ok(())
    }

    /// Something happened at this time that only a strace log can tell.
    fn event(&mut self, time_ns: i64) {
        self.events += 1;
        self.first_ns = Some(self.first_ns.map_or(time_ns, |first| first.min(time_ns)));
        self.last_ns = self.last_ns.max(time_ns);
    }

    fn issue(&mut self, issue: Issue, item: &Item<'_>, detail: Option<String>) -> Result<(), TableError> {
        if self.issues.add(issue, (item.source, item.line_number), item.text, detail) {
            self.issues.flush(self.recording)?;
        }
        Ok(())
    }
}
