//! The terminal: in raw mode on its alternate screen, and restored when this is dropped for any
//! reason.

use std::{
    io::{self, Write},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    stdio::{stdin, stdout},
    termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};

use crate::signals;

/// Size of a terminal that does not state it.
const SIZE: (usize, usize) = (80, 24);
/// Number of bytes that a terminal with room accepts without blocking [B].
const MOST_AT_ONCE: usize = 256;
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Switches to the alternate screen, without a cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Letter(char),
    Enter,
    Backspace,
    Escape,
    /// Ctrl-C, or Ctrl-D.
    Interrupt,
    Other,
}

/// The terminal while we use it.
pub(crate) struct Screen {
    before: Termios,
}

impl Screen {
    pub(crate) fn begin() -> io::Result<Screen> {
        let before = tcgetattr(stdin())?;
        signals::notice_resizes();
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        let screen = Screen { before };
        write(BEGIN)?;
        Ok(screen)
    }

    /// Number of columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        let known = tcgetwinsize(stdout()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
        known.map_or(SIZE, |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Show these lines, and nothing else.
    pub(crate) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let lines: Vec<String> = lines.iter().map(|line| format!("{line}\x1b[K")).collect();
        write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")))
    }

    /// The keys pressed within this time. An error: the terminal disappeared.
    pub(crate) fn keys(&self, wait: Duration) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 64];
        let got = read(&mut bytes, wait)?;
        Ok(keys_of(&bytes[..got]))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(END);
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.before);
    }
}

/// Write as much as the terminal accepts: a terminal that was stopped (Ctrl-S, a connection that
/// hangs) would block the keys, too.
fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for part in text.as_bytes().chunks(MOST_AT_ONCE) {
        if !takes_more() {
            return Ok(());
        }
        out.write_all(part)?;
        out.flush()?;
    }
    Ok(())
}

/// Whether the terminal has room within a moment.
fn takes_more() -> bool {
    poll(&mut [PollFd::from_borrowed_fd(stdout(), PollFlags::OUT)], Some(&PATIENCE)) == Ok(1)
}

/// Read input that comes within this time: no bytes on timeout or a signal.
fn read(bytes: &mut [u8], wait: Duration) -> io::Result<usize> {
    // Rounded up, to avoid polling repeatedly with a timeout of 0 during the last millisecond.
    let wait_ms = i64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i64::MAX);
    let wait = Timespec { tv_sec: wait_ms / 1000, tv_nsec: wait_ms % 1000 * 1_000_000 };
    let mut ready = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let got = match poll(&mut ready, Some(&wait)) {
        Ok(0) => return Ok(0),
        Ok(_) => rustix::io::read(stdin(), bytes),
        Err(error) => Err(error),
    };
    match got {
        // Its other side was closed.
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(Errno::INTR) => Ok(0),
        got => Ok(got?),
    }
}

/// Bytes that begin with Escape and continue are one key without a letter.
pub(super) fn keys_of(bytes: &[u8]) -> Vec<Key> {
    match bytes {
        [27] => return vec![Key::Escape],
        [27, ..] => return vec![Key::Other],
        _ => {}
    }
    let key = |c: char| match c {
        '\u{3}' | '\u{4}' => Key::Interrupt,
        '\r' | '\n' => Key::Enter,
        '\u{8}' | '\u{7f}' => Key::Backspace,
        c if c.is_control() => Key::Other,
        c => Key::Letter(c),
    };
    String::from_utf8_lossy(bytes).chars().map(key).collect()
}
