//! A program's own output in the middle of a call's line, if strace and the program wrote to the
//! same terminal.
//!
//! strace prints `write(1, "hello\n", 6`, the kernel prints the written text, and strace continues:
//!
//! ```text
//! write(1, "hello\n", 6hello
//! )                  = 6
//! ```
//!
//! The call is accepted only if exactly as many bytes as it returned are between its last argument
//! and its end, and if they equal the string that strace printed, as far as it printed it. This
//! also determines where the digits of the argument end and the output begins, as in `write(1, "5",
//! 15)`. The echo of a terminal is handled in the same way: `read(0, hello` and `"hello\n", 1024) =
//! 6`.
//!
//! States: *none* -> *mixed* (lines are taken as long as they may be the output) -> *none*: the end
//! was found and fits, or the lines are given back and read as usual.

use sysdock_calls::{CallRow, Issue};
use sysdock_table::TableError;

use crate::{
    chunk::{Chunk, Parsed},
    fields::{self, Call, End, NotACall, TextRanges},
    import::Import,
    merge::Item,
    text,
};

/// Limit of the output of one call that is waited for [B].
const LONGEST: usize = 256 << 10;

/// Number of threads that are checked for output in another thread's line, those that entered
/// `write` most recently first, since output appears at once. And the limit of its size.
const WRITERS: usize = 8;
const LONGEST_LINE: usize = 4096;

/// Number of buffers of one call that are compared.
const BUFFERS: usize = 64;

/// A line that was taken, as read.
#[derive(Debug)]
struct Taken {
    text: Vec<u8>,
    time_ns: i64,
    line_number: u64,
    tid: Option<i32>,
    session: u32,
}

/// A call that ends after output.
#[derive(Debug)]
pub(crate) struct Mixed {
    source: usize,
    /// Lines taken so far; the first one is the call's.
    lines: Vec<Taken>,
    /// Offset in the first line of the last argument, which the output follows.
    start: usize,
    /// Number of bytes from there to the end of the last line taken, including its newline.
    len: usize,
    /// Possible numbers of digits of the argument, with the number of bytes that the call then
    /// requests.
    counts: Vec<(usize, usize)>,
    expected: Expected,
    /// Reason why the first line alone is not a call.
    error: NotACall,
}

/// The expected output, as far as the arguments show it.
#[derive(Debug)]
enum Expected {
    /// A buffer: the bytes that strace printed, and whether they are all.
    Written(Vec<u8>, bool),
    /// Buffers: the bytes that strace printed of each, and its size.
    Vector(Vec<(Vec<u8>, usize)>),
    /// Contents of a file: any bytes.
    Sent,
    /// The echo of typed text on a terminal.
    Echo,
}

/// The effect of a line on a mixed call.
enum Next {
    /// The call ends, with this text.
    Ends(Vec<u8>),
    /// The line may be output.
    Output,
    /// The line is not output.
    Other,
}

impl Expected {
    /// Number of bytes that a call with this number as its last argument requests; `None` if it is
    /// impossible.
    fn requested(&self, number: usize) -> Option<usize> {
        match self {
            Expected::Written(known, true) => (number == known.len()).then_some(number),
            Expected::Written(known, false) => (number > known.len()).then_some(number),
            Expected::Vector(buffers) => (number == buffers.len()).then(|| buffers.iter().map(|(_, len)| *len).sum()),
            Expected::Sent => Some(number),
            Expected::Echo => None,
        }
    }

    /// Whether strace printed all of the output.
    fn is_exact(&self) -> bool {
        match self {
            Expected::Written(_, all) => *all,
            Expected::Vector(buffers) => buffers.iter().all(|(known, len)| *len == known.len()),
            Expected::Sent => false,
            Expected::Echo => true,
        }
    }

    /// Whether the output may contain these bytes at this offset.
    fn fits(&self, mut at: usize, mut bytes: &[u8]) -> bool {
        let same =
            |at, here: &[u8], known: &[u8]| here.iter().zip(known.get(at..).unwrap_or_default()).all(|(one, other)| one == other);
        let buffers = match self {
            Expected::Written(known, _) => return same(at, bytes, known),
            Expected::Vector(buffers) => buffers,
            Expected::Sent | Expected::Echo => return true,
        };
        for (known, len) in buffers {
            let len = *len;
            if at >= len {
                at -= len;
                continue;
            }
            let here = &bytes[..bytes.len().min(len - at)];
            if !same(at, here, known) {
                return false;
            }
            bytes = &bytes[here.len()..];
            at = 0;
            if bytes.is_empty() {
                return true;
            }
        }
        bytes.is_empty()
    }
}

impl Mixed {
    /// A broken call, if output may be the reason.
    fn begin(item: &Item<'_>, error: NotACall) -> Option<Self> {
        let (at, expected) = expected(item.event)?;
        let start = item.text.len() - item.event.len() + at;
        let last = &item.text[start..];
        let digits = last.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
        let number = |digits| text::decimal(&last[..digits]).and_then(|number| usize::try_from(number).ok());
        let requested = |digits| Some((digits, expected.requested(number(digits)?)?));
        let counts: Vec<(usize, usize)> = (1..=digits).filter_map(requested).collect();
        (!counts.is_empty() || matches!(expected, Expected::Echo)).then(|| Mixed {
            source: item.source,
            lines: Vec::new(),
            start,
            len: 0,
            counts,
            expected,
            error,
        })
    }

    /// Examine the next line, or the first one.
    fn next(&mut self, text: &[u8]) -> Next {
        let first = self.lines.is_empty();
        if matches!(self.expected, Expected::Echo) {
            return self.next_of_echo(text);
        }
        let segment = if first { &text[self.start..] } else { text };
        if let Some((count, end)) = self.end(segment, first) {
            let call = if first { text } else { &self.lines[0].text };
            return Next::Ends([&call[..self.start + count], &segment[end..]].concat());
        }
        let (expected, len) = (&self.expected, self.len);
        self.counts.retain(|(digits, count)| {
            let (at, bytes) = part(segment, first, len, *digits);
            // The newline after the line is output too.
            expected.fits(at, bytes) && expected.fits(at + bytes.len(), b"\n") && at + bytes.len() < *count
        });
        self.len += segment.len() + 1;
        if self.counts.is_empty() || self.len > LONGEST { Next::Other } else { Next::Output }
    }

    /// If the call ends in this line and everything fits: the number of digits of its last
    /// argument, and the offset of the text after the output.
    fn end(&self, segment: &[u8], first: bool) -> Option<(usize, usize)> {
        let (at, value) = match segment.strip_suffix(fields::UNFINISHED) {
            Some(half) => (half.strip_suffix(b" ").unwrap_or(half).len(), None),
            None => {
                let close = memchr::memrchr(b')', segment)?;
                let mut end = End::NONE;
                fields::end(segment, close + 1, &mut end).ok()?;
                (close, end.has_value.then_some(usize::try_from(end.value).ok()?))
            }
        };
        let mut found = self.counts.iter().filter(|(digits, count)| {
            let transferred = (self.len + at).checked_sub(*digits);
            let (place, bytes) = part(&segment[..at], first, self.len, *digits);
            transferred.is_some_and(|transferred| transferred == value.unwrap_or(*count) && transferred <= *count)
                && self.expected.fits(place, bytes)
        });
        let (digits, _) = found.next()?;
        found.next().is_none().then_some((*digits, at))
    }

    /// The line after the echo has the rest of the call, with the echoed text as its string.
    fn next_of_echo(&self, text: &[u8]) -> Next {
        let Some(first) = self.lines.first() else { return Next::Output };
        let mut whole = first.text[..self.start].to_vec();
        let echo = [&first.text[self.start..], b"\n"].concat();
        whole.extend_from_slice(text);
        let mut places = TextRanges::default();
        let event = memchr::memmem::rfind(&whole[..self.start], b"read(").map_or(&whole[..], |at| &whole[at..]);
        let fits = fields::parse(event, &mut places).is_ok() && {
            let call = places.call(event);
            let string = call.arguments.string(1).unwrap_or_default();
            let typed = call.returned.value.and_then(|value| usize::try_from(value).ok()) == Some(echo.len());
            typed && !string.is_empty() && echo.starts_with(&string)
        };
        if fits { Next::Ends(whole) } else { Next::Other }
    }
}

/// The output in a line if the argument has `digits` digits, and its offset in the output.
fn part(segment: &[u8], first: bool, len: usize, digits: usize) -> (usize, &[u8]) {
    if first { (0, segment.get(digits..).unwrap_or_default()) } else { (len - digits, segment) }
}

/// The expected output of a call, and the offset of its last argument.
fn expected(event: &[u8]) -> Option<(usize, Expected)> {
    let name = fields::name(event);
    let after = |count| {
        let mut places = TextRanges::default();
        places.start(name);
        let at = fields::first_arguments(event, count, &mut places)?;
        Some((at, places))
    };
    match name {
        b"write" => {
            let (at, places) = after(2)?;
            let buffer = places.call(event).arguments.get(1);
            let (known, all) = printed(buffer)?;
            Some((at, Expected::Written(known, all)))
        }
        b"writev" => {
            let (at, places) = after(2)?;
            Some((at, Expected::Vector(vector(places.call(event).arguments.get(1))?)))
        }
        b"sendfile" | b"sendfile64" => after(3).map(|(at, _)| (at, Expected::Sent)),
        b"read" => {
            let (at, _) = after(1)?;
            // The rest of the call is not printed yet.
            (!matches!(event.get(at), None | Some(b'"' | b'0'..=b'9' | b'<'))).then_some((at, Expected::Echo))
        }
        _ => None,
    }
}

/// The bytes of a string, and whether they are all.
fn printed(string: &[u8]) -> Option<(Vec<u8>, bool)> {
    Some((text::string(string)?.into_owned(), !string.ends_with(b"...")))
}

/// `[{iov_base="a", iov_len=1}, {"b"..., 40}]`
fn vector(argument: &[u8]) -> Option<Vec<(Vec<u8>, usize)>> {
    let mut rest = argument.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut buffers = Vec::new();
    while !rest.is_empty() && buffers.len() < BUFFERS {
        let body = rest.strip_prefix(b"{")?;
        let body = body.strip_prefix(b"iov_base=").unwrap_or(body);
        let (known, _) = printed(body.get(..text::string_end(body)?)?)?;
        let body = &body[text::string_end(body)?..];
        let body = body.strip_prefix(b"...").unwrap_or(body).strip_prefix(b", ")?;
        let (len, tail) = text::number(body.strip_prefix(b"iov_len=").unwrap_or(body))?;
        buffers.push((known, usize::try_from(len).ok().filter(|len| *len <= 1 << 32)?));
        let tail = tail.strip_prefix(b"}")?;
        rest = tail.strip_prefix(b", ").unwrap_or(tail);
    }
    rest.is_empty().then_some(buffers)
}

/// Whether the text parsed as the last argument of a call is more than a number, and may therefore
/// contain output with parentheses.
pub(crate) fn is_in_argument(call: &Call<'_>) -> bool {
    let count = call.arguments.get(2);
    matches!(call.name, b"write" | b"writev")
        && matches!(call.arguments.get(1).first(), Some(b'"' | b'['))
        && count.first().is_some_and(u8::is_ascii_digit)
        && !(count.iter().all(u8::is_ascii_digit) || count.starts_with(b"0x"))
}

impl Import<'_> {
    /// A line that is not a call by itself.
    pub(crate) fn broken_call(&mut self, item: &Item<'_>, error: NotACall) -> Result<(), TableError> {
        let mixed =
            Mixed::begin(item, error).filter(|mixed| self.mixed.is_none() && (mixed.expected.is_exact() || !self.giving_back));
        let Some(mut mixed) = mixed else { return self.call_of_another(item, error) };
        match mixed.next(item.text) {
            Next::Ends(text) => self.call_without_output(item, text),
            Next::Output if item.ended() => {
                mixed.lines.push(taken(item));
                self.mixed = Some(Box::new(mixed));
                Ok(())
            }
            _ => self.not_a_call(item, error),
        }
    }

    /// Another thread's output after the beginning of a line, from a write that is in progress.
    fn call_of_another(&mut self, item: &Item<'_>, error: NotACall) -> Result<(), TableError> {
        match self.take_written(item, false).filter(|_| item.ended() && !self.giving_back) {
            Some(at) => self.tear(item, at),
            None => self.not_a_call(item, error),
        }
    }

    /// A thread enters `write`, and strace continues with another one.
    pub(crate) fn enters_write(&mut self, tid: i32) {
        if self.writers.len() == WRITERS {
            self.writers.pop_front();
        }
        self.writers.push_back(tid);
    }

    /// The offset of the output of a write in progress, if a line ends with it: the output must be
    /// whole lines, and complete. Each write is matched once.
    pub(crate) fn take_written(&mut self, item: &Item<'_>, alone: bool) -> Option<usize> {
        for index in 0..self.writers.len() {
            let half = self.system.threads.half_of(item.session, self.writers[index]);
            let half = half.filter(|half| !half.shown && half.text.starts_with(b"write(") && half.text.len() < LONGEST_LINE);
            let Some(half) = half else { continue };
            let call = half.places.call(&half.text);
            let Some((known, true)) = printed(call.arguments.get(1)) else { continue };
            let Some(line) = known.strip_suffix(b"\n").filter(|line| !line.is_empty()) else { continue };
            let fits = if alone { item.text == line } else { item.text.ends_with(line) };
            if fits && memchr::memchr(b'\n', line).is_none() {
                half.shown = true;
                self.output_lines += 1;
                return Some(item.text.len() - line.len());
            }
        }
        None
    }

    fn not_a_call(&mut self, item: &Item<'_>, error: NotACall) -> Result<(), TableError> {
        self.issue(Issue::BrokenCall, item, Some(error.fact()))
    }

    /// A line while a call is mixed with output.
    pub(crate) fn mixed_line(&mut self, item: &Item<'_>) -> Result<(), TableError> {
        let Some(mut mixed) = self.mixed.take_if(|mixed| mixed.source == item.source) else { return self.one_line(item) };
        let next = if item.line.is_some() { mixed.next(item.text) } else { Next::Other };
        match next {
            Next::Ends(text) => {
                self.output_lines += mixed.lines.len() as u64;
                let first = &mixed.lines[0];
                let (time_ns, tid) = (first.time_ns, first.tid);
                self.call_without_output(&Item { time_ns, tid, line_number: first.line_number, ..*item }, text)
            }
            Next::Output => {
                mixed.lines.push(taken(item));
                self.mixed = Some(mixed);
                Ok(())
            }
            Next::Other => {
                self.give_back(*mixed)?;
                // One of those lines may have begun another mixed call.
                self.mixed_line(item)
            }
        }
    }

    /// Give back open lines at the end of the log.
    pub(crate) fn end_mixed(&mut self) -> Result<(), TableError> {
        while let Some(mixed) = self.mixed.take() {
            self.give_back(*mixed)?;
        }
        Ok(())
    }

    /// The lines taken as output are not: read each by itself.
    fn give_back(&mut self, mixed: Mixed) -> Result<(), TableError> {
        let was = std::mem::replace(&mut self.giving_back, true);
        let mut chunk = Chunk::default();
        for (number, taken) in mixed.lines.into_iter().enumerate() {
            chunk.text = taken.text;
            chunk.text.push(b'\n');
            chunk.parse();
            let Some(line) = chunk.lines[..chunk.count].first() else { continue };
            let item = Item {
                source: mixed.source,
                session: taken.session,
                line_number: taken.line_number,
                text: chunk.line(line),
                event: chunk.event(line),
                line: Some(line),
                tid: taken.tid,
                time_ns: taken.time_ns,
            };
            if number == 0 { self.not_a_call(&item, mixed.error) } else { self.mixed_line(&item) }?;
        }
        self.giving_back = was;
        Ok(())
    }

    /// A call without the output in its line.
    fn call_without_output(&mut self, item: &Item<'_>, text: Vec<u8>) -> Result<(), TableError> {
        self.place = (item.source, item.line_number);
        let chunk = Chunk::of_line(text, item.ended());
        let Some(line) = chunk.lines[..chunk.count].first() else { return Ok(()) };
        let whole = matches!(line.parsed, Parsed::Whole | Parsed::Begun);
        let cleaned = Item { text: chunk.line(line), event: chunk.event(line), line: Some(line), ..*item };
        match line.parsed {
            Parsed::Failed(error) => self.not_a_call(&cleaned, error),
            _ if whole => self.event_line(&cleaned, line),
            _ => self.issue(Issue::UnknownLine, item, None),
        }
    }
}

fn taken(item: &Item<'_>) -> Taken {
    let (time_ns, line_number, tid, session) = (item.time_ns, item.line_number, item.tid, item.session);
    Taken { text: item.text.to_vec(), time_ns, line_number, tid, session }
}

/// Correct a write that moved less than requested: `write(1, "5", 15) = 1` requests one byte, and
/// the number is followed by the output.
#[cold]
pub(crate) fn correct_asked(call: &Call<'_>, row: &mut CallRow) {
    let Some((known, true)) = printed(call.arguments.get(1)) else { return };
    let printed_after = [known.len().to_string().as_bytes(), &known].concat();
    if call.name == b"write" && row.transferred <= known.len() as i64 && call.arguments.get(2) == printed_after {
        row.requested = known.len() as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_taken_from_the_arguments() {
        let (at, output) = expected(b"write(1, \"a, \\n\"..., 40a, ").unwrap();
        assert_eq!(at, 21);
        assert!(matches!(&output, Expected::Written(known, false) if known == b"a, \n"));
        assert_eq!((output.requested(4), output.requested(40), output.is_exact()), (None, Some(40), false));
        assert!(output.fits(0, b"a, ") && output.fits(3, b"\nand more") && output.fits(30, b"any"));
        assert!(!output.fits(0, b"a;") && !output.fits(3, b"x"));
        for text in
            ["write(1, 0x55, 3", "write(1, \"abc", "write(1", "pwrite64(1, \"abc\", 3, 0", "read(0, ", "read(0, \"abc", "poll(0"]
        {
            assert!(expected(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn buffers_of_both_forms_are_one_output() {
        let buffers = vector(b"[{iov_base=\"ab\", iov_len=2}, {\"c\"..., 3}, {iov_base=\"\", iov_len=0}]").unwrap();
        let output = Expected::Vector(buffers);
        assert_eq!((output.requested(3), output.requested(5), output.is_exact()), (Some(5), None, false));
        assert!(output.fits(0, b"abc") && output.fits(1, b"bcxy") && output.fits(3, b"xy"));
        assert!(!output.fits(0, b"abx") && !output.fits(0, b"abcxyz"));
        for text in ["", "[", "[{iov_base=0x55, iov_len=3}]", "[{iov_base=\"a\", iov_len=1}, ...]", "[{\"a\"}]"] {
            assert!(vector(text.as_bytes()).is_none_or(|buffers| buffers.is_empty()), "{text}");
        }
        let many = format!("[{}]", ["{\"a\", 1}"; BUFFERS + 1].join(", "));
        assert!(vector(many.as_bytes()).is_none());
    }
}
