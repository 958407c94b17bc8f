//! Executes a process instruction by instruction (ptrace), and records each one and the memory that it touches.
//!
//! At each stop of a thread, the registers say which instruction comes next, and what it is about to touch. It has been executed when the thread
//! stops for the next one; a signal before that says that it was not.
//!
//! States of a thread: *new* (its first stop has not come) -> *steps* -> *gone*. A thread that is stopped by a signal of its own (SIGSTOP)
//! is listened to until it goes on.

mod operands;
mod recorder;
mod tracee;

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
};

use rustc_hash::FxHashMap;

pub(crate) use operands::has_repeat;
use recorder::Recorder;
pub use recorder::Stepped;
use sysdock_itrace_file::Writer;
use tracee::{Stop, Tracee};

/// What ends the recording of a process that goes on.
#[derive(Debug)]
pub enum End {
    /// All its threads have ended; the status of the first process, as `wait` gives it.
    Exited(i32),
    /// As many instructions as were requested.
    Limit,
    /// The caller requested it.
    Cancelled,
    /// The event file cannot be written; what was written before is there.
    Failed(io::Error),
}

/// Processes that are stepped through.
pub struct Stepper {
    threads: FxHashMap<i32, Tracee>,
    leader: i32,
    recorder: Recorder,
}

impl Stepper {
    /// Take hold of all threads of a process. They stop before their next instruction.
    ///
    /// # Errors
    /// As ptrace gives them: no such process, no permission, or somebody else traces it (EPERM).
    pub fn seize(pid: i32, writer: Writer) -> io::Result<Stepper> {
        let mut stepper = Stepper { threads: FxHashMap::default(), leader: pid, recorder: Recorder::new(writer) };
        // Threads may be made while they are listed.
        loop {
            let mut found = false;
            for tid in tracee::threads(pid)? {
                if stepper.threads.contains_key(&tid) {
                    continue;
                }
                match Tracee::seize(tid, pid) {
                    Ok(thread) => {
                        stepper.threads.insert(tid, thread);
                        found = true;
                    }
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) && tid != pid => {}
                    Err(error) => return Err(error),
                }
            }
            if !found {
                break;
            }
        }
        Ok(stepper)
    }

    /// Stop all threads at once, so that they are stepped from where they are. A process that waits before its first instruction needs none of it.
    pub fn interrupt(&self) {
        for thread in self.threads.values() {
            thread.interrupt();
        }
    }

    /// Step until the process ends, `limit` instructions were executed, or `cancel` is set; then let it go.
    ///
    /// Whatever ends it, the process goes on.
    pub fn run(mut self, limit: u64, cancel: &AtomicBool, mut report: impl FnMut(u64)) -> (Stepped, End) {
        let mut status = None;
        let end = loop {
            if self.threads.is_empty() {
                break End::Exited(status.unwrap_or(0));
            }
            if cancel.load(Ordering::Relaxed) {
                break End::Cancelled;
            }
            if self.recorder.steps() >= limit {
                break End::Limit;
            }
            let (tid, stop) = match tracee::wait() {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error) => break End::Failed(error),
            };
            if let Stop::Exited(how) = stop {
                if tid == self.leader {
                    status = Some(how);
                }
                self.recorder.ended(tid);
                self.threads.remove(&tid);
                continue;
            }
            if let Err(error) = self.stopped(tid, stop) {
                break End::Failed(error);
            }
            if self.recorder.steps().is_multiple_of(16384) {
                report(self.recorder.steps());
            }
        };
        self.let_go();
        let (stepped, failure) = self.recorder.finish();
        (stepped, failure.map_or(end, End::Failed))
    }

    fn stopped(&mut self, tid: i32, stop: Stop) -> io::Result<()> {
        let thread = self.threads.entry(tid).or_insert_with(|| Tracee::inherited(tid));
        let mut signal = 0;
        match stop {
            Stop::Step => {
                if let Some(registers) = thread.registers() {
                    self.recorder.completed(thread, &registers)?;
                    self.recorder.next(thread, &registers);
                }
            }
            Stop::Signal(number) => {
                if let Some(registers) = thread.registers() {
                    self.recorder.signalled(thread, &registers, number)?;
                }
                signal = number;
            }
            Stop::Group => return thread.listen(),
            Stop::Executed => self.recorder.executed(thread),
            Stop::Event => {}
            Stop::Exited(_) => {}
        }
        thread.step(signal)
    }

    /// Threads go on as if nothing had been.
    fn let_go(&mut self) {
        for thread in self.threads.values_mut() {
            thread.let_go();
        }
        self.threads.clear();
    }
}
