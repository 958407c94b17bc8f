//! Handles SIGINT and SIGTERM: stop cleanly instead of dying.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering},
};

use rustix::process::getpid;
use sysdock_table::Cancel;

use crate::inherited;

/// Signals are below this number.
pub(crate) const COUNT: usize = 65;

/// Signals that users may send to a program, except those that stop it or are meant for its
/// terminal; and signals without a fixed meaning.
pub(crate) const HEARD: [libc::c_int; 39] = heard();

const fn heard() -> [libc::c_int; 39] {
    let named = [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGTERM,
        libc::SIGVTALRM,
        libc::SIGPROF,
        libc::SIGIO,
    ];
    let mut all = [0; 39];
    let mut next = 0;
    while next < named.len() {
        all[next] = named[next];
        next += 1;
    }
    // The C library reserves 32 and 33.
    let mut real_time = 34;
    while next < all.len() {
        all[next] = real_time;
        real_time += 1;
        next += 1;
    }
    all
}

/// Whether a request to end is repeated by alarms.
static REPEATED: AtomicBool = AtomicBool::new(false);
static CANCEL: OnceLock<Arc<AtomicBool>> = OnceLock::new();
/// Number of signals received, and sender of the last one, by signal.
static RECEIVED: [AtomicU32; COUNT] = [const { AtomicU32::new(0) }; COUNT];
static SENDER: [AtomicI32; COUNT] = [const { AtomicI32::new(0) }; COUNT];
/// The process that counts.
static COUNTING: AtomicI32 = AtomicI32::new(0);

/// Interval of the alarms after a request to end [µs].
const AFTER_A_REQUEST: libc::suseconds_t = 50_000;

extern "C" fn request_cancel(_signal: libc::c_int) {
    // An atomic store, and system calls that a handler may make.
    if let Some(flag) = CANCEL.get() {
        flag.store(true, Ordering::Relaxed);
    }
    if REPEATED.load(Ordering::Relaxed) {
        ring_every(libc::timeval { tv_sec: 0, tv_usec: AFTER_A_REQUEST });
    }
}

extern "C" fn count(signal: libc::c_int, found: *const libc::siginfo_t, _context: *const libc::c_void) {
    let number = signal.cast_unsigned() as usize % COUNT;
    // SAFETY: takes nothing.
    if getpid().as_raw_nonzero().get() != COUNTING.load(Ordering::Relaxed) {
        return end_by(signal);
    }
    // SAFETY: the kernel gives a handler with SA_SIGINFO a struct that outlives the call.
    SENDER[number].store(unsafe { (*found).si_pid() }, Ordering::Relaxed);
    RECEIVED[number].fetch_add(1, Ordering::Relaxed);
}

/// A fork of the recorder that is about to execute a program still has its handlers, but its counts
/// are not read: it ends as the program would.
fn end_by(signal: libc::c_int) {
    // SAFETY: calls with numbers, which a handler may make. The signal is blocked until the handler
    // returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::kill(libc::getpid(), signal);
    }
}

fn handle(signal: libc::c_int, handler: usize, flags: libc::c_int) {
    // SAFETY: the struct is zeroed and then filled; the handlers do nothing but touch atomics. No
    // SA_RESTART: a read that waits for a pipe must return, so that the request is noticed.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

/// Install a handler, unless the signal was ignored when we were started: then it stays ignored,
/// for us and for the command (SIGHUP below nohup(1), SIGINT in the background of a script).
fn handle_unless_ignored(signal: libc::c_int, handler: usize, flags: libc::c_int) {
    if !inherited::was_ignored(signal) {
        handle(signal, handler, flags);
    }
}

/// Let SIGINT and SIGTERM cancel the work.
pub(crate) fn cancel_on_signal(cancel: &Cancel) {
    let _ = CANCEL.set(cancel.flag());
    handle_unless_ignored(libc::SIGINT, request_cancel as *const () as usize, 0);
    handle_unless_ignored(libc::SIGTERM, request_cancel as *const () as usize, 0);
}

/// The same for work that waits in reads of its input: a signal may come after the flag was read and
/// before the read begins, so each read after it is interrupted again.
pub(crate) fn cancel_reads_on_signal(cancel: &Cancel) {
    REPEATED.store(true, Ordering::Relaxed);
    cancel_on_signal(cancel);
}

/// Count signals instead of dying of them; the recorder decides what to do.
pub(crate) fn count_signals() {
    // SAFETY: takes nothing.
    COUNTING.store(getpid().as_raw_nonzero().get(), Ordering::Relaxed);
    for signal in HEARD {
        handle_unless_ignored(signal, count as *const () as usize, libc::SA_SIGINFO);
    }
}

/// Raise SIGALRM every second, so that a read that waits for a quiet program returns and the import
/// can make a checkpoint. (A signal aborts the kernel's verification of a BPF program, so not while
/// those are loaded.)
pub(crate) fn ring_alarms() {
    ring_every(libc::timeval { tv_sec: 1, tv_usec: 0 });
}

fn ring_every(interval: libc::timeval) {
    handle(libc::SIGALRM, ignore as *const () as usize, 0);
    // SAFETY: the value outlives the call; the handler is set.
    unsafe {
        libc::setitimer(libc::ITIMER_REAL, &libc::itimerval { it_interval: interval, it_value: interval }, std::ptr::null_mut());
    }
}

/// Run a handler at this signal; calls that it interrupts continue.
pub(crate) fn interrupt_by(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    handle(signal, handler as *const () as usize, libc::SA_RESTART);
}

/// Let a wait end when the size of the terminal changes.
pub(crate) fn notice_resizes() {
    handle(libc::SIGWINCH, ignore as *const () as usize, 0);
}

/// Let a write beyond the limit of file sizes fail instead of killing the process. Uses a handler,
/// because the command would inherit "ignored".
pub(crate) fn survive_file_size_limit() {
    handle_unless_ignored(libc::SIGXFSZ, ignore as *const () as usize, 0);
}

extern "C" fn ignore(_signal: libc::c_int) {}

/// Number of signals counted so far, by signal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts([u32; COUNT]);

impl Default for Counts {
    fn default() -> Self {
        Counts([0; COUNT])
    }
}

impl Counts {
    /// The signals received since then.
    pub(crate) fn since(&self, seen: &Counts) -> impl Iterator<Item = libc::c_int> {
        HEARD.into_iter().filter(|signal| {
            let number = signal.cast_unsigned() as usize;
            self.0[number] != seen.0[number]
        })
    }
}

/// The signals that asked a program to end, of those counted so far but not in `seen`.
pub(crate) fn end_requests(seen: &Counts) -> Vec<libc::c_int> {
    counts().since(seen).filter(|signal| requests_an_end(*signal)).collect()
}

/// Whether the signal asks a program to end.
pub(crate) fn requests_an_end(signal: libc::c_int) -> bool {
    matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT)
}

pub(crate) fn counts() -> Counts {
    Counts(std::array::from_fn(|number| RECEIVED[number].load(Ordering::Relaxed)))
}

/// The process that sent the last signal of this kind.
pub(crate) fn last_sender(signal: libc::c_int) -> libc::pid_t {
    SENDER[signal.cast_unsigned() as usize].load(Ordering::Relaxed)
}

/// Send a signal to a process of ours.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: kill has no memory preconditions; the process is our own descendant.
        unsafe { libc::kill(pid, signal) };
    }
}

/// End this process with the signal that ended the command, without a core dump of its own.
pub(crate) fn die_by(signal: libc::c_int) {
    // SAFETY: takes numbers, and structs that outlive the calls.
    unsafe {
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut());
        libc::raise(signal);
    }
}
