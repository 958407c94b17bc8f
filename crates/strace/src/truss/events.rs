//! What each line of a truss log adds to the tables.
//!
//! A call counts when it returns; `(sleeping...)` before only states that it has begun. The
//! functions of `crate::effects` apply to both tracers; this module has the differences of truss.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use sysdock_calls::{Issue, Program};
use sysdock_table::{TableError, facts::issues as facts, rows};

use super::{Kind, lines::is_siginfo, parse, signal, threads::Name};
use crate::{
    chunk::{Line, Parsed},
    fields::{self, Call, TextRanges},
    import::Import,
    merge::Item,
    paths, text,
};

/// State carried from line to line.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// A log is from truss.
    pub(crate) seen: bool,
    /// Processes, by log and id, with the last signal that ends them, and its time: truss prints
    /// nothing when a process is killed.
    dying: FxHashMap<(u32, i32), (String, i64)>,
    /// The last signal; its `siginfo` line may follow.
    signal: Option<rows::Signals<'static>>,
}

/// Signals with a default action that does not end the process (signal.h(3HEAD)).
const HARMLESS: [&[u8]; 21] = [
    b"SIGCLD",
    b"SIGCHLD",
    b"SIGPWR",
    b"SIGWINCH",
    b"SIGURG",
    b"SIGSTOP",
    b"SIGTSTP",
    b"SIGCONT",
    b"SIGTTIN",
    b"SIGTTOU",
    b"SIGWAITING",
    b"SIGLWP",
    b"SIGFREEZE",
    b"SIGTHAW",
    b"SIGCANCEL",
    b"SIGXRES",
    b"SIGJVM1",
    b"SIGJVM2",
    b"SIGINFO",
    b"SIGPOLL",
    b"SIGIO",
];

fn name(item: &Item<'_>, line: &Line) -> Name {
    // Without -l the LWP is printed only if a process has several; otherwise it is number 1
    // (main.c:make_pname).
    Name { session: item.session, pid: line.prefix.tid.unwrap_or(0), lwp: line.prefix.lwp.max(1) }
}

impl Import<'_> {
    pub(crate) fn truss(&mut self, item: &Item<'_>, line: &Line, kind: Kind) -> Result<(), TableError> {
        self.truss.seen = true;
        if kind != Kind::Unknown {
            self.in_summary = kind == Kind::Summary;
        }
        if kind != Kind::Continuation {
            self.write_signal()?;
        }
        match kind {
            Kind::Call | Kind::Exit | Kind::LwpExit | Kind::Sleeping | Kind::Waiting | Kind::Returning => match line.parsed {
                // The result may be cut too.
                _ if !line.ended => self.issue(Issue::CutLine, item, None),
                Parsed::Failed(error) => self.issue(Issue::BrokenCall, item, Some(error.fact())),
                _ => self.truss_call(item, line, kind),
            },
            Kind::Signal => self.truss_signal(item, line),
            Kind::Argv => self.command(item, line, |_, words| words.into(), item.event.strip_prefix(b" argv:")),
            Kind::Psargs => self.command(item, line, |_, words| words.into(), item.event.strip_prefix(b"psargs:")),
            Kind::Continuation if is_siginfo(item.event) => {
                self.signal_cause(item.event);
                Ok(())
            }
            Kind::Continuation => self.command(item, line, |before, words| format!("{before} {words}"), Some(item.event)),
            Kind::Killed => {
                let thread = self.truss_thread(item, line)?;
                let process = self.process(thread);
                let signal = self.truss.dying.remove(&process).map(|(signal, _)| signal);
                self.note_time(item.time_ns);
                self.end_process(process, None, signal.as_deref(), item.time_ns)
            }
            Kind::Unknown if self.in_summary => Ok(()),
            Kind::Unknown if !line.ended => self.issue(Issue::CutLine, item, None),
            Kind::Unknown => self.issue(Issue::UnknownLine, item, None),
            _ => Ok(()),
        }
    }

    /// Log and process id.
    fn process(&self, thread: usize) -> (u32, i32) {
        let thread = self.system.threads.get(thread);
        (thread.session, thread.pid)
    }

    fn truss_thread(&mut self, item: &Item<'_>, line: &Line) -> Result<usize, TableError> {
        let name = name(item, line);
        let (index, guessed) = self.system.thread_of_truss(name, item.time_ns);
        if guessed {
            self.issue(Issue::ParentGuessed, item, Some(facts::several_in_fork("pid", name.pid)))?;
        }
        Ok(index)
    }

    fn truss_call(&mut self, item: &Item<'_>, line: &Line, kind: Kind) -> Result<(), TableError> {
        let call = line.places.call(item.event);
        if kind == Kind::Returning {
            return self.returning(item, line, &call);
        }
        let thread = self.truss_thread(item, line)?;
        if !self.truss.dying.is_empty() {
            self.truss.dying.remove(&self.process(thread));
        }
        if matches!(kind, Kind::Sleeping | Kind::Waiting) {
            // A thread that was stopped and sleeps again is reported again.
            let again = self.system.threads.get(thread).half().is_some_and(|half| half.text == item.event);
            return if again { Ok(()) } else { self.begin(item, thread, &line.places) };
        }
        let fits = self.system.threads.get(thread).half().is_some_and(|half| fields::name(&half.text) == call.name);
        if !fits {
            self.drop_half(item, thread)?;
        }
        let half = self.system.threads.take_half(thread);
        let held = half.and_then(|mut half| {
            let held = half.held.take();
            self.spare_halves.push(half);
            held
        });
        if call.name == b"pipe" && call.arguments.get(0).is_empty() && call.returned.value.is_some() {
            return self.old_pipe(item, thread);
        }
        self.finish_call(thread, line.places.number, &call, item.time_ns, held.as_ref())?;
        match (call.name, call.returned.value) {
            (b"lwp_create", Some(lwp @ 1..)) => {
                if let Ok(lwp) = i32::try_from(lwp) {
                    self.system.new_lwp(thread, lwp, item.time_ns);
                }
            }
            (b"execve" | b"exec", Some(0)) => self.only_lwp(thread, item.time_ns)?,
            _ => {}
        }
        match kind {
            Kind::Exit => {
                let code = text::leading_number(call.arguments.get(0)).and_then(|code| i32::try_from(code).ok());
                self.end_process(self.process(thread), code, None, item.time_ns)
            }
            Kind::LwpExit => self.end_thread(thread, item.time_ns).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// `forkx() (returning as child ...) = 812`, `lwp_create() (returning as new lwp ...) = 0`: the
    /// birth of this thread.
    fn returning(&mut self, item: &Item<'_>, line: &Line, call: &Call<'_>) -> Result<(), TableError> {
        self.note_time(item.time_ns);
        if call.name != b"lwp_create"
            && let Some(parent) = call.returned.value.and_then(|pid| i32::try_from(pid).ok())
        {
            self.system.child_returns(name(item, line), parent, item.time_ns);
        }
        self.truss_thread(item, line).map(|_| ())
    }

    /// `pipe() = 3 [4]` of Solaris 10 and before, converted to the current form.
    fn old_pipe(&mut self, item: &Item<'_>, thread: usize) -> Result<(), TableError> {
        let mut places = TextRanges::default();
        let second = parse(item.event, &mut places).ok().and_then(|rest| rest.second).unwrap_or(-1);
        let first = places.call(item.event).returned.value.unwrap_or(-1);
        let cpu_ns = item.line.map_or(-1, |line| line.places.end.dur_ns);
        let text = format!("pipe([{first},{second}])\t= 0").into_bytes();
        // The text is well formed.
        let _ = parse(&text, &mut places);
        places.end.dur_ns = cpu_ns;
        self.finish_call(thread, places.number, &places.call(&text), item.time_ns, None)
    }

    /// After an exec a process has one LWP, which is number 1.
    fn only_lwp(&mut self, thread: usize, now_ns: i64) -> Result<(), TableError> {
        let (session, pid) = self.process(thread);
        for other in self.system.lwps(session, pid) {
            if other != thread {
                self.end_thread(other, now_ns)?;
            }
        }
        self.system.rename_lwp(thread, Name { session, pid, lwp: 1 });
        Ok(())
    }

    fn end_thread(&mut self, thread: usize, now_ns: i64) -> Result<usize, TableError> {
        if let Some(half) = self.system.threads.take_half(thread) {
            self.open_call(thread, &half)?;
        }
        self.give_up_interrupted(thread)?;
        Ok(self.system.end_lwp(thread, now_ns))
    }

    /// End all threads of a process. Their calls in progress never ended, which is not an error of
    /// the log.
    fn end_process(
        &mut self,
        (session, pid): (u32, i32),
        code: Option<i32>,
        signal: Option<&str>,
        now_ns: i64,
    ) -> Result<(), TableError> {
        for thread in self.system.lwps(session, pid) {
            let task = self.end_thread(thread, now_ns)?;
            let row = &mut self.system.threads.tasks[task];
            row.exit_code = code;
            row.exit_signal = signal.map(Into::into);
        }
        Ok(())
    }

    /// At the end of the log, end the processes with a fatal signal as their last event.
    pub(crate) fn end_killed(&mut self) -> Result<(), TableError> {
        self.write_signal()?;
        for (process, (signal, now_ns)) in std::mem::take(&mut self.truss.dying) {
            self.end_process(process, None, Some(&signal), now_ns)?;
        }
        Ok(())
    }

    fn truss_signal(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        let Some(signal) = signal(item.event) else {
            let issue = if line.ended { Issue::UnknownLine } else { Issue::CutLine };
            return self.issue(issue, item, None);
        };
        let thread = self.truss_thread(item, line)?;
        self.note_time(item.time_ns);
        let name = String::from_utf8_lossy(&signal.name[..signal.name.len().min(24)]).into_owned();
        if signal.action == Some(b"default") && !HARMLESS.contains(&signal.name) {
            let process = self.process(thread);
            self.truss.dying.insert(process, (name.clone(), item.time_ns));
        }
        let task_id = self.system.threads.get(thread).task as i32;
        let signal = name.into();
        self.truss.signal = Some(rows::Signals { ts_ns: item.time_ns, task_id, signal, code: None, sender_pid: None });
        Ok(())
    }

    /// `      siginfo: SIGCLD CLD_EXITED pid=10241 status=0x0007` (expound.c:print_siginfo)
    fn signal_cause(&mut self, event: &[u8]) {
        let Some(row) = &mut self.truss.signal else { return };
        for word in event.trim_ascii_start().split(|byte| *byte == b' ').skip(2) {
            if let Some(pid) = word.strip_prefix(b"pid=") {
                row.sender_pid = text::leading_number(pid).and_then(|pid| i32::try_from(pid).ok());
            } else if row.code.is_none() && !word.is_empty() && word.iter().all(|b| b.is_ascii_uppercase() || *b == b'_') {
                row.code = Some(String::from_utf8_lossy(&word[..word.len().min(32)]).into_owned().into());
            }
        }
    }

    fn write_signal(&mut self) -> Result<(), TableError> {
        if let Some(row) = self.truss.signal.take()
            && self.signals.push(&row)
        {
            self.signals.flush(self.recording)?;
        }
        Ok(())
    }

    /// Set or extend the command line of a thread's program.
    fn command(
        &mut self,
        item: &Item<'_>,
        line: &Line,
        joined: impl Fn(&str, &str) -> String,
        words: Option<&[u8]>,
    ) -> Result<(), TableError> {
        let words = sysdock_table::readable(words.unwrap_or_default().trim_ascii()).into_owned();
        let thread = self.truss_thread(item, line)?;
        let before = self.system.threads.get(thread).program.clone();
        let comm_id = match &before {
            Some(program) => program.comm_id,
            None => {
                let program = words.split(' ').next().unwrap_or_default();
                self.system.commands.intern(sysdock_calls::comm(program.as_bytes()))
            }
        };
        let command = paths::cut_command(joined(before.as_ref().map_or("", |program| &program.command), &words));
        self.system.threads.set_program(thread, Rc::new(Program { comm_id, command }));
        Ok(())
    }
}
