//! A run, and everything that is known about it.

use std::{collections::BTreeMap, os::unix::process::ExitStatusExt, sync::atomic::Ordering::Relaxed};

use serde::Serialize;
use sysdock_table::{Fact, facts::measure as facts};

use crate::{
    Command, DeviceUse, MachineUse, MeasureError, clock,
    devices::Device,
    launch::Launched,
    machine::Reading,
    missing::{Missing, unreadable},
    signals::Signals,
    taskstats::{TaskStats, Totals},
    usage::{self, Scheduled, Transfers, Usage},
    waiting::{self, Ended, Urgency},
};

/// What a run used: all of its processes that ended, including those that outlived the command.
/// `None`: unknown; `missing` tells why.
///
/// Sums are complete for processes that were waited for. They lack the usage during the exit of
/// other processes (SIGCHLD ignored). Run delay, block delay and reclaim delay lack the exits of
/// all threads except the first thread of the command.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Exit status of the command. `None`: a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended the command. `None`: no signal.
    pub signal: Option<i32>,
    /// Whether the run was ended because of its timeout.
    pub timed_out: bool,
    /// Whether the run was ended because we were asked to end.
    pub interrupted: bool,
    /// When the command was released, since the Unix epoch [ns].
    pub started_ns: u64,
    /// Time from just before the program was executed to the end of the command [ns].
    pub elapsed_ns: u64,
    /// CPU time in programs [ns]. The sum with `system_ns` is exact; on most kernels its division
    /// is sampled in ticks.
    pub user_ns: Option<u64>,
    /// CPU time in the kernel [ns].
    pub system_ns: Option<u64>,
    /// Time in which threads could have run but waited for a CPU [ns], the sum of all threads.
    pub run_delay_ns: Option<u64>,
    /// Time in which threads waited for block I/O [ns]; requires `kernel.task_delayacct=1` when the
    /// run begins.
    pub block_delay_ns: Option<u64>,
    /// Time in which threads reclaimed memory [ns]; requires `kernel.task_delayacct=1` when the run
    /// begins.
    pub reclaim_delay_ns: Option<u64>,
    /// Number of switches to another thread because a thread waited.
    pub voluntary_switches: Option<u64>,
    /// Number of switches to another thread because the time slice was over.
    pub involuntary_switches: Option<u64>,
    /// Number of page faults without I/O.
    pub minor_faults: Option<u64>,
    /// Number of page faults with I/O.
    pub major_faults: Option<u64>,
    /// Peak resident memory of the largest process [B], not a sum.
    pub max_rss_bytes: Option<u64>,
    /// Bytes that calls such as read(2) returned.
    pub read_chars: Option<u64>,
    /// Bytes that calls such as write(2) accepted.
    pub write_chars: Option<u64>,
    /// Bytes that block devices had to read for it.
    pub read_bytes: Option<u64>,
    /// Bytes that it caused block devices to write, now or later.
    pub write_bytes: Option<u64>,
    /// Number of processes that ended.
    pub processes: Option<u64>,
    /// Number of threads that ended, including the first one of each process.
    pub threads: Option<u64>,
    /// Number of processes that outlived the command, and were killed unless they were to be kept.
    pub left_over: u64,
    /// Work of block devices.
    pub devices: Vec<DeviceUse>,
    /// Disturbance by the machine.
    pub machine: MachineUse,
    /// Unknown fields, and why they are unknown.
    pub missing: BTreeMap<String, Fact>,
}

/// Run a command once. This process must have one thread and no children; from then on it adopts
/// orphans.
///
/// # Errors
///
/// There was no run, or it does not end. The exit status of the command is no error.
pub fn measure(command: &Command) -> Result<Measured, MeasureError> {
    let devices: Vec<Device> = command.devices.iter().map(|name| Device::find(name)).collect::<Result<_, _>>()?;
    waiting::adopt_orphans()?;
    let signals = Signals::block()?;
    let outcome = run(command, &devices, &signals);
    signals.unblock();
    outcome
}

fn run(command: &Command, devices: &[Device], signals: &Signals) -> Result<Measured, MeasureError> {
    let delays = delays_are_counted();
    let usage_before = usage::of_children();
    let own_rss = usage::own().max_rss_bytes;
    let mut records = TaskStats::listen();
    let launched = Launched::prepare(command, signals)?;
    let scheduled_before = Scheduled::of(launched.pid);
    let devices_before: Vec<_> = devices.iter().map(Device::read).collect();
    let machine_before = Reading::now();
    let urgency = Urgency::begin();
    let (started_ns, let_go_ns) = (clock::epoch_ns(), clock::monotonic_ns());
    launched.let_go();
    let ended = waiting::until_the_command_ends(&launched, signals, records.as_mut().ok(), command.timeout)?;
    drop(urgency);
    let machine_after = Reading::now();
    let devices_after: Vec<_> = devices.iter().map(Device::read).collect();
    let scheduled = Scheduled::of(launched.pid);
    let left_over = waiting::end_left_over(launched.pid, &ended, command.keep_left_over, signals)?;
    if let Some(error) = launched.failure() {
        return Err(error);
    }
    let mut missing = Missing::default();
    let sources = Sources {
        own_rss,
        usage: usage::of_children(),
        usage_before,
        transfers: usage::transfers_of_children(),
        scheduled: scheduled.and_then(|after| Ok((scheduled_before?, after))).map_err(|error| unreadable("schedstat", error)),
        totals: records.and_then(|records| records.finish(launched.pid)),
        launched: &launched,
    };
    let both = devices.iter().zip(devices_before.iter().zip(&devices_after));
    let devices = both.map(|(device, (before, after))| device.between(before, after, &mut missing)).collect();
    let mut measured = sources.put_together(&ended, &delays, &mut missing);
    measured.started_ns = started_ns;
    measured.elapsed_ns = ended.at_ns.saturating_sub(let_go_ns);
    measured.left_over = left_over;
    measured.devices = devices;
    let cpu_ns = measured.user_ns.zip(measured.system_ns).map(|(user, system)| user + system);
    measured.machine = machine_before.until(&machine_after, cpu_ns, &mut missing);
    measured.missing = missing.0;
    Ok(measured)
}

/// Whether the kernel counts delays of processes that begin now; `Err`: why not.
fn delays_are_counted() -> Result<(), Fact> {
    const SETTING: &str = "/proc/sys/kernel/task_delayacct";
    match std::fs::read_to_string(SETTING) {
        Ok(text) if text.trim() == "0" => Err(facts::delays_off()),
        Ok(_) => Ok(()),
        Err(_) => Err(facts::delays_unknown()),
    }
}

/// The sources of the numbers.
struct Sources<'a> {
    own_rss: u64,
    usage: Usage,
    usage_before: Usage,
    transfers: Result<Transfers, Fact>,
    /// CPU time and run delay of the first thread of the command, before its release and at its
    /// end.
    scheduled: Result<(Scheduled, Scheduled), Fact>,
    totals: Result<Totals, Fact>,
    launched: &'a Launched,
}

impl Sources<'_> {
    fn put_together(&self, ended: &Ended, delays: &Result<(), Fact>, missing: &mut Missing) -> Measured {
        let before = self.launched.before();
        let total = |of: fn(&Totals) -> u64| self.totals.as_ref().map(of).map_err(Clone::clone);
        let counted = |of: fn(&Usage) -> u64, recorded: fn(&Totals) -> u64, before: u64| {
            let waited_for = of(&self.usage).saturating_sub(of(&self.usage_before));
            Some(waited_for.max(total(recorded).unwrap_or(0)).saturating_sub(before))
        };
        let delay = |of: fn(&Totals) -> u64| delays.clone().and_then(|()| total(of));
        let processes = self
            .totals
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|totals| totals.processes.ok_or_else(facts::records_without_processes));
        let (user_ns, system_ns) = self.cpu_time();
        Measured {
            exit_code: ended.status.code(),
            signal: ended.status.signal(),
            timed_out: ended.timed_out,
            interrupted: ended.interrupted,
            started_ns: 0,
            elapsed_ns: 0,
            user_ns: Some(user_ns),
            system_ns: Some(system_ns),
            run_delay_ns: missing.known("run_delay_ns", self.run_delay()),
            block_delay_ns: missing.known("block_delay_ns", delay(|totals| totals.sums.block_delay_ns)),
            reclaim_delay_ns: missing.known("reclaim_delay_ns", delay(|totals| totals.sums.reclaim_delay_ns)),
            voluntary_switches: counted(
                |usage| usage.voluntary_switches,
                |totals| totals.sums.voluntary_switches,
                before.voluntary_switches.load(Relaxed),
            ),
            involuntary_switches: counted(
                |usage| usage.involuntary_switches,
                |totals| totals.sums.involuntary_switches,
                before.involuntary_switches.load(Relaxed),
            ),
            minor_faults: counted(
                |usage| usage.minor_faults,
                |totals| totals.sums.minor_faults,
                before.minor_faults.load(Relaxed),
            ),
            major_faults: counted(
                |usage| usage.major_faults,
                |totals| totals.sums.major_faults,
                before.major_faults.load(Relaxed),
            ),
            max_rss_bytes: missing.known("max_rss_bytes", self.max_rss()),
            read_chars: missing
                .known("read_chars", self.transferred(|transfers| transfers.read_chars, |totals| totals.sums.read_chars)),
            write_chars: missing
                .known("write_chars", self.transferred(|transfers| transfers.write_chars, |totals| totals.sums.write_chars)),
            read_bytes: missing
                .known("read_bytes", self.transferred(|transfers| transfers.read_bytes, |totals| totals.sums.read_bytes)),
            write_bytes: missing
                .known("write_bytes", self.transferred(|transfers| transfers.write_bytes, |totals| totals.sums.write_bytes)),
            processes: missing.known("processes", processes),
            threads: missing.known("threads", total(|totals| totals.tasks)),
            left_over: 0,
            devices: Vec::new(),
            machine: MachineUse::default(),
            missing: BTreeMap::new(),
        }
    }

    /// CPU time of the processes that were waited for [ns].
    fn waited_for(&self) -> (u64, u64) {
        (self.usage.user_ns - self.usage_before.user_ns, self.usage.system_ns - self.usage_before.system_ns)
    }

    /// User and system time: the largest known sum, divided in proportion to ticks.
    fn cpu_time(&self) -> (u64, u64) {
        let (user, system) = self.waited_for();
        let recorded = self.totals.as_ref().map_or(0, |totals| totals.sums.cpu_ns);
        let of_first_thread = self.scheduled.as_ref().map_or(0, |(_, after)| after.cpu_ns);
        let total = (user + system).max(recorded).max(of_first_thread);
        let (user, system) = match &self.totals {
            // If many were not waited for, only the records contain their ticks.
            Ok(totals) if recorded > user + system => (totals.sums.user_ticks_ns, totals.sums.system_ticks_ns),
            _ => (user, system),
        };
        let total = total.saturating_sub(self.launched.before().cpu_ns.load(Relaxed));
        let system = (u128::from(total) * u128::from(system)).checked_div(u128::from(user + system)).unwrap_or(0) as u64;
        (total - system, system)
    }

    fn run_delay(&self) -> Result<u64, Fact> {
        match (&self.totals, &self.scheduled) {
            (Ok(totals), Ok((before, after))) => {
                // Only schedstat contains what the first thread waited during its exit.
                let in_exit = totals.command.map_or(0, |sums| after.run_delay_ns.saturating_sub(sums.run_delay_ns));
                Ok((totals.sums.run_delay_ns + in_exit).saturating_sub(before.run_delay_ns))
            }
            (Ok(_), Err(why)) => Err(why.clone()),
            (Err(_), Ok((before, after))) if self.is_alone(after) => Ok(after.run_delay_ns - before.run_delay_ns),
            (Err(why), _) => Err(facts::single_thread_only(why.clone())),
        }
    }

    /// Whether only the first thread of the command used CPU time: a process or thread takes more
    /// than 10 us to start and end.
    fn is_alone(&self, after: &Scheduled) -> bool {
        let (user, system) = self.waited_for();
        (user + system).abs_diff(after.cpu_ns) < 10_000
    }

    fn max_rss(&self) -> Result<u64, Fact> {
        match &self.totals {
            Ok(totals) => Ok(totals.sums.max_rss_bytes),
            // A process that was forked from us inherits our peak, even when it runs another
            // program.
            Err(why) if self.usage.max_rss_bytes <= self.own_rss => Err(facts::above_own_peak_only(why.clone())),
            Err(_) => Ok(self.usage.max_rss_bytes),
        }
    }

    fn transferred(&self, waited_for: fn(&Transfers) -> u64, recorded: fn(&Totals) -> u64) -> Result<u64, Fact> {
        match (&self.transfers, &self.totals) {
            (Ok(transfers), totals) => Ok(waited_for(transfers).max(totals.as_ref().map_or(0, recorded))),
            (Err(_), Ok(totals)) => Ok(recorded(totals)),
            (Err(why), Err(_)) => Err(why.clone()),
        }
    }
}
