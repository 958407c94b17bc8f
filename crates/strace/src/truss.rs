//! The text that truss(1) prints on Solaris and illumos: prefix of a line, kind of line, one call.
//!
//! Written after the illumos sources, `usr/src/cmd/truss`; the source of a format is cited as
//! file:function. With `->` for a tab:
//!
//! ```text
//! Base time stamp:  1201557122.3823  [ Mon Jan 28 21:52:02 GMT 2008 ]     once, -d (main.c:setup_basetime)
//! PID/LWP@THREAD:->[->]  0.0012->  0.0003->  0.0000->call(arguments)->->= 0    prefix of make_pname, columns of timestamp
//! PID/LWP:->      fd=4  ev=POLLIN rev=0                                    -v: no columns (expound.c)
//! PID/LWP:->   h e l l o\n00FF                                             -r -w: no columns (actions.c:showbuffer)
//! ```
//!
//! Lines are parsed one at a time, without state. The caller keeps the state that depends on
//! earlier lines:
//! - [`Kind::Sleeping`] and [`Kind::Waiting`] announce a call that is printed in full later: it
//!   must count once.
//! - After [`Kind::Argv`] and [`Kind::Envp`] a line of two blanks and text continues the list
//!   (actions.c:dumpargs), even if it looks like a [`Kind::Dump`].
//! - `-d` states when the thread stopped for the event: for a call, its end. `-D` counts from the
//!   last event *of that thread*, not from the line before, and from the base for its first event.
//!   `-E` is the system CPU time of the call, not its duration. Lines about a thread that is not
//!   stopped (`(sleeping...)`) have no columns (main.c:timestamp).

mod call;
mod columns;
mod events;
mod lines;
mod threads;
mod times;

use memchr::{memchr, memmem, memrchr};

pub use columns::Columns;
pub(crate) use {
    call::{parse, string},
    columns::Layout,
    events::State,
    threads::Names,
    times::Times,
};

use crate::fields;
use crate::text;
use columns::values;

const BASE: &[u8] = b"Base time stamp:";
const SLEEPING: &[u8] = b"(sleeping...)";
const WAITING: &[u8] = b"(waiting for child to exit()/exec()...)";

/// The text before the event. Times have a resolution of 0.1 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) pid: Option<i32>,
    pub(crate) lwp: Option<i32>,
    /// Thread number of `-u`.
    pub(crate) thread: Option<i32>,
    /// Time since the base time stamp (`-d`) [ns].
    pub(crate) stamp_ns: Option<i64>,
    /// Time since the last event of this thread (`-D`) [ns].
    pub(crate) since_last_ns: Option<i64>,
    /// System CPU time (`-E`) [ns].
    pub(crate) system_cpu_ns: Option<i64>,
}

impl Prefix {
    fn has_columns(&self) -> bool {
        self.stamp_ns.is_some() || self.since_last_ns.is_some() || self.system_cpu_ns.is_some()
    }
}

/// The kind of event on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The base time of `-d`: see [`base`].
    Base,
    /// A whole call, or one that never returns, except `_exit` and `lwp_exit`.
    Call,
    /// A call that has not ended after a second; its whole line comes later, if it ends.
    Sleeping,
    /// The same for a parent in vfork.
    Waiting,
    /// The child's return from fork, or the new thread's from `lwp_create`: not a call of its own.
    Returning,
    /// `_exit(N)`: the end of the process.
    Exit,
    /// `lwp_exit()`: the end of a thread.
    LwpExit,
    Signal,
    Fault,
    Stopped,
    Continued,
    /// `*** process killed ***`
    Killed,
    /// Command line of a process that was attached to with `-a -p`.
    Psargs,
    /// First line of the argument list or of the environment.
    Argv,
    Envp,
    /// `->` and `<-` of `-u`.
    Function,
    /// The text after an address that `-x` printed (actions.c:showpaths).
    Pointed,
    /// Structures (`-v`), rest of argv and envp, siginfo, blank lines: belongs to the event before.
    Continuation,
    /// Buffer contents of `-r` and `-w`.
    Dump,
    /// About the tracing, not about the program.
    Notice,
    /// First line of a table of `-c`.
    Summary,
    /// None of these.
    Unknown,
}

/// Split a line into prefix and event. Never fails: a text that is not a prefix is part of the
/// event.
pub(crate) fn split<'a>(line: &'a [u8], layout: &Layout) -> (Prefix, &'a [u8]) {
    let (mut prefix, rest) = name(line);
    let columns = layout.columns;
    let expected = columns.count();
    if expected == 0 {
        return (prefix, rest);
    }
    let (values, count, event) = values(rest, expected);
    if count < expected {
        return (prefix, rest);
    }
    let mut values = values.iter().map(|value| value.saturating_mul(100_000));
    let mut next = |given: bool| given.then(|| values.next()).flatten();
    prefix.stamp_ns = next(columns.stamp);
    prefix.since_last_ns = next(columns.since_last);
    prefix.system_cpu_ns = next(columns.system_cpu);
    (prefix, event)
}

/// Parse `PID:`, `/LWP:`, `PID/LWP:`, `PID/LWP@THREAD:` and a tab (main.c:make_pname). If tabs were
/// converted to blanks, all blanks after the prefix are removed with the indentation, which is
/// sufficient to read calls.
fn name(line: &[u8]) -> (Prefix, &[u8]) {
    let none = (Prefix::default(), line);
    if !matches!(line.first(), Some(b'0'..=b'9' | b'/')) {
        return none;
    }
    let mut rest = line;
    let mut prefix = Prefix { pid: number(&mut rest), ..Prefix::default() };
    for (mark, field) in [(b'/', &mut prefix.lwp), (b'@', &mut prefix.thread)] {
        if let [first, tail @ ..] = rest
            && *first == mark
        {
            rest = tail;
            *field = number(&mut rest);
            if field.is_none() {
                return none;
            }
        }
    }
    match rest {
        [b':', b'\t', tail @ ..] => {
            // A second tab follows if the first one ends before column 16.
            let short = prefix.pid.is_some() && prefix.lwp.is_some() && line.len() - tail.len() < 9;
            (prefix, if short { tail.strip_prefix(b"\t").unwrap_or(tail) } else { tail })
        }
        [b':', b' ', ..] => (prefix, rest[1..].trim_ascii_start()),
        _ => none,
    }
}

/// Split off a leading number of at most ten digits.
fn number(rest: &mut &[u8]) -> Option<i32> {
    let (mut value, mut len) = (0, 0);
    while let Some(digit) = rest.get(len).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10) {
        value = value * 10 + i64::from(digit);
        len += 1;
        if len > 10 {
            return None;
        }
    }
    *rest = &rest[len..];
    if len > 0 { i32::try_from(value).ok() } else { None }
}

/// Classify an event.
pub(crate) fn kind(event: &[u8], prefix: &Prefix) -> Kind {
    match event {
        [b' ', b' ', ..] => indented(event, prefix),
        [b'a'..=b'z' | b'_', ..] => word(event),
        [b' ', ..] if event.starts_with(b" argv:") => Kind::Argv,
        [b' ', ..] if event.starts_with(b" envp:") => Kind::Envp,
        [b'-', b'>', b' ', ..] | [b'<', b'-', b' ', ..] => Kind::Function,
        [b'\t' | b'*', ..] => match event.trim_ascii_start() {
            // Printed by an older truss, before each LWP had a thread; that of illumos prints
            // nothing here.
            b"*** process killed ***" => Kind::Killed,
            [b'*', b'*', b'*', b' ', ..] => Kind::Notice,
            _ if event[0] == b'\t' && !prefix.has_columns() => Kind::Continuation,
            _ => Kind::Unknown,
        },
        [b'B', ..] => base(event).map_or(Kind::Unknown, |_| Kind::Base),
        // The tabs of the log were converted to blanks.
        [b'R' | b'I' | b'S' | b'C', ..] => report(event).unwrap_or(Kind::Unknown),
        [b'(', ..] if event.starts_with(b"(Warning: ") => Kind::Notice,
        [] => Kind::Continuation,
        _ => Kind::Unknown,
    }
}

/// The time of the base line, since the Unix epoch [ns].
pub(crate) fn base(line: &[u8]) -> Option<i64> {
    let stamp = line.strip_prefix(BASE)?.trim_ascii_start();
    let len = stamp.iter().take_while(|b| **b != b' ').count();
    text::seconds(&stamp[..len])
}

/// Signals and faults (actions.c:signalled, requested, jobcontrol, faulted).
fn report(event: &[u8]) -> Option<Kind> {
    let starts: [(&[u8], Kind); 4] = [
        (b"Received signal #", Kind::Signal),
        (b"Incurred fault #", Kind::Fault),
        (b"Stopped by signal #", Kind::Stopped),
        (b"Continued with signal #", Kind::Continued),
    ];
    starts.iter().find(|(start, _)| event.starts_with(start)).map(|(_, kind)| *kind)
}

/// An event that starts with two blanks or more. Dumps make the largest logs, so most of them are
/// recognized by their first bytes.
fn indented(event: &[u8], prefix: &Prefix) -> Kind {
    let dump = !prefix.has_columns() && is_dump(event);
    if dump && !event.starts_with(b"    ") {
        return Kind::Dump;
    }
    let blanks = event.iter().take_while(|b| **b == b' ').count();
    if let Some(kind) = report(&event[blanks..]) {
        return kind;
    }
    match &event[blanks..] {
        [b'-', b'>', b' ', ..] | [b'<', b'-', b' ', ..] => Kind::Function,
        [b's', b'i', b'g', b'i', b'n', b'f', b'o', b':', ..] if blanks == 6 => Kind::Continuation,
        [b'*', b'*', b'*', b' ', ..] if blanks == 4 => Kind::Notice,
        [b'0', b'x', ..] if blanks == 5 => Kind::Pointed,
        _ if dump => Kind::Dump,
        // Rest of a list, or a structure: `    d=0x04780000 i=4195` (stat.c:show_stat).
        _ if matches!(blanks, 2 | 4) && !prefix.has_columns() => Kind::Continuation,
        _ => Kind::Unknown,
    }
}

/// Whether a line begins with `PID:`, `/LWP:` or both.
pub(crate) fn is_named(line: &[u8]) -> bool {
    let (prefix, rest) = name(line);
    (prefix.pid.is_some() || prefix.lwp.is_some()) && !rest.is_empty()
}

/// Whether a full line of a dump begins like this: its first four bytes decide.
fn dump_starts(event: &[u8]) -> bool {
    event.starts_with(b"  ") && event[2..10].chunks_exact(2).all(is_byte)
}

/// Whether this is one byte of a dump.
fn is_byte(pair: &[u8]) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'A'..=b'F');
    match pair[0] {
        b' ' => pair[1] >= b' ',
        b'\\' => matches!(pair[1], b'0' | b'b' | b't' | b'n' | b'v' | b'f' | b'r'),
        first => is_hex(first) && is_hex(pair[1]),
    }
}

/// Whether a line is a dump: two blanks, then up to 32 bytes as two characters each
/// (actions.c:showbytes): a blank and the character, a backslash and a letter, or two hexadecimal
/// digits. Of a full line only the first four bytes are checked.
pub(crate) fn is_dump(event: &[u8]) -> bool {
    match event.len() {
        66 => dump_starts(event),
        len => (4..66).contains(&len) && len % 2 == 0 && event.starts_with(b"  ") && event[2..].chunks_exact(2).all(is_byte),
    }
}

/// An event that starts with a letter.
fn word(event: &[u8]) -> Kind {
    let len = event.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'#')).count();
    if event.get(len) != Some(&b'(') {
        let starts: [(&[u8], Kind); 6] = [
            (b"psargs: ", Kind::Psargs),        // main.c:psargs
            (b"sfv_fd=", Kind::Continuation),   // expound.c:show_sendfilevec, without the prefix
            (b"truss: ", Kind::Notice),         // on standard error
            (b"syscall       ", Kind::Summary), // main.c:report
            (b"signals -----", Kind::Summary),
            (b"faults -----", Kind::Summary),
        ];
        return starts.iter().find(|(start, _)| event.starts_with(start)).map_or(Kind::Unknown, |(_, kind)| *kind);
    }
    match &event[..len] {
        b"_exit" | b"exit" => Kind::Exit,
        b"lwp_exit" => Kind::LwpExit,
        _ if event.ends_with(SLEEPING) => Kind::Sleeping,
        _ if event.ends_with(WAITING) => Kind::Waiting,
        name if makes_thread(name) && memmem::find(event, b"(returning as ").is_some() => Kind::Returning,
        _ => Kind::Call,
    }
}

fn makes_thread(name: &[u8]) -> bool {
    name.starts_with(b"fork") || name.starts_with(b"vfork") || name == b"lwp_create"
}

/// The contents of a line of [`Kind::Signal`], [`Kind::Stopped`], [`Kind::Continued`] or
/// [`Kind::Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal<'a> {
    pub(crate) number: i32,
    pub(crate) name: &'a [u8],
    /// The call that was sleeping when the signal came.
    pub(crate) call: Option<&'a [u8]>,
    /// `default`, `ignored` or `caught`.
    pub(crate) action: Option<&'a [u8]>,
}

/// `Received signal #14, SIGALRM, in read() [caught]`
pub(crate) fn signal(event: &[u8]) -> Option<Signal<'_>> {
    let mut rest = &event[memchr(b'#', event)? + 1..];
    let number = number(&mut rest)?;
    let rest = rest.strip_prefix(b", ")?;
    let len = rest.iter().take_while(|b| !matches!(b, b',' | b' ')).count();
    let call = memmem::find(rest, b", in ").map(|at| fields::name(&rest[at + 5..]));
    let action = rest.strip_suffix(b"]").and_then(|rest| Some(&rest[memrchr(b'[', rest)? + 1..]));
    Some(Signal { number, name: &rest[..len], call, action })
}

#[cfg(test)]
mod tests;
