//! Calls that may never return, for example on a file system whose server hangs: another process
//! makes them, and is waited for only for a limited time.

use std::{
    io,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Makes a copy of this process, in which this returns `None`.
pub(crate) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: this process has one thread, so the copy may do anything.
    match unsafe { libc::fork() } {
        ..0 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// Ends this process without the exit handlers of its parent.
pub(crate) fn leave(status: i32) -> ! {
    // SAFETY: ends this process.
    unsafe { libc::_exit(status) }
}

/// Run `work` in a copy of this process. Its changes in memory stay there.
///
/// # Errors
///
/// That of `work`; `TimedOut` if it did not end in time.
pub(crate) fn guarded(patience: Duration, work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match fork()? {
        None => {
            let errno = match work() {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
            };
            leave(errno.clamp(0, 255))
        }
        Some(child) => wait(child, patience),
    }
}

fn wait(pid: Pid, patience: Duration) -> io::Result<()> {
    let started = Instant::now();
    loop {
        let Some((_, status)) = waitpid(Some(pid), WaitOptions::NOHANG)? else {
            if started.elapsed() > patience {
                kill_process(pid, Signal::KILL)?;
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep((started.elapsed() / 4).clamp(Duration::from_micros(50), Duration::from_millis(20)));
            continue;
        };
        return match status.exit_status() {
            Some(0) => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno.unwrap_or(libc::EIO))),
        };
    }
}
