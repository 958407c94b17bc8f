//! The parts of a line before the call: thread, time stamp, and the kind of line.
//!
//! strace prints, in this order: `PID` (or `PID<comm>`, or `[pid N]` on standard error), the wall
//! clock (`-t -tt -ttt`), the time since the line before (`-r`), the call number (`-n`), the
//! instruction pointer (`-i`), then the call or event.

use crate::{notice, text, truss};

/// A time as the log states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Nanoseconds since the Unix epoch (`-ttt`).
    Epoch(i64),
    /// Nanoseconds since midnight (`-t`, `-tt`).
    TimeOfDay(i64),
    /// Nanoseconds since the line before (`-r`).
    SinceLast(i64),
}

/// The text before the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Thread id; in a truss log the process id.
    pub(crate) tid: Option<i32>,
    /// LWP, in a truss log; 0: not printed.
    pub(crate) lwp: i32,
    pub(crate) stamp: Option<Stamp>,
    /// Number of decimals of the stamp: its resolution.
    pub(crate) decimals: u8,
}

/// The kind of event on a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `name(...`
    Call,
    /// `<... name resumed>...`
    Resumed,
    /// `--- SIGx {...} ---`
    Signal,
    /// `+++ exited with N +++`, `+++ killed by SIGx +++`, `+++ superseded by execve in pid N +++`
    Exit,
    /// `strace: ...`, `[ Process PID=... ]`, `<detached ...>`: about the tracing, not about the
    /// program.
    Notice,
    /// A frame of `-k`: belongs to the call above it.
    Frame,
    /// A dump of `-e read=` or `-e write=`, or a blank line: not stored in the tables.
    Extra,
    /// First line of the table that `-c`/`-C` print at the end.
    Summary,
    /// A line of truss, with its own kind.
    Truss(truss::Kind),
    /// None of these.
    #[default]
    Unknown,
}

/// The kernel's limit of thread ids (PID_MAX_LIMIT). A greater number is a time: `-ttt` in seconds
/// has no dot.
const MOST_TID: i32 = 1 << 22;

/// Split a line into prefix and event, which is returned. Never fails: a text that is not a prefix
/// is part of the event.
pub(crate) fn split<'a>(line: &'a [u8], prefix: &mut Prefix) -> &'a [u8] {
    if let Some(event) = split_common(line, prefix) {
        return event;
    }
    let (tid, rest) = thread(line);
    let (stamp, decimals, rest) = stamps(rest);
    *prefix = Prefix { tid, lwp: 0, stamp, decimals };
    skip_call_number(rest)
}

/// Split a line with an optional thread id and a stamp in microseconds only: the form of nearly
/// every line.
fn split_common<'a>(line: &'a [u8], prefix: &mut Prefix) -> Option<&'a [u8]> {
    let mut rest = line;
    prefix.tid = None;
    if let Some((tid, digits)) = text::short_number(line)
        && line[digits] == b' '
    {
        // The column is five characters wide, and a blank follows.
        let mut at = digits + 1;
        while line.get(at) == Some(&b' ') {
            at += 1;
        }
        rest = &line[at..];
        prefix.tid = i32::try_from(tid).ok().filter(|tid| *tid <= MOST_TID);
        prefix.tid?;
    }
    let (stamp, event) = match rest.get(2)? {
        b':' => (Stamp::TimeOfDay(text::day_micros(rest)?), &rest[16..]),
        _ => (Stamp::Epoch(text::epoch_micros(rest)?), &rest[18..]),
    };
    (prefix.stamp, prefix.decimals) = (Some(stamp), 6);
    matches!(event.first(), Some(b'a'..=b'z' | b'<' | b'+' | b'-' | b'_')).then_some(event)
}

/// Classify an event.
pub(crate) fn kind(event: &[u8]) -> Kind {
    match event {
        [b'a'..=b'z' | b'_', ..] if !event.starts_with(b"strace: ") => {
            let name = event.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(event.len());
            if event.get(name) == Some(&b'(') { Kind::Call } else { Kind::Unknown }
        }
        [b'S', b'Y', b'S', b'_', ..] if numbered_call(event).is_some() => Kind::Call,
        [b'<', b'.', b'.', b'.', b' ', ..] => Kind::Resumed,
        [b'-', b'-', b'-', b' ', ..] if event.ends_with(b" ---") => Kind::Signal,
        [b'+', b'+', b'+', b' ', ..] if event.ends_with(b" +++") => Kind::Exit,
        [b's', ..] | [b'[', b' ', b'P', ..] | [b'<', ..] if is_notice(event) => Kind::Notice,
        [b'P', ..] if notice::about_process(event).is_some_and(|note| note.start == 0) => Kind::Notice,
        [b'?', ..] if event.starts_with(b"???") && event.contains(&b'(') => Kind::Notice,
        [b' ', b'>', b' ', ..] => Kind::Frame,
        // ` | 00000  61 62 ...` and ` * 350 bytes in buffer 0`
        [] => Kind::Extra,
        [b' ', b'|', b' ', offset @ ..] if offset.iter().take_while(|byte| byte.is_ascii_hexdigit()).count() >= 5 => Kind::Extra,
        [b' ', b'*', b' ', b'0'..=b'9', ..] => Kind::Extra,
        [b'%', b' ', ..] if event.starts_with(b"% time ") => Kind::Summary,
        [b'S', ..] if event.starts_with(b"System call usage summary for ") => Kind::Summary,
        _ => Kind::Unknown,
    }
}

/// The name of a call that strace has no name for, up to its parenthesis: `SYS_290`.
pub(crate) fn numbered_call(event: &[u8]) -> Option<&[u8]> {
    let digits = event.strip_prefix(b"SYS_")?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0 && event.get(4 + digits) == Some(&b'(')).then(|| &event[..4 + digits])
}

/// Whether a line may be in the table that `-c` prints: its rows contain a number or dashes.
pub(crate) fn is_summary_row(line: &[u8]) -> bool {
    let is_number = |word: &[u8]| word.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    line.split(|byte| *byte == b' ').any(|word| !word.is_empty() && is_number(word))
}

fn is_notice(event: &[u8]) -> bool {
    event.starts_with(b"strace: ")
        || (event.starts_with(b"[ Process PID=") && event.ends_with(b" ]"))
        || event.starts_with(b"<detached ...>")
        || event.starts_with(b"<Cannot restart")
}

/// Leading thread id, in any of its forms.
fn thread(line: &[u8]) -> (Option<i32>, &[u8]) {
    let digits_at = if line.starts_with(b"[pid ") { 5 } else { 0 };
    let padding = line[digits_at..].iter().take_while(|b| **b == b' ').count();
    // The column is padded on the right; a number padded on the left is a time since the line
    // before (`-r` in seconds).
    if digits_at == 0 && padding > 0 {
        return (None, line);
    }
    let digits = &line[digits_at + padding..];
    let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    let tid = text::decimal(&digits[..len]).and_then(|n| i32::try_from(n).ok());
    let Some(tid) = tid.filter(|tid| *tid <= MOST_TID) else {
        return (None, line);
    };
    let mut rest = &digits[len..];
    if rest.first() == Some(&b'<') {
        let Some(end) = text::tag_end(rest) else { return (None, line) };
        rest = &rest[end..];
    }
    if digits_at > 0 {
        return match rest {
            [b']', b' ', tail @ ..] => (Some(tid), tail),
            _ => (None, line),
        };
    }
    match rest {
        // The column is padded to five digits and followed by a blank.
        [b' ', rest @ ..] => (Some(tid), rest),
        _ => (None, line),
    }
}

/// Wall clock and relative time, where there are any. With both (`-tt -r`) the wall clock counts.
fn stamps(line: &[u8]) -> (Option<Stamp>, u8, &[u8]) {
    let start = line.iter().take_while(|b| **b == b' ').count();
    let body = &line[start..];
    let (mut len, mut dot, mut colon) = (0, None, false);
    for byte in body {
        match byte {
            b'0'..=b'9' => {}
            b'.' if dot.is_none() => dot = Some(len),
            b':' => colon = true,
            _ => break,
        }
        len += 1;
    }
    if len == 0 || body.get(len) != Some(&b' ') {
        return (None, 0, if line.starts_with(b" > ") || is_dump(line) { line } else { body });
    }
    let decimals = dot.map_or(0, |dot| len - dot - 1);
    match stamp(&body[..len], colon, dot.is_some(), start > 0) {
        Some(stamp) => (Some(stamp), u8::try_from(decimals).unwrap_or(u8::MAX), skip_relative(&body[len + 1..])),
        None => (None, 0, &line[start..]),
    }
}

fn stamp(token: &[u8], colon: bool, dot: bool, padded: bool) -> Option<Stamp> {
    if colon {
        return time_of_day(token).map(Stamp::TimeOfDay);
    }
    let value = text::seconds(token)?;
    // Precision s prints no dot; `-r` is then padded on the left.
    if !dot && value < text::DATED_NS && !padded {
        return None;
    }
    Some(if value >= text::DATED_NS { Stamp::Epoch(value) } else { Stamp::SinceLast(value) })
}

/// `HH:MM:SS[.fraction]` as nanoseconds since midnight.
fn time_of_day(token: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', seconds @ ..] = token else { return None };
    let hours = text::decimal(&[*h1, *h2])?;
    let minutes = text::decimal(&[*m1, *m2])?;
    let seconds = text::seconds(seconds)?;
    (hours < 24 && minutes < 60 && seconds < 61_000_000_000).then_some((hours * 60 + minutes) * 60_000_000_000 + seconds)
}

/// ` | 00000  61 62 ...` and ` * 350 bytes in buffer 0`
fn is_dump(line: &[u8]) -> bool {
    matches!(line, [b' ', b'|' | b'*', b' ', ..])
}

/// Skip `(+     0.000123) `, which `-r` adds to a wall clock.
fn skip_relative(line: &[u8]) -> &[u8] {
    if line.starts_with(b"(+")
        && let Some(end) = memchr::memchr(b')', line)
    {
        return line[end + 1..].strip_prefix(b" ").unwrap_or(&line[end + 1..]);
    }
    line
}

/// Skip `[ 257] ` of `-n` and `[00007f1234567890] ` of `-i`.
fn skip_call_number(mut line: &[u8]) -> &[u8] {
    for _ in 0..2 {
        if line.first() != Some(&b'[') {
            break;
        }
        let inner = line[1..].iter().take_while(|b| b.is_ascii_hexdigit() || matches!(b, b' ' | b'?')).count();
        if inner < 3 || line.get(inner + 1..inner + 3) != Some(b"] ") {
            break;
        }
        line = &line[inner + 3..];
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> (Option<i32>, Option<Stamp>, String) {
        let mut prefix = Prefix::default();
        let event = split(line.as_bytes(), &mut prefix);
        (prefix.tid, prefix.stamp, String::from_utf8(event.to_vec()).unwrap())
    }

    #[test]
    fn every_prefix_form_leaves_the_call() {
        let call = "read(0, \"\", 1) = 0";
        let epoch = Some(Stamp::Epoch(1_700_000_000_000_001_000));
        let day = Some(Stamp::TimeOfDay(7 * 3_600_000_000_000 + 1_000));
        let cases = [
            ("", None, None),
            ("1234  ", Some(1234), None),
            ("12345 ", Some(12345), None),
            ("7     ", Some(7), None),
            ("     0 ", None, Some(Stamp::SinceLast(0))),
            ("1234       3 ", Some(1234), Some(Stamp::SinceLast(3_000_000_000))),
            ("1234  1700000000 ", Some(1234), Some(Stamp::Epoch(1_700_000_000_000_000_000))),
            ("1700000000 ", None, Some(Stamp::Epoch(1_700_000_000_000_000_000))),
            ("[pid  1234] ", Some(1234), None),
            ("1234<my prog> ", Some(1234), None),
            ("1234  1700000000.000001 ", Some(1234), epoch),
            ("1700000000.000001 ", None, epoch),
            ("1234  07:00:00.000001 ", Some(1234), day),
            ("07:00:00.000001 ", None, day),
            ("1234  07:00:00.000001 (+     0.000123) ", Some(1234), day),
            ("1234       0.000123 ", Some(1234), Some(Stamp::SinceLast(123_000))),
            ("     0.000123 ", None, Some(Stamp::SinceLast(123_000))),
            ("1234  1700000000.000001 [   0] ", Some(1234), epoch),
            ("1234  1700000000.000001 [   0] [00007f1234567890] ", Some(1234), epoch),
        ];
        for (prefix, tid, stamp) in cases {
            assert_eq!(parts(&format!("{prefix}{call}")), (tid, stamp, call.into()), "{prefix:?}");
        }
    }

    #[test]
    fn events_are_distinguished() {
        let cases: [(&[u8], Kind); 25] = [
            (b"read(0, \"\", 1) = 0", Kind::Call),
            (b"<... read resumed>\"\", 1) = 0", Kind::Resumed),
            (b"--- SIGCHLD {si_signo=SIGCHLD, si_stime=2 /* 0.02 s */} ---", Kind::Signal),
            (b"--- stopped by SIGSTOP ---", Kind::Signal),
            (b"+++ exited with 0 +++", Kind::Exit),
            (b"strace: Process 12 attached", Kind::Notice),
            (b"[ Process PID=12 runs in 32 bit mode. ]", Kind::Notice),
            (b" > /lib/libc.so(read+0x1) [0x10]", Kind::Frame),
            (b" | 00000  61 62   ab |", Kind::Extra),
            (b"% time     seconds  usecs/call", Kind::Summary),
            (b"SYS_290(0x1, 0x2) = 0", Kind::Call),
            (b"SYS_write(1, 0x2) = 0", Kind::Unknown),
            (b"syscall_0x1c5(0x1) = 0", Kind::Call),
            (b"Process 12 attached - interrupt to quit", Kind::Notice),
            (b"Process 12 resumed (parent 7 ready)", Kind::Notice),
            (b"Process 12 is late", Kind::Unknown),
            (b" | text |", Kind::Unknown),
            (b" * text", Kind::Unknown),
            (b" * 350 bytes in buffer 0", Kind::Extra),
            (b"System call usage summary for '32 bit' mode:", Kind::Summary),
            (b"Sysdock", Kind::Unknown),
            (b"", Kind::Extra),
            (b"<... SYS_290 resumed> ) = 0", Kind::Resumed),
            (b"hello world", Kind::Unknown),
            (b"--- SIGCH", Kind::Unknown),
        ];
        for (event, expected) in cases {
            assert_eq!(kind(event), expected, "{}", String::from_utf8_lossy(event));
        }
    }
}
