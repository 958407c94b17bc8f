//! The text of one call: name, arguments, return value, duration.
//!
//! Buffers and file names may hold anything, `) = 3 <0.1>` included, so the arguments are scanned forward, quotes and tags in
//! mind; only behind the closing parenthesis can the end of the line be trusted.

use crate::text;

/// Arguments beyond this are not split: no call that matters here has more.
const MAX_ARGUMENTS: usize = 6;

/// What strace prints where the rest of a call comes later.
pub(crate) const UNFINISHED: &[u8] = b"<unfinished ...>";

/// Top-level arguments of a call, as printed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arguments<'a> {
    items: [&'a [u8]; MAX_ARGUMENTS],
    count: usize,
}

impl<'a> Arguments<'a> {
    /// Argument `index`, or an empty text.
    pub(crate) fn get(&self, index: usize) -> &'a [u8] {
        self.items.get(index).copied().unwrap_or_default()
    }

    fn push(&mut self, item: &'a [u8]) {
        if self.count < MAX_ARGUMENTS {
            self.items[self.count] = item.trim_ascii();
            self.count += 1;
        }
    }

    /// All that were split.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.items[..self.count].iter().copied()
    }
}

/// What a call returned.
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

/// Why a text is not a complete call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotACall {
    /// The arguments do not end.
    NoEnd,
    /// No ` = value` after the arguments.
    NoReturn,
    /// Something follows the return value that is neither a note nor a duration.
    Trailing,
}

/// Name of the call that `event` begins with.
pub(crate) fn name(event: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'(', event).unwrap_or(event.len());
    &event[..end]
}

/// The text before `<unfinished ...>`, if the rest of this call comes later (or never: `<detached ...>`).
pub(crate) fn unfinished(event: &[u8]) -> Option<&[u8]> {
    event.strip_suffix(UNFINISHED).or_else(|| event.strip_suffix(b"<detached ...>"))
}

/// Name and rest of `<... name resumed>rest`.
pub(crate) fn resumed(event: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = event.strip_prefix(b"<... ")?;
    let space = memchr::memchr(b' ', body)?;
    let tail = body[space..].strip_prefix(b" resumed>")?;
    Some((&body[..space], tail))
}

/// `name(args <unfinished ...>) = ?`: the thread was killed in the call. Puts the call without the mark into `whole`.
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
    /// In words, for `import_issues.detail`.
    pub(crate) fn words(self) -> &'static str {
        match self {
            NotACall::NoEnd => "the arguments do not end",
            NotACall::NoReturn => "no return value",
            NotACall::Trailing => "unknown text behind the return value",
        }
    }
}

/// Parse `name(arguments) = returned <duration>`.
pub(crate) fn parse(event: &[u8]) -> Result<Call<'_>, NotACall> {
    let name = name(event);
    let body = event.get(name.len() + 1..).ok_or(NotACall::NoEnd)?;
    let (arguments, tail) = split_arguments(body).ok_or(NotACall::NoEnd)?;
    let (tail, dur_ns) = split_duration(tail);
    let returned = returned(tail)?;
    Ok(Call { name, arguments, returned, dur_ns })
}

/// First arguments of a call whose end is not there yet.
pub(crate) fn partial_arguments(body: &[u8]) -> Arguments<'_> {
    let mut arguments = Arguments::default();
    scan(body, &mut arguments);
    arguments
}

/// Split at top-level commas up to the closing parenthesis. Returns what follows it.
fn split_arguments(body: &[u8]) -> Option<(Arguments<'_>, &[u8])> {
    let mut arguments = Arguments::default();
    let end = scan(body, &mut arguments)?;
    Some((arguments, &body[end + 1..]))
}

/// Bytes at which the scan has to think.
static STOPS: [bool; 256] = {
    let mut stops = [false; 256];
    let bytes = b"\"()[]{}<,";
    let mut at = 0;
    while at < bytes.len() {
        stops[bytes[at] as usize] = true;
        at += 1;
    }
    stops
};

/// Collect arguments; `Some(index of the closing parenthesis)`, or `None` where the text ends before it.
fn scan<'a>(body: &'a [u8], arguments: &mut Arguments<'a>) -> Option<usize> {
    let mut at = 0;
    let mut depth = 0usize;
    let mut start = 0;
    while at < body.len() {
        let byte = body[at];
        if !STOPS[byte as usize] {
            at += 1;
            continue;
        }
        match byte {
            b'"' => {
                at += text::string_end(&body[at..])?;
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => {
                if at > 0 {
                    arguments.push(&body[start..at]);
                }
                return Some(at);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                arguments.push(&body[start..at]);
                start = at + 1;
            }
            b'<' if starts_tag(body, at) => {
                at += text::tag_end(&body[at..])?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    arguments.push(&body[start..]);
    None
}

/// A tag stands right behind a descriptor (`3<`) or `AT_FDCWD`; `1<<21` is a shift, ` <` is none.
fn starts_tag(body: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|i| body[i]);
    before.is_some_and(|b| b.is_ascii_digit() || b == b'D') && !matches!(body.get(at + 1), Some(b'<' | b'='))
}

/// Cut ` <0.000123>` off the end.
fn split_duration(tail: &[u8]) -> (&[u8], Option<i64>) {
    if let Some(body) = tail.strip_suffix(b">")
        && let Some(open) = memchr::memrchr(b'<', body)
        && open > 0
        && body[open - 1] == b' '
        && let Some(dur_ns) = text::seconds(&body[open + 1..])
    {
        return (&tail[..open - 1], Some(dur_ns));
    }
    (tail, None)
}

/// Parse `  = value tag errno (note)`.
fn returned(tail: &[u8]) -> Result<Returned<'_>, NotACall> {
    let tail = tail.trim_ascii_start();
    let tail = tail.strip_prefix(b"= ").ok_or(NotACall::NoReturn)?.trim_ascii_end();
    if let Some(rest) = tail.strip_prefix(b"?") {
        return Ok(Returned { value: None, errno: errno(rest), tag: None });
    }
    let (value, mut rest) = text::number(tail).ok_or(NotACall::NoReturn)?;
    let mut tag = None;
    if rest.first() == Some(&b'<') {
        let end = text::tag_end(rest).ok_or(NotACall::NoReturn)?;
        tag = Some(&rest[1..end - 1]);
        rest = &rest[end..];
    }
    if !matches!(rest.first(), None | Some(b' ' | b'(')) {
        return Err(NotACall::Trailing);
    }
    let errno = if value == -1 { errno(rest) } else { None };
    Ok(Returned { value: if errno.is_some() { None } else { Some(value) }, errno, tag })
}

/// `ENOENT` of ` ENOENT (No such file or directory)`.
fn errno(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.strip_prefix(b" ")?;
    let len = rest.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || **b == b'_').count();
    (len > 1 && rest[0] == b'E').then_some(&rest[..len])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(text: &str) -> (Vec<String>, Returned<'_>, Option<i64>) {
        let call = parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e:?}"));
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
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(b"read(3) = 5garbage").is_err());
    }
}
