//! Calls that may never return, for example on a file system whose server hangs: another process
//! makes them, and is waited for only for a limited time.

use std::{
    io,
    time::{Duration, Instant},
};

/// Run `work` in a copy of this process. Its changes in memory stay there.
///
/// # Errors
///
/// That of `work`; `TimedOut` if it did not end in time.
pub(crate) fn guarded(patience: Duration, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: this process has one thread, so the copy may do anything. It leaves without running
    // exit handlers.
    let pid = unsafe { libc::fork() };
    match pid {
        ..0 => Err(io::Error::last_os_error()),
        0 => {
            let errno = match work() {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            // SAFETY: ends this process.
            unsafe { libc::_exit(errno.clamp(0, 255)) }
        }
        _ => wait(pid, patience),
    }
}

fn wait(pid: libc::pid_t, patience: Duration) -> io::Result<()> {
    let started = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: our own child; the status lives through the call.
        match unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } {
            0 if started.elapsed() > patience => {
                // SAFETY: our own child, not waited for yet.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                return Err(io::ErrorKind::TimedOut.into());
            }
            0 => std::thread::sleep((started.elapsed() / 4).clamp(Duration::from_micros(50), Duration::from_millis(20))),
            ..0 => return Err(io::Error::last_os_error()),
            _ if libc::WIFEXITED(status) => {
                return match libc::WEXITSTATUS(status) {
                    0 => Ok(()),
                    errno => Err(io::Error::from_raw_os_error(errno)),
                };
            }
            _ => return Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }
}
