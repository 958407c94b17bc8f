//! Messages of strace about processes: `Process 12 attached`. They may be in the middle of a call's
//! line, if strace wrote both to standard error.
//!
//! Newer versions prefix them with `strace: `. Versions before 4.8 suspended a parent that waited
//! while its child was traced, and printed `Process 12 suspended` and `Process 12 resumed (parent 7
//! ready)`.

use crate::text;

/// A message at the end of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// Offset of its start.
    pub(crate) start: usize,
    pub(crate) tid: i32,
    pub(crate) about: About,
}

/// What it states about the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// The process is traced from here on.
    Attached,
    /// The process is not traced any more.
    Detached,
    Other,
}

/// The message about a process that `line` ends with.
pub(crate) fn about_process(line: &[u8]) -> Option<Note> {
    // Many lines end like this; the check excludes most of the others.
    let may_be = match line.last()? {
        b'd' => line.ends_with(b"ed"),
        b't' => line.ends_with(b" to quit"),
        b')' => line.ends_with(b" ready)") || line.ends_with(b"parent)"),
        _ => false,
    };
    if !may_be {
        return None;
    }
    let at = memchr::memmem::rfind(line, b"Process ")?;
    let words = &line[at + 8..];
    let digits = words.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let tid = text::decimal(&words[..digits]).and_then(|tid| i32::try_from(tid).ok())?;
    let about = about(&words[digits..])?;
    let start = at - if line[..at].ends_with(b"strace: ") { 8 } else { 0 };
    Some(Note { start, tid, about })
}

fn about(words: &[u8]) -> Option<About> {
    let number_between = |before: &[u8], after: &[u8]| {
        let number = words.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        number.and_then(text::decimal).is_some()
    };
    match words {
        b" attached" | b" attached - interrupt to quit" | b" attached (waiting for parent)" => Some(About::Attached),
        b" detached" => Some(About::Detached),
        b" suspended" | b" resumed" => Some(About::Other),
        _ if number_between(b" attached with ", b" threads - interrupt to quit") => Some(About::Attached),
        _ if number_between(b" resumed (parent ", b" ready)") => Some(About::Other),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_of_all_versions_are_found_at_the_ends_of_lines() {
        for (line, start, about) in [
            ("strace: Process 12 attached", 0, About::Attached),
            ("clone(strace: Process 12 attached", 6, About::Attached),
            ("clone(Process 12 attached", 6, About::Attached),
            ("Process 12 attached - interrupt to quit", 0, About::Attached),
            ("Process 12 attached with 3 threads - interrupt to quit", 0, About::Attached),
            ("clone(Process 12 attached (waiting for parent)", 6, About::Attached),
            ("Process 12 resumed (parent 7 ready)", 0, About::Other),
            ("wait4(-1, Process 12 suspended", 10, About::Other),
            ("Process 12 resumed", 0, About::Other),
            ("[pid     7] Process 12 detached", 12, About::Detached),
        ] {
            assert_eq!(about_process(line.as_bytes()), Some(Note { start, tid: 12, about }), "{line}");
        }
        for line in
            ["", "Process attached", "Process 12 attached!", "Process 12 ended", "Process 12 attached to quit", "12 attached"]
        {
            assert_eq!(about_process(line.as_bytes()), None, "{line}");
        }
    }
}
