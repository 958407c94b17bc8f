//! Detects which tracer wrote a log.

use memchr::{memmem, memrchr};

use crate::{
    fields,
    foreign::{Evidence, Sign},
    line::{self, Kind},
    truss::{self, Columns, Layout},
};

/// Number of lines that are examined.
const LINES: usize = 2_000;

/// The format of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Strace,
    Truss(Layout),
    /// Another tool's: the log is refused.
    Foreign(Sign),
}

impl Format {
    /// Decide from the first lines of a log. The second value: whether more lines would not change
    /// the result.
    ///
    /// Counts lines that only one of the tracers prints; a log without such lines is read as one of
    /// strace.
    pub(crate) fn detect(text: &[u8]) -> (Self, bool) {
        let (mut of_truss, mut of_strace, mut dumps) = (0, 0, 0);
        let mut evidence = Evidence::default();
        for line in lines(text).take(LINES) {
            evidence.see(line);
            if is_of_truss(line) {
                of_truss += 1;
            } else if is_of_strace(line) {
                of_strace += 1;
            } else {
                dumps += usize::from(truss::is_dump(line));
            }
        }
        if let Some(sign) = evidence.before_truss() {
            return (Format::Foreign(sign), true);
        }
        // A log may begin in the middle of a dump.
        if of_truss > of_strace || (of_strace == 0 && dumps > 0) {
            let (layout, enough) = Layout::detect(lines(text));
            return (Format::Truss(layout), enough && of_truss > 0);
        }
        (evidence.other_than_truss().map_or(Format::Strace, Format::Foreign), true)
    }

    /// A truss log with the columns that the user named.
    pub(crate) fn given(columns: Columns, text: &[u8]) -> Self {
        Format::Truss(Layout::given(columns).based(lines(text)))
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

/// Whether only truss prints this: the base line; a `PID/LWP:` prefix; tabs after the arguments,
/// `Err#N`, `argc = N`.
fn is_of_truss(line: &[u8]) -> bool {
    if truss::base(line).is_some() || truss::is_named(line) {
        return true;
    }
    let Some(close) = memrchr(b')', line).filter(|_| matches!(line.first(), Some(b'a'..=b'z' | b'_' | b'0'..=b'9' | b' ')))
    else {
        return false;
    };
    let tail = &line[close + 1..];
    let words = tail.trim_ascii_start();
    let result = words.starts_with(b"= ") || words.is_empty();
    line.ends_with(b"\t(sleeping...)")
        || words.starts_with(b"Err#")
        || tail.starts_with(b"  argc = ")
        || (tail.starts_with(b"\t") && result)
}

/// Whether strace prints this: a thread id or time before an event, halves, `+++`, `---`, a
/// duration, an error in the style of strace.
fn is_of_strace(line: &[u8]) -> bool {
    let mut prefix = line::Prefix::default();
    let event = line::split(line, &mut prefix);
    match line::kind(event) {
        Kind::Resumed | Kind::Signal | Kind::Exit | Kind::Notice => true,
        Kind::Call if prefix.tid.is_some() || prefix.stamp.is_some() => true,
        Kind::Call => fields::unfinished(event).is_some() || event.ends_with(b">") || memmem::find(event, b" = -1 E").is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tracer_is_found_by_its_lines() {
        let truss = [
            "Base time stamp:  1201557122.3823  [ Mon Jan 28 21:52:02 GMT 2008 ]\n",
            "execve(\"/usr/bin/wc\", 0x08047D8C, 0x08047D98)  argc = 2\n argv: wc\n",
            "close(3)\t\t\t\t\t= 0\n",
            "open(\"/x\", O_RDONLY)    Err#2 ENOENT\n",
            "712:\tclose(3)\t\t\t\t\t= 0\n",
            "/1:     close(3)                                = 0\n",
            "12/3:\t\t 0.0001\tclose(3)\t\t\t\t\t= 0\n",
            " 0.0001\tclose(3)\t\t\t\t\t= 0\n",
            "   h e l l o\\n\n  00FFC3\\t\n",
        ];
        for log in truss {
            assert!(matches!(Format::detect(log.as_bytes()).0, Format::Truss(_)), "{log:?}");
        }
        let strace = [
            "",
            "hello\nworld\n",
            "close(3) = 0\n",
            "close(3)                                = 0\n",
            "12    close(3)                                = 0\n",
            "12:34:56 close(3) = 0 <0.000010>\n",
            "[pid    12] write(1, \"7/1:\\tclose(3)\\t= 0\", 15) = 15\n",
            "7/1:\tclose(3)\t= 0\n1 12:34:56.000000 close(3) = 0\n1 12:34:56.000001 close(4) = -1 EBADF (Bad file descriptor)\n",
        ];
        for log in strace {
            assert_eq!(Format::detect(log.as_bytes()).0, Format::Strace, "{log:?}");
        }
    }
}
