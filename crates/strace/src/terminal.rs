//! Logs that strace wrote to a terminal (standard error), where threads are named only while there are several.
//!
//! Lines have `[pid N]` while more than one thread is traced, and no id before and afterwards. strace's own words, `strace: Process N
//! attached`, may land in the middle of a line: what follows them is the rest of that line. Its beginning waits for the rest, and is counted as not
//! understood where none comes. States of such a log: *unnamed* (one thread,
//! without an id) -> *named* (the first `[pid N]` that is no child's gives the id of the thread that had none) -> lines without an id belong
//! to the one thread that is left.

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

/// What is known about a log without ids on every line.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    /// A line had `[pid N]`.
    named: bool,
    /// Threads that strace reported as attached, and that were not seen yet.
    attached: FxHashSet<i32>,
    /// Beginning of a line that strace interrupted by its own words.
    torn: Option<Torn>,
}

/// The beginning of a line, and where it stands: source and line.
#[derive(Debug)]
struct Torn {
    text: Vec<u8>,
    place: (usize, u64),
}

impl Terminal {
    /// Whether the log has been seen to be one of a terminal.
    pub(crate) fn is_used(&self) -> bool {
        self.named || self.torn.is_some() || !self.attached.is_empty()
    }
}

impl Import<'_> {
    /// A line that has no thread id, or is in a log where some lines have none.
    pub(crate) fn terminal_line(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        if let Some(note) = notice::about_process(item.text) {
            return self.remark(item, note);
        }
        // The rest of a torn line has no prefix, and begins with none of the things that a line begins with.
        if line.kind == Kind::Unknown
            && let Some(torn) = self.terminals[item.session as usize].torn.take()
        {
            return self.rejoined_line(item, line, &torn);
        }
        let tid = self.name_thread(item, line);
        self.event_line(&Item { tid, ..*item }, line)
    }

    /// strace's own words about a process, alone or after the beginning of a line.
    fn remark(&mut self, item: &Item<'_>, note: Note) -> Result<(), TableError> {
        let has_threads = self.system.threads.of_session(item.session).next().is_some();
        match note.about {
            // The first one is no child (`strace -p`).
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
        // A second remark in one line.
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

    /// A line goes on in a later one; what stands from `at` on is none of it.
    pub(crate) fn tear(&mut self, item: &Item<'_>, at: usize) -> Result<(), TableError> {
        let torn = Torn { text: item.text[..at].to_vec(), place: (item.source, item.line_number) };
        match self.terminals[item.session as usize].torn.replace(torn) {
            Some(lost) => self.lost_start(&lost),
            None => Ok(()),
        }
    }

    /// strace no longer traces a thread. Before 4.7 that was all it printed about a thread that ended.
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

    /// The rest of a torn line never came.
    fn lost_start(&mut self, torn: &Torn) -> Result<(), TableError> {
        self.issue_at(torn.place, Issue::BrokenCall, &torn.text, Some(facts::rest_missing()))
    }

    /// The log is at its end.
    pub(crate) fn lost_starts(&mut self) -> Result<(), TableError> {
        let torn: Vec<Torn> = self.terminals.iter_mut().filter_map(|terminal| terminal.torn.take()).collect();
        torn.iter().try_for_each(|torn| self.lost_start(torn))
    }

    /// Both parts of a line that was torn, if they are that.
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

    /// The thread id of a line: its own, or that of the thread that goes without.
    fn name_thread(&mut self, item: &Item<'_>, line: &Line) -> Option<i32> {
        let session = item.session;
        match item.tid {
            None if self.terminals[item.session as usize].named => {
                // With several left it would be ambiguous; strace names them then.
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

    /// Whether a line with a new id is that of a child that the unnamed thread is making, not its own.
    fn is_child_of(&self, unnamed: usize, line: &Line, event: &[u8]) -> bool {
        let thread = self.system.threads.get(unnamed);
        let own = line.kind == Kind::Resumed
            && thread.half().is_some_and(|half| fields::resumed(event).is_some_and(|(name, _)| name == fields::name(&half.text)));
        thread.is_in_fork() && !own
    }
}
