//! A thread under ptrace.

use std::{fs, io, ptr};

use libc::{c_int, c_void, user_regs_struct};

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has executed an instruction.
    Step,
    /// It is about to get a signal.
    Signal(c_int),
    /// A signal stopped its process, as in a shell.
    Group,
    /// It has executed another program.
    Executed,
    /// It begins, has created another one, or was interrupted by us.
    Event,
    /// It has ended; the status as from `wait`.
    Exited(c_int),
}

/// A traced thread.
#[derive(Debug)]
pub(crate) struct Tracee {
    pub(crate) tid: i32,
    pub(crate) tgid: i32,
    running: bool,
}

const OPTIONS: c_int =
    libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_TRACEFORK | libc::PTRACE_O_TRACEVFORK | libc::PTRACE_O_TRACEEXEC;
/// `si_code` of a step, and of the report after a system call that was stepped over.
const STEPS: [c_int; 2] = [libc::TRAP_TRACE, libc::TRAP_BRKPT];

fn ptrace_request(request: libc::c_uint, tid: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: no request in this file writes to memory of this process, except those with a pointer
    // to what they fill.
    let result = unsafe { libc::ptrace(request, tid, address as *mut c_void, data as *mut c_void) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Ids of the threads of a process.
pub(crate) fn threads(pid: i32) -> io::Result<Vec<i32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound { io::Error::from_raw_os_error(libc::ESRCH) } else { error }
    })?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect())
}

/// The next stop of any thread. `None`: a signal interrupted the wait.
pub(crate) fn wait() -> io::Result<Option<(i32, Stop)>> {
    let mut status = 0;
    // SAFETY: fills `status`.
    let tid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if tid < 0 {
        let error = io::Error::last_os_error();
        return if error.raw_os_error() == Some(libc::EINTR) { Ok(None) } else { Err(error) };
    }
    if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
        return Ok(Some((tid, Stop::Exited(status))));
    }
    let signal = libc::WSTOPSIG(status);
    let stop = match status >> 16 {
        0 if signal == libc::SIGTRAP && is_step(tid) => Stop::Step,
        0 => Stop::Signal(signal),
        libc::PTRACE_EVENT_EXEC => Stop::Executed,
        libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => Stop::Group,
        _ => Stop::Event,
    };
    Ok(Some((tid, stop)))
}

/// Whether a SIGTRAP is ours, rather than caused by the program (`int3`, `kill`).
fn is_step(tid: i32) -> bool {
    // SAFETY: all zeros are a valid `siginfo_t`, and ptrace fills it.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let filled = ptrace_request(libc::PTRACE_GETSIGINFO, tid, 0, ptr::from_mut(&mut info) as usize);
    // After an exec, and at the first instruction of a handler, the kernel reports the step as
    // SIGTRAP itself.
    filled.is_err() || STEPS.contains(&info.si_code) || info.si_code == libc::SIGTRAP
}

impl Tracee {
    pub(crate) fn seize(tid: i32, tgid: i32) -> io::Result<Tracee> {
        ptrace_request(libc::PTRACE_SEIZE, tid, 0, OPTIONS as usize)?;
        Ok(Tracee { tid, tgid, running: true })
    }

    /// A thread or process that a traced one has created.
    pub(crate) fn inherited(tid: i32) -> Tracee {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
        let tgid = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok()).unwrap_or(tid);
        Tracee { tid, tgid, running: false }
    }

    pub(crate) fn interrupt(&self) {
        // A thread that has ended reports it by itself.
        let _ = ptrace_request(libc::PTRACE_INTERRUPT, self.tid, 0, 0);
    }

    /// `None`: the thread has ended, as its next status reports.
    pub(crate) fn registers(&mut self) -> Option<user_regs_struct> {
        self.running = false;
        // SAFETY: all zeros are valid registers, and ptrace fills them.
        let mut registers: user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace_request(libc::PTRACE_GETREGS, self.tid, 0, ptr::from_mut(&mut registers) as usize).ok().map(|()| registers)
    }

    /// Execute one instruction. If `signal` is not 0, it is delivered first.
    pub(crate) fn step(&mut self, signal: c_int) -> io::Result<()> {
        self.running = true;
        gone_is_fine(ptrace_request(libc::PTRACE_SINGLESTEP, self.tid, 0, signal as usize))
    }

    /// Leave it stopped, until a signal continues it.
    pub(crate) fn listen(&mut self) -> io::Result<()> {
        self.running = true;
        gone_is_fine(ptrace_request(libc::PTRACE_LISTEN, self.tid, 0, 0))
    }

    /// Detach. A pending signal is delivered, except the trap of a step, which would end the
    /// thread.
    pub(crate) fn let_go(&mut self) {
        let mut signal = 0;
        if self.running {
            self.interrupt();
        }
        while self.running {
            let mut status = 0;
            // SAFETY: fills `status`.
            if unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL) } < 0 {
                match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => continue,
                    _ => return,
                }
            }
            if !libc::WIFSTOPPED(status) {
                return;
            }
            let number = libc::WSTOPSIG(status);
            let is_signal = status >> 16 == 0 && !(number == libc::SIGTRAP && is_step(self.tid));
            signal = if is_signal { number } else { 0 };
            // Our own interrupt may come before the trap of the last step, which is then still
            // pending.
            self.running = self.has_pending_trap() && ptrace_request(libc::PTRACE_CONT, self.tid, 0, signal as usize).is_ok();
        }
        let _ = ptrace_request(libc::PTRACE_DETACH, self.tid, 0, signal as usize);
    }

    fn has_pending_trap(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        let pending = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigPnd:")?.trim(), 16).ok());
        pending.is_some_and(|bits| bits >> (libc::SIGTRAP - 1) & 1 == 1)
    }

    /// Read memory of the process. Returns the number of bytes that exist.
    pub(crate) fn read(&self, address: u64, out: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        // A page at a time: the second one may not exist.
        let first = (out.len()).min(4096 - (address as usize & 4095));
        let remote = [
            libc::iovec { iov_base: address as *mut c_void, iov_len: first },
            libc::iovec { iov_base: (address as usize + first) as *mut c_void, iov_len: out.len() - first },
        ];
        // SAFETY: `local` is the memory of `out`.
        let read = unsafe { libc::process_vm_readv(self.tid, &raw const local, 1, remote.as_ptr(), 2, 0) };
        usize::try_from(read).unwrap_or(0)
    }
}

fn gone_is_fine(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        other => other,
    }
}
