//! What a log was wrapped in on its way to the reader: time stamps of a CI service, quoting, line
//! numbers, HTML escapes, typographic quotes; and security contexts, which strace itself adds.
//!
//! It is detected in the first lines of a log and removed from all lines, so that the parser sees
//! what strace wrote. Lines are neither joined nor split: their numbers stay.

use memchr::{memchr, memmem, memrchr};
use sysdock_calls::syscalls::{self, UNLISTED};

use crate::{
    fields,
    line::{self, Kind, Prefix},
};

/// Number of lines that are examined.
const LINES: usize = 400;
/// Parts that the text before a line may consist of.
const MOST_PARTS: usize = 4;

/// What is removed from a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wrapping {
    /// What stands before each line.
    before: [Option<Part>; MOST_PARTS],
    /// `&lt;` in place of `<`.
    pub(crate) html: bool,
    /// Quotes that a text processor made.
    pub(crate) typographic: bool,
    /// ` [system_u:object_r:etc_t:s0]`, which `strace --secontext` prints.
    pub(crate) contexts: bool,
}

/// A part of the text before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Blanks and tabs.
    Blanks,
    /// A mark of quoting, or of a comment: `> `, `| `, `# `.
    Mark,
    /// `2026-01-05T10:00:00.1234567Z `, as CI services and containers print it.
    DateTime,
    /// `Nov 25 01:09:22 host program[12]: `
    Syslog,
    /// `host program[12]: `, after the date of a journal.
    HostAndProgram,
    /// `[stderr] `, `[10:00:01] `
    Brackets,
    /// `service-1  | `
    Column,
    /// A line number: `12:`, `12<TAB>`.
    Number,
    /// `program: `
    Word,
    /// `10:00:00.123 ` before what strace printed.
    Time,
}

const PARTS: [Part; 10] = [
    Part::Blanks,
    Part::Mark,
    Part::DateTime,
    Part::Syslog,
    Part::HostAndProgram,
    Part::Brackets,
    Part::Column,
    Part::Number,
    Part::Word,
    Part::Time,
];

impl Wrapping {
    /// Detect what the lines of a log are wrapped in.
    pub(crate) fn detect(text: &[u8]) -> Wrapping {
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(LINES).collect();
        let coded = Wrapping {
            html: most_are(&lines, is_html, is_plain),
            typographic: most_are(&lines, is_typographic, |line| memchr(b'"', line).is_some()),
            ..Wrapping::default()
        };
        let mut decoded: Vec<u8> = lines.join(&b'\n');
        coded.remove(&mut decoded);
        let lines: Vec<&[u8]> = decoded.split(|byte| *byte == b'\n').collect();
        let coded = Wrapping { contexts: lines.iter().any(|line| context(line).is_some()), ..coded };
        let mut decoded = decoded.clone();
        coded.remove(&mut decoded);
        let lines: Vec<&[u8]> = decoded.split(|byte| *byte == b'\n').collect();
        Wrapping { before: most_common_before(&lines), ..coded }
    }

    /// Whether a log is wrapped in anything.
    pub(crate) fn is_any(&self) -> bool {
        *self != Wrapping::default()
    }

    /// Whether something stands before each line.
    pub(crate) fn has_before(&self) -> bool {
        self.before[0].is_some()
    }

    /// Remove it from whole lines.
    pub(crate) fn remove(&self, text: &mut Vec<u8>) {
        if !self.is_any() {
            return;
        }
        let mut out = Vec::with_capacity(text.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let start = out.len();
            out.extend_from_slice(line);
            if self.html {
                decode_html(&mut out, start);
            }
            if self.typographic {
                straighten(&mut out, start);
            }
            if self.contexts {
                remove_contexts(&mut out, start);
            }
            let before = self.before.iter().flatten().try_fold(&out[start..], |rest, part| part.strip(rest));
            if let Some(rest) = before.filter(|_| self.has_before()) {
                let removed = out.len() - start - rest.len();
                out.drain(start..start + removed);
            }
        }
        *text = out;
    }

    /// The text that is removed before the first line that has it.
    pub(crate) fn example(&self, text: &[u8]) -> Option<Vec<u8>> {
        text.split(|byte| *byte == b'\n').find_map(|line| {
            let rest = self.before.iter().flatten().try_fold(line, |rest, part| part.strip(rest))?;
            Some(line[..line.len() - rest.len()].to_vec())
        })
    }
}

fn most_are(lines: &[&[u8]], is_it: fn(&[u8]) -> bool, is_other: fn(&[u8]) -> bool) -> bool {
    let number = |is: fn(&[u8]) -> bool| lines.iter().filter(|line| is(line)).count();
    let found = number(is_it);
    found > 0 && found > number(is_other)
}

/// Whether a line has quotes or tags as strace prints them.
fn is_plain(line: &[u8]) -> bool {
    memchr(b'"', line).is_some() || line.ends_with(b">")
}

fn is_html(line: &[u8]) -> bool {
    !is_plain(line) && [&b"&quot;"[..], b"&#34;", b"&gt;"].iter().any(|escape| memmem::find(line, escape).is_some())
}

fn is_typographic(line: &[u8]) -> bool {
    memchr(b'"', line).is_none() && ["\u{201c}", "\u{201d}"].iter().any(|quote| memmem::find(line, quote.as_bytes()).is_some())
}

/// What stands before the lines that strace printed; nothing if most of them have nothing before
/// them.
fn most_common_before(lines: &[&[u8]]) -> [Option<Part>; MOST_PARTS] {
    let nothing = [None; MOST_PARTS];
    let mut counts = std::collections::BTreeMap::new();
    for line in lines {
        if let Some(before) = before(line) {
            *counts.entry(before).or_insert(0usize) += 1;
        }
    }
    let as_it_is = counts.remove(&nothing).unwrap_or(0);
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.filter(|(_, count)| *count > as_it_is).map_or(nothing, |(before, _)| before)
}

/// The fewest parts before a line without which strace would print it.
fn before(line: &[u8]) -> Option<[Option<Part>; MOST_PARTS]> {
    let mut ways: Vec<([Option<Part>; MOST_PARTS], &[u8])> = vec![([None; MOST_PARTS], line)];
    for depth in 0..=MOST_PARTS {
        if let Some((parts, _)) = ways.iter().find(|(_, rest)| is_of_strace(rest)) {
            return Some(*parts);
        }
        if depth == MOST_PARTS {
            break;
        }
        let longer = ways.iter().flat_map(|(parts, rest)| {
            PARTS.iter().filter_map(move |part| {
                let mut longer = *parts;
                longer[depth] = Some(*part);
                Some((longer, part.strip(rest)?))
            })
        });
        ways = longer.collect();
    }
    None
}

/// Whether a line is a call that the kernel has, with its result or as a half, an end or a signal.
fn is_of_strace(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let mut prefix = Prefix::default();
    let event = line::split(line, &mut prefix);
    match line::kind(event) {
        Kind::Resumed | Kind::Signal | Kind::Exit => true,
        Kind::Call if syscalls::number(fields::name(event)) == UNLISTED => false,
        Kind::Call if fields::unfinished(event).is_some() => true,
        Kind::Call => {
            let results = memmem::rfind(event, b"= ").map(|at| &event[..at]);
            results.is_some_and(|before| before.ends_with(b" ") && before.trim_ascii_end().ends_with(b")"))
        }
        _ => false,
    }
}

impl Part {
    /// The rest of a line that begins with this part.
    fn strip(self, line: &[u8]) -> Option<&[u8]> {
        match self {
            Part::Blanks => {
                let blanks = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
                (blanks > 0).then_some(&line[blanks..])
            }
            Part::Mark => {
                let rest = line.strip_prefix(b"//").or(match line {
                    [b'>' | b'|' | b'#' | b'*', rest @ ..] => Some(rest),
                    _ => None,
                })?;
                Some(rest.strip_prefix(b" ").unwrap_or(rest))
            }
            Part::DateTime => date_time(line),
            Part::Syslog => {
                const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
                let rest = MONTHS.chunks_exact(3).find_map(|month| line.strip_prefix(month))?;
                let rest = matches_form(rest, b" _d ").map(|at| &rest[at..])?;
                let rest = time(rest)?.strip_prefix(b" ")?;
                Part::HostAndProgram.strip(rest)
            }
            Part::HostAndProgram => {
                let rest = word(line)?.strip_prefix(b" ")?;
                Part::Word.strip(rest)
            }
            Part::Brackets => {
                let close = memchr(b']', line).filter(|_| line.starts_with(b"[") && !line.starts_with(b"[pid "))?;
                Some(line[close + 1..].strip_prefix(b" ").unwrap_or(&line[close + 1..]))
            }
            Part::Column => {
                let rest = word(line)?.trim_ascii_start().strip_prefix(b"|")?;
                Some(rest.strip_prefix(b" ").unwrap_or(rest))
            }
            Part::Number => {
                let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let rest = line[digits..].strip_prefix(b":").or_else(|| line[digits..].strip_prefix(b"\t"));
                rest.filter(|_| digits > 0)
            }
            Part::Word => {
                let rest = word(line)?;
                let is_named = line[..line.len() - rest.len()].ends_with(b":");
                rest.strip_prefix(b" ").filter(|_| is_named)
            }
            Part::Time => time(line)?.strip_prefix(b" "),
        }
    }
}

/// The rest after a word of printable characters.
fn word(line: &[u8]) -> Option<&[u8]> {
    let len = line.iter().take_while(|byte| byte.is_ascii_graphic()).count();
    // A call is no word before one.
    (len > 0 && memchr(b'(', &line[..len]).is_none()).then_some(&line[len..])
}

/// Length of a text of this form at the beginning of a line: `d` for a digit, `_` for a digit or a
/// blank, other characters as they are.
fn matches_form(line: &[u8], form: &[u8]) -> Option<usize> {
    let is_of = |(byte, form): (&u8, &u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'_' => byte.is_ascii_digit() || *byte == b' ',
        _ => byte == form,
    };
    (line.len() >= form.len() && line.iter().zip(form).all(is_of)).then_some(form.len())
}

/// The rest after `10:00:00.123`.
fn time(line: &[u8]) -> Option<&[u8]> {
    let rest = &line[matches_form(line, b"dd:dd:dd")?..];
    let Some(fraction) = rest.strip_prefix(b".").or_else(|| rest.strip_prefix(b",")) else { return Some(rest) };
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(&fraction[digits..])
}

/// The rest after `2026-01-05T10:00:00.123Z `, also in brackets.
fn date_time(line: &[u8]) -> Option<&[u8]> {
    let is_bracketed = line.starts_with(b"[");
    let line = &line[usize::from(is_bracketed)..];
    let rest = &line[matches_form(line, b"dddd-dd-dd")?..];
    let rest = rest.strip_prefix(b"T").or_else(|| rest.strip_prefix(b" "))?;
    let rest = time(rest)?;
    let zone = [&b"Z"[..], b"+dd:dd", b"-dd:dd", b"+dddd", b"-dddd"].iter().find_map(|form| matches_form(rest, form));
    let rest = &rest[zone.unwrap_or(0)..];
    let rest = if is_bracketed { rest.strip_prefix(b"]")? } else { rest };
    rest.strip_prefix(b" ").or_else(|| rest.strip_prefix(b"\t"))
}

/// Replace `&lt;` and the like from `start` on.
fn decode_html(text: &mut Vec<u8>, start: usize) {
    const NAMED: [(&[u8], &[u8]); 8] = [
        (b"lt", b"<"),
        (b"gt", b">"),
        (b"quot", b"\""),
        (b"amp", b"&"),
        (b"apos", b"'"),
        (b"nbsp", b" "),
        (b"ldquo", b"\""),
        (b"rdquo", b"\""),
    ];
    const LONGEST: usize = 8;
    replace(text, start, |rest| {
        let end = memchr(b';', rest.get(1..)?.get(..LONGEST.min(rest.len() - 1))?)? + 1;
        let name = rest[..end].strip_prefix(b"&")?;
        if let Some((_, plain)) = NAMED.iter().find(|(known, _)| *known == name) {
            return Some((end + 1, plain.to_vec()));
        }
        let number = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
        let code = number.strip_prefix('x').map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())?;
        // A line feed would change the numbers of lines.
        let plain = char::from_u32(code).filter(|plain| *plain != '\n')?;
        Some((end + 1, plain.to_string().into_bytes()))
    });
}

/// Replace typographic quotes and the like by what strace printed, from `start` on.
fn straighten(text: &mut Vec<u8>, start: usize) {
    const PLAIN: [(&str, &str); 9] = [
        ("\u{201c}", "\""),
        ("\u{201d}", "\""),
        ("\u{201e}", "\""),
        ("\u{201f}", "\""),
        ("\u{2018}", "'"),
        ("\u{2019}", "'"),
        ("\u{2026}", "..."),
        ("\u{2013}", "--"),
        ("\u{a0}", " "),
    ];
    replace(text, start, |rest| {
        let (typeset, plain) = PLAIN.iter().find(|(typeset, _)| rest.starts_with(typeset.as_bytes()))?;
        Some((typeset.len(), plain.as_bytes().to_vec()))
    });
}

/// Replace parts of a text from `start` on: `part` returns the length of what the rest begins with,
/// and what takes its place.
fn replace(text: &mut Vec<u8>, start: usize, part: impl Fn(&[u8]) -> Option<(usize, Vec<u8>)>) {
    let line = text.split_off(start);
    let mut at = 0;
    while at < line.len() {
        if let Some((len, plain)) = part(&line[at..]) {
            text.extend_from_slice(&plain);
            at += len;
        } else {
            text.push(line[at]);
            at += 1;
        }
    }
}

fn remove_contexts(text: &mut Vec<u8>, start: usize) {
    while let Some((from, to)) = context(&text[start..]) {
        text.drain(start + from..start + to);
    }
}

/// The first security context of a line outside of strings, with the blank before it or, at the
/// beginning of the line, after it.
fn context(line: &[u8]) -> Option<(usize, usize)> {
    let mut is_string = false;
    let mut at = 0;
    while at < line.len() {
        match line[at] {
            b'\\' if is_string => at += 1,
            b'"' => is_string = !is_string,
            b'[' if !is_string && (at == 0 || line[at - 1] == b' ') => {
                let close = at + memchr(b']', &line[at..])?;
                if is_context(&line[at + 1..close]) {
                    return Some(if at > 0 { (at - 1, close + 1) } else { (0, (close + 2).min(line.len())) });
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a text is `user:role:type`, with or without a level, or `name_t` alone; with `!!` and
/// the expected one where they differ.
fn is_context(text: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.' | b',' | b'-' | b'!');
    let is_type = text.ends_with(b"_t") && memrchr(b',', text).is_none();
    !text.is_empty()
        && text.iter().all(is_name)
        && text[0].is_ascii_alphabetic()
        && (is_type || memmem::find(text, b"_r:").is_some() && memmem::find(text, b"_t").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [&str; 4] = [
        "991 1718000000.000000 execve(\"/bin/a\", [\"a\"], 0x7ffd00 /* 20 vars */) = 0 <0.000500>",
        "991 1718000000.000506 openat(AT_FDCWD, \"/opt/a\", O_RDONLY|O_CLOEXEC) = 3</opt/a> <0.000020>",
        "991 1718000000.000532 read(3</opt/a>, \"it's\"..., 65536) = 4000 <0.000010>",
        "991 1718000000.000548 +++ exited with 0 +++",
    ];

    fn unwrapped(log: &str) -> String {
        let mut text = log.as_bytes().to_vec();
        Wrapping::detect(&text).remove(&mut text);
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn what_stands_before_lines_is_removed() {
        for before in [
            "    ",
            "\t",
            "> ",
            "> > ",
            ">",
            "# ",
            "// ",
            "   > ",
            "2026-01-05T10:00:00.1234567Z ",
            "2026-01-05T10:00:00+00:00 ",
            "[2026-01-05T10:00:00.123Z] ",
            "2026-01-05 10:00:00,123 ",
            "Nov  5 01:09:22 host tool[12]: ",
            "2026-01-05T10:00:00+0100 host tool[12]: ",
            "[stderr] ",
            "[10:00:01] ",
            "web-1  | ",
            "12:",
            "     12\t",
            "stderr: ",
            "10:00:00.123 ",
        ] {
            let log: String = CALLS.iter().map(|call| format!("{before}{call}\n")).collect();
            assert_eq!(unwrapped(&log), CALLS.map(|call| format!("{call}\n")).concat(), "{before:?}");
        }
    }

    #[test]
    fn escapes_and_quotes_become_what_was_printed() {
        let plain = CALLS.map(|call| format!("{call}\n")).concat();
        let html =
            plain.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;");
        assert_eq!(unwrapped(&html), plain);
        let mut is_open = false;
        let typeset: String = plain
            .chars()
            .map(|letter| match letter {
                '"' => {
                    is_open = !is_open;
                    if is_open { '\u{201c}' } else { '\u{201d}' }
                }
                '\'' => '\u{2019}',
                other => other,
            })
            .collect();
        assert_eq!(unwrapped(&typeset.replace("...", "\u{2026}")), plain);
    }

    #[test]
    fn contexts_are_removed_outside_of_strings() {
        for (with, without) in [
            (
                "4021 [unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023] openat(AT_FDCWD, \"/a [x_t]\" [etc_t], O_RDONLY) = 3</a> [etc_t!!usr_t] <0.1>",
                "4021 openat(AT_FDCWD, \"/a [x_t]\", O_RDONLY) = 3</a> <0.1>",
            ),
            ("[unconfined_t] close(3) = 0", "close(3) = 0"),
            ("[pid 7] [a_u:b_r:c_t:s0:c1,c2] close(3) = 0", "[pid 7] close(3) = 0"),
        ] {
            assert_eq!(unwrapped(with), without);
        }
    }

    #[test]
    fn other_logs_stay_as_they_are() {
        for log in [
            "",
            "hello\nworld\n",
            "     0.000123 close(3) = 0\n",
            "close(3) = 0\n > /lib/libc.so(read+0x1) [0x10]\n",
            "12:34:56 close(3) = 0 <0.000010>\n> close(3) = 0\n",
            "[pid  12] write(1, \"> close(3) = 0\\n&quot;\", 15) = 15\n",
            "7 poll([{fd=3, events=POLLIN}], 1, -1) = 1 ([{fd=3, revents=POLLIN}])\n",
            "7 rt_sigaction(SIGINT, {sa_handler=SIG_DFL, sa_mask=[], sa_flags=0}, NULL, 8) = 0\n",
            "712:\tclose(3)\t\t\t\t\t= 0\n",
            "7 write(1, \"\u{201c}\", 3) = 3\n",
        ] {
            assert_eq!(unwrapped(log), log);
        }
    }

    #[test]
    fn lines_without_what_stands_before_others_stay() {
        let log = "> close(3) = 0\n> close(4) = 0\nAnd so on.\n\n> close(5) = 0\n";
        assert_eq!(unwrapped(log), "close(3) = 0\nclose(4) = 0\nAnd so on.\n\nclose(5) = 0\n");
        assert_eq!(Wrapping::detect(log.as_bytes()).example(log.as_bytes()), Some(b"> ".to_vec()));
    }
}
