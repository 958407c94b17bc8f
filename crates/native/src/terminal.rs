//! The terminal that messages go to: its width, and lines that fit.

use std::{
    io::{self, IsTerminal},
    mem,
};

/// The text with its lines broken at blanks to fit the terminal on standard error; unchanged if
/// that is not a terminal.
pub(crate) fn fitted(text: &str) -> String {
    columns().map_or_else(|| text.into(), |room| broken(text, room))
}

/// Number of columns of the terminal on standard error. `None`: it is not a terminal, or its size
/// is unknown.
fn columns() -> Option<usize> {
    if !io::stderr().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col.into())
}

/// Break lines longer than `room`. A long word, such as a path, and a command in back-ticks are not
/// broken, so that they can be copied.
fn broken(text: &str, room: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut filled = String::new();
        for word in words(line) {
            if !filled.is_empty() && filled.chars().count() + 1 + word.chars().count() > room {
                lines.push(mem::take(&mut filled));
            } else if !filled.is_empty() {
                filled.push(' ');
            }
            filled.push_str(&word);
        }
        lines.push(filled);
    }
    lines.join("\n")
}

/// The words of a line; a text in back-ticks is one word.
fn words(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for word in line.split(' ') {
        match found.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.into()),
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(broken("sysdock: a line that is long", 16), "sysdock: a line\nthat is long");
        assert_eq!(broken("a short one\n\nhint: do this", 16), "a short one\n\nhint: do this");
    }

    #[test]
    fn a_word_that_does_not_fit_stays_whole() {
        assert_eq!(broken("see /a/long/path/to/it now", 10), "see\n/a/long/path/to/it\nnow");
        assert_eq!(broken("see `sysdock info rec` now", 10), "see\n`sysdock info rec`\nnow");
    }

    #[test]
    fn where_is_no_terminal_nothing_is_broken() {
        assert_eq!(broken("one two three", usize::MAX), "one two three");
    }
}
