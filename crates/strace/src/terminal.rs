//! Logs that strace wrote to a terminal (standard error), in which threads are named only while
//! there are several.
//!
//! Lines have `[pid N]` while more than one thread is traced, and no id before and afterwards.
//! strace's own messages, `strace: Process N attached`, may be in the middle of a line: the text
//! after them is the rest of that line. The beginning is kept until the rest arrives; if it never
//! does, the line is counted as not understood.
//!
//! States of such a log: *unnamed* (one thread, without an id) -> *named* (the first `[pid N]` that
//! is not a child's is the id of the unnamed thread) -> lines without an id belong to the only
//! thread left.

use rustc_hash::FxHashSet;
use sysdock_calls::{Issue, syscalls};
use sysdock_table::{TableError, facts::issues as facts};

use crate::{
    chunk::{Chunk, Line, Parsed},
    fields,
    import::Import,
    line::{self, Kind, Prefix},
    merge::Item,
    notice::{self, About, Note},
};

/// State of a log without ids on every line.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    /// A line had `[pid N]`.
    named: bool,
    /// Threads that strace reported as attached and that have no line yet.
    attached: FxHashSet<i32>,
    /// Beginning of a line that strace interrupted with a message.
    torn: Option<Torn>,
}

/// The beginning of a line, and its source and line number.
#[derive(Debug)]
struct Torn {
    text: Vec<u8>,
    place: (usize, u64),
}

impl Terminal {
    /// Whether the log is known to be from a terminal.
    pub(crate) fn is_used(&self) -> bool {
        self.named || self.torn.is_some() || !self.attached.is_empty()
    }
}

impl Import<'_> {
    /// A line without thread id, or of a log in which some lines have none.
    pub(crate) fn terminal_line(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        if let Some(note) = notice::about_process(item.text) {
            return self.remark(item, note);
        }
        // The rest of a torn line has no prefix, and does not look like the beginning of any line.
        if line.kind == Kind::Unknown
            && let Some(torn) = self.terminals[item.session as usize].torn.take()
        {
            return self.rejoined_line(item, line, &torn);
        }
        let tid = self.name_thread(item, line);
        self.event_line(&Item { tid, ..*item }, line)
    }

    /// A message of strace about a process, alone or after the beginning of a line.
    fn remark(&mut self, item: &Item<'_>, note: Note) -> Result<(), TableError> {
        let has_threads = self.system.threads.of_session(item.session).next().is_some();
        match note.about {
            // The first one is not a child (`strace -p`).
            About::Attached if has_threads => drop(self.terminals[item.session as usize].attached.insert(note.tid)),
            About::Detached => self.let_go(item, note.tid)?,
            _ => {}
        }
        let terminal = &mut self.terminals[item.session as usize];
        let start = &item.text[..note.start];
        let event = line::split(start, &mut Prefix::default());
        if event.is_empty() {
            return Ok(());
        }
        // A second message in one line.
        if let Some(torn) = terminal.torn.as_mut().filter(|_| line::kind(event) == Kind::Unknown) {
            torn.text.extend_from_slice(start);
            return Ok(());
        }
        let torn = Torn { text: start.to_vec(), place: (item.source, item.line_number) };
        match terminal.torn.replace(torn) {
            Some(lost) => self.lost_start(&lost),
            None => Ok(()),
        }
    }

    /// Keep the text before `at` as the beginning of a line that continues later; the rest is not
    /// part of it.
    pub(crate) fn tear(&mut self, item: &Item<'_>, at: usize) -> Result<(), TableError> {
        let torn = Torn { text: item.text[..at].to_vec(), place: (item.source, item.line_number) };
        match self.terminals[item.session as usize].torn.replace(torn) {
            Some(lost) => self.lost_start(&lost),
            None => Ok(()),
        }
    }

    /// strace no longer traces a thread. Before 4.7 this was the only message about the end of a
    /// thread.
    fn let_go(&mut self, item: &Item<'_>, tid: i32) -> Result<(), TableError> {
        let Some(thread) = self.system.threads.find(item.session, tid) else { return Ok(()) };
        let last = self.rows.recent(self.system.threads.get(thread).last_row).map(|row| row.call);
        if !last.is_some_and(|call| [b"exit_group".as_slice(), b"exit"].map(syscalls::number).contains(&call)) {
            return Ok(());
        }
        self.give_up_interrupted(thread)?;
        self.system.threads.end(thread, item.time_ns);
        Ok(())
    }

    /// Report that the rest of a torn line never came.
    fn lost_start(&mut self, torn: &Torn) -> Result<(), TableError> {
        self.issue_at(torn.place, Issue::BrokenCall, &torn.text, Some(facts::rest_missing()))
    }

    /// Report all torn lines at the end of the log.
    pub(crate) fn lost_starts(&mut self) -> Result<(), TableError> {
        let torn: Vec<Torn> = self.terminals.iter_mut().filter_map(|terminal| terminal.torn.take()).collect();
        torn.iter().try_for_each(|torn| self.lost_start(torn))
    }

    /// Process the two parts of a torn line, if they form one.
    fn rejoined_line(&mut self, item: &Item<'_>, rest: &Line, torn: &Torn) -> Result<(), TableError> {
        let mut text = torn.text.clone();
        text.extend_from_slice(item.text);
        let chunk = Chunk::of_line(text, item.ended());
        let whole = chunk.lines[..chunk.count].first().filter(|line| matches!(line.parsed, Parsed::Whole | Parsed::Begun));
        let Some(line) = whole else {
            self.lost_start(torn)?;
            let tid = self.name_thread(item, rest);
            return self.event_line(&Item { tid, ..*item }, rest);
        };
        let rejoined = Item {
            text: chunk.line(line),
            event: chunk.event(line),
            line: Some(line),
            tid: line.prefix.tid.or(item.tid),
            ..*item
        };
        let tid = self.name_thread(&rejoined, line);
        self.event_line(&Item { tid, ..rejoined }, line)
    }

    /// The thread id of a line: its own, or that of the unnamed thread.
    fn name_thread(&mut self, item: &Item<'_>, line: &Line) -> Option<i32> {
        let session = item.session;
        match item.tid {
            None if self.terminals[item.session as usize].named => {
                // strace names threads if there are several, so the id is unambiguous.
                let left = self.system.threads.of_session(session).next();
                left.map(|index| self.system.threads.get(index).tid)
            }
            None => None,
            Some(tid) => {
                self.terminals[item.session as usize].named |= item.text.starts_with(b"[pid ");
                let known = self.system.threads.find(session, tid).is_some();
                let child = self.terminals[item.session as usize].attached.remove(&tid);
                if !known
                    && !child
                    && let Some(unnamed) = self.system.threads.find(session, 0)
                    && !self.is_child_of(unnamed, line, item.event)
                {
                    self.system.threads.name(unnamed, tid);
                }
                Some(tid)
            }
        }
    }

    /// Whether a line with a new id is from a child of the unnamed thread rather than from that
    /// thread itself.
    fn is_child_of(&self, unnamed: usize, line: &Line, event: &[u8]) -> bool {
        let thread = self.system.threads.get(unnamed);
        let own = line.kind == Kind::Resumed
            && thread.half().is_some_and(|half| fields::resumed(event).is_some_and(|(name, _)| name == fields::name(&half.text)));
        thread.is_in_fork() && !own
    }
}
