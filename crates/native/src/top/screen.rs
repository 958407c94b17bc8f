//! The terminal: in raw mode, on its other screen, and as it was before once this is dropped, however that comes.

use std::{
    io::{self, Write},
    mem,
    time::Duration,
};

use crate::signals;

/// What a terminal is where it does not say how large it is.
const SIZE: (usize, usize) = (80, 24);
/// A terminal that says that it has room takes these without waiting [B].
const MOST_AT_ONCE: usize = 256;
const PATIENCE_MS: libc::c_int = 200;
const INPUT: libc::c_int = libc::STDIN_FILENO;
/// The other screen, without a cursor.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?1049l";

/// What was pressed.
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

/// The terminal while it is ours.
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

    /// Columns and lines.
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

    /// What is pressed within this time. An error: the terminal went away.
    pub(crate) fn keys(&self, wait: Duration) -> io::Result<Vec<Key>> {
        let mut bytes = [0; 64];
        let got = read(&mut bytes, wait)?;
        Ok(keys_of(&bytes[..got]))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = write(END);
        // SAFETY: the settings that it had.
        unsafe { libc::tcsetattr(INPUT, libc::TCSANOW, &raw const self.before) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Write so far as the terminal takes it: one that was stopped (Ctrl-S, a connection that hangs) would hold up the keys, too.
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

/// What comes within this time: no bytes where nothing does, or a signal.
fn read(bytes: &mut [u8], wait: Duration) -> io::Result<usize> {
    // Rounded up: else the last part of a millisecond would be waited for again and again.
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

/// What begins with Escape and goes on is one key that has no letter.
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
