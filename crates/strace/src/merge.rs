//! Merges the lines of several inputs by time.
//!
//! `strace -ff` writes one file per thread. Lines of a thread are in order, so the next line is the
//! earliest among the next lines of all files.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    io,
    sync::mpsc::Receiver,
    time::Duration,
};

use chrono::NaiveDate;
use sysdock_table::{Fact, facts::issues as facts};

use crate::{
    chunk::{Chunk, Line},
    clock::Clock,
    foreign::{self, Sign, Tool},
    format::Format,
    input::{Blocks, Input, Next},
    line::Stamp,
    parsers::Parsers,
    truss::{Columns, Times},
    wrapping::Wrapping,
};

/// Interval between reads of followed logs that had nothing new.
const FOLLOW_PAUSE: Duration = Duration::from_millis(100);

/// Number of lines of other logs before a followed log that had nothing new is read again.
const LINES_UNTIL_ASKED_AGAIN: u64 = 1024;

/// With more inputs than this, nothing is read ahead, to keep memory small.
const READ_AHEAD_INPUTS: usize = 4;

/// An input with its clock and its next line.
pub(crate) struct Feed {
    pub(crate) input: Input,
    pub(crate) clock: Clock,
    /// `None`: unknown yet, while the first lines are being read.
    pub(crate) format: Option<Format>,
    /// What its lines are wrapped in, with an example of what stands before them.
    pub(crate) wrapping: (Wrapping, Option<Vec<u8>>),
    /// The tool that its first lines look like, if they are not calls.
    pub(crate) likeness: Option<Tool>,
    /// Columns that the user named.
    pub(crate) truss_columns: Option<Columns>,
    /// Used in place of `clock` for a truss log.
    pub(crate) times: Option<Times>,
    /// First lines of a log of unknown format, and the size that they must reach before they are
    /// examined again.
    head: Option<Chunk>,
    head_wanted: usize,
    /// Number of lines before the chunk, and of dump lines so far, in a truss log.
    before_chunk: u64,
    left_out: u64,
    blocks: Blocks,
    pub(crate) line_number: u64,
    chunk: Chunk,
    /// Index of the line after the current one.
    at: usize,
    time_ns: i64,
    /// Offset added to the times in the log [ns].
    pub(crate) shift_ns: i64,
    /// Logs with a lower `place` are read first, whatever their times.
    pub(crate) place: u32,
    under_way: VecDeque<Receiver<Chunk>>,
    spare: Vec<Chunk>,
    read_ahead: bool,
    follow: bool,
}

/// One line with the contents of its prefix.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) source: usize,
    /// The log, or set of logs, in which thread ids are unique.
    pub(crate) session: u32,
    pub(crate) line_number: u64,
    pub(crate) text: &'a [u8],
    /// The text after the prefix.
    pub(crate) event: &'a [u8],
    /// The parsed line; `None` for a line that was too long to keep.
    pub(crate) line: Option<&'a Line>,
    /// From the line, or from the name of a file of one thread (`-ff`).
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
        // Lines of a pipe are wanted at once.
        let read_ahead = input.size.is_some() && inputs <= READ_AHEAD_INPUTS && !follow;
        Ok(Feed {
            input,
            clock,
            format: None,
            wrapping: (Wrapping::default(), None),
            likeness: None,
            truss_columns: None,
            times: None,
            head: None,
            head_wanted: 0,
            before_chunk: 0,
            left_out: 0,
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
            follow,
        })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    /// Read the first lines to detect the format of the log.
    pub(crate) fn examine(&mut self) {
        // If a signal interrupts this read, it interrupts the next one too, where it is handled.
        let _ = self.next_chunk(&Parsers::default());
    }

    /// Whether the current line has no time although others have one.
    fn follows(&self) -> bool {
        let line = self.at.checked_sub(1).map(|at| &self.chunk.lines[at]);
        line.is_some_and(|line| line.prefix.stamp.is_none()) && self.clock.has_stamps()
    }

    fn first_line(&self) -> Option<&Line> {
        self.chunk.events().next()
    }

    /// Whether its lines begin with a thread id, as far as it was examined.
    pub(crate) fn has_thread_ids(&self) -> bool {
        self.first_line().is_some_and(|line| line.prefix.tid.is_some())
    }

    /// Whether its lines have times that can be compared with those of other logs, as far as it was
    /// examined.
    pub(crate) fn has_clock(&self) -> bool {
        let stamp = |line: &Line| matches!(line.prefix.stamp, Some(Stamp::Epoch(_) | Stamp::TimeOfDay(_)));
        self.first_line().is_none_or(stamp)
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.blocks.failure.as_ref()
    }

    /// Go to the next line; `Ok(false)` at the end, `Err(())` if a signal came first.
    #[inline]
    fn advance(&mut self, parsers: &Parsers) -> Result<bool, ()> {
        while self.at == self.chunk.count {
            if !self.refill(parsers)? {
                return Ok(false);
            }
            if self.chunk.too_long {
                return Ok(true);
            }
        }
        let line = &self.chunk.lines[self.at];
        self.at += 1;
        match &mut self.times {
            None => {
                self.line_number += 1;
                self.time_ns = self.clock.time(line.prefix.stamp).saturating_add(self.shift_ns);
            }
            Some(times) => {
                let number = self.before_chunk + u64::from(self.chunk.numbers[self.at - 1]) + 1;
                self.left_out += number - self.line_number - 1;
                self.line_number = number;
                self.time_ns = times.time(&line.prefix).saturating_add(self.shift_ns);
            }
        }
        Ok(true)
    }

    /// Take the next chunk; a line that is too long is a chunk of its own.
    #[cold]
    fn refill(&mut self, parsers: &Parsers) -> Result<bool, ()> {
        self.pass_dumps();
        let more = self.next_chunk(parsers)?;
        self.line_number += u64::from(more && self.chunk.too_long);
        Ok(more)
    }

    /// Count the dump lines at the end of a chunk that was read.
    fn pass_dumps(&mut self) {
        if self.times.is_some() && !self.chunk.too_long {
            let end = self.before_chunk + u64::from(self.chunk.total);
            self.left_out += end - self.line_number;
            self.line_number = end;
        }
        self.before_chunk = self.line_number;
    }

    fn next_chunk(&mut self, parsers: &Parsers) -> Result<bool, ()> {
        while self.under_way.is_empty() || (self.read_ahead && parsers.want_more(self.under_way.len())) {
            match self.blocks.next(self.spare.pop().unwrap_or_default()) {
                Next::Chunk(chunk) => self.hand_out(chunk, parsers),
                Next::Interrupted if self.under_way.is_empty() && !self.end_head(parsers, true) => return Err(()),
                Next::Interrupted => break,
                Next::End if self.end_head(parsers, false) => {}
                Next::End => break,
            }
        }
        let Some(parsed) = self.under_way.pop_front() else { return Ok(false) };
        let chunk = parsed.recv().expect("a parser does not panic");
        self.spare.push(std::mem::replace(&mut self.chunk, chunk));
        self.at = 0;
        self.clock.begin(self.chunk.events().map(|line| (line.prefix.stamp, line.prefix.decimals)));
        Ok(true)
    }

    /// Have a chunk parsed; first lines are collected until the format is known.
    fn hand_out(&mut self, mut chunk: Chunk, parsers: &Parsers) {
        /// Limit of the memory for a dump without end [B].
        const LONGEST_HEAD: usize = 8 << 20;
        if self.format.is_none() {
            if chunk.too_long {
                self.end_head(parsers, false);
                return parsers.parse(chunk, &mut self.under_way, self.read_ahead);
            }
            if let Some(mut head) = self.head.take() {
                head.text.append(&mut chunk.text);
                chunk = head;
            }
        }
        if self.format.is_none() && chunk.text.len() < self.head_wanted {
            self.head = Some(chunk);
            return;
        }
        if self.format.is_none() {
            let (format, enough) = self
                .truss_columns
                .map_or_else(|| self.detect(&chunk.text), |columns| (Format::given(columns, &chunk.text), true));
            if !enough && chunk.text.len() < LONGEST_HEAD.min(self.blocks.longest_line) {
                self.head_wanted = 2 * chunk.text.len();
                self.head = Some(chunk);
                return;
            }
            self.set_format(format, &chunk.text);
        }
        chunk.format = self.format.unwrap_or_default();
        chunk.wrapping = self.wrapping.0;
        parsers.parse(chunk, &mut self.under_way, self.read_ahead);
    }

    /// No more lines for now: decide the format from the first ones. `false` if there are none or,
    /// with `wait`, too few.
    fn end_head(&mut self, parsers: &Parsers, wait: bool) -> bool {
        const ENOUGH_TO_GO_ON: usize = 16;
        let Some(head) = self.head.take() else { return false };
        let (format, _) = self.detect(&head.text);
        if wait && memchr::memchr_iter(b'\n', &head.text).count() < ENOUGH_TO_GO_ON {
            self.head = Some(head);
            return false;
        }
        self.set_format(format, &head.text);
        let wrapping = self.wrapping.0;
        parsers.parse(Chunk { format, wrapping, ..head }, &mut self.under_way, self.read_ahead);
        true
    }

    /// Decide from the first lines what the log is wrapped in, and which tracer wrote it.
    fn detect(&mut self, head: &[u8]) -> (Format, bool) {
        let found = Format::detect(head);
        let wrapping = Wrapping::detect(head);
        if found.0 != Format::Strace || !wrapping.is_any() {
            return found;
        }
        let mut text = head.to_vec();
        wrapping.remove(&mut text);
        self.wrapping = (wrapping, wrapping.example(head));
        Format::detect(&text)
    }

    fn set_format(&mut self, format: Format, head: &[u8]) {
        self.format = Some(format);
        // Needed if nothing is understood, and for text that looks like dumps of truss.
        self.likeness = foreign::likeness(head);
        if let Format::Truss(layout) = format {
            self.times = Some(Times::new(layout));
        }
    }

    /// What was removed from its lines, or decoded.
    pub(crate) fn wrapped(&self) -> Vec<Fact> {
        let (wrapping, before) = &self.wrapping;
        let mut found = Vec::new();
        if wrapping.has_before() {
            let before = before.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
            found.push(facts::before_lines(before.into_owned()));
        }
        let coded = [
            (wrapping.html, facts::html_decoded as fn() -> Fact),
            (wrapping.typographic, facts::quotes_straightened),
            (wrapping.contexts, facts::contexts_removed),
            (self.blocks.is_wide(), facts::utf_16_decoded),
        ];
        found.extend(coded.into_iter().filter(|(is_it, _)| *is_it).map(|(_, fact)| fact()));
        found
    }

    /// Reason to refuse the log.
    pub(crate) fn foreign(&self) -> Option<Sign> {
        if let Some(Format::Foreign(sign)) = self.format { Some(sign) } else { None }
    }

    /// The description of the log's clock in recording.json.
    pub(crate) fn describe_clock(&self, has_durations: bool) -> sysdock_table::Clock {
        self.times.as_ref().map_or_else(|| self.clock.describe(has_durations), |times| times.describe(has_durations))
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

/// Result of [`Merge::next`].
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// The next line is of this input: see [`Merge::item`].
    Line(usize),
    /// A signal interrupted the read; call again unless the work is cancelled.
    Interrupted,
    End,
}

/// All inputs.
pub(crate) struct Merge {
    pub(crate) feeds: Vec<Feed>,
    parsers: Parsers,
    /// Feeds that have a next line, earliest first; equal times in order of the inputs.
    waiting: BinaryHeap<Reverse<(u32, i64, usize)>>,
    /// The feed of the last line, and feeds that were not read yet.
    to_advance: Vec<usize>,
    /// Followed logs that had nothing new.
    quiet: Vec<usize>,
    following: bool,
    handed_out: u64,
    /// Number of lines without a time so far.
    numbered: i64,
}

impl Merge {
    pub(crate) fn new(feeds: Vec<Feed>) -> Self {
        let to_advance = (0..feeds.len()).rev().collect();
        Merge {
            following: feeds.iter().any(|feed| feed.follow),
            feeds,
            parsers: Parsers::default(),
            waiting: BinaryHeap::new(),
            to_advance,
            quiet: Vec::new(),
            handed_out: 0,
            numbered: 0,
        }
    }

    /// Let `threads` threads parse ahead.
    pub(crate) fn parse_ahead(&mut self, threads: usize) {
        self.parsers = Parsers::start(threads);
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Step {
        // A single log needs no comparison.
        if let [feed] = &mut *self.feeds
            && !self.following
        {
            return match feed.advance(&self.parsers) {
                Ok(true) => Step::Line(0),
                Ok(false) => Step::End,
                Err(()) => Step::Interrupted,
            };
        }
        self.next_of_many()
    }

    fn next_of_many(&mut self) -> Step {
        while let Some(&source) = self.to_advance.last() {
            match self.feeds[source].advance(&self.parsers) {
                // A log that has nothing new must not delay the others.
                Err(()) if self.following => {
                    self.to_advance.pop();
                    self.quiet.push(source);
                }
                Err(()) => return Step::Interrupted,
                Ok(false) => {
                    self.to_advance.pop();
                }
                Ok(true) => {
                    let key = (self.feeds[source].place, self.feeds[source].time_ns, source);
                    let earliest = self.waiting.peek().is_none_or(|Reverse(other)| key <= *other);
                    // A line without its own time (a frame of a stack) belongs to the line above
                    // it.
                    if self.to_advance.len() == 1 && (earliest || self.feeds[source].follows()) {
                        // It is still the earliest: skip the heap. It stays in `to_advance` for the
                        // next call.
                        self.number(source);
                        return Step::Line(source);
                    }
                    self.to_advance.pop();
                    self.waiting.push(Reverse(key));
                }
            }
        }
        match self.waiting.pop() {
            None if self.quiet.is_empty() => Step::End,
            None => {
                std::thread::sleep(FOLLOW_PAUSE);
                self.to_advance.append(&mut self.quiet);
                Step::Interrupted
            }
            Some(Reverse((.., source))) => {
                self.handed_out += 1;
                if self.handed_out.is_multiple_of(LINES_UNTIL_ASKED_AGAIN) {
                    self.to_advance.append(&mut self.quiet);
                }
                self.to_advance.push(source);
                self.number(source);
                Step::Line(source)
            }
        }
    }

    /// Number the lines of several logs without a clock together, in the order in which they are
    /// read.
    fn number(&mut self, source: usize) {
        let feed = &mut self.feeds[source];
        if feed.place > 0 && !feed.clock.has_stamps() {
            self.numbered += 1;
            feed.time_ns = self.numbered;
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

    /// Number of lines that were counted and not handed out.
    pub(crate) fn left_out(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.left_out).sum()
    }

    /// Size of all inputs on disk [B]; `None` if one has no size.
    pub(crate) fn size(&self) -> Option<u64> {
        self.feeds.iter().map(|feed| feed.input.size).sum()
    }
}
