//! Logs that strace wrote to a terminal (standard error), where threads are named only while there are several.
//!
//! Lines have `[pid N]` while more than one thread is traced, and no id before and afterwards. strace's own words, `strace: Process N
//! attached`, may land in the middle of a line: what follows them is the rest of that line. States of such a log: *unnamed* (one thread,
//! without an id) -> *named* (the first `[pid N]` that is no child's tells the id of the thread that had none) -> lines without an id belong
//! to the one thread that is left.

use rustc_hash::FxHashSet;
use sysdock_table::TableError;

use crate::{
    chunk::{Chunk, Line},
    fields,
    import::Import,
    line::Kind,
    merge::Item,
    text,
};

/// What is known about a log without ids on every line.
#[derive(Debug, Default)]
pub(crate) struct Terminal {
    /// A line had `[pid N]`.
    named: bool,
    /// Threads that strace said it attached, and that were not seen yet.
    attached: FxHashSet<i32>,
    /// Beginning of a line that strace interrupted by its own words.
    torn: Option<Vec<u8>>,
}

const ATTACHED: &[u8] = b"strace: Process ";

impl Terminal {
    /// Whether the log has been seen to be one of a terminal.
    pub(crate) fn is_used(&self) -> bool {
        self.named || self.torn.is_some() || !self.attached.is_empty()
    }
}

impl Import<'_> {
    /// A line that has no thread id, or stands in a log where some lines have none.
    pub(crate) fn terminal_line(&mut self, item: &Item<'_>, line: &Line) -> Result<(), TableError> {
        if let Some(start) = self.before_attached(item) {
            self.terminals[item.session as usize].torn = (!start.is_empty()).then_some(start);
            return Ok(());
        }
        // The rest of a torn line has no prefix, and begins with none of the things that a line begins with.
        if line.kind == Kind::Unknown
            && let Some(mut whole) = self.terminals[item.session as usize].torn.take()
        {
            whole.extend_from_slice(item.text);
            return self.mended_line(item, whole);
        }
        let tid = self.name_thread(item, line);
        self.event_line(&Item { tid, ..*item }, line)
    }

    /// The text before `strace: Process N attached`, if the line ends in that.
    fn before_attached(&mut self, item: &Item<'_>) -> Option<Vec<u8>> {
        let body = item.text.strip_suffix(b" attached")?;
        let at = memchr::memmem::rfind(body, ATTACHED)?;
        let tid = text::decimal(&body[at + ATTACHED.len()..]).and_then(|tid| i32::try_from(tid).ok())?;
        self.terminals[item.session as usize].attached.insert(tid);
        Some(item.text[..at].to_vec())
    }

    /// Both parts of a line that was torn.
    fn mended_line(&mut self, item: &Item<'_>, text: Vec<u8>) -> Result<(), TableError> {
        let mut chunk = Chunk { text, ..Chunk::default() };
        chunk.parse();
        let Some(line) = chunk.lines[..chunk.count].first() else { return Ok(()) };
        let mended = Item {
            text: chunk.line(line),
            event: chunk.event(line),
            line: Some(line),
            tid: line.prefix.tid.or(item.tid),
            ..*item
        };
        let tid = self.name_thread(&mended, line);
        self.event_line(&Item { tid, ..mended }, line)
    }

    /// The thread id of a line: its own, or that of the thread that goes without.
    fn name_thread(&mut self, item: &Item<'_>, line: &Line) -> Option<i32> {
        let session = item.session;
        match item.tid {
            None if self.terminals[item.session as usize].named => {
                // With several left it could not be told; strace names them then.
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
