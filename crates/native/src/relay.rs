//! Passes signals on to the command: those that were sent to the recorder alone, but not those that
//! the command received too.
//!
//! A terminal, `kill -- -GROUP` and timeout(1) send a signal to a whole process group, which
//! includes the command. To detect this, a third process of the group, the *witness*, keeps every
//! signal pending and does nothing else.

use std::{
    fs, io,
    os::fd::RawFd,
    ptr, thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, getppid};
use sysdock_bpf::Companion;

use crate::{privileges, signals};

/// `sysdock run` passes on the signals that it receives: a signal to the whole group arrives a
/// second time within this time.
const SECOND_COPY: Duration = Duration::from_secs(1);

/// Orders to the witness. If the pipe is closed without the last one, this process was killed.
const FORGET: u8 = b'f';
const END: u8 = b'e';

/// A signal received since the last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: libc::c_int,
    /// Whether the command has received it already, if it is in our group.
    pub(crate) by_group: bool,
}

/// Whether one of these signals is a SIGINT for which `command` has no handler.
pub(crate) fn has_unhandled_sigint(received: &[Received], command: u32) -> bool {
    let caught = || status_mask(command, "SigCgt").is_some_and(|caught| caught & bit(libc::SIGINT) != 0);
    received.iter().any(|one| one.signal == libc::SIGINT) && !caught()
}

/// Receives the signals to this process.
pub(crate) struct Relay {
    /// Without a witness, each signal counts as sent to us alone, except SIGINT and SIGQUIT.
    witness: Option<Witness>,
    seen: signals::Counts,
    /// When a signal to the group was last seen.
    by_group: [Option<Instant>; signals::COUNT],
}

impl Relay {
    /// Receive signals from here on. Must be called before other threads run and before a command
    /// is started. `if_killed` runs in another process if this one is killed.
    pub(crate) fn start(if_killed: impl FnOnce()) -> Relay {
        signals::count_signals();
        Relay { witness: Witness::start(if_killed).ok(), seen: signals::Counts::default(), by_group: [None; signals::COUNT] }
    }

    /// The process that represents the group.
    pub(crate) fn witness(&self) -> Option<u32> {
        self.witness.as_ref().map(|witness| witness.0.pid().cast_unsigned())
    }

    /// The signals received since the last query.
    pub(crate) fn received(&mut self) -> Vec<Received> {
        let now = signals::counts();
        let new: Vec<libc::c_int> = now.since(&self.seen).collect();
        if new.is_empty() {
            return Vec::new();
        }
        self.seen = now;
        // The kernel sends to one process of a group after another.
        thread::sleep(Duration::from_millis(1));
        let pending = self.witness.as_ref().and_then(Witness::pending);
        let received = new.into_iter().filter_map(|signal| self.judge(signal, pending)).collect();
        if let Some(witness) = self.witness.as_ref().filter(|_| pending.is_some_and(|pending| pending != 0)) {
            witness.forget();
        }
        received
    }

    fn judge(&mut self, signal: libc::c_int, pending: Option<u64>) -> Option<Received> {
        let from_terminal = matches!(signal, libc::SIGINT | libc::SIGQUIT);
        let by_group = pending.map_or(from_terminal, |pending| pending & bit(signal) != 0);
        let last = &mut self.by_group[signal.cast_unsigned() as usize];
        if by_group {
            *last = Some(Instant::now());
        } else if signals::last_sender(signal) == parent() && last.is_some_and(|at| at.elapsed() < SECOND_COPY) {
            return None;
        }
        Some(Received { signal, by_group })
    }
}

fn parent() -> libc::pid_t {
    Pid::as_raw(getppid())
}

/// A process of our group that every signal to the group reaches. It ends when the pipe to it is
/// closed, so no right to kill it is needed.
struct Witness(Companion);

impl Witness {
    fn start(if_killed: impl FnOnce()) -> io::Result<Witness> {
        // SAFETY: no other threads run yet.
        unsafe { Companion::start(|orders| keep_signals(orders, if_killed)).map(Witness) }
    }

    /// One bit for each signal that reached it. `None`: it is gone, or /proc cannot be read.
    fn pending(&self) -> Option<u64> {
        status_mask(self.0.pid().cast_unsigned(), "ShdPnd")
    }

    /// Let it discard its pending signals.
    fn forget(&self) {
        let was_sent = self.0.send(FORGET);
        for _ in 0..100 {
            if !was_sent || self.pending().is_none_or(|pending| pending == 0) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.0.send(END);
    }
}

/// The main function of the witness.
///
/// # Safety
/// Only in a process that was just forked.
unsafe fn keep_signals(orders: RawFd, if_killed: impl FnOnce()) {
    // SAFETY: system calls with numbers, and with buffers that outlive them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        // Ignored signals are never pending.
        for signal in signals::HEARD {
            libc::signal(signal, libc::SIG_DFL);
        }
        libc::prctl(libc::PR_SET_NAME, c"sysdock-witness".as_ptr());
        // If the command has to be ended, that is all it needs.
        let _ = privileges::keep_signals_only();
        // Readers of other pipes wait until there is no writer any more.
        libc::dup2(orders, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut order = [0u8; 1];
        while libc::read(0, order.as_mut_ptr().cast(), 1) == 1 && order[0] == FORGET {
            while libc::sigtimedwait(&raw const all, ptr::null_mut(), &raw const at_once) > 0 {}
        }
        if order[0] != END {
            if_killed();
        }
    }
}

/// A set of signals in /proc/PID/status.
fn status_mask(pid: u32, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}
