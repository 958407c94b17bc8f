//! A copy of this process that may outlive it, connected by a pipe, and that no signal ends.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid},
};

/// A running copy. Dropping it closes the pipe and waits for the copy to end.
#[derive(Debug)]
pub struct Companion {
    pid: libc::pid_t,
    line: Option<File>,
}

impl Companion {
    /// Fork. In the copy, only the calling thread continues: it runs `body` with the reading end of
    /// the pipe and with every signal blocked, and ends when `body` returns.
    ///
    /// # Safety
    /// `body` may do only what is allowed between fork and exec: if other threads run, nothing but
    /// system calls.
    ///
    /// # Errors
    /// No pipe or process can be created.
    pub unsafe fn start(body: impl FnOnce(RawFd)) -> io::Result<Companion> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for both descriptors, which are owned from then on; the sets of signals live through the calls.
        unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return Err(io::Error::last_os_error());
            }
            let (orders, line) = (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]));
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            // Signals are blocked before the fork: the copy inherits handlers that are not meant
            // for it.
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
            let made = match libc::fork() {
                0 => {
                    body(orders.as_raw_fd());
                    libc::_exit(0)
                }
                -1 => Err(io::Error::last_os_error()),
                pid => Ok(Companion { pid, line: Some(line.into()) }),
            };
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
            made
        }
    }

    /// Process id of the copy.
    #[must_use]
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Send a byte. Returns false if the copy has ended.
    #[must_use]
    pub fn send(&self, order: u8) -> bool {
        self.line.as_ref().is_some_and(|mut line| line.write_all(&[order]).is_ok())
    }

    /// Whether the copy still runs.
    pub(crate) fn is_alive(&self) -> bool {
        // Waits for nothing, and reaps nothing.
        let flags = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Pid::from_raw(self.pid).is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), flags), Ok(None)))
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.line = None;
        // Our own child, which is reaped nowhere else.
        while matches!(waitpid(Pid::from_raw(self.pid), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}
