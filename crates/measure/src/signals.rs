//! Signals that are waited for instead of handled: those that ask us to end, and SIGCHLD.

use std::{io, mem, ptr, time::Duration};

use crate::{Attempt, MeasureError};

/// Signals that ask us to end.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Signals that are blocked while this exists.
pub(crate) struct Signals {
    waited_for: libc::sigset_t,
    /// The earlier mask, which the command gets.
    before: libc::sigset_t,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The time is over.
    Time,
    /// A child may have ended.
    Child,
    /// A signal that asks us to end.
    Signal(libc::c_int),
}

impl Signals {
    /// Block the signals. Those that are ignored, such as SIGHUP under nohup, stay ignored.
    pub(crate) fn block() -> Result<Self, MeasureError> {
        // SAFETY: sets and actions are zeroed and then filled by the calls, through which they
        // live.
        unsafe {
            let mut waited_for: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut waited_for);
            libc::sigaddset(&raw mut waited_for, libc::SIGCHLD);
            // If it were ignored, the kernel would reap the command without us.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            for signal in ENDING {
                let mut action: libc::sigaction = mem::zeroed();
                libc::sigaction(signal, ptr::null(), &raw mut action);
                if action.sa_sigaction != libc::SIG_IGN {
                    libc::sigaddset(&raw mut waited_for, signal);
                }
            }
            let mut before: libc::sigset_t = mem::zeroed();
            match libc::sigprocmask(libc::SIG_BLOCK, &raw const waited_for, &raw mut before) {
                0 => Ok(Signals { waited_for, before }),
                _ => Err(MeasureError::System(Attempt::BlockSignals, io::Error::last_os_error())),
            }
        }
    }

    /// Restore the earlier mask. Safe between fork and exec.
    pub(crate) fn unblock(&self) {
        // SAFETY: the set lives through the call.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut()) };
    }

    /// Wait this long for one of the signals. `None`: forever.
    pub(crate) fn wait(&self, time: Option<Duration>) -> Woken {
        let time = time.map(|time| libc::timespec {
            tv_sec: time.as_secs().min(i64::MAX as u64) as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        });
        let limit = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the set and the time live through the call; no details of the signal are
        // requested.
        match unsafe { libc::sigtimedwait(&raw const self.waited_for, ptr::null_mut(), limit) } {
            libc::SIGCHLD => Woken::Child,
            signal if signal > 0 => Woken::Signal(signal),
            _ => Woken::Time,
        }
    }
}
