//! What this program was started with and changes for itself: a command that it starts finds it as it was.
//!
//! Rust opens /dev/null in place of standard streams that are closed, and ignores SIGPIPE, before `main`; so what there was is noted before that.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// One bit for each standard stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);
/// One bit for each signal that was ignored; bit 0 is signal 1.
static IGNORED: AtomicU64 = AtomicU64::new(0);

const SIGNALS: std::ops::RangeInclusive<libc::c_int> = 1..=64;

/// The C library calls what is in this section before `main`, and before Rust prepares anything.
#[used]
// SAFETY: the section takes pointers to functions of this kind; this one makes system calls and touches atomics only.
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    for fd in 0..3 {
        // SAFETY: takes numbers only.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            CLOSED.fetch_or(1 << fd, Ordering::Relaxed);
        }
    }
    for signal in SIGNALS {
        // SAFETY: asks only; the kernel fills the struct where it does not fail.
        let ignored = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
        };
        if ignored {
            IGNORED.fetch_or(bit(signal), Ordering::Relaxed);
        }
    }
}

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// Whether this signal was ignored when we were started.
pub(crate) fn was_ignored(signal: libc::c_int) -> bool {
    IGNORED.load(Ordering::Relaxed) & bit(signal) != 0
}

/// Hear of children that end. With SIGCHLD ignored they could not be waited for.
pub(crate) fn hear_of_children() {
    // SAFETY: takes numbers only.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Give it back; between fork and exec, where only system calls may be made.
pub(crate) fn give_back() {
    let (ignored, closed) = (IGNORED.load(Ordering::Relaxed), CLOSED.load(Ordering::Relaxed));
    for signal in SIGNALS {
        // SAFETY: takes numbers only. What may not be set (SIGKILL, and those that the C library keeps) fails, which is well.
        unsafe { libc::signal(signal, if ignored & bit(signal) != 0 { libc::SIG_IGN } else { libc::SIG_DFL }) };
    }
    for fd in (0..3).filter(|fd| closed & (1 << fd) != 0) {
        // SAFETY: takes numbers only; what is open there is the /dev/null that stands for a closed stream.
        unsafe { libc::close(fd) };
    }
}
