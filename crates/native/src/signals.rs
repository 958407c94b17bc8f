//! SIGINT and SIGTERM: stop cleanly instead of dying.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI32, Ordering},
};

use sysdock_table::Cancel;

static CANCEL: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Signals received, one counter for each kind that is watched.
static INTERRUPTS: AtomicI32 = AtomicI32::new(0);
static TERMINATIONS: AtomicI32 = AtomicI32::new(0);
static HANGUPS: AtomicI32 = AtomicI32::new(0);

extern "C" fn request_cancel(_signal: libc::c_int) {
    // Only an atomic store: a signal handler may do no more.
    if let Some(flag) = CANCEL.get() {
        flag.store(true, Ordering::Relaxed);
    }
}

extern "C" fn count(signal: libc::c_int) {
    let counter = match signal {
        libc::SIGINT => &INTERRUPTS,
        libc::SIGHUP => &HANGUPS,
        _ => &TERMINATIONS,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}

fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: the struct is zeroed and then filled; the handlers do nothing but touch atomics. No SA_RESTART: a read that waits for a
    // pipe must return, so that the request is seen.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// What was ignored when we were started stays so, for us and for the command: SIGHUP below nohup(1), SIGINT in the background of a script.
fn handle_unless_ignored(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: asks only; the kernel fills the struct where it does not fail.
    let is_ignored = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    };
    if !is_ignored {
        handle(signal, handler);
    }
}

/// Let SIGINT and SIGTERM ask `cancel` for an end.
pub(crate) fn cancel_on_signal(cancel: &Cancel) {
    let _ = CANCEL.set(cancel.flag());
    handle_unless_ignored(libc::SIGINT, request_cancel);
    handle_unless_ignored(libc::SIGTERM, request_cancel);
}

/// Count signals instead of dying of them; the recorder decides what they mean.
pub(crate) fn count_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        handle_unless_ignored(signal, count);
    }
}

/// Ring an alarm every second, so that a read that waits for a quiet program returns now and then and the import can make a checkpoint.
/// (The kernel gives up a BPF program that it looks through when a signal comes: not while those are loaded.)
pub(crate) fn ring_alarms() {
    const ALARM: libc::timeval = libc::timeval { tv_sec: 1, tv_usec: 0 };
    handle(libc::SIGALRM, ignore);
    // SAFETY: the value lives through the call; the handler is set.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &libc::itimerval { it_interval: ALARM, it_value: ALARM }, std::ptr::null_mut());
    }
}

/// Let a write beyond the limit of file sizes fail instead of killing. A handler, because "ignored" would be inherited by the command.
pub(crate) fn survive_file_size_limit() {
    handle(libc::SIGXFSZ, ignore);
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Signals counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) interrupts: i32,
    pub(crate) terminations: i32,
    pub(crate) hangups: i32,
}

pub(crate) fn counts() -> Counts {
    Counts {
        interrupts: INTERRUPTS.load(Ordering::Relaxed),
        terminations: TERMINATIONS.load(Ordering::Relaxed),
        hangups: HANGUPS.load(Ordering::Relaxed),
    }
}
