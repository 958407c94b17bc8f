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

/// Let SIGINT and SIGTERM ask `cancel` for an end.
pub(crate) fn cancel_on_signal(cancel: &Cancel) {
    let _ = CANCEL.set(cancel.flag());
    handle(libc::SIGINT, request_cancel);
    handle(libc::SIGTERM, request_cancel);
}

/// Count signals instead of dying of them; the recorder decides what they mean.
pub(crate) fn count_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        handle(signal, count);
    }
}

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
