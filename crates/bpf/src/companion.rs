//! A process alongside this one that may outlive it: a copy of it, joined by a pipe, that no signal ends.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

/// One that runs. When this is dropped, the pipe to it is closed, and its end is waited for.
#[derive(Debug)]
pub struct Companion {
    pid: libc::pid_t,
    line: Option<File>,
}

impl Companion {
    /// Make the copy, in which only the calling thread goes on. It runs `body` with the reading end of the pipe, every signal blocked, and ends
    /// when that returns.
    ///
    /// # Safety
    /// `body` may do only what may be done between fork and exec: where other threads run, nothing but system calls.
    ///
    /// # Errors
    /// Where no pipe or process can be made.
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
            // Before there is a copy: it has the handlers of this process, which are not meant for it.
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

    /// Its number.
    #[must_use]
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Send it a byte; false: it is gone.
    #[must_use]
    pub fn send(&self, order: u8) -> bool {
        self.line.as_ref().is_some_and(|mut line| line.write_all(&[order]).is_ok())
    }

    /// Whether it is there.
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: waits for nothing, and reaps nothing.
        unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid.cast_unsigned(), &raw mut found, flags) == 0 && found.si_pid() == 0
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.line = None;
        // SAFETY: the process is our own child, and is reaped nowhere else.
        while unsafe { libc::waitpid(self.pid, ptr::null_mut(), 0) } == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
}
