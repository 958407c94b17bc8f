//! Starts the workers of a step, leads them through its phases, and collects their results,
//! whatever happens to them.

use std::{
    collections::BTreeMap,
    fs, io,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal, waitpid};
use sysdock_table::{Cancel, Fact, facts::load as facts};

use crate::{
    Operation, Progress, Step,
    board::{Barrier, Board, LANES, Slot},
    clock::{now_ns, to_epoch_ns},
    data::Pool,
    device::{self, Counters, FileSystem},
    guarded::{fork, leave},
    histogram::CLASSES,
    items::{self, Phase, WorkerContext},
    meter::{INTERVAL_NS, Meter},
    workspace::Workspace,
};

/// Interval at which the state of the workers is checked, and the caller is called.
const LOOK: Duration = Duration::from_millis(50);
/// Time that workers have to end after they were asked to.
const TO_END: Duration = Duration::from_secs(5);
/// Number of intervals of a worker whose phases have no time limit: ten minutes.
const UNTIMED_INTERVALS: usize = 6000;

/// The caller of a step.
pub trait Caller {
    /// Called periodically while the step runs.
    fn tick(&mut self) {}

    /// Called when all workers are ready. Returns when they are to begin, since the epoch [ns];
    /// `None`: at once. Other hosts may have to be waited for.
    fn start_at_ns(&mut self) -> Option<i64> {
        None
    }
}

/// State that all steps of a run share.
pub(crate) struct Surroundings<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) file_system: &'a FileSystem,
    pub(crate) pool: &'a Pool,
    pub(crate) seed: u64,
    /// A step without any progress for this long is given up.
    pub(crate) patience: Duration,
    pub(crate) cancel: &'a Cancel,
}

/// Sum of a lane over all workers.
pub(crate) struct LaneSum {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
    pub(crate) errors: u64,
    pub(crate) max_ns: u64,
    pub(crate) latencies: Vec<u64>,
}

/// How a worker ended before its work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Death {
    Signal(i32),
    Status(i32),
}

impl Death {
    pub(crate) fn fact(self) -> Fact {
        match self {
            Death::Signal(signal) => facts::killed_by_signal(signal),
            Death::Status(status) => facts::ended_with_status(status),
        }
    }
}

/// Result of a phase. Times are since the epoch.
pub(crate) struct PhaseOutcome {
    pub(crate) operations: Vec<Operation>,
    pub(crate) lanes: Vec<LaneSum>,
    /// Start and end of each worker that began [ns].
    pub(crate) spans: Vec<(i64, i64)>,
    /// Number of workers that did not begin.
    pub(crate) idle: u32,
    pub(crate) damaged: u64,
    pub(crate) errno: i32,
    /// Bytes that the kernel read from devices for the workers.
    pub(crate) read_for_workers: u64,
    pub(crate) devices: Option<Counters>,
    pub(crate) cpu_throttled: bool,
    pub(crate) progress: Vec<Progress>,
    /// How workers ended unexpectedly, with the number of workers.
    pub(crate) deaths: BTreeMap<Death, u32>,
    pub(crate) interrupted: bool,
    pub(crate) hung: bool,
    /// What could not be done before the phase.
    pub(crate) remark: Option<Fact>,
}

/// Result of a step.
pub(crate) struct StepOutcome {
    pub(crate) phases: Vec<PhaseOutcome>,
    /// Size of the common file now [B].
    pub(crate) data_bytes: u64,
    /// How many workers could be started, and why not more.
    pub(crate) refused: Option<(u32, io::Error)>,
}

/// The worker processes. Those that have ended are removed.
struct Workers<'a> {
    board: &'a Board,
    /// Number and process id.
    alive: Vec<(u32, Pid)>,
    deaths: BTreeMap<Death, u32>,
}

/// Do a step.
pub(crate) fn measure(
    step: &Step,
    data_bytes: u64,
    around: &Surroundings<'_>,
    caller: &mut dyn Caller,
) -> io::Result<StepOutcome> {
    let (phases, count) = (items::phases(step), items::workers(step));
    let intervals = step.time_ns.map_or(UNTIMED_INTERVALS, |time| (time / INTERVAL_NS * 2 + 64).min(36_000) as usize);
    let board = Board::new(count as usize, intervals)?;
    let mut workers = Workers { board: &board, alive: Vec::with_capacity(count as usize), deaths: BTreeMap::new() };
    let mut refused = None;
    for worker in 0..count {
        match start_worker(worker, step, &phases, data_bytes, &board, around) {
            Ok(pid) => workers.alive.push((worker, pid)),
            Err(error) => {
                refused = Some((worker, error));
                break;
            }
        }
        if worker % 64 == 63 {
            caller.tick();
        }
    }
    let mut outcomes = Vec::new();
    if refused.is_none() {
        for (number, phase) in (1..).zip(&phases) {
            let outcome = run_phase(number, phase, count, &mut workers, around, caller);
            let over = outcome.interrupted || outcome.hung;
            outcomes.push(outcome);
            if over {
                break;
            }
        }
    }
    workers.end();
    let data_bytes = data_bytes.max(prepared_of_all(step, &board));
    Ok(StepOutcome { phases: outcomes, data_bytes, refused })
}

/// Size of the common file up to the first gap [B].
fn prepared_of_all(step: &Step, board: &Board) -> u64 {
    if !step.item.uses_data() {
        return 0;
    }
    let parts = board.slots().iter().take(step.processes as usize).map(|slot| slot.prepared.load(Relaxed));
    let whole = parts.clone().take_while(|bytes| *bytes == step.share()).count() as u64;
    whole * step.share() + parts.clone().nth(whole as usize).unwrap_or(0)
}

/// Fork a worker. Returns the id of its process.
fn start_worker(
    worker: u32,
    step: &Step,
    phases: &[Phase],
    data_bytes: u64,
    board: &Board,
    around: &Surroundings<'_>,
) -> io::Result<Pid> {
    let parent = getpid();
    if let Some(child) = fork()? {
        return Ok(child);
    }
    // SAFETY: sets signal actions: a terminal sends SIGINT to all, and the parent decides about the
    // end.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    if around.workspace.enter().is_err() {
        leave(1);
    }
    // The worker dies with the parent. A change of user would undo this.
    if set_parent_process_death_signal(Some(Signal::KILL)).is_err() || getppid() != Some(parent) {
        leave(1);
    }
    let place = WorkerContext {
        worker,
        step,
        pool: around.pool,
        seed: around.seed,
        header: board.header(),
        slots: board.slots(),
        data_bytes,
    };
    work(place, phases, board);
    leave(0)
}

/// Main function of a worker.
fn work(place: WorkerContext<'_>, phases: &[Phase], board: &Board) {
    let (worker, step, header) = (place.worker as usize, place.step, board.header());
    let slot = &board.slots()[worker];
    let mut work = items::work(place);
    for (number, phase) in (1..).zip(phases) {
        slot.reset();
        let ready = work.prepare(phase).map_err(|error| note_error(slot, &error)).is_ok();
        let Some(start_ns) = header.wait_for_start(slot, number) else { return };
        if ready {
            let mut meter = Meter::start((header, slot, board.intervals(worker)), start_ns, phase.warm_ns, step.time_ns);
            if let Err(error) = work.run(phase, &mut meter) {
                note_error(slot, &error);
            }
            meter.finish();
        }
        header.finish(slot, number);
        if !header.wait_until_collected(number) {
            return;
        }
    }
}

/// Record an error outside of the operations that are counted.
fn note_error(slot: &Slot, error: &io::Error) {
    slot.errno.store(error.raw_os_error().unwrap_or(libc::EIO), Relaxed);
    slot.lanes[0].errors.fetch_add(1, Relaxed);
}

/// Lead all workers through a phase.
fn run_phase(
    number: u32,
    phase: &Phase,
    count: u32,
    workers: &mut Workers<'_>,
    around: &Surroundings<'_>,
    caller: &mut dyn Caller,
) -> PhaseOutcome {
    let header = workers.board.header();
    let mut watch = Watch::new(around);
    let mut ended = workers.wait(number, Barrier::Ready, &mut watch, caller);
    let remark =
        (ended == Ended::Done && phase.operations[0] == Operation::StatCold).then(|| drop_dentries(around.workspace)).flatten();
    let (before, throttled, epoch) = (around.file_system.counters(), device::cpu_throttled(), to_epoch_ns());
    if ended == Ended::Done {
        header.begin(start_time(count, epoch, caller.start_at_ns()));
        ended = workers.wait(number, Barrier::Finished, &mut watch, caller);
    }
    let after = around.file_system.counters();
    let mut outcome = collect(phase, count, workers, epoch);
    outcome.devices = before.zip(after).map(|(before, after)| Counters {
        read: after.read.saturating_sub(before.read),
        written: after.written.saturating_sub(before.written),
    });
    outcome.cpu_throttled = device::cpu_throttled() > throttled;
    (outcome.interrupted, outcome.hung, outcome.remark) = (ended == Ended::Interrupted, ended == Ended::Hung, remark);
    header.collected(number);
    outcome
}

/// When all workers begin, by the monotonic clock [ns]: many of them need some time to wake up.
fn start_time(count: u32, epoch: i64, at: Option<i64>) -> u64 {
    let soon = now_ns() + 500_000 + 20_000 * u64::from(count);
    at.map_or(soon, |at| soon.max((at - epoch).max(0) as u64))
}

/// Make the kernel drop unused names and inodes. Returns what prevented it.
///
/// Those of changed files stay, so the measured file system, and no other, is synced before.
fn drop_dentries(workspace: &Workspace) -> Option<Fact> {
    let synchronized = workspace.sync();
    match synchronized.and_then(|()| fs::write("/proc/sys/vm/drop_caches", "2")) {
        Ok(()) => None,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Some(facts::names_kept()),
        Err(error) => Some(facts::names_kept_by_error(error.to_string().to_lowercase())),
    }
}

/// How waiting for the workers ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Done,
    Interrupted,
    Hung,
}

/// Checks for progress.
struct Watch<'a> {
    around: &'a Surroundings<'a>,
    seen: (u64, u64),
    since: Instant,
}

impl<'a> Watch<'a> {
    fn new(around: &'a Surroundings<'a>) -> Self {
        Watch { around, seen: (0, 0), since: Instant::now() }
    }

    /// Whether no worker and no device has made progress for too long.
    fn hangs(&mut self, board: &Board) -> bool {
        let done = board.slots().iter().map(Slot::advance).fold(0, u64::wrapping_add);
        let device = self.around.file_system.counters().map_or(0, |counters| counters.read + counters.written);
        if self.seen != (done, device) {
            (self.seen, self.since) = ((done, device), Instant::now());
        }
        self.since.elapsed() > self.around.patience
    }
}

impl Workers<'_> {
    /// Wait until all running workers are ready for a phase, or have finished it.
    fn wait(&mut self, number: u32, barrier: Barrier, watch: &mut Watch<'_>, caller: &mut dyn Caller) -> Ended {
        let header = self.board.header();
        let mut interrupted: Option<Instant> = None;
        let mut looked = Instant::now();
        loop {
            let seen = header.passed(barrier);
            if seen >= number * self.board.slots().len() as u32
                || !self.deaths.is_empty() && self.all_alive_passed(number, barrier)
            {
                return if interrupted.is_some() { Ended::Interrupted } else { Ended::Done };
            }
            header.wait_for(barrier, seen, LOOK);
            if looked.elapsed() < LOOK {
                continue;
            }
            looked = Instant::now();
            caller.tick();
            self.reap();
            if watch.around.cancel.requested() && interrupted.is_none() {
                header.stop();
                interrupted = Some(Instant::now());
            }
            if interrupted.is_some_and(|since| since.elapsed() > TO_END || barrier == Barrier::Ready) {
                return Ended::Interrupted;
            }
            if watch.hangs(self.board) {
                return Ended::Hung;
            }
        }
    }

    fn all_alive_passed(&self, number: u32, barrier: Barrier) -> bool {
        self.alive.iter().all(|(worker, _)| self.board.slots()[*worker as usize].passed(barrier) >= number)
    }

    /// Record workers that ended.
    fn reap(&mut self) {
        self.alive.retain(|(_, pid)| {
            let how = match waitpid(Some(*pid), WaitOptions::NOHANG) {
                Ok(None) => return true,
                Ok(Some((_, status))) if status.signaled() => Death::Signal(status.terminating_signal().unwrap_or(0)),
                ended => Death::Status(ended.ok().flatten().and_then(|(_, status)| status.exit_status()).unwrap_or(0)),
            };
            *self.deaths.entry(how).or_default() += 1;
            false
        });
    }

    /// End all workers: ask them to, and kill those that do not.
    fn end(&mut self) {
        self.board.header().stop();
        let requested_at = Instant::now();
        let mut killed = false;
        while !self.alive.is_empty() {
            self.reap();
            if requested_at.elapsed() > TO_END && !killed {
                for (_, pid) in &self.alive {
                    // It fails where the worker ended meanwhile.
                    let _ = kill_process(*pid, Signal::KILL);
                }
                killed = true;
            }
            if requested_at.elapsed() > 2 * TO_END {
                // They hang in the kernel, and end when it releases them.
                return;
            }
            if !self.alive.is_empty() {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

/// Collect the workers' results from the board.
fn collect(phase: &Phase, count: u32, workers: &Workers<'_>, epoch: i64) -> PhaseOutcome {
    let (board, slots) = (workers.board, workers.board.slots());
    let lanes = (0..phase.operations.len().min(LANES)).map(|lane| sum_of(slots, lane)).collect();
    // A worker that did not finish was working until now.
    let now = now_ns();
    let span = |slot: &Slot| {
        let (start, end) = (slot.start_ns.load(Relaxed), slot.end_ns.load(Relaxed));
        (start > 0).then(|| (start as i64 + epoch, if end > 0 { end } else { now } as i64 + epoch))
    };
    let spans: Vec<_> = slots.iter().filter_map(span).collect();
    PhaseOutcome {
        operations: phase.operations.clone(),
        lanes,
        idle: count - spans.len() as u32,
        spans,
        damaged: slots.iter().map(|slot| slot.damaged.load(Relaxed)).sum(),
        errno: slots.iter().map(|slot| slot.errno.load(Relaxed)).find(|errno| *errno != 0).unwrap_or(0),
        read_for_workers: slots.iter().map(|slot| slot.device_read.load(Relaxed)).sum(),
        devices: None,
        cpu_throttled: false,
        progress: (0..slots.len()).flat_map(|worker| progress_of(board, worker, epoch)).collect(),
        deaths: workers.deaths.clone(),
        interrupted: false,
        hung: false,
        remark: None,
    }
}

fn sum_of(slots: &[Slot], lane: usize) -> LaneSum {
    let mut latencies = vec![0_u64; CLASSES];
    for slot in slots {
        slot.lanes[lane].latencies.iter().zip(&mut latencies).for_each(|(count, sum)| *sum += u64::from(count.load(Relaxed)));
    }
    let lanes = || slots.iter().map(|slot| &slot.lanes[lane]);
    LaneSum {
        bytes: lanes().map(|lane| lane.bytes.load(Relaxed)).sum(),
        operations: lanes().map(|lane| lane.operations.load(Relaxed)).sum(),
        errors: lanes().map(|lane| lane.errors.load(Relaxed)).sum(),
        max_ns: lanes().map(|lane| lane.max_ns.load(Relaxed)).max().unwrap_or(0),
        latencies,
    }
}

fn progress_of(board: &Board, worker: usize, epoch: i64) -> Vec<Progress> {
    let used = board.slots()[worker].intervals.load(Relaxed) as usize;
    let intervals = board.intervals(worker).iter().take(used);
    let row = |interval: &crate::board::Interval| Progress {
        worker: worker as i32,
        ts_ns: interval.start_ns.load(Relaxed) as i64 + epoch,
        dur_ns: interval.dur_ns.load(Relaxed) as i64,
        bytes: interval.bytes.load(Relaxed) as i64,
        operations: interval.operations.load(Relaxed) as i64,
    };
    intervals.map(row).collect()
}
