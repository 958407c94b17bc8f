//! The processors: run queues, and how their time was spent.

use crate::{error::Fault, kernel::Kernel};

/// A processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Processor {
    pub cpu: usize,
    /// Pid of the running task; 0: the processor was idle.
    pub current_pid: Option<u32>,
    /// Number of tasks that ran or were ready to.
    pub ready: u64,
    /// When its run queue was last used, by the clock of the scheduler.
    pub clock_ns: u64,
    /// Time by kind, in the order of the kernel's `cpu_usage_stat`: name and duration [ns].
    pub times: Vec<(String, u64)>,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

impl Processor {
    /// Time of a kind, for example `CPUTIME_USER` [ns].
    #[must_use]
    pub fn time(&self, kind: &str) -> Option<u64> {
        self.times.iter().find(|(name, _)| name == kind).map(|(_, ns)| *ns)
    }
}

impl Kernel {
    /// Address of the task that a processor ran.
    pub(crate) fn current(&self, cpu: usize) -> Result<u64, Fault> {
        self.member(self.per_cpu(self.symbol("runqueues")?, cpu)?, "rq", "curr")
    }

    /// How far the clock of a processor's run queue is ahead of the one for times of tasks, because
    /// of interrupts and of the host.
    pub(crate) fn task_clock_lag(&self, cpu: usize) -> Result<u64, Fault> {
        let queue = self.per_cpu(self.symbol("runqueues")?, cpu)?;
        Ok(self.member(queue, "rq", "clock")?.saturating_sub(self.member(queue, "rq", "clock_task")?))
    }

    /// The processors that this kernel used.
    ///
    /// # Errors
    /// A [`Fault`]: their run queues are unknown.
    pub fn processors(&self) -> Result<Vec<Processor>, Fault> {
        let (queues, ready) = (self.symbol("runqueues")?, self.field("rq", "nr_running")?);
        let (current, clock) = (self.field("rq", "curr")?, self.field("rq", "clock")?);
        let pid = self.field("task_struct", "pid")?;
        let (times, kinds) = (self.symbol("kernel_cpustat")?, self.types.enumerators("cpu_usage_stat"));
        let sleeps = self.symbols.address("tick_cpu_sched").zip(self.field("tick_sched", "idle_sleeptime").ok());
        let mut found = Vec::new();
        for cpu in 0..self.cpus() {
            let mut processor = Processor { cpu, ..Processor::default() };
            let read = (|| {
                let queue = self.per_cpu(queues, cpu)?;
                // An idle task is in no list.
                processor.current_pid = Some(self.number(self.number(queue, current)?, pid)? as u32);
                processor.ready = self.number(queue, ready)?;
                processor.clock_ns = self.number(queue, clock)?;
                let times = self.per_cpu(times, cpu)?;
                for (name, place) in kinds.iter().filter(|(name, _)| name != "NR_STATS") {
                    let ns = self.memory.u64(times.wrapping_add(8 * u64::from(*place)))?;
                    processor.times.push((name.clone(), ns));
                }
                // A processor that sleeps without ticks counts its idle time elsewhere, which
                // /proc/stat shows.
                if let Some((place, field)) = sleeps {
                    let slept = self.number(self.per_cpu(place, cpu)?, field)?;
                    if let Some((_, idle)) = processor.times.iter_mut().find(|(name, _)| name == "CPUTIME_IDLE" && slept > 0) {
                        *idle = slept;
                    }
                }
                Ok(())
            })();
            processor.fault = read.err();
            // A processor that was never present has never run anything.
            if processor.fault.is_none() && processor.clock_ns == 0 {
                continue;
            }
            found.push(processor);
        }
        Ok(found)
    }
}
