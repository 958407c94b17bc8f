//! `sysdock-native load`: load on a file system.

use std::{
    fs,
    io::{self, BufRead, Read, Write},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    stdio::stdin,
};
use serde::Deserialize;
use serde_json::json;
use sysdock_load::{Caller, Load, Measured, Plan, Settings, Status, Step};
use sysdock_table::{Cancel, Capture, Ending, Folder, Manifest, Recording, TableError};

use crate::{
    arguments, environment,
    messages::{self, EXIT_ERROR, EXIT_INTERRUPTED, Message},
    privileges,
    progress::Reporter,
    signals,
};

/// Limit of the size of a plan [B]; plans are written by hand or generated from small files of
/// settings.
const LONGEST_PLAN: u64 = 16 << 20;

/// Do the load; returns the exit status.
pub(crate) fn run(arguments: &arguments::Load) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let caller = privileges::access(false).owner.map(|(user, _)| user);
    let settings = Settings { patience: arguments.patience, caller, ..Settings::default() };
    if arguments.agent {
        return agent(&arguments.directory, settings, &cancel);
    }
    let steps = steps(arguments)?;
    steps.iter().try_for_each(Step::check)?;
    let recording = arguments.output.as_deref().map(|output| begin(output, arguments)).transpose()?;
    let load = match Load::new(&arguments.directory, settings) {
        Ok(load) => load,
        Err(error) => {
            if let Some(recording) = recording {
                recording.abandon();
            }
            return Err(error.into());
        }
    };
    for (path, why) in &load.left {
        messages::note(&format!("{} stays: {}", path.display(), messages::stays(*why)));
    }
    let mut run = Run { load, recording, next_id: 1, rows: arguments.rows, failed: 0, total: 0 };
    let ending = run.steps(&steps, arguments.within, &cancel, Reporter::new(&arguments.progress));
    run.end(ending, &cancel)
}

/// The steps to do.
fn steps(arguments: &arguments::Load) -> Result<Vec<Step>, Message> {
    let Some(item) = arguments.item else { return plan(arguments.plan.as_deref().unwrap_or(Path::new("-"))) };
    Ok(vec![Step {
        item,
        operations: arguments.operations.clone(),
        length_bytes: arguments.length,
        processes: arguments.processes,
        depth: arguments.depth,
        direct: arguments.direct,
        layout: arguments.layout,
        sync: arguments.sync,
        size_bytes: arguments.size,
        time_ns: arguments.time.map(|time| time.as_nanos().try_into().unwrap_or(u64::MAX)),
        files: arguments.files,
        write_share: arguments.write_share,
        verify: arguments.verify,
        prefilled: arguments.prefilled,
    }])
}

fn plan(path: &Path) -> Result<Vec<Step>, Message> {
    let read = || {
        let mut text = String::new();
        let source: Box<dyn Read> = if path == Path::new("-") { Box::new(io::stdin()) } else { Box::new(fs::File::open(path)?) };
        source.take(LONGEST_PLAN).read_to_string(&mut text).map(|_| text)
    };
    let text = read().map_err(|error| Message::bare(format!("{}: {error}", path.display())))?;
    let plan: Plan = serde_json::from_str(&text).map_err(|error| {
        Message::new(format!("{}: {error}", path.display()), "a plan is {\"steps\": [{\"item\": \"transfer\", ...}]}")
    })?;
    match plan.steps.is_empty() {
        true => Err(Message::bare(format!("{}: the plan has no steps", path.display()))),
        false => Ok(plan.steps),
    }
}

fn begin(output: &Path, arguments: &arguments::Load) -> Result<Recording, Message> {
    let mut capture = Capture::new("load", "results", sysdock_load::ABOUT);
    capture.clock.kind = "epoch".into();
    capture.clock.has_durations = true;
    let mut manifest = Manifest::of(capture);
    manifest.started_ns = now_ns();
    manifest.host = environment::host_name();
    let ours = || std::env::args().collect::<Vec<_>>().join(" ");
    manifest.command = Some(arguments.called.clone().unwrap_or_else(ours));
    let folder = Folder::create(output, privileges::access(arguments.share))?;
    Ok(Recording::create_in(folder, manifest)?)
}

fn now_ns() -> i64 {
    environment::epoch_ns(SystemTime::now())
}

/// A run, and the destination of its rows.
struct Run {
    load: Load,
    recording: Option<Recording>,
    next_id: i32,
    rows: bool,
    failed: usize,
    total: usize,
}

/// Reports the progress of a run.
struct Watching<'a> {
    reporter: &'a mut Reporter,
    what: String,
    done: usize,
    steps: usize,
    /// Planned duration of the steps up to this one [ns].
    before: u64,
    this: u64,
    all: u64,
    started: Instant,
}

impl Caller for Watching<'_> {
    fn tick(&mut self) {
        let so_far = (self.started.elapsed().as_nanos() as u64).min(self.this);
        let left = Duration::from_nanos(self.all - self.before - so_far);
        self.reporter.event(&json!({
            "event": "progress",
            "what": self.what,
            "done": self.done,
            "total": self.steps,
            "seconds_left": left.as_secs(),
        }));
    }
}

impl Run {
    fn steps(
        &mut self,
        steps: &[Step],
        within: Option<Duration>,
        cancel: &Cancel,
        mut reporter: Reporter,
    ) -> Result<(), Message> {
        self.environment()?;
        let all = steps.iter().map(Step::estimate_ns).sum();
        let mut before = 0;
        let begun = Instant::now();
        for (number, step) in steps.iter().enumerate() {
            if cancel.requested() {
                break;
            }
            if within.is_some_and(|time| begun.elapsed() > time) {
                let skipped = self.load.skipped(step);
                self.write(&skipped)?;
                continue;
            }
            let what = description(step);
            let this = step.estimate_ns();
            let (started, total) = (Instant::now(), steps.len());
            let mut watching = Watching { reporter: &mut reporter, what, done: number, steps: total, before, this, all, started };
            watching.tick();
            let measured = self.load.measure(step, cancel, &mut watching)?;
            before += this;
            self.write(&measured)?;
        }
        Ok(())
    }

    fn environment(&mut self) -> Result<(), TableError> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        let mut rows = environment::of_this_machine(&std::env::args_os().collect::<Vec<_>>(), None);
        rows.extend(environment::of_load(self.load.facts()));
        environment::write(recording, &rows)
    }

    fn write(&mut self, measured: &[Measured]) -> Result<(), Message> {
        self.total += measured.len();
        self.failed +=
            measured.iter().filter(|row| matches!(row.status, Status::Failed | Status::Full | Status::Skipped)).count();
        if self.rows {
            let mut out = io::stdout().lock();
            for row in measured {
                writeln!(out, "{}", json(row)).map_err(|error| Message::bare(format!("standard output: {error}")))?;
            }
        }
        if let Some(recording) = &mut self.recording {
            self.next_id = sysdock_load::write(recording, measured, self.next_id)?;
            recording.checkpoint()?;
        }
        Ok(())
    }

    /// Remove the files of the load, and close the recording.
    fn end(self, outcome: Result<(), Message>, cancel: &Cancel) -> Result<u8, Message> {
        let removed = self.load.end();
        let ending = match (&outcome, cancel.requested()) {
            (Err(_), _) => Ending::WriteError,
            (_, true) => Ending::Interrupted,
            _ => Ending::EndOfInput,
        };
        if let Some(mut recording) = self.recording {
            let started = recording.manifest.started_ns;
            recording.manifest.cover(started, now_ns());
            let capture = recording.manifest.capture_mut();
            (capture.total, capture.understood) = (self.total as u64, self.total as u64);
            recording.finish(ending)?;
        }
        outcome?;
        removed?;
        match ending {
            Ending::Interrupted => Ok(EXIT_INTERRUPTED),
            _ if self.failed == self.total => {
                messages::note("nothing could be measured: see `status` and `note` in load_results");
                Ok(EXIT_ERROR)
            }
            _ => Ok(0),
        }
    }
}

/// A short description of a step.
fn description(step: &Step) -> String {
    let length = match step.length_bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    };
    let moves_data = !matches!(step.item, sysdock_load::Item::Metadata | sysdock_load::Item::Control);
    let length = if moves_data { format!(", {length}") } else { String::new() };
    format!("{}{length}, {} processes", step.item.name(), step.processes)
}

/// A measurement as one object, with its latency classes but without progress.
fn json(row: &Measured) -> serde_json::Value {
    json!({
        "item": row.item, "operation": row.operation, "layout": row.layout, "sync": row.sync, "length_bytes": row.length_bytes,
        "processes": row.processes, "depth": row.depth, "direct": row.direct, "engine": row.engine, "hosts": row.hosts,
        "bytes": row.bytes, "operations": row.operations, "errors": row.errors, "started_ns": row.started_ns,
        "first_end_ns": row.first_end_ns, "ended_ns": row.ended_ns, "bytes_per_s": row.bytes_per_s,
        "operations_per_s": row.operations_per_s, "overlap": row.overlap, "device_read_bytes": row.device_read_bytes,
        "device_write_bytes": row.device_write_bytes, "p50_ns": row.p50_ns, "p99_ns": row.p99_ns, "max_ns": row.max_ns,
        "status": row.status.name(), "note": row.note,
        "latencies": row.latencies.iter().map(|class| [class.low_ns, class.high_ns, class.operations]).collect::<Vec<_>>(),
    })
}

/// The same with its progress: worker, start, length, bytes and operations of each interval.
fn with_progress(row: &Measured) -> serde_json::Value {
    let mut object = json(row);
    let interval = |part: &sysdock_load::Progress| json!([part.worker, part.ts_ns, part.dur_ns, part.bytes, part.operations]);
    object["progress"] = row.progress.iter().map(interval).collect();
    object
}

/// An order on the standard input of an agent, one object a line.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    /// Print the current time.
    Clock,
    /// Prepare this step, and report each of its phases.
    Step(Box<Step>),
    /// There is no time for this step: print its rows without doing it.
    Skip(Box<Step>),
    /// All hosts are ready: begin at this time, since the epoch [ns].
    StartAt(i64),
    /// No more steps.
    End,
}

/// An agent during a step: asks for the start time.
struct Agent {
    lines: io::Lines<io::StdinLock<'static>>,
    cancel: Cancel,
}

impl Agent {
    fn order(&mut self) -> Result<Order, Message> {
        let line = self.lines.next().transpose().map_err(|error| Message::bare(format!("standard input: {error}")))?;
        // The controller is gone, so there is nothing left to do.
        let Some(line) = line else { return Ok(Order::End) };
        serde_json::from_str(&line).map_err(|error| Message::bare(format!("standard input: {error}")))
    }
}

impl Caller for Agent {
    /// While workers run, the only possible input is an order to end, or the end of input because
    /// the controller is gone.
    fn tick(&mut self) {
        let mut input = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
        if poll(&mut input, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
            self.cancel.request();
        }
    }

    fn start_at_ns(&mut self) -> Option<i64> {
        print_event(&json!({ "event": "ready" })).ok()?;
        match self.order() {
            Ok(Order::StartAt(ns)) => Some(ns),
            _ => None,
        }
    }
}

fn print_event(event: &serde_json::Value) -> Result<(), Message> {
    let mut out = io::stdout().lock();
    writeln!(out, "{event}").and_then(|()| out.flush()).map_err(|error| Message::bare(format!("standard output: {error}")))
}

/// One host of several: does each step at the time that it is told.
fn agent(directory: &Path, settings: Settings, cancel: &Cancel) -> Result<u8, Message> {
    let mut load = Load::new(directory, settings)?;
    let mut agent = Agent { lines: io::stdin().lock().lines(), cancel: cancel.clone() };
    print_event(&json!({ "event": "begun", "facts": load.facts() }))?;
    let outcome = obey(&mut agent, &mut load, cancel);
    load.end()?;
    outcome.map(|()| if cancel.requested() { EXIT_INTERRUPTED } else { 0 })
}

fn print_rows(measured: &[Measured]) -> Result<(), Message> {
    print_event(&json!({ "event": "rows", "rows": measured.iter().map(with_progress).collect::<Vec<_>>() }))
}

fn obey(agent: &mut Agent, load: &mut Load, cancel: &Cancel) -> Result<(), Message> {
    loop {
        match agent.order()? {
            Order::Clock => print_event(&json!({ "event": "clock", "ns": now_ns() }))?,
            Order::Step(step) => {
                let measured = load.measure(&step, cancel, agent)?;
                print_rows(&measured)?;
            }
            Order::Skip(step) => print_rows(&load.skipped(&step))?,
            Order::StartAt(_) => {}
            Order::End => return Ok(()),
        }
    }
}
