//! Lines of several inputs in the order of their times.
//!
//! `strace -ff` writes one file per thread; a thread's own lines are in order, so the file whose next line is earliest goes first.

use std::{cmp::Reverse, collections::BinaryHeap, io};

use chrono::NaiveDate;

use crate::{
    clock::Clock,
    input::{Input, Lines, Next},
    line,
};

/// An input with its clock and its next line.
pub(crate) struct Feed {
    pub(crate) input: Input,
    pub(crate) clock: Clock,
    lines: Lines,
    pub(crate) line_number: u64,
    next: Option<Pending>,
}

/// A line that was split but not handed out: where it lies in the buffer, and its prefix.
struct Pending {
    range: std::ops::Range<usize>,
    tid: Option<i32>,
    event_at: usize,
    ended: bool,
    time_ns: i64,
    too_long: bool,
}

/// One line with all that its prefix says.
pub(crate) struct Item<'a> {
    pub(crate) source: usize,
    pub(crate) line_number: u64,
    pub(crate) text: &'a [u8],
    /// The text behind the prefix.
    pub(crate) event: &'a [u8],
    /// From the line, or from the name of a file that holds one thread (`-ff`).
    pub(crate) tid: Option<i32>,
    pub(crate) time_ns: i64,
    /// Whether the line ends in a newline.
    pub(crate) ended: bool,
    pub(crate) too_long: bool,
}

impl Feed {
    pub(crate) fn open(input: Input, inputs: usize, date: Option<NaiveDate>) -> io::Result<Self> {
        let lines = input.lines(inputs)?;
        let clock = Clock::new(input.written_ns, date);
        Ok(Feed { input, clock, lines, line_number: 0, next: None })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    pub(crate) fn failure(&self) -> Option<&io::Error> {
        self.lines.failure.as_ref()
    }

    /// Read the next line; `Ok(false)` at the end, `Err(())` if a signal came first.
    fn advance(&mut self) -> Result<bool, ()> {
        let (range, ended, too_long) = match self.lines.next() {
            Next::End => {
                self.next = None;
                return Ok(false);
            }
            Next::Interrupted => return Err(()),
            Next::TooLong => (0..0, true, true),
            Next::Line(range, ended) => (range, ended, false),
        };
        self.line_number += 1;
        let prefix = line::split(self.lines.text(range.clone()));
        let time_ns = self.clock.time(prefix.stamp, prefix.decimals);
        let (tid, event_at) = (prefix.tid, range.end - prefix.event.len());
        self.next = Some(Pending { range, tid, event_at, ended, time_ns, too_long });
        Ok(true)
    }

    fn item(&self, source: usize) -> Option<Item<'_>> {
        let next = self.next.as_ref()?;
        Some(Item {
            source,
            line_number: self.line_number,
            text: self.lines.text(next.range.clone()),
            event: self.lines.text(next.event_at..next.range.end),
            tid: next.tid.or(self.input.tid),
            time_ns: next.time_ns,
            ended: next.ended,
            too_long: next.too_long,
        })
    }
}

/// What [`Merge::next`] found.
pub(crate) enum Step<'a> {
    Item(Item<'a>),
    /// A signal interrupted the read; ask again unless the work is cancelled.
    Interrupted,
    End,
}

/// All inputs.
pub(crate) struct Merge {
    pub(crate) feeds: Vec<Feed>,
    /// Feeds that have a next line, earliest first; equal times in order of the inputs.
    waiting: BinaryHeap<Reverse<(i64, usize)>>,
    /// The feed whose line was handed out last, and feeds not read yet.
    to_advance: Vec<usize>,
}

impl Merge {
    pub(crate) fn new(feeds: Vec<Feed>) -> Self {
        let to_advance = (0..feeds.len()).rev().collect();
        Merge { feeds, waiting: BinaryHeap::new(), to_advance }
    }

    pub(crate) fn next(&mut self) -> Step<'_> {
        while let Some(&source) = self.to_advance.last() {
            match self.feeds[source].advance() {
                Err(()) => return Step::Interrupted,
                Ok(false) => {
                    self.to_advance.pop();
                }
                Ok(true) => {
                    let time_ns = self.feeds[source].next.as_ref().map_or(0, |next| next.time_ns);
                    let first = self.to_advance.len() == 1
                        && self.waiting.peek().is_none_or(|Reverse((other, index))| (time_ns, source) <= (*other, *index));
                    if first {
                        // Still the earliest: no detour through the heap. It stays in `to_advance` for the next call.
                        return self.feeds[source].item(source).map_or(Step::End, Step::Item);
                    }
                    self.to_advance.pop();
                    self.waiting.push(Reverse((time_ns, source)));
                }
            }
        }
        match self.waiting.pop() {
            None => Step::End,
            Some(Reverse((_, source))) => {
                self.to_advance.push(source);
                self.feeds[source].item(source).map_or(Step::End, Step::Item)
            }
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.feeds.iter().map(Feed::bytes).sum()
    }

    /// Size of all inputs on disk, where every one has a size.
    pub(crate) fn size(&self) -> Option<u64> {
        self.feeds.iter().map(|feed| feed.input.size).sum()
    }
}
