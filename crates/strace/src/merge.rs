//! Lines of several inputs in the order of their times.
//!
//! `strace -ff` writes one file per thread; a thread's own lines are in order, so the file whose next line is earliest goes first.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io,
    sync::mpsc::Receiver,
};

use chrono::NaiveDate;

use crate::{
    chunk::{Chunk, Line},
    clock::Clock,
    input::{Blocks, Input, Next},
    line::{Kind, Stamp},
    parsers::Parsers,
};

/// More inputs than this are not read ahead: what they hold in memory must stay small.
const READ_AHEAD_INPUTS: usize = 4;

/// An input with its clock and its next line.
pub(crate) struct Feed {
    pub(crate) input: Input,
    pub(crate) clock: Clock,
    blocks: Blocks,
    pub(crate) line_number: u64,
    chunk: Chunk,
    /// Index of the line behind the current one.
    at: usize,
    time_ns: i64,
    /// What is added to the times that the log states.
    pub(crate) shift_ns: i64,
    /// Logs with a lower place are read before, whatever their times.
    pub(crate) place: u32,
    under_way: VecDeque<Receiver<Chunk>>,
    spare: Vec<Chunk>,
    read_ahead: bool,
}

/// One line with all that its prefix says.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) source: usize,
    /// The log, or set of logs, in which thread ids are unique.
    pub(crate) session: u32,
    pub(crate) line_number: u64,
    pub(crate) text: &'a [u8],
    /// The text behind the prefix.
    pub(crate) event: &'a [u8],
    /// What the text says by itself; `None` for a line that was too long to keep.
    pub(crate) line: Option<&'a Line>,
    /// From the line, or from the name of a file that holds one thread (`-ff`).
    pub(crate) tid: Option<i32>,
    pub(crate) time_ns: i64,
}

impl Item<'_> {
    /// Whether the line ends in a newline.
    pub(crate) fn ended(&self) -> bool {
        self.line.is_none_or(|line| line.ended)
    }
}

impl Feed {
    pub(crate) fn open(input: Input, inputs: usize, date: Option<NaiveDate>, follow: bool) -> io::Result<Self> {
        let blocks = input.blocks(inputs, follow)?;
        let clock = Clock::new(input.written_ns, date);
        // What a pipe gives is wanted at once.
        let read_ahead = input.size.is_some() && inputs <= READ_AHEAD_INPUTS && !follow;
        Ok(Feed {
            input,
            clock,
            blocks,
            line_number: 0,
            chunk: Chunk::default(),
            at: 0,
            time_ns: 0,
            shift_ns: 0,
            place: 0,
            under_way: VecDeque::new(),
            spare: Vec::new(),
            read_ahead,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    /// Read the first lines, so that it can be told what kind of log it is.
    pub(crate) fn look(&mut self) {
        // What interrupts a read does so again when the lines are wanted.
        let _ = self.next_chunk(&Parsers::default());
    }

    /// Whether the current line has no time where others have one.
    fn follows(&self) -> bool {
        let line = self.at.checked_sub(1).map(|at| &self.chunk.lines[at]);
        line.is_some_and(|line| line.prefix.stamp.is_none()) && self.clock.has_stamps()
    }

    fn first_line(&self) -> Option<&Line> {
        self.chunk.lines[..self.chunk.count].iter().find(|line| line.kind != Kind::Notice)
    }

    /// Whether its lines begin with a thread id, as far as it was looked at.
    pub(crate) fn has_thread_ids(&self) -> bool {
        self.first_line().is_some_and(|line| line.prefix.tid.is_some())
    }

    /// Whether its lines have times that can be compared with those of other logs, as far as it was looked at.
    pub(crate) fn has_clock(&self) -> bool {
        let stamp = |line: &Line| matches!(line.prefix.stamp, Some(Stamp::Epoch(_) | Stamp::TimeOfDay(_)));
        self.first_line().is_none_or(stamp)
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.blocks.failure.as_ref()
    }

    /// Go to the next line; `Ok(false)` at the end, `Err(())` if a signal came first.
    fn advance(&mut self, parsers: &Parsers) -> Result<bool, ()> {
        while self.at == self.chunk.count {
            if !self.next_chunk(parsers)? {
                return Ok(false);
            }
            if self.chunk.too_long {
                self.line_number += 1;
                return Ok(true);
            }
        }
        let line = &self.chunk.lines[self.at];
        self.at += 1;
        self.line_number += 1;
        self.time_ns = self.clock.time(line.prefix.stamp, line.prefix.decimals).saturating_add(self.shift_ns);
        Ok(true)
    }

    fn next_chunk(&mut self, parsers: &Parsers) -> Result<bool, ()> {
        while self.under_way.is_empty() || (self.read_ahead && parsers.want_more(self.under_way.len())) {
            match self.blocks.next(self.spare.pop().unwrap_or_default()) {
                Next::Chunk(chunk) => parsers.parse(chunk, &mut self.under_way, self.read_ahead),
                Next::Interrupted if self.under_way.is_empty() => return Err(()),
                Next::Interrupted | Next::End => break,
            }
        }
        let Some(parsed) = self.under_way.pop_front() else { return Ok(false) };
        let chunk = parsed.recv().expect("a parser does not panic");
        self.spare.push(std::mem::replace(&mut self.chunk, chunk));
        self.at = 0;
        Ok(true)
    }

    #[inline]
    fn item(&self, source: usize) -> Item<'_> {
        let (line_number, time_ns, session) = (self.line_number, self.time_ns, self.input.session);
        match self.at.checked_sub(1).map(|at| &self.chunk.lines[at]) {
            Some(line) => Item {
                source,
                session,
                line_number,
                text: self.chunk.line(line),
                event: self.chunk.event(line),
                line: Some(line),
                tid: line.prefix.tid.or(self.input.tid),
                time_ns,
            },
            None => Item { source, session, line_number, text: b"", event: b"", line: None, tid: self.input.tid, time_ns },
        }
    }
}

/// What [`Merge::next`] found.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// The next line is of this input: see [`Merge::item`].
    Line(usize),
    /// A signal interrupted the read; ask again unless the work is cancelled.
    Interrupted,
    End,
}

/// All inputs.
pub(crate) struct Merge {
    pub(crate) feeds: Vec<Feed>,
    parsers: Parsers,
    /// Feeds that have a next line, earliest first; equal times in order of the inputs.
    waiting: BinaryHeap<Reverse<(u32, i64, usize)>>,
    /// The feed whose line was handed out last, and feeds not read yet.
    to_advance: Vec<usize>,
}

impl Merge {
    pub(crate) fn new(feeds: Vec<Feed>) -> Self {
        let to_advance = (0..feeds.len()).rev().collect();
        Merge { feeds, parsers: Parsers::default(), waiting: BinaryHeap::new(), to_advance }
    }

    /// Let `threads` threads parse ahead.
    pub(crate) fn parse_ahead(&mut self, threads: usize) {
        self.parsers = Parsers::start(threads);
    }

    pub(crate) fn next(&mut self) -> Step {
        while let Some(&source) = self.to_advance.last() {
            match self.feeds[source].advance(&self.parsers) {
                Err(()) => return Step::Interrupted,
                Ok(false) => {
                    self.to_advance.pop();
                }
                Ok(true) => {
                    let key = (self.feeds[source].place, self.feeds[source].time_ns, source);
                    // What has no time of its own (a frame of a stack) belongs to the line above it.
                    let follows = self.feeds[source].follows();
                    let first =
                        self.to_advance.len() == 1 && (follows || self.waiting.peek().is_none_or(|Reverse(other)| key <= *other));
                    if first {
                        // Still the earliest: no detour through the heap. It stays in `to_advance` for the next call.
                        return Step::Line(source);
                    }
                    self.to_advance.pop();
                    self.waiting.push(Reverse(key));
                }
            }
        }
        match self.waiting.pop() {
            None => Step::End,
            Some(Reverse((.., source))) => {
                self.to_advance.push(source);
                Step::Line(source)
            }
        }
    }

    /// The line that [`Merge::next`] found.
    #[inline]
    pub(crate) fn item(&self, source: usize) -> Item<'_> {
        self.feeds[source].item(source)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.feeds.iter().map(Feed::bytes).sum()
    }

    /// Size of all inputs on disk, where every one has a size.
    pub(crate) fn size(&self) -> Option<u64> {
        self.feeds.iter().map(|feed| feed.input.size).sum()
    }
}
