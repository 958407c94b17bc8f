//! The terminal: in raw mode on its alternate screen, and restored when this is dropped for any
//! reason.

use std::{
    io::{self, Write},
    mem,
    time::Duration,
};

use crate::signals;

/// Size of a terminal that does not state it.
const SIZE: (usize, usize) = (80, 24);
/// Number of bytes that a terminal with room accepts without blocking [B].
const MOST_AT_ONCE: usize = 256;
const PATIENCE_MS: libc::c_int = 200;
const INPUT: libc::c_int = libc::STDIN_FILENO;
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
    before: libc::termios,
}

impl Screen {
    pub(crate) fn begin() -> io::Result<Screen> {
        // SAFETY: the struct is filled by tcgetattr before it is read.
        let before = unsafe {
            let mut settings: libc::termios = mem::zeroed();
            check(libc::tcgetattr(INPUT, &raw mut settings))?;
            settings
        };
        signals::notice_resizes();
        let mut raw = before;
        // SAFETY: changes the struct only; then its settings are given to the terminal.
        unsafe {
            libc::cfmakeraw(&raw mut raw);
            check(libc::tcsetattr(INPUT, libc::TCSANOW, &raw const raw))?;
        }
        let screen = Screen { before };
        write(BEGIN)?;
        Ok(screen)
    }

    /// Number of columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        // SAFETY: the struct has room for what the call writes.
        let size = unsafe {
            let mut size: libc::winsize = mem::zeroed();
            check(libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size)).map(|()| size)
        };
        let known = size.ok().filter(|size| size.ws_col > 0 && size.ws_row > 0);
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
        // SAFETY: restores the previous settings.
        unsafe { libc::tcsetattr(INPUT, libc::TCSANOW, &raw const self.before) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
    let mut room = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure.
    unsafe { libc::poll(&raw mut room, 1, PATIENCE_MS) == 1 }
}

/// Read input that comes within this time: no bytes on timeout or a signal.
fn read(bytes: &mut [u8], wait: Duration) -> io::Result<usize> {
    // Rounded up, to avoid polling repeatedly with a timeout of 0 during the last millisecond.
    let wait_ms = libc::c_int::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(libc::c_int::MAX);
    let mut ready = libc::pollfd { fd: INPUT, events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure, and as many bytes as there is room for.
    let got = unsafe {
        match libc::poll(&raw mut ready, 1, wait_ms) {
            1 => libc::read(INPUT, bytes.as_mut_ptr().cast(), bytes.len()),
            0 => return Ok(0),
            error => error as isize,
        }
    };
    match usize::try_from(got) {
        // Its other side was closed.
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(got) => Ok(got),
        Err(_) => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        },
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
