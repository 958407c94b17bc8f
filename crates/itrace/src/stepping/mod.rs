//! Executes a process instruction by instruction (ptrace), and records each one and the memory that
//! it accesses.
//!
//! At each stop of a thread, the registers show the next instruction, and the memory that it will
//! access. It has been executed when the thread stops at the next one, unless a signal came before
//! that.
//!
//! States of a thread: *new* (its first stop is pending) -> *stepping* -> *ended*. A thread that is
//! stopped by a signal of its own (SIGSTOP) stays stopped until it is continued.

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

/// Why recording of a process ended.
#[derive(Debug)]
pub enum End {
    /// All its threads have ended; the status of the first process, as from `wait`.
    Exited(i32),
    /// The requested number of instructions was executed.
    Limit,
    /// The caller cancelled it.
    Cancelled,
    /// The event file cannot be written; events that were written before are in it.
    Failed(io::Error),
}

/// Processes that are executed step by step.
pub struct Stepper {
    threads: FxHashMap<i32, Tracee>,
    leader: i32,
    recorder: Recorder,
}

impl Stepper {
    /// Attach to all threads of a process. They stop before their next instruction.
    ///
    /// # Errors
    /// Those of ptrace: no such process, no permission, or another tracer (EPERM).
    pub fn seize(pid: i32, writer: Writer) -> io::Result<Stepper> {
        let mut stepper = Stepper { threads: FxHashMap::default(), leader: pid, recorder: Recorder::new(writer) };
        // Threads may be created while they are listed.
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

    /// Stop all threads at once, so that they are stepped from where they are. Not needed for a
    /// process that waits before its first instruction.
    pub fn interrupt(&self) {
        for thread in self.threads.values() {
            thread.interrupt();
        }
    }

    /// Step until the process ends, `limit` instructions were executed, or `cancel` is set; then
    /// detach.
    ///
    /// Whatever ends it, the process continues.
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

    /// Detach from all threads.
    fn let_go(&mut self) {
        for thread in self.threads.values_mut() {
            thread.let_go();
        }
        self.threads.clear();
    }
}
