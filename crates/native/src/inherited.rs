//! Keeps state that this program was started with and changes for itself, so that a command that it
//! starts finds it unchanged.
//!
//! A program with file capabilities is started without the variables by which a user could change what
//! it does (ld.so(8), secure-execution mode), and with open files in place of closed standard streams:
//! its command gets the variables back, and finds the streams closed.
//!
//! Before `main`, Rust opens /dev/null in place of closed standard streams and ignores SIGPIPE, so
//! the state is saved before that.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

/// One bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);
/// One bit for each signal that was ignored; bit 0 is signal 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);

const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=64;

/// The C library calls the functions in this section before `main` and before Rust's own
/// preparation.
#[used]
// SAFETY: the section takes pointers to functions of this type; this one makes system calls and
// touches atomics only.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    for fd in 0..3 {
        // SAFETY: takes numbers only.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
        if flags == -1 || replaces_a_closed_stream(fd, flags) {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    for signal in SIGNALS {
        // SAFETY: only reads the setting; the kernel fills the struct unless it fails.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        };
        if ignored {
            IGNORED.fetch_or(bit(signal), Ordering::Relaxed);
        }
    }
}

/// Whether the C library opened this file in place of a closed standard stream: in a program with more
/// rights than its user, it opens /dev/full for writing as standard input, and /dev/null for reading as
/// the others (csu/check_fds.c in glibc).
fn replaces_a_closed_stream(fd: libc::c_int, flags: libc::c_int) -> bool {
    let access = if fd == 0 { libc::O_WRONLY } else { libc::O_RDONLY };
    flags & (libc::O_ACCMODE | libc::O_NOFOLLOW) == access | libc::O_NOFOLLOW && has_more_rights()
}

/// Whether this program has more rights than the user who started it.
fn has_more_rights() -> bool {
    // SAFETY: takes a number only.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Whether this signal was ignored when we were started.
pub(crate) fn was_ignored(signal: libc::c_int) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// The variables that the dynamic linker removed from the environment of this program, because it has
/// more rights than the user who started it.
pub(crate) fn removed_variables() -> Vec<(OsString, OsString)> {
    if !has_more_rights() {
        return Vec::new();
    }
    let variables = given_environment().split(|byte| *byte == 0).filter_map(variable);
    variables.filter(|(name, _)| env::var_os(name).is_none()).map(|(name, value)| (name.into(), value.into())).collect()
}

fn variable(entry: &[u8]) -> Option<(&OsStr, &OsStr)> {
    let end = entry.iter().skip(1).position(|byte| *byte == b'=')? + 1;
    Some((OsStr::from_bytes(&entry[..end]), OsStr::from_bytes(&entry[end + 1..])))
}

/// The environment as the kernel gave it to this program: `NAME=VALUE`, each with a zero after it.
/// The linker only removes pointers to it. (/proc/self/environ has it too, but does not belong to the
/// user here.)
fn given_environment() -> &'static [u8] {
    // Fields 50 and 51 of proc_pid_stat(5); the second field may contain blanks.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut numbers = fields.split_ascii_whitespace().skip(47).map(|field| field.parse().unwrap_or(0));
    let (start, end): (usize, usize) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if start == 0 || end <= start {
        return &[];
    }
    // SAFETY: the kernel put these bytes on the stack of the first thread, which lives as long as the
    // process, and nothing here writes to them.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(start), end - start) }
}

/// Receive SIGCHLD: if it is ignored, children cannot be waited for.
pub(crate) fn hear_of_children() {
    // SAFETY: takes numbers only.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Restore the state, between fork and exec, where only system calls may be made.
pub(crate) fn give_back() {
    let (ignored, closed) = (IGNORED.load(Ordering::Relaxed), CLOSED.load(Ordering::Relaxed));
    for signal in SIGNALS {
        // SAFETY: takes numbers only. Signals that cannot be set (SIGKILL, and those that the C
        // library reserves) are unchanged.
        unsafe { libc::signal(signal, if ignored & bit(signal) != 0 { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
    for fd in (0..3).filter(|fd| closed & (1 << fd) != 0) {
        // SAFETY: takes numbers only; the file is one in place of a closed stream.
        unsafe { libc::close(fd) };
    }
}
