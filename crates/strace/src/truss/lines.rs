//! The lines of a chunk of a truss log, split and parsed.
//!
//! Contents of buffers (`-r`, `-w`), which are nearly all lines of the largest logs, are recognized
//! by their first bytes and only counted. So are structures and other lines that are not stored in
//! the tables.

use super::{Kind, Layout, Prefix, dump_starts, kind, parse, split};
use crate::{
    chunk::{Chunk, Line, Parsed},
    line::{self, Stamp},
};

/// Length of a full line of a dump: two blanks, and two characters for each of 32 bytes.
const FULL: usize = 66;

/// The list that lines with two leading blanks belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    /// The command line: kept.
    Arguments,
    Environment,
}

/// The line before.
struct Before<'a> {
    /// Its `PID/LWP:` and tabs, if it was a dump.
    name: &'a [u8],
    list: List,
}

impl Chunk {
    /// Split the text into lines and parse those that are kept.
    pub(crate) fn parse_truss(&mut self, layout: &Layout) {
        let text = std::mem::take(&mut self.text);
        self.count = 0;
        self.total = 0;
        self.numbers.clear();
        let mut before = Before { name: b"", list: List::None };
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &text) {
            let line = &text[start..newline];
            // Nearly every line of a log with dumps.
            let dump = line.len() == before.name.len() + FULL
                && line.starts_with(before.name)
                && dump_starts(&line[before.name.len()..])
                && before.list == List::None;
            if !dump {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                self.truss_line(&text, (start, start + line.len()), true, layout, &mut before);
            }
            self.total += 1;
            start = newline + 1;
        }
        if start < text.len() {
            self.truss_line(&text, (start, text.len()), false, layout, &mut before);
            self.total += 1;
        }
        self.text = text;
    }

    fn truss_line<'a>(
        &mut self,
        text: &'a [u8],
        (start, end): (usize, usize),
        ended: bool,
        layout: &Layout,
        before: &mut Before<'a>,
    ) {
        let (prefix, event) = split(&text[start..end], layout);
        let mut kind = kind(event, &prefix);
        let goes_on = before.list != List::None && matches!(kind, Kind::Dump | Kind::Continuation) && event.starts_with(b"  ");
        if goes_on {
            kind = Kind::Continuation;
        } else {
            before.list = match kind {
                Kind::Argv => List::Arguments,
                Kind::Envp => List::Environment,
                _ => List::None,
            };
        }
        let kept = match kind {
            Kind::Dump => {
                before.name = &text[start..end - event.len()];
                false
            }
            Kind::Envp | Kind::Function | Kind::Pointed | Kind::Notice => false,
            Kind::Continuation => before.list == List::Arguments || is_siginfo(event),
            _ => true,
        };
        if kept {
            self.keep(event, (start, end), ended, kind, &prefix, layout);
        }
    }

    fn keep(&mut self, event: &[u8], (start, end): (usize, usize), ended: bool, kind: Kind, prefix: &Prefix, layout: &Layout) {
        if self.count == self.lines.len() {
            self.lines.push(Line::default());
        }
        let line = &mut self.lines[self.count];
        self.count += 1;
        self.numbers.push(self.total);
        (line.start, line.end, line.event) = (start as u32, end as u32, (end - event.len()) as u32);
        line.ended = ended;
        line.kind = line::Kind::Truss(kind);
        line.prefix = in_common(prefix, layout);
        line.parsed = match kind {
            Kind::Call | Kind::Sleeping | Kind::Waiting | Kind::Returning | Kind::Exit | Kind::LwpExit => {
                match parse(event, &mut line.places) {
                    Ok(_) => Parsed::Whole,
                    Err(error) => Parsed::Failed(error),
                }
            }
            _ => Parsed::Nothing,
        };
        line.places.end.dur_ns = prefix.system_cpu_ns.unwrap_or(-1);
    }
}

/// The prefix in the form common to both tracers. [`Stamp::Epoch`] is the stamp of `-d`, relative
/// to the base, or to 0 if that is unknown; [`Stamp::SinceLast`] is that of `-D` in a log without
/// `-d`.
fn in_common(prefix: &Prefix, layout: &Layout) -> line::Prefix {
    let stamp = prefix.stamp_ns.map(|ns| Stamp::Epoch(layout.base_ns.unwrap_or(0).saturating_add(ns)));
    line::Prefix {
        tid: prefix.pid,
        lwp: prefix.lwp.unwrap_or(0),
        stamp: stamp.or(prefix.since_last_ns.map(Stamp::SinceLast)),
        decimals: 4,
    }
}

/// Whether the line describes the cause of a signal (expound.c:print_siginfo).
pub(super) fn is_siginfo(event: &[u8]) -> bool {
    event.starts_with(b"      siginfo: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{format::Format, truss::Columns};

    fn parsed(text: &str, letters: &str) -> Chunk {
        let format = Format::given(Columns::from_letters(letters).unwrap(), text.as_bytes());
        let mut chunk = Chunk { text: text.into(), format, ..Chunk::default() };
        chunk.parse();
        chunk
    }

    fn kept(chunk: &Chunk) -> Vec<(u32, String)> {
        let text = |line| String::from_utf8(chunk.event(line).to_vec()).unwrap();
        chunk.numbers.iter().copied().zip(chunk.lines[..chunk.count].iter().map(text)).collect()
    }

    #[test]
    fn dumps_are_counted_and_not_kept() {
        let full = format!("7/1:\t\t  {}\n", " a".repeat(32));
        let text = format!("7/1:\t\twrite(1, 0x08, 70)\t= 70\n{full}{full}7/1:\t\t   a\\n1F\n7/1:\t\tclose(1)\t= 0\n{full}");
        let chunk = parsed(&text, "");
        let expected = [(0, "write(1, 0x08, 70)\t= 70".to_string()), (4, "close(1)\t= 0".to_string())];
        assert_eq!((kept(&chunk), chunk.total), (expected.to_vec(), 6));
    }

    #[test]
    fn a_command_line_that_looks_like_a_dump_is_kept() {
        let text = format!(
            "execve(\"/x\", 0x1, 0x2)  argc = 9\n argv: x\n  00FF\n envp: A=1\n  11EE\n  {}\nclose(1)\t= 0\n",
            "22".repeat(32)
        );
        let chunk = parsed(&text, "");
        let events: Vec<String> = kept(&chunk).into_iter().map(|(_, event)| event).collect();
        assert_eq!(events, ["execve(\"/x\", 0x1, 0x2)  argc = 9", " argv: x", "  00FF", "close(1)\t= 0"]);
        assert_eq!(chunk.total, 7);
    }

    #[test]
    fn stamps_count_from_the_base_and_ends_of_lines_are_recognized() {
        let text = "Base time stamp:  1000000000.5000  [ x ]\r\n7/2:\t\t 1.2500\t 0.0001\tclose(1)\t= 0\r\n7/2:\t\t 1.2501";
        let chunk = parsed(text, "dE");
        let line = &chunk.lines[1];
        assert_eq!((line.prefix.tid, line.prefix.lwp), (Some(7), 2));
        assert_eq!(line.prefix.stamp, Some(Stamp::Epoch(1_000_000_001_750_000_000)));
        assert_eq!((line.places.end.dur_ns(), line.ended, chunk.lines[2].ended), (Some(100_000), true, false));
        assert_eq!(chunk.line(line), b"7/2:\t\t 1.2500\t 0.0001\tclose(1)\t= 0");
    }
}
