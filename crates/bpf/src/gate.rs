//! Starts a command that waits before its first instruction, so that all of it is recorded.
//!
//! States: *waiting* (the process exists, with the user's rights; its pid is known) -> *released*
//! (it becomes the command). If the gate is dropped before, the process ends.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{fd::AsRawFd, unix::process::CommandExt},
    process::{Child, Command},
    thread,
};

/// A command that waits.
#[derive(Debug)]
pub struct Gate {
    pid: u32,
    // Both are `Some` until the command is released, or the gate is dropped.
    go: Option<File>,
    start: Option<thread::JoinHandle<io::Result<Child>>>,
}

impl Gate {
    /// Fork a process that calls `prepare` and then waits. `prepare` may do only what is allowed
    /// between fork and exec.
    ///
    /// # Errors
    /// No process or pipe can be created.
    pub fn close(mut command: Command, prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static) -> io::Result<Gate> {
        let (mut pid_reader, pid_writer) = pipe()?;
        let (wait, go) = pipe()?;
        let mut prepare = prepare;
        let (pid_fd, wait_fd, go_fd) = (pid_writer.as_raw_fd(), wait.as_raw_fd(), go.as_raw_fd());
        // SAFETY: between fork and exec, only calls that are allowed there: getpid, write, close,
        // read.
        unsafe {
            command.pre_exec(move || {
                // With its own copy of the writing end, the process would wait for itself.
                libc::close(go_fd);
                // Runs before the process is recorded. Only this user could end the process then,
                // and that ends the recording.
                prepare()?;
                let pid = libc::getpid().to_ne_bytes();
                if libc::write(pid_fd, pid.as_ptr().cast(), pid.len()) != 4 {
                    return Err(io::Error::last_os_error());
                }
                let mut word = [0u8; 1];
                if libc::read(wait_fd, word.as_mut_ptr().cast(), 1) == 1 {
                    return Ok(());
                }
                // An error would be written to a parent that may have ended, and then the standard
                // library aborts.
                libc::_exit(1)
            });
        }
        // `spawn` returns when the command runs, so not before it is released.
        let start = thread::spawn(move || {
            let started = command.spawn();
            drop((pid_writer, wait));
            started
        });
        let mut pid = [0; 4];
        match pid_reader.read_exact(&mut pid) {
            Ok(()) => Ok(Gate { pid: u32::from_ne_bytes(pid), go: Some(go), start: Some(start) }),
            Err(error) => Err(start.join().ok().and_then(Result::err).unwrap_or(error)),
        }
    }

    /// Id of the process, which becomes the command.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Let the command run. If it was killed while it waited, the status of the child shows it.
    ///
    /// # Errors
    /// The command cannot be executed.
    pub fn open(mut self) -> io::Result<Child> {
        let (go, start) = (self.go.take(), self.start.take());
        let (mut go, start) = go.zip(start).expect("both are there until now");
        match go.write_all(&[1]) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
        start.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }
}

impl Drop for Gate {
    /// End the waiting process. A thread reaps it, because a stopped process ends later.
    fn drop(&mut self) {
        drop(self.go.take());
        if let Some(start) = self.start.take() {
            thread::spawn(move || start.join().map(|started| started.map(|mut child| child.wait())));
        }
    }
}

/// Both ends of a pipe, the reading end first. No program inherits them.
fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((reader.into(), writer.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_waits_until_it_is_let_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let mark = folder.path().join("mark");
        let mut command = Command::new("touch");
        command.arg(&mark);
        let gate = Gate::close(command, || Ok(())).expect("a process");
        thread::sleep(std::time::Duration::from_millis(50));
        assert!(!mark.exists());
        let pid = gate.pid();
        let mut child = gate.open().expect("touch runs");
        assert_eq!(child.id(), pid);
        assert!(child.wait().expect("it ends").success());
        assert!(mark.exists());
    }

    #[test]
    fn a_command_that_is_killed_while_it_waits_was_killed() {
        let gate = Gate::close(Command::new("true"), || Ok(())).expect("a process");
        // SAFETY: takes numbers only; the process is our own child.
        assert_eq!(unsafe { libc::kill(gate.pid().cast_signed(), libc::SIGKILL) }, 0);
        thread::sleep(std::time::Duration::from_millis(50));
        let status = gate.open().expect("a child").wait().expect("it ended");
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }

    #[test]
    fn a_command_that_cannot_run_says_so() {
        let gate = Gate::close(Command::new("/nowhere/at/all"), || Ok(())).expect("a process");
        assert_eq!(gate.open().expect_err("no such program").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_gate_that_is_never_opened_leaves_nothing() {
        let gate = Gate::close(Command::new("true"), || Ok(())).expect("a process");
        let pid = gate.pid();
        drop(gate);
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}
