//! The process that records into memory.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    sync::mpsc::Sender,
    thread,
    time::{Duration, Instant},
};

use chrono::Local;
use rustix::{
    pipe::PipeFlags,
    process::{Pid, WaitOptions, waitpid},
    stdio::{dup2_stderr, dup2_stdin, dup2_stdout},
};
use serde_json::{Value, json};
use sysdock_bpf::{Cause, Flight, Flying, Start, Trigger};
use sysdock_table::{Cancel, Fact, facts};

use crate::{
    arguments::{self, FlightStart},
    by_kernel, environment,
    flight::{
        control::{self, Control, Occurrence},
        triggered::Triggered,
    },
    messages::{self, EXIT_ERROR, Message},
    privileges, progress, sentences, signals, watched,
};

/// Interval between checks of the rings. The fastest programs fill one of 8 MiB in 40 ms.
const PAUSE: Duration = Duration::from_millis(10);
/// Families that are recorded by default: those that cost little, because the recorder is always
/// on.
const CHEAP: [&str; 3] = ["sched", "system", "block"];
/// Families that can be recorded without system calls.
const WITHOUT_CALLS: [&str; 7] = ["sched", "system", "locks", "block", "irq", "memory", "syscalls"];
/// Interval between runs of a trigger's command.
const COMMANDS: Duration = Duration::from_secs(10);

/// Start the recorder, in the background unless it is to stay in the foreground.
pub(crate) fn start(arguments: &FlightStart) -> Result<u8, Message> {
    check(arguments)?;
    if arguments.foreground {
        return record(arguments, &mut io::stdout());
    }
    let (ready, readers) = pipe().map_err(|error| Message::bare(format!("cannot start a process: {error}")))?;
    // SAFETY: no other thread runs yet.
    match unsafe { libc::fork() } {
        -1 => Err(Message::bare(format!("cannot start a process: {}", io::Error::last_os_error()))),
        0 => {
            drop(readers);
            // It fails only for the leader of a group, which a new process is not.
            let _ = rustix::process::setsid();
            record(arguments, &mut Background(Some(ready)))
        }
        child => {
            drop(ready);
            Ok(wait_until_ready(readers, child))
        }
    }
}

/// Report mistakes in the request before anything is started.
fn check(arguments: &FlightStart) -> Result<(), Message> {
    let missing = privileges::missing();
    if !missing.is_empty() {
        let fact = format!("a flight recorder needs {}", missing.join(" and "));
        return Err(Message::new(fact, format!("{} flight start", privileges::sudo_sysdock())));
    }
    if arguments.memory <= arguments.ring * 2 {
        let fact = format!("--memory {}: the ring of each CPU takes {} MiB of it", arguments.memory, arguments.ring);
        return Err(Message::new(fact, "give more memory, or a smaller --ring"));
    }
    let families = by_kernel::families(&as_record(arguments));
    let with_calls = || format!("record them, too: --what {},{}", sysdock_bpf::IO, what(arguments).join(","));
    let needs_calls = |family: &&sysdock_bpf::Family| !WITHOUT_CALLS.contains(&family.name);
    if let Some(family) = families.iter().find(needs_calls).filter(|_| without_calls(arguments)) {
        let hint = with_calls();
        return Err(Message::new(format!("{} need system calls, which have the names for them", family.shows), hint));
    }
    if without_calls(arguments) && arguments.on.iter().any(|(_, trigger)| matches!(trigger, Trigger::Call { .. })) {
        return Err(Message::new("a trigger waits for system calls, which are not recorded", with_calls()));
    }
    for (text, trigger) in &arguments.on {
        if let Some(family) = trigger.family().filter(|family| !families.contains(family)) {
            let hint = match trigger {
                Trigger::Probe => "name a place: --probe u:PATH:FUNCTION".to_string(),
                _ => format!("record it, too: --what ...,{}", family.name),
            };
            return Err(Message::new(format!("--on {text}: {} are not recorded", family.shows), hint));
        }
    }
    Ok(())
}

fn pipe() -> io::Result<(File, File)> {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok((File::from(writer), File::from(reader)))
}

/// Print the recorder's message when it records, or return its exit status if it fails before,
/// after printing the reason.
fn wait_until_ready(mut readers: File, child: libc::pid_t) -> u8 {
    let mut output = Vec::new();
    let _ = readers.read_to_end(&mut output);
    if !output.is_empty() {
        return if io::stdout().write_all(&output).is_ok() { 0 } else { EXIT_ERROR };
    }
    let _ = waitpid(Pid::from_raw(child), WaitOptions::empty());
    EXIT_ERROR
}

/// Tells the process that started the recorder that it records, and then detaches.
struct Background(Option<File>);

impl Write for Background {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.as_mut().map_or(Ok(text.len()), |ready| ready.write(text))
    }

    fn flush(&mut self) -> io::Result<()> {
        let nowhere = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nowhere)?;
        dup2_stdout(&nowhere)?;
        dup2_stderr(&nowhere)?;
        self.0 = None;
        Ok(())
    }
}

/// The families to record, by their names for `--what`. By default, those that other options need
/// are included.
fn what(arguments: &FlightStart) -> Vec<String> {
    let FlightStart { what, on, details: arguments::Details { probe, stacks, freq, .. }, .. } = arguments;
    if !what.is_empty() {
        return what.clone();
    }
    let waits_for_calls = on.iter().any(|(_, trigger)| matches!(trigger, Trigger::Call { .. }));
    let needs_calls = waits_for_calls || !probe.is_empty() || stacks.is_some() || freq.is_some();
    let more = needs_calls.then_some(sysdock_bpf::IO).into_iter().chain(freq.is_some().then_some("cpu"));
    // Probes are recorded if they are named, regardless of `--what`.
    let of_triggers = on.iter().filter_map(|(_, trigger)| trigger.family()).filter(|family| *family != sysdock_bpf::PROBES);
    let words = CHEAP.into_iter().chain(more).chain(of_triggers.map(|family| family.name));
    words.map(str::to_string).collect()
}

/// Whether system calls are left out: unlike `record`, the flight recorder includes them only if
/// they are named, because they cost most.
fn without_calls(arguments: &FlightStart) -> bool {
    arguments.details.preset.is_none() && !what(arguments).iter().any(|word| word == sysdock_bpf::IO)
}

/// The same arguments for `record`.
fn as_record(arguments: &FlightStart) -> arguments::Record {
    let target = &arguments.target;
    arguments::Record {
        output: std::path::PathBuf::new(),
        recorder: arguments::Recorder::Kernel,
        target: arguments::Target { all: target.all || target.is_empty(), ..target.clone() },
        time: None,
        what: if arguments.details.preset.is_some() { Vec::new() } else { what(arguments) },
        without_calls: without_calls(arguments),
        no_loss: false,
        ring: arguments.ring,
        details: arguments.details.clone(),
        request: Vec::new(),
        probe_stacks: false,
        as_root: true,
        wait: arguments::Wait::All,
        share: false,
        command: Vec::new(),
        progress: arguments::Progress { progress: false, progress_fd: None },
    }
}

/// Record until a request to stop.
fn record(arguments: &FlightStart, ready: &mut impl Write) -> Result<u8, Message> {
    let wanted = as_record(arguments);
    progress::keep_to_ourselves(&wanted.progress);
    let control = Control::open(&arguments.name.name)?;
    let triggered = Triggered::new(arguments)?;
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let prepared = by_kernel::prepare(&wanted).map_err(by_kernel::Refusal::into_message)?;
    by_kernel::note_what_is_missing(&wanted, &prepared.probes.families);
    let cpus = prepared.probes.rings.len();
    let memory = ((arguments.memory - arguments.ring) as usize * cpus) << 20;
    let mut options = by_kernel::options(&wanted);
    options.insert(0, format!("flight --keep {}s", arguments.keep.as_secs_f64()));
    let (target, group) = (prepared.target, prepared.group);
    let flying = Flying {
        keep: arguments.keep,
        memory,
        triggers: arguments.on.iter().map(|(_, trigger)| trigger.clone()).collect(),
        processes: Box::new(move || by_kernel::processes_there(&target, group.as_ref())),
        start: Start {
            options,
            watched: watched::watched(&wanted.target),
            host: environment::host_name(),
            boot: sysdock_bpf::boot(),
            probe_list: prepared.probe_list,
            without_calls: without_calls(arguments),
            sample_period_ns: i64::try_from(by_kernel::sample_period(&wanted).as_nanos()).ok(),
            ..Start::default()
        },
    };
    let flight = Flight::begin(prepared.probes, &prepared.tasks, prepared.meters, flying)?;
    for (text, trigger) in &arguments.on {
        if let Trigger::Command(words) = trigger {
            let named = text.trim_start_matches("command:").to_string();
            run_again_and_again(words.clone(), named, control.sender.clone());
        }
    }
    let since = (Local::now().format("%Y-%m-%d %H:%M:%S").to_string(), Instant::now());
    let mut recorder = Recorder { arguments, flight, triggered, since, memory: u64::from(arguments.memory) * cpus as u64 };
    let output = recorder.started_message().as_bytes().to_vec();
    ready.write_all(&output).and_then(|()| ready.flush()).map_err(|error| Message::bare(format!("standard output: {error}")))?;
    let leavers = recorder.run(&control, &cancel)?;
    // A client that is told about the end may start another recorder.
    drop((recorder, control));
    drop(leavers);
    Ok(0)
}

/// Run a program and its arguments until nobody receives when it exits with status 0. No shell
/// interprets them: they are words of the user who started the recorder.
fn run_again_and_again(words: Vec<String>, named: String, sender: Sender<Occurrence>) {
    thread::spawn(move || {
        loop {
            thread::sleep(COMMANDS);
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let is_met = command.status().is_ok_and(|status| status.success());
            if is_met && sender.send(Occurrence::Condition(named.clone())).is_err() {
                return;
            }
        }
    });
}

struct Recorder<'a> {
    arguments: &'a FlightStart,
    flight: Flight,
    triggered: Triggered,
    since: (String, Instant),
    /// For all CPUs [MiB].
    memory: u64,
}

impl Recorder<'_> {
    /// The message when it begins.
    fn started_message(&self) -> String {
        let keep = self.arguments.keep.as_secs_f64();
        let name = match self.arguments.name.name.as_str() {
            "flight" => String::new(),
            name => format!(" --name {name}"),
        };
        format!(
            "the last {keep} s of {} stay in {} MiB of memory\nsysdock flight dump{name} -o REC writes them; sysdock flight stop{name} ends it\n",
            self.target(),
            self.memory
        )
    }

    fn target(&self) -> String {
        let target = &self.arguments.target;
        match &target.cgroup {
            Some(path) => format!("control group {}", path.display()),
            None if target.pid.is_empty() => "all processes".into(),
            None => format!("process {}", target.pid.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        }
    }

    /// Record until a request to stop; returns the clients that sent one.
    fn run(&mut self, control: &Control, cancel: &Cancel) -> Result<Vec<UnixStream>, Message> {
        let mut leavers = Vec::new();
        while !cancel.requested() && leavers.is_empty() {
            if let Some(cause) = self.flight.step()? {
                self.trigger(&cause);
            }
            for occurrence in control.occurrences.try_iter() {
                match occurrence {
                    Occurrence::Condition(command) => self.trigger(&now(facts::marks::requested_by(command))),
                    Occurrence::Request(request, stream) => leavers.extend(self.answer(&request, stream)),
                }
            }
            thread::sleep(PAUSE);
        }
        self.triggered.finish();
        Ok(leavers)
    }

    fn trigger(&mut self, cause: &Cause) {
        if !self.triggered.may_write() {
            return;
        }
        let what = match self.flight.name(cause.tid) {
            Some(name) => facts::marks::in_thread(name, cause.tid, cause.what.clone()),
            None => cause.what.clone(),
        };
        match self.flight.take(&Cause { what: what.clone(), ..*cause }) {
            Ok(dump) => self.triggered.write(dump, sentences::sentence(&what)),
            Err(error) => {
                let why = messages::not_taken(error);
                messages::note(&format!("the recording that a trigger requested cannot be written: {why}"));
            }
        }
    }

    /// Handle a request. Returns the client to inform at the end.
    fn answer(&mut self, request: &Value, mut stream: UnixStream) -> Option<UnixStream> {
        let answered = match request["do"].as_str() {
            Some("status") => control::answer(&mut stream, &self.status()),
            Some("stop") => return control::answer(&mut stream, &json!({})).is_ok().then_some(stream),
            Some("dump") => self.dump(request["text"].as_str().unwrap_or_default(), stream),
            _ => control::answer(&mut stream, &json!({ "error": "it does not know this request" })),
        };
        // A client that is gone needs no answer.
        drop(answered);
        None
    }

    fn dump(&mut self, text: &str, mut stream: UnixStream) -> io::Result<()> {
        match self.flight.take(&now(facts::marks::stated(text))) {
            Ok(dump) => {
                control::answer(&mut stream, &json!({ "holds_s": seconds(dump.time_ns) }))?;
                thread::spawn(move || dump.write(&mut stream));
                Ok(())
            }
            Err(error) => control::answer(&mut stream, &json!({ "error": messages::not_taken(error) })),
        }
    }

    fn status(&mut self) -> Value {
        self.triggered.reap();
        let held = self.flight.held();
        let (what, missing): (Vec<_>, Vec<_>) = self.flight.families().iter().partition(|state| state.missing.is_none());
        let calls = (!without_calls(self.arguments)).then_some(sysdock_bpf::IO).into_iter();
        let reason = |state: &sysdock_table::FamilyState| state.missing.as_ref().map(sentences::sentence).unwrap_or_default();
        let not_requested = facts::capture::not_requested();
        let missing = missing.into_iter().filter(|state| state.missing.as_ref() != Some(&not_requested));
        json!({
            "pid": std::process::id(),
            "since": self.since.0,
            "target": self.target(),
            "what": calls.chain(what.iter().map(|state| state.family.as_str())).collect::<Vec<_>>(),
            "missing": missing.map(|state| format!("{}: {}", state.family, reason(state))).collect::<Vec<_>>(),
            "keep_s": self.arguments.keep.as_secs_f64(),
            "holds_s": seconds(held.time_ns),
            "memory_bytes": held.memory,
            "used_bytes": held.used,
            "events_bytes": held.events_bytes,
            "bytes_per_s": held.events_bytes as f64 / self.since.1.elapsed().as_secs_f64(),
            "lost_events": held.lost,
            "triggers": self.arguments.on.iter().map(|(text, _)| text).collect::<Vec<_>>(),
            "ignored": self.triggered.ignored,
            "removed": self.triggered.removed,
            "dumps": self.triggered.list(),
        })
    }
}

/// A cause at the current time that is not related to a thread.
fn now(what: Fact) -> Cause {
    Cause { what, tid: 0, at_ns: sysdock_bpf::monotonic_ns() }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}
