//! The text of one call of truss: name, arguments, result.

use std::borrow::Cow;

use memchr::{memchr, memrchr};

use super::{SLEEPING, WAITING, makes_thread, number};
use crate::{
    fields::{self, End, MAX_ARGUMENTS, NotACall, TextRange, TextRanges},
    text,
};

const AS_CHILD: &[u8] = b"(returning as child ...)";
const AS_LWP: &[u8] = b"(returning as new lwp ...)";

/// Parts of a result that only truss prints. `Err#N` itself is the error's name if truss has no
/// name for N; the value is missing for calls that failed, sleep or never return, and if a name is
/// printed instead (`= SIGALRM`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest<'a> {
    /// Second value: `= 3 [4]` of pipe, `= 12 [11]` of getpid (the parent), `= 0 [62]` of
    /// `port_getn`.
    pub(crate) second: Option<i64>,
    pub(crate) error: Option<i32>,
    /// The missing privilege that made the call fail.
    pub(crate) privilege: Option<&'a [u8]>,
    /// Number of arguments of the program that exec started.
    pub(crate) argc: Option<i64>,
}

/// Parse the event of a [`super::Kind::Call`], [`super::Kind::Sleeping`], [`super::Kind::Waiting`],
/// [`super::Kind::Returning`], [`super::Kind::Exit`] or [`super::Kind::LwpExit`].
///
/// File names may contain `) = 3`, but no return value contains a parenthesis: the last one on the
/// line ends the arguments.
pub(crate) fn parse<'a>(event: &'a [u8], places: &mut TextRanges) -> Result<Rest<'a>, NotACall> {
    let name = fields::name(event);
    places.start(name);
    places.truss = true;
    places.end = End::NONE;
    let note = [SLEEPING, WAITING].into_iter().find_map(|note| event.strip_suffix(note));
    let text = note.unwrap_or(event);
    let mut end = memrchr(b')', text).filter(|end| *end > name.len()).ok_or(NotACall::NoEnd)?;
    let tail = &text[end + 1..];
    if makes_thread(name)
        && let Some(call) = [AS_CHILD, AS_LWP].into_iter().find_map(|note| text[..=end].strip_suffix(note))
    {
        end = memrchr(b')', call).filter(|end| *end > name.len()).ok_or(NotACall::NoEnd)?;
    }
    split_arguments(&text[..end], name.len() + 1, moves_buffer(name), places);
    let at = text.len() - tail.len() + tail.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let tail = tail.trim_ascii();
    if tail.is_empty() && (note.is_some() || may_not_return(name)) {
        return Ok(Rest::default());
    }
    result(tail, at, &mut places.end)
}

/// Calls that truss prints when they start (main.c:worker_thread), and those that it may lose: an
/// exec of a set-id program, and an open of the process's own `/proc` files, which makes truss
/// release the process.
fn may_not_return(name: &[u8]) -> bool {
    let contexts = matches!(name, b"getcontext" | b"setcontext" | b"getustack" | b"setustack" | b"context" | b"evtrapret");
    contexts || matches!(name, b"_exit" | b"exit" | b"lwp_exit" | b"execve" | b"exec" | b"open" | b"open64")
}

/// Calls for which print.c:prt_iob prints argument 1.
fn moves_buffer(name: &[u8]) -> bool {
    matches!(
        name,
        b"read" | b"write" | b"pread" | b"pwrite" | b"pread64" | b"pwrite64" | b"recv" | b"recvfrom" | b"send" | b"sendto"
    )
}

/// The part after the arguments, at offset `at` of the event (actions.c:sysexit, showargs).
fn result<'a>(tail: &'a [u8], at: usize, end: &mut End) -> Result<Rest<'a>, NotACall> {
    let mut found = Rest::default();
    let rest: &[u8] = if let Some(body) = tail.strip_prefix(b"= ") {
        let Some((value, rest)) = text::number(body) else {
            return if body.starts_with(b"SIG") { Ok(found) } else { Err(NotACall::NoReturn) };
        };
        (end.has_value, end.value) = (true, value);
        match rest.strip_prefix(b" [") {
            None => rest,
            Some(second) => {
                let (second, rest) = text::number(second).ok_or(NotACall::Trailing)?;
                found.second = Some(second);
                rest.strip_prefix(b"]").ok_or(NotACall::Trailing)?
            }
        }
    } else if let Some(body) = tail.strip_prefix(b"argc = ") {
        let (argc, rest) = text::number(body).ok_or(NotACall::NoReturn)?;
        found.argc = Some(argc);
        (end.has_value, end.value) = (true, 0);
        rest
    } else {
        let mut rest = tail.strip_prefix(b"Err#").ok_or(NotACall::NoReturn)?;
        found.error = Some(number(&mut rest).ok_or(NotACall::NoReturn)?);
        end.errno = TextRange::new(at, at + tail.len() - rest.len());
        if let [b' ', name @ ..] = rest
            && name.first() == Some(&b'E')
        {
            let start = at + tail.len() - name.len();
            let len = name.iter().take_while(|b| b.is_ascii_uppercase() || b.is_ascii_digit()).count();
            end.errno = TextRange::new(start, start + len);
            rest = &name[len..];
        }
        if let Some(privilege) = rest.strip_prefix(b" [").and_then(|rest| rest.strip_suffix(b"]")) {
            found.privilege = Some(privilege);
            rest = b"";
        }
        rest
    };
    if rest.is_empty() { Ok(found) } else { Err(NotACall::Trailing) }
}

/// Split the text from `from` on at `, ` outside of strings. Nothing else nests: structures are not
/// printed in place, and `[3,4]` of pipe has no blank.
fn split_arguments(text: &[u8], from: usize, has_buffer: bool, places: &mut TextRanges) {
    let mut at = from;
    for index in 0..MAX_ARGUMENTS {
        let rest = text.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        let string = match rest[0] {
            b'"' if has_buffer && index == 1 => buffer_end(rest),
            b'"' => string_end(rest),
            _ => 0,
        };
        let end = comma(&rest[string..]).map_or(rest.len(), |comma| string + comma);
        places.push(TextRange::new(at, at + end));
        at += end + 2;
    }
}

/// The offset of the next `, `.
fn comma(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b',', &text[at..])?;
        if text.get(at + 1) == Some(&b' ') {
            return Some(at);
        }
        at += 1;
    }
}

/// A buffer has two characters for each byte, so only a quote at the start of a pair ends it.
fn buffer_end(text: &[u8]) -> usize {
    text[1..].chunks(2).position(|pair| pair[0] == b'"').map_or(text.len(), |pairs| 2 + 2 * pairs)
}

/// The end of the string at the start of `text`. Quotes in it are escaped (print.c:escape_string),
/// but backslashes are not, and strings that a call returned are printed unescaped
/// (print.c:prt_rst, prt_rlk; by the oldest truss perhaps all). So: the first bare quote before a
/// comma or the end, or else the first escaped one.
fn string_end(text: &[u8]) -> usize {
    let mut escaped = None;
    let mut at = 1;
    while let Some(next) = text.get(at..).and_then(|rest| memchr(b'"', rest)) {
        at += next + 1;
        if matches!(&text[at..], [] | [b',', b' ', ..]) {
            if text[at - 2] != b'\\' || at == 2 {
                return at;
            }
            escaped.get_or_insert(at);
        }
    }
    escaped.unwrap_or(text.len())
}

/// The contents of an argument that is a file name or another string, with `\"` and `\xNN` undone
/// (print.c:escape_string; that of 2006 prints bytes above 127 as `\xffffffNN`). A name that really
/// contains `\x41` or `\"` cannot be distinguished.
pub(crate) fn string(argument: &[u8]) -> Option<Cow<'_, [u8]>> {
    let inner = argument.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let Some(first) = memchr(b'\\', inner) else { return Some(Cow::Borrowed(inner)) };
    let mut out = inner[..first].to_vec();
    let mut rest = &inner[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        let (value, tail) = Some(tail).filter(|_| byte == b'\\').and_then(escape).unwrap_or((byte, tail));
        out.push(value);
        rest = tail;
    }
    Some(Cow::Owned(out))
}

/// The byte of an escape and the text after it, given the text after a backslash.
fn escape(tail: &[u8]) -> Option<(u8, &[u8])> {
    if let [b'"', tail @ ..] = tail {
        return Some((b'"', tail));
    }
    let hex = tail.strip_prefix(b"x")?;
    let (digits, tail) = hex.strip_prefix(b"ffffff").unwrap_or(hex).split_at_checked(2)?;
    let value = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    (digits[0] != b'+').then_some((value, tail))
}
