//! Waits until the run has ended, or ends it.
//!
//! States: *running* -> (timeout, or we are asked to end: all processes of the run are asked to
//! end) *asked* -> (2 s later) *killed*. The run ends in any of them when its command ends;
//! remaining processes are killed then, or left alone on request.

use std::{
    mem,
    process::ExitStatus,
    time::{Duration, Instant},
};

use crate::{
    Attempt, MeasureError, clock,
    launch::{self, Launched},
    signals::{Signals, Woken},
    taskstats::TaskStats,
    tree,
};

/// Time between asking and killing.
const GRACE: Duration = Duration::from_secs(2);
/// What is killed has ended after this time, unless a device or a server blocks it.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// How the command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Time by the monotonic clock [ns].
    pub(crate) at_ns: u64,
    pub(crate) status: ExitStatus,
    pub(crate) timed_out: bool,
    pub(crate) interrupted: bool,
    /// Until then, processes that were asked to end have time to do so.
    patient_until: Option<Instant>,
}

/// A run in progress.
struct Run {
    pid: u32,
    timeout_at: Option<Instant>,
    kill_at: Option<Instant>,
    give_up_at: Option<Instant>,
    timed_out: bool,
    interrupted: bool,
}

impl Run {
    /// How long nothing needs to be done. `None`: until something happens.
    fn rest(&self, records: Option<&TaskStats>) -> Option<Duration> {
        let now = Instant::now();
        let moments = [self.timeout_at, self.kill_at, self.give_up_at].into_iter().flatten();
        moments.map(|moment| moment.saturating_duration_since(now)).chain(records.map(TaskStats::rest)).min()
    }

    /// Ask all processes to end.
    fn send(&mut self, signal: libc::c_int) {
        self.timeout_at = None;
        if self.give_up_at.is_none() {
            self.kill_at.get_or_insert(Instant::now() + GRACE);
        }
        send_to_all(signal);
    }

    fn mind_the_time(&mut self) -> Result<(), MeasureError> {
        let now = Instant::now();
        let is_over = |moment: Option<Instant>| moment.is_some_and(|moment| now >= moment);
        if is_over(self.timeout_at) {
            self.timed_out = true;
            self.send(libc::SIGTERM);
        }
        if is_over(self.kill_at) {
            (self.kill_at, self.give_up_at) = (None, Some(now + PATIENCE));
            tree::send(-self.pid.cast_signed(), libc::SIGKILL);
            send_to_all(libc::SIGKILL);
        }
        match is_over(self.give_up_at) {
            true => Err(MeasureError::DoesNotEnd(self.pid)),
            false => Ok(()),
        }
    }
}

fn send_to_all(signal: libc::c_int) {
    for pid in tree::living_below(std::process::id()) {
        tree::send(pid.cast_signed(), signal);
    }
}

/// Wait until the command has ended; it stays a zombie.
pub(crate) fn until_the_command_ends(
    launched: &Launched,
    signals: &Signals,
    mut records: Option<&mut TaskStats>,
    timeout: Option<Duration>,
) -> Result<Ended, MeasureError> {
    let timeout_at = timeout.and_then(|time| Instant::now().checked_add(time));
    let pid = launched.pid;
    let mut run = Run { pid, timeout_at, kill_at: None, give_up_at: None, timed_out: false, interrupted: false };
    loop {
        let woken = signals.wait(run.rest(records.as_deref()));
        let now_ns = clock::monotonic_ns();
        if let Some(status) = launch::status_of(pid) {
            let Run { timed_out, interrupted, kill_at, .. } = run;
            return Ok(Ended { at_ns: now_ns, status, timed_out, interrupted, patient_until: kill_at });
        }
        match woken {
            Woken::Child => {
                launch::reap_all_but(Some(pid));
            }
            Woken::Signal(signal) => {
                run.interrupted = true;
                run.send(signal);
            }
            Woken::Time => {}
        }
        run.mind_the_time()?;
        if let Some(records) = &mut records {
            records.tend();
        }
    }
}

/// Reap the command, and end processes that outlive it, unless `keep` is set. Returns their number;
/// for a run that was asked to end, the number that had to be killed.
pub(crate) fn end_left_over(command: u32, ended: &Ended, keep: bool, signals: &Signals) -> Result<u64, MeasureError> {
    launch::reap(command);
    while ended.patient_until.is_some_and(|moment| Instant::now() < moment) && launch::reap_all_but(None) {
        signals.wait(Some(PAUSE));
    }
    if !launch::reap_all_but(None) {
        return Ok(0);
    }
    let left = tree::living_below(std::process::id());
    if keep && !ended.timed_out && !ended.interrupted {
        return Ok(left.len() as u64);
    }
    let until = Instant::now() + PATIENCE;
    tree::send(-command.cast_signed(), libc::SIGKILL);
    loop {
        // Repeated, because each may have created another before it was killed.
        send_to_all(libc::SIGKILL);
        if !launch::reap_all_but(None) {
            return Ok(left.len() as u64);
        }
        if Instant::now() > until {
            return Err(MeasureError::DoesNotEnd(left.first().copied().unwrap_or(command)));
        }
        signals.wait(Some(PAUSE));
    }
}

/// While this exists, we get a CPU at once when the command ends, if the kernel allows it.
/// Otherwise our wait for a CPU, on a busy machine, would count as time of the run.
pub(crate) struct Urgency(Option<(libc::c_int, libc::sched_param)>);

impl Urgency {
    pub(crate) fn begin() -> Self {
        // SAFETY: zeros are a value of the struct; both live through the calls.
        unsafe {
            let policy = libc::sched_getscheduler(0);
            let mut before: libc::sched_param = mem::zeroed();
            let urgent = libc::sched_param { sched_priority: 1 };
            let known = policy >= 0 && libc::sched_getparam(0, &raw mut before) == 0;
            let set = known && libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const urgent) == 0;
            Urgency(set.then_some((policy, before)))
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        if let Some((policy, parameters)) = &self.0 {
            // SAFETY: the struct lives through the call.
            unsafe { libc::sched_setscheduler(0, *policy, std::ptr::from_ref(parameters)) };
        }
    }
}

/// Make us the parent of orphans of the run, instead of the first process.
pub(crate) fn adopt_orphans() -> Result<(), MeasureError> {
    let adopted = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    adopted.map_err(|error| MeasureError::System(Attempt::AdoptOrphans, error.into()))
}
