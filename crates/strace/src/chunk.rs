//! Whole lines of a log, split and parsed without knowledge of earlier lines.
//!
//! Chunks are parsed in any order and by any thread; [`crate::merge`] hands out their lines in the
//! order of the log.

use crate::{
    fields::{self, NotACall, TextRanges},
    format::Format,
    line::{self, Kind, Prefix},
    output, search,
    wrapping::Wrapping,
};

/// Lines of one input, as read.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) text: Vec<u8>,
    /// Parsed lines; those from index `count` on are leftovers of an earlier use.
    pub(crate) lines: Vec<Line>,
    pub(crate) count: usize,
    /// The text is empty because the line was too long to keep.
    pub(crate) too_long: bool,
    pub(crate) format: Format,
    /// What is removed before the text is parsed.
    pub(crate) wrapping: Wrapping,
    /// Number within the chunk, counted from 0, of each line that was kept, and number of all
    /// lines. Used where lines are left out (dumps of truss).
    pub(crate) numbers: Vec<u32>,
    pub(crate) total: u32,
}

/// One line: its range in the chunk, its prefix, and its call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) event: u32,
    /// Whether it ends in a newline.
    pub(crate) ended: bool,
    pub(crate) kind: Kind,
    pub(crate) parsed: Parsed,
    pub(crate) prefix: Prefix,
    /// Ranges of the parts of the call that `parsed` states.
    pub(crate) places: TextRanges,
}

/// Result of parsing the text of a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Parsed {
    /// No call.
    #[default]
    Nothing,
    /// A complete call.
    Whole,
    /// The first half of a call, with the arguments printed so far.
    Begun,
    /// `) = ...`: a second half without arguments.
    Ended,
    /// It looked like a call but could not be parsed.
    Failed(NotACall),
}

impl Chunk {
    /// A chunk of one line that was joined from several.
    pub(crate) fn of_line(mut text: Vec<u8>, ended: bool) -> Self {
        if ended {
            text.push(b'\n');
        }
        let mut chunk = Chunk { text, ..Chunk::default() };
        chunk.parse();
        chunk
    }

    /// Split the text into lines and parse them.
    pub(crate) fn parse(&mut self) {
        if let Format::Truss(layout) = self.format {
            return self.parse_truss(&layout);
        }
        let mut text = std::mem::take(&mut self.text);
        if memchr::memchr(ESCAPE, &text).is_some() {
            remove_colours(&mut text);
        }
        self.wrapping.remove(&mut text);
        self.count = 0;
        let mut start = 0;
        search::newlines(&text, |newline| {
            let cut = usize::from(newline > start && text[newline - 1] == b'\r');
            self.parse_line(&text, start, newline - cut, true);
            start = newline + 1;
        });
        if start < text.len() {
            self.parse_line(&text, start, text.len(), false);
        }
        self.text = text;
    }

    /// Parse a line into an existing slot: lines are large, and there are many.
    fn parse_line(&mut self, text: &[u8], start: usize, end: usize, ended: bool) {
        if self.count == self.lines.len() {
            self.lines.push(Line::default());
        }
        let line = &mut self.lines[self.count];
        self.count += 1;
        let event = line::split(&text[start..end], &mut line.prefix);
        (line.start, line.end, line.event) = (start as u32, end as u32, (end - event.len()) as u32);
        line.ended = ended;
        // A known name before a parenthesis is always a call.
        line.kind = if starts_listed(event, &mut line.places) { Kind::Call } else { line::kind(event) };
        line.parsed = match line.kind {
            Kind::Call => parse_call(event, &mut line.places),
            Kind::Resumed => parse_end(event, &mut line.places),
            _ => Parsed::Nothing,
        };
    }

    /// Lines that report what a program did.
    pub(crate) fn events(&self) -> impl Iterator<Item = &Line> + Clone {
        let is_event = |line: &&Line| matches!(line.kind, Kind::Call | Kind::Resumed | Kind::Signal | Kind::Exit);
        self.lines[..self.count].iter().filter(is_event)
    }

    /// The whole line.
    pub(crate) fn line(&self, line: &Line) -> &[u8] {
        &self.text[line.start as usize..line.end as usize]
    }

    /// The line without its prefix.
    pub(crate) fn event(&self, line: &Line) -> &[u8] {
        &self.text[line.event as usize..line.end as usize]
    }
}

const ESCAPE: u8 = 0x1b;

/// Remove `ESC [ ... m`, which strace 7 prints on terminals. An escape character in a program's
/// data is always printed as `\33`.
fn remove_colours(text: &mut Vec<u8>) {
    let mut kept = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at] == ESCAPE && text.get(at + 1) == Some(&b'[') {
            let numbers = text[at + 2..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            if text.get(at + 2 + numbers) == Some(&b'm') {
                at += numbers + 3;
                continue;
            }
        }
        text[kept] = text[at];
        (kept, at) = (kept + 1, at + 1);
    }
    text.truncate(kept);
}

/// Whether the text starts with a known name and a parenthesis. Sets the name in `places`.
fn starts_listed(event: &[u8], places: &mut TextRanges) -> bool {
    if !matches!(event.first(), Some(b'a'..=b'z' | b'_')) {
        // Not a known name, but a numbered call.
        if let Some(name) = line::numbered_call(event) {
            places.start(name);
        }
        return false;
    }
    let name = fields::name(event);
    places.start(name) && name.len() < event.len()
}

/// Parse a call; `places` has its name already.
fn parse_call(event: &[u8], places: &mut TextRanges) -> Parsed {
    if fields::plain(event, places) {
        return Parsed::Whole;
    }
    if let Some(half) = fields::unfinished(event) {
        fields::begun(half, places);
        return Parsed::Begun;
    }
    match fields::rest(event, places) {
        Ok(()) if output::is_in_argument(&places.call(event)) => Parsed::Failed(NotACall::Mixed),
        Ok(()) => Parsed::Whole,
        Err(error) => Parsed::Failed(error),
    }
}

fn parse_end(event: &[u8], places: &mut TextRanges) -> Parsed {
    let Some((_, tail)) = fields::resumed(event) else { return Parsed::Nothing };
    let from = event.len() - tail.len();
    let ended = tail.starts_with(b")")
        && (fields::plain_end(event, from, &mut places.end) == Some(from)
            || fields::end(event, from + 1, &mut places.end).is_ok());
    if ended { Parsed::Ended } else { Parsed::Nothing }
}
