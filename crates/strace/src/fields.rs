//! The text of one call: name, arguments, return value, duration.
//!
//! Buffers and file names may contain anything, even `) = 3 <0.1>`. The arguments are therefore
//! scanned from the left, skipping strings and tags, and the closing parenthesis found this way
//! ends them. If the line ends in a plain number and a duration, the end is parsed first, from the
//! right, and only the arguments that the call's shape needs are scanned: see [`plain_end`].

use std::borrow::Cow;

use sysdock_table::{Fact, facts::issues as facts};

use crate::{search, text, truss};
use sysdock_calls::{common_name, syscalls};

/// Number of arguments that are split; no call uses a later one.
pub(crate) const MAX_ARGUMENTS: usize = 6;

/// Printed by strace where the rest of a call comes later.
pub(crate) const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Top-level arguments of a call, as printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a> {
    pub(crate) text: &'a [u8],
    places: &'a [TextRange],
    /// Printed by truss.
    pub(crate) truss: bool,
}

impl<'a> Arguments<'a> {
    /// Argument `index`, or an empty text.
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        self.places.get(index).map_or(b"", |place| place.text(self.text))
    }

    /// Argument `index` if it is a quoted string, unescaped by the rules of its tracer.
    pub(crate) fn string(&self, index: usize) -> Option<Cow<'a, [u8]>> {
        if self.truss { truss::string(self.get(index)) } else { text::string(self.get(index)) }
    }

    /// All arguments that were split.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.places.iter().map(|place| place.text(self.text))
    }
}

/// Start and length of a part of a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TextRange {
    start: u32,
    len: u32,
}

impl TextRange {
    /// A part that is missing.
    pub(crate) const ABSENT: TextRange = TextRange { start: 0, len: u32::MAX };

    pub(crate) fn new(start: usize, end: usize) -> Self {
        TextRange { start: start as u32, len: (end - start) as u32 }
    }

    /// An argument without surrounding blanks and without the name that `-N` prints before it
    /// (`fd=3`).
    fn trimmed(text: &[u8], mut start: usize, mut end: usize) -> Self {
        while start < end && text[start] == b' ' {
            start += 1;
        }
        while start < end && text[end - 1] == b' ' {
            end -= 1;
        }
        if start < end && text[start].is_ascii_lowercase() {
            start += named(&text[start..end]);
        }
        TextRange::new(start, end)
    }

    fn text(self, whole: &[u8]) -> &[u8] {
        &whole[self.start as usize..(self.start + self.len) as usize]
    }

    fn is_absent(self) -> bool {
        self.len == u32::MAX
    }

    fn some(self, whole: &[u8]) -> Option<&[u8]> {
        (!self.is_absent()).then(|| self.text(whole))
    }
}

/// A call as ranges of its text, which can be stored together with the text. Texts are shorter than
/// 2^32 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRanges {
    /// Index in the list of known calls, or [`syscalls::UNLISTED`].
    pub(crate) number: u16,
    count: u8,
    /// Printed by truss.
    pub(crate) truss: bool,
    name: u32,
    items: [TextRange; MAX_ARGUMENTS],
    pub(crate) end: End,
}

/// The part of a call after its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    /// Whether there is a return value; false for `?` and for errors.
    pub(crate) has_value: bool,
    pub(crate) value: i64,
    pub(crate) errno: TextRange,
    tag: TextRange,
    /// Duration [ns]; negative: not printed.
    pub(crate) dur_ns: i64,
}

impl End {
    pub(crate) const NONE: End = End { has_value: false, value: 0, errno: TextRange::ABSENT, tag: TextRange::ABSENT, dur_ns: -1 };

    /// Duration of the call [ns].
    pub(crate) fn dur_ns(&self) -> Option<i64> {
        (self.dur_ns >= 0).then_some(self.dur_ns)
    }
}

impl Default for TextRanges {
    fn default() -> Self {
        TextRanges {
            number: syscalls::UNLISTED,
            count: 0,
            truss: false,
            name: 0,
            items: [TextRange::default(); MAX_ARGUMENTS],
            end: End::NONE,
        }
    }
}

impl TextRanges {
    /// Start a call with this name; returns whether it is a known one.
    #[inline]
    pub(crate) fn start(&mut self, name: &[u8]) -> bool {
        self.number = syscalls::number(name);
        self.name = name.len() as u32;
        self.count = 0;
        self.number != syscalls::UNLISTED
    }

    /// Offset of the first argument.
    fn arguments_at(&self) -> usize {
        self.name as usize + 1
    }

    /// Name of the call in the parsed text.
    #[inline]
    pub(crate) fn name_in<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[..self.name as usize]
    }

    pub(crate) fn push(&mut self, item: TextRange) {
        if let Some(place) = self.items.get_mut(usize::from(self.count)) {
            *place = item;
            self.count += 1;
        }
    }

    /// The call in the parsed text.
    pub(crate) fn call<'a>(&'a self, text: &'a [u8]) -> Call<'a> {
        self.ended_by(text, &self.end, text)
    }

    /// The call with the arguments of this half and the result in `end`.
    #[inline]
    pub(crate) fn ended_by<'a>(&'a self, text: &'a [u8], end: &End, end_text: &'a [u8]) -> Call<'a> {
        Call {
            name: self.name_in(text),
            arguments: Arguments { text, places: &self.items[..usize::from(self.count)], truss: self.truss },
            returned: Returned {
                value: end.has_value.then_some(end.value),
                errno: end.errno.some(end_text).map(named_error),
                tag: end.tag.some(end_text),
            },
            dur_ns: end.dur_ns(),
        }
    }
}

/// The result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned<'a> {
    /// The value; `None` for `?`.
    pub(crate) value: Option<i64>,
    /// Name of the error, also for `? ERESTARTSYS`.
    pub(crate) errno: Option<&'a [u8]>,
    /// Contents of the tag of a returned descriptor (`3</etc/passwd>`).
    pub(crate) tag: Option<&'a [u8]>,
}

/// One complete call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) arguments: Arguments<'a>,
    pub(crate) returned: Returned<'a>,
    pub(crate) dur_ns: Option<i64>,
}

impl Call<'_> {
    /// All arguments, including those that the call's shape does not need.
    pub(crate) fn all_arguments(&self) -> Vec<Box<[u8]>> {
        let mut places = TextRanges::default();
        let mut arguments = self.arguments;
        if !arguments.truss {
            scan(arguments.text, self.name.len() + 1, usize::MAX, &mut places);
            arguments.places = &places.items[..usize::from(places.count)];
        }
        arguments.iter().map(Into::into).collect()
    }
}

/// Reason why a text is not a complete call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotACall {
    /// The arguments do not end.
    NoEnd,
    /// No ` = value` after the arguments.
    NoReturn,
    /// Something other than a note or a duration follows the return value.
    Trailing,
    /// Other text is mixed into the arguments.
    Mixed,
}

/// Name of the call that `event` begins with.
#[inline]
pub(crate) fn name(event: &[u8]) -> &[u8] {
    &event[..search::open_parenthesis(event).unwrap_or(event.len())]
}

/// The text before `<unfinished ...>`, if the rest of this call comes later, on another line, or
/// never (`<detached ...>`).
pub(crate) fn unfinished(event: &[u8]) -> Option<&[u8]> {
    let inner = event.strip_suffix(b" ...>")?;
    let half = |mark: &[u8]| inner.strip_suffix(mark);
    half(b"<unfinished").or_else(|| half(b"<detached")).or_else(|| {
        // `<pid changed to 1000 ...>`: an exec that continues in the file of the process's first
        // thread (`-ff`).
        let mark = memchr::memmem::rfind(inner, b"<pid changed to ")?;
        inner[mark + 16..].iter().all(u8::is_ascii_digit).then_some(&inner[..mark])
    })
}

/// Name and rest of `<... name resumed>rest`.
pub(crate) fn resumed(event: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = event.strip_prefix(b"<... ")?;
    let space = memchr::memchr(b' ', body)?;
    let tail = body[space..].strip_prefix(b" resumed>")?;
    Some((&body[..space], tail))
}

/// `name(args <unfinished ...>) = ?`: the thread was killed during the call. Writes the call
/// without the mark to `whole`.
pub(crate) fn killed(event: &[u8], whole: &mut Vec<u8>) -> bool {
    let Some(at) = memchr::memmem::rfind(event, UNFINISHED) else { return false };
    let tail = &event[at + UNFINISHED.len()..];
    if !tail.starts_with(b")") {
        return false;
    }
    whole.clear();
    whole.extend_from_slice(&event[..at]);
    whole.extend_from_slice(tail);
    true
}

impl NotACall {
    /// Description for `import_issues.detail`.
    pub(crate) fn fact(self) -> Fact {
        match self {
            NotACall::NoEnd => facts::arguments_do_not_end(),
            NotACall::NoReturn => facts::no_return_value(),
            NotACall::Mixed => facts::mixed_arguments(),
            NotACall::Trailing => facts::trailing_text(),
        }
    }
}

/// Parse `name(arguments) = returned <duration>`.
pub(crate) fn parse(event: &[u8], places: &mut TextRanges) -> Result<(), NotACall> {
    places.start(name(event));
    if plain(event, places) { Ok(()) } else { rest(event, places) }
}

/// Parse the rest of a call after its name in `places`, if its end is a plain one.
#[inline]
pub(crate) fn plain(event: &[u8], places: &mut TextRanges) -> bool {
    let from = places.arguments_at();
    let Some(close) = plain_end(event, from, &mut places.end) else { return false };
    // If the arguments end at an earlier parenthesis, the line contains more than one call.
    let ends = |at: usize| at == close || (at < close && event[at] != b')');
    scan(event, from, syscalls::needed(places.number), places).is_some_and(ends)
}

/// Parse the rest of a call after its name in `places`.
pub(crate) fn rest(event: &[u8], places: &mut TextRanges) -> Result<(), NotACall> {
    places.count = 0;
    let close = scan(event, places.arguments_at(), usize::MAX, places).ok_or(NotACall::NoEnd)?;
    end(event, close + 1, &mut places.end)
}

/// Parse the first half of a call after its name in `places`: the arguments printed so far.
pub(crate) fn begun(half: &[u8], places: &mut TextRanges) {
    places.count = 0;
    places.end = End::NONE;
    scan(half, places.arguments_at(), syscalls::needed(places.number), places);
}

/// Collect the first arguments of a call after its name in `places`. Returns the offset of the next
/// one.
pub(crate) fn first_arguments(event: &[u8], count: usize, places: &mut TextRanges) -> Option<usize> {
    places.count = 0;
    let comma = scan(event, places.arguments_at(), count, places).filter(|at| event[*at] == b',')?;
    (usize::from(places.count) == count).then(|| after_blanks(event, comma + 1))
}

/// Collect arguments from `from` on until there are `needed` or no more. Returns the offset of the
/// comma or parenthesis after the last one; `None` if the text ends before.
fn scan(text: &[u8], from: usize, needed: usize, places: &mut TextRanges) -> Option<usize> {
    if needed == 0 {
        return Some(from);
    }
    let mut start = from;
    // Most arguments are short or strings.
    while let Some((first, end)) = simple_argument(text, start) {
        places.push(TextRange::new(first, end));
        if text[end] == b')' || usize::from(places.count) == needed {
            return Some(end);
        }
        start = end + 1;
    }
    let mut depth = 0usize;
    let mut stops = search::Stops::new(text, start);
    while let Some(stop) = stops.next() {
        match text[stop] {
            b'"' => stops.skip_to(stop + text::string_end(&text[stop..])?),
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if stop > from {
                    places.push(TextRange::trimmed(text, start, stop));
                }
                return Some(stop);
            }
            b',' if depth == 0 => {
                places.push(TextRange::trimmed(text, start, stop));
                if usize::from(places.count) == needed {
                    return Some(stop);
                }
                start = stop + 1;
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'<' if starts_tag(text, stop) => stops.skip_to(stop + text::tag_end(&text[stop..])?),
            _ => {}
        }
    }
    if start < text.len() {
        places.push(TextRange::trimmed(text, start, text.len()));
    }
    None
}

/// Start and end of the argument at `at` if it is a number, a descriptor with its tag, or a string,
/// followed by a comma or parenthesis.
#[inline]
fn simple_argument(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let first = at + usize::from(*text.get(at)? == b' ');
    let rest = text.get(first..)?;
    let mut end = match rest.first()? {
        b'"' => text::string_end(rest)?,
        b'0'..=b'9' => 1 + rest[1..].iter().position(|byte| !byte.is_ascii_digit())?,
        _ => rest.strip_prefix(b"AT_FDCWD").map(|_| 8)?,
    };
    if rest.get(end) == Some(&b'<') && rest[0] != b'"' && !matches!(rest.get(end + 1), Some(b'<' | b'=')) {
        end += text::tag_end(&rest[end..])?;
    }
    matches!(rest.get(end), Some(b',' | b')')).then_some((first, first + end))
}

/// Length of `name=` at the start of an argument, or 0.
fn named(argument: &[u8]) -> usize {
    let name = argument.iter().take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'_').count();
    if argument.get(name) == Some(&b'=') { name + 1 } else { 0 }
}

/// Whether a tag starts here: right after a descriptor (`3<`) or `AT_FDCWD`, unlike the shift
/// `1<<21` or ` <`.
fn starts_tag(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|i| text[i]);
    before.is_some_and(|b| b.is_ascii_digit() || b == b'D') && !matches!(text.get(at + 1), Some(b'<' | b'='))
}

/// Parse the most common end of a line from the right: `) = 17 <0.000010>`. Returns the offset of
/// the parenthesis.
///
/// A string, tag or note may contain the same text, but a complete line can end like this only with
/// its own result: strings end in a quote, tags in `>`, notes in `)`. The end of a line never comes
/// from the program's data, in which newlines are escaped.
#[inline]
pub(crate) fn plain_end(text: &[u8], from: usize, end: &mut End) -> Option<usize> {
    let dur_ns = text::last_micros(text)?;
    let [head @ .., b' '] = text.get(from..text.len().checked_sub(10)?)? else { return None };
    let (value, digits) = text::last_number(head)?;
    let mut head = head[..head.len() - digits].strip_suffix(b"= ")?;
    // Short calls are padded to a column.
    while let [shorter @ .., b' '] = head {
        head = head.strip_suffix(b"        ").unwrap_or(shorter);
    }
    *end = End { has_value: true, value, dur_ns, ..End::NONE };
    head.ends_with(b")").then(|| from + head.len() - 1)
}

/// Parse `  = value tag errno (note) <duration>` from `from` on.
pub(crate) fn end(text: &[u8], from: usize, end: &mut End) -> Result<(), NotACall> {
    let (text, dur_ns) = split_duration(text, from);
    *end = End { dur_ns: dur_ns.unwrap_or(-1), ..End::NONE };
    let at = after_blanks(text, after_mask(text, after_blanks(text, from)));
    let tail = text.get(at..).and_then(|tail| tail.strip_prefix(b"= ")).ok_or(NotACall::NoReturn)?.trim_ascii_end();
    let place = |part: &[u8]| {
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        TextRange::new(start, start + part.len())
    };
    if let Some(rest) = tail.strip_prefix(b"?") {
        end.errno = errno(rest).map_or(TextRange::ABSENT, place);
        return Ok(());
    }
    let (value, mut rest) = text::number(tail).ok_or(NotACall::NoReturn)?;
    if rest.first() == Some(&b'<') {
        let close = text::tag_end(rest).ok_or(NotACall::NoReturn)?;
        end.tag = place(&rest[1..close - 1]);
        rest = &rest[close..];
    }
    // Old versions of strace print the kernel's `-2` before the name of the error.
    if value < 0 {
        end.errno = errno(rest).map_or(TextRange::ABSENT, place);
    }
    if end.errno.is_absent() && !is_note(rest) {
        return Err(NotACall::Trailing);
    }
    (end.value, end.has_value) = (own_number(rest).unwrap_or(value), end.errno.is_absent());
    Ok(())
}

/// The id of a process as the lines have it, from `/* 4235 in strace's PID NS */` after the one of
/// its own namespace.
fn own_number(rest: &[u8]) -> Option<i64> {
    let (number, text) = text::number(rest.strip_prefix(b" /* ")?)?;
    text.starts_with(b" in strace's PID NS */").then_some(number)
}

fn after_blanks(text: &[u8], at: usize) -> usize {
    at + text.get(at..).map_or(0, |rest| rest.iter().take_while(|byte| **byte == b' ').count())
}

/// Offset after the `(mask [CHLD])` that strace before 4.9 prints after the arguments of
/// `sigreturn`.
fn after_mask(text: &[u8], at: usize) -> usize {
    let mask = text.get(at..).filter(|rest| rest.starts_with(b"(mask "));
    at + mask.and_then(|mask| memchr::memchr(b')', mask)).map_or(0, |close| close + 1)
}

/// Whether a text may follow a value: `(Timeout)`, `/* ... */`. Plain words come from another
/// writer.
fn is_note(rest: &[u8]) -> bool {
    match rest {
        [] => true,
        [b' ' | b'(', ..] => matches!(rest.trim_ascii_start().first(), None | Some(b'(' | b'<' | b'/' | b'[' | b'{')),
        _ => false,
    }
}

/// Split off a trailing ` <0.000123>`.
fn split_duration(text: &[u8], from: usize) -> (&[u8], Option<i64>) {
    if let Some(dur_ns) = text::last_micros(text)
        && text.len() >= from + 11
        && text[text.len() - 11] == b' '
    {
        return (&text[..text.len() - 11], Some(dur_ns));
    }
    if let Some(body) = text.strip_suffix(b">")
        && let Some(open) = memchr::memrchr(b'<', body)
        && open > from
        && body[open - 1] == b' '
        && let Some(dur_ns) = text::seconds(&body[open + 1..])
    {
        return (&text[..open - 1], Some(dur_ns));
    }
    (text, None)
}

/// `ENOENT` of ` ENOENT (No such file or directory)`; `errno 5` of ` (errno 5)`, an error that
/// strace has no name for.
fn errno(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b" ")?;
    let numbered = rest.strip_prefix(b"(").unwrap_or(rest);
    if numbered.starts_with(b"errno") {
        let start = numbered.len() - numbered[5..].strip_prefix(b":").unwrap_or(&numbered[5..]).strip_prefix(b" ")?.len();
        let digits = numbered[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        return (digits > 0).then_some(&numbered[..start + digits]);
    }
    let len = rest.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'_').count();
    (len > 1 && rest[0] == b'E').then_some(&rest[..len])
}

/// The name of an error printed as `errno 5`, if all architectures agree on it; otherwise the text
/// unchanged.
fn named_error(errno: &[u8]) -> &[u8] {
    let Some(number) = errno.strip_prefix(b"errno") else { return errno };
    let number = text::decimal(number.strip_prefix(b":").unwrap_or(number).trim_ascii_start())
        .and_then(|number| u16::try_from(number).ok());
    number.and_then(common_name).map_or(errno, str::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> (Vec<String>, Returned<'_>, Option<i64>) {
        let places = Box::leak(Box::default());
        parse(text.as_bytes(), places).unwrap_or_else(|e| panic!("{text}: {e:?}"));
        let call = places.call(text.as_bytes());
        let arguments = call.arguments.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
        (arguments, call.returned, call.dur_ns)
    }

    #[test]
    fn a_plain_call() {
        let (arguments, returned, dur) = call(r#"read(3</a b>, "x, y) = 3 <0.1>", 4096) = 17 <0.000010>"#);
        assert_eq!(arguments, ["3</a b>", r#""x, y) = 3 <0.1>""#, "4096"]);
        assert_eq!(returned.value, Some(17));
        assert_eq!(dur, Some(10_000));
    }

    #[test]
    fn file_names_that_look_like_returns() {
        let (arguments, returned, _) =
            call(r#"openat(AT_FDCWD</w>, "f", O_RDONLY) = 3</tmp/a b) = 3 \"q\" \0740.1\076.txt> <0.1>"#);
        assert_eq!(arguments.len(), 3);
        assert_eq!(returned.value, Some(3));
        assert_eq!(returned.tag.unwrap(), br#"/tmp/a b) = 3 \"q\" \0740.1\076.txt"#);
    }

    #[test]
    fn arguments_that_no_one_needs_are_not_split() {
        let (arguments, returned, dur) = call(r#"prctl(PR_SET_NAME, "x) = 3 <0.000001>") = 0 <0.000002>"#);
        assert_eq!((arguments.len(), returned.value, dur), (0, Some(0), Some(2_000)));
        let (arguments, returned, _) = call(r#"close(3</a>)                            = 0x1f <0.000002>"#);
        assert_eq!((arguments, returned.value), (vec!["3</a>".to_string()], Some(31)));
        let (arguments, returned, _) = call(r#"openat(AT_FDCWD, "x", O_RDONLY) = 3</a) = 3> <0.000002>"#);
        assert_eq!((arguments.len(), returned.tag), (3, Some(&b"/a) = 3"[..])));
        // Two calls on one line: the first result counts.
        assert_eq!(call("getpid() = 5 <0.000010>close(3) = 0 <0.000010>").1.value, Some(5));
        // The line is cut inside a string, so the apparent end is part of the string.
        assert!(parse(br#"write(1, "x) = 3 <0.000001>"#, &mut TextRanges::default()).is_err());
        let event = b"futex(0x1, FUTEX_WAIT, 2, NULL) = 0 <0.000010>";
        let mut places = TextRanges::default();
        parse(event, &mut places).unwrap();
        assert_eq!(places.call(event).all_arguments().len(), 4);
    }

    #[test]
    fn errors_and_unknown_returns() {
        let (_, returned, _) = call(r#"access("/x", R_OK) = -1 ENOENT (No such file or directory) <0.000050>"#);
        assert_eq!((returned.value, returned.errno), (None, Some(&b"ENOENT"[..])));
        let (_, returned, dur) = call("read(0, 0x7f, 1) = ? ERESTARTSYS (To be restarted if SA_RESTART is set) <1.5>");
        assert_eq!((returned.value, returned.errno, dur), (None, Some(&b"ERESTARTSYS"[..]), Some(1_500_000_000)));
        let (arguments, returned, _) = call("exit_group(0)                           = ?");
        assert_eq!((arguments.len(), returned.value, returned.errno), (1, None, None));
        let (_, returned, _) = call("lseek(3, 0, SEEK_CUR) = -1");
        assert_eq!((returned.value, returned.errno), (Some(-1), None));
    }

    #[test]
    fn the_signal_mask_of_old_versions_is_no_argument() {
        for (text, value) in [
            ("sigreturn() (mask [])                = 0", 0),
            ("sigreturn() (mask [CHLD RT_1]) = 5 <0.000010>", 5),
            ("rt_sigreturn() (mask ~[TRAP SEGV])      = 1", 1),
            ("sigreturn({mask=[CHLD]}) = 0", 0),
            ("rt_sigreturn({mask=[CHLD INT]}) = 202 <0.000010>", 202),
            ("rt_sigreturn() = 4", 4),
            ("rt_sigreturn(0xbe91) = 4", 4),
        ] {
            assert_eq!(call(text).1.value, Some(value), "{text}");
        }
        let (_, returned, _) = call("sigreturn() (mask [ALRM])               = -1 EINTR (Interrupted system call)");
        assert_eq!((returned.value, returned.errno), (None, Some(&b"EINTR"[..])));
        assert_eq!(call("sigreturn()                       = ? (mask now [])").1, Returned::default());
    }

    #[test]
    fn errors_of_old_versions_have_their_names() {
        for (text, errno) in [
            ("open(\"/x\", O_RDONLY) = -2 ENOENT (No such file or directory)", "ENOENT"),
            ("connect(3, 0x1, 2) = -123 ENOENT (No such file or directory) <0.1>", "ENOENT"),
            ("ioctl(3, 0x1, 2) = -1 (errno 5)", "EIO"),
            ("read(3, 0x1, 2) = -1 errno: 11", "EAGAIN"),
            ("read(3, 0x1, 2) = -1 errno: 11 (Resource temporarily unavailable)", "EAGAIN"),
            ("read(3, 0x1, 2) = -1 (errno 512)", "ERESTARTSYS"),
            ("read(3, 0x1, 2) = -1 (errno 145)", "errno 145"),
            ("read(3, 0x1, 2) = ? ERESTARTSYS (To be restarted)", "ERESTARTSYS"),
        ] {
            let (_, returned, _) = call(text);
            assert_eq!((returned.value, returned.errno), (None, Some(errno.as_bytes())), "{text}");
        }
        for text in ["close(3) = 0 and more", "close(3) = 0 E", "close(3) = 5garbage", "close(3) = -1 errno", "close(3) = 12 0"] {
            assert!(parse(text.as_bytes(), &mut TextRanges::default()).is_err(), "{text}");
        }
        assert_eq!(call("time(NULL) = 17 /* 1970 */").1.value, Some(17));
    }

    #[test]
    fn nested_structures_count_as_one_argument() {
        let (arguments, ..) = call(r#"clone3({flags=CLONE_VM|1<<21, stack=[1, 2]} => {parent_tid=[3]}, 88) = 3339"#);
        assert_eq!(arguments.len(), 2);
        let (arguments, returned, _) = call("poll([{fd=3<pipe:[1]>, events=POLLIN}], 1, 0) = 1 ([{fd=3, revents=POLLIN}])");
        assert_eq!((arguments.len(), returned.value), (3, Some(1)));
        let (arguments, ..) = call("getpid() = 7");
        assert!(arguments.is_empty());
    }

    #[test]
    fn cut_lines_are_refused() {
        for text in ["read(3, \"abc", "read(3, \"abc\", 10", "read(3</tmp/x", "read(3, \"abc\", 10)", "read(3) = ", "read"] {
            assert!(parse(text.as_bytes(), &mut TextRanges::default()).is_err(), "{text}");
        }
        assert!(parse(b"read(3) = 5garbage", &mut TextRanges::default()).is_err());
    }
}
