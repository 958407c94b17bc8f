//! Recording with the kernel's own events.
//!
//! States: *prepared* (the command's process waits, its control group exists, the programs are
//! loaded and attached; every step that may fail for lack of permission has succeeded) ->
//! *recording* (rights are dropped, the folder exists, the command runs) -> *closing* (the spool is
//! converted to tables). A refusal in the first state leaves nothing behind, so that strace can
//! take over.

use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use sysdock_bpf::{
    BpfError, Capture, End, FAMILIES, Family, Gate, Group, KernelNames, Meters, Note, ProbeList, Probes, Reason, Refused,
    Settings, Spool, Stacks, Start, Target, all_processes, first_task, task_events,
};
use sysdock_table::{Cancel, Ending, FamilyState, Folder, Manifest, Recording};

use crate::{
    arguments,
    command::{self, Exit},
    confine, environment, inherited,
    left_behind::LeftBehind,
    messages::{self, EXIT_ERROR, EXIT_INTERRUPTED, Message},
    privileges::{self, Caller},
    progress::Reporter,
    relay::{self, Relay},
    sentences,
    signals::{self, Counts},
    watched,
};

/// Reason why nothing was recorded.
pub(crate) enum Refusal {
    /// This recorder cannot run here, but another one may.
    Unable(String),
    /// No recorder could.
    Error(Message),
}

impl Refusal {
    pub(crate) fn into_message(self) -> Message {
        match self {
            Refusal::Error(message) => message,
            Refusal::Unable(reason) => Message::new(
                format!("the kernel recorder cannot run: {reason}"),
                // More rights do not help if none is missing.
                match privileges::missing().is_empty() {
                    true => "sysdock run --with strace -- CMD".into(),
                    false => format!(
                        "{} run -- CMD records it and still runs CMD as you; or sysdock run --with strace -- CMD",
                        privileges::sudo_sysdock()
                    ),
                },
            ),
        }
    }
}

impl From<Message> for Refusal {
    fn from(message: Message) -> Self {
        Refusal::Error(message)
    }
}

/// State that exists before anything is written.
pub(crate) struct Prepared {
    pub(crate) probes: Probes,
    pub(crate) probe_list: ProbeList,
    pub(crate) target: Target,
    /// The command's process, waiting.
    gate: Option<Gate>,
    /// The command's control group, or the requested one.
    pub(crate) group: Option<Group>,
    /// Events that describe existing threads and their mappings.
    pub(crate) tasks: Vec<u8>,
    /// Opened while there is the right to see addresses of the kernel.
    names: KernelNames,
    /// Opened while there are all rights: counters of the machine.
    pub(crate) meters: Option<Meters>,
    /// Time for loading and attaching the programs.
    attach: Duration,
}

/// A recording with a spool that is not converted yet.
struct Unfinished {
    recording: Recording,
    names: KernelNames,
    /// Message if it is empty.
    why_empty: String,
}

/// Record; returns how the command ended, or 0.
pub(crate) fn run(arguments: &arguments::Record) -> Result<Exit, Refusal> {
    let missing = privileges::missing();
    if !missing.is_empty() {
        return Err(Refusal::Unable(format!("it needs {}", missing.join(" and "))));
    }
    if arguments.no_loss && !arguments.target.pid.is_empty() {
        return Err(Refusal::Error(Message::new(
            "--no-loss holds a group still, not single processes",
            "name its group: --cgroup PATH",
        )));
    }
    let directory = env::current_dir().ok().map(|directory| directory.to_string_lossy().into_owned());
    if arguments.target.all && sysdock_bpf::own_pid_namespace().is_ok_and(|number| number != 0) {
        messages::note("only processes of this PID namespace are recorded; record on the host for the whole system");
    }
    let rows = environment::of_this_machine(&arguments.command, directory.clone());
    let manifest = manifest(arguments, directory);
    let relay = Relay::start(|| ());
    let prepared = prepare(arguments);
    // A signal makes loading fail. Nothing has been started or written yet.
    if let Some(signal) = signals::end_requests(&Counts::default()).first() {
        return Ok(Exit::Signal(*signal));
    }
    let prepared = prepared?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share)).map_err(Message::from)?;
    let mut recording = Recording::create_in(folder, manifest).map_err(Message::from)?;
    environment::write(&mut recording, &rows).map_err(Message::from)?;
    // Listed from here on, so that salvage finds it.
    recording.checkpoint().map_err(Message::from)?;
    Ok(record(arguments, prepared, recording, rows, relay)?)
}

fn manifest(arguments: &arguments::Record, directory: Option<String>) -> Manifest {
    let mut manifest = sysdock_bpf::manifest();
    if !arguments.command.is_empty() {
        manifest.command = Some(environment::command_text(&arguments.command));
        manifest.directory = directory;
    }
    manifest.host = environment::host_name();
    manifest.watched = watched::watched(&arguments.target);
    manifest.capture_mut().options = options(arguments);
    manifest
}

/// The requested options, as one would type them.
pub(crate) fn options(arguments: &arguments::Record) -> Vec<String> {
    let mut options = Vec::new();
    let target = &arguments.target;
    options.extend(target.pid.iter().map(|pid| format!("-p {pid}")));
    options.extend(target.cgroup.iter().map(|path| format!("--cgroup {}", path.display())));
    options.extend(target.all.then(|| "-a".to_string()));
    options.extend(arguments.time.map(|time| format!("--for {}s", time.as_secs_f64())));
    options.extend(arguments.no_loss.then(|| "--no-loss".to_string()));
    options.extend(arguments.details.freq.map(|hz| format!("--freq {hz}")));
    options.extend(arguments.details.stacks.as_ref().map(|(text, _)| format!("--stacks={text}")));
    options.extend(arguments.details.probe.iter().map(|probe| format!("--probe '{}'", probe.text)));
    options.extend(arguments.request.iter().map(|ends| format!("--request '{}'", ends.text)));
    options.extend(arguments.probe_stacks.then(|| "--probe-stacks".to_string()));
    options.extend(arguments.details.preset.map(|_| "--preset bottleneck".to_string()));
    options.extend((!arguments.what.is_empty()).then(|| format!("--what {}", arguments.what.join(","))));
    options.push(format!("--ring {}", arguments.ring));
    options
}

/// Do everything that may be refused.
pub(crate) fn prepare(arguments: &arguments::Record) -> Result<Prepared, Refusal> {
    let gate = if arguments.command.is_empty() { None } else { Some(gate_of(arguments)?) };
    let group = match &arguments.target.cgroup {
        Some(path) => Some(Group::at(path).map_err(|error| {
            let hint = "give its folder, such as /sys/fs/cgroup/system.slice/nginx.service";
            Message::new(format!("{}: no control group of version 2: {error}", path.display()), hint)
        })?),
        // If no group can be made, the kernel side follows births instead.
        None => gate.as_ref().and_then(|gate| own_group(gate.pid())),
    };
    if arguments.no_loss && group.is_none() {
        return Err(Refusal::Error(Message::new(
            "--no-loss needs a control group, which cannot be made here",
            "leave it out, or run as root",
        )));
    }
    let held = hold(&arguments.target.pid)?;
    let (target, mut tasks) = target(arguments, gate.as_ref(), group.as_ref())?;
    let settings = Settings {
        target,
        calls: !arguments.without_calls,
        families: families(arguments),
        ring_bytes: arguments.ring << 20,
        secret: command::secret(),
        stacks: stacks(arguments),
        sample_period: sample_period(arguments),
        no_loss: arguments.no_loss,
        probe_list: probe_list(arguments)?,
    };
    let refused = |error: sysdock_bpf::ProbeError| {
        Refusal::Unable(format!("{}: {}", messages::step(error.step), sentences::sentence(&error.reason)))
    };
    let begun = Instant::now();
    let mut probes = Probes::load(&settings).map_err(refused)?;
    if gate.is_none() {
        let there = processes_there(&settings.target, group.as_ref());
        tasks.extend(probes.report_layouts(&there).map_err(refused)?);
    }
    probes.attach().map_err(refused)?;
    probes.attach_probes(&settings.probe_list).map_err(cannot_probe)?;
    let target = settings.target;
    let target = if arguments.target.pid.is_empty() {
        target
    } else {
        follow_late_children(target, &probes, &mut tasks).map_err(refused)?
    };
    if let Some(gone) = held.iter().find(|process| process.has_ended()) {
        // Its number may belong to another process by now.
        return Err(Refusal::Error(no_such_process(gone.pid)));
    }
    let attach = begun.elapsed();
    let meters = Meters::open(&settings.families, group.as_ref().map(Group::folder));
    Ok(Prepared {
        probes,
        probe_list: settings.probe_list,
        target,
        gate,
        group,
        tasks,
        names: KernelNames::open(),
        meters,
        attach,
    })
}

/// The probes that were requested.
fn probe_list(arguments: &arguments::Record) -> Result<ProbeList, Message> {
    let is_meant = arguments.probe_stacks || arguments.what.iter().any(|word| word == sysdock_bpf::PROBES.name);
    if is_meant && !names_places(arguments) {
        return Err(Message::new("no place is named that could be recorded", "name it: --probe u:PATH:FUNCTION"));
    }
    ProbeList::new(&arguments.details.probe, &arguments.request, arguments.probe_stacks)
        .map_err(|wrong| Message::new(messages::wrong_probe(&wrong), "name fewer, or record several times"))
}

/// Unlike a family, a probe that cannot be attached ends the recording, because the user named it.
fn cannot_probe((probe, reason): Refused) -> Refusal {
    Refusal::Error(Message::new(
        format!("{probe}: cannot be recorded: {}", messages::no_place(reason)),
        "docs/howto/probe-a-program.md describes what can be probed",
    ))
}

/// The requested families; the command line has rejected other names.
pub(crate) fn families(arguments: &arguments::Record) -> Vec<Family> {
    let mut families = match arguments.details.preset {
        Some(arguments::Preset::Bottleneck) => {
            // Stacks have an option of their own, and sums of calls would repeat what is recorded
            // call by call.
            let left_out = [sysdock_bpf::STACKS, sysdock_bpf::SYSCALLS];
            FAMILIES.iter().copied().filter(|family| !left_out.contains(family)).collect()
        }
        None => sysdock_bpf::chosen(arguments.what.iter().map(String::as_str)).unwrap_or_default(),
    };
    families.retain(|family| *family != sysdock_bpf::PROBES);
    families.extend(names_places(arguments).then_some(sysdock_bpf::PROBES));
    families
}

fn names_places(arguments: &arguments::Record) -> bool {
    !arguments.details.probe.is_empty() || !arguments.request.is_empty()
}

fn gate_of(arguments: &arguments::Record) -> Result<Gate, Message> {
    close_gate(&arguments.command, if arguments.as_root { None } else { Caller::find() })
}

/// Create the process of a command, which waits. It gets the rights of the caller, if there is one.
pub(crate) fn close_gate(words: &[OsString], caller: Option<Caller>) -> Result<Gate, Message> {
    let program = &words[0];
    // The command is looked up here, as strace does, so that the search along PATH is not recorded
    // as the program's calls.
    let mut command = Command::new(command::find_command(words, caller.as_ref()).unwrap_or_else(|| program.into()));
    command.arg0(program).args(&words[1..]);
    command.envs(inherited::removed_variables());
    command.envs(caller.iter().flat_map(Caller::variables).map(|(name, value)| (name, value)));
    let cannot =
        |error| Message::new(format!("cannot start a process: {error}"), "is the limit of processes (ulimit -u) reached?");
    let prepare = move || {
        inherited::give_back();
        caller.as_ref().map_or(Ok(()), Caller::become_user)
    };
    Gate::close(command, prepare).map_err(cannot)
}

fn own_group(pid: u32) -> Option<Group> {
    let group = Group::create().and_then(|group| group.add(pid).map(|()| group));
    if let Err(error) = &group
        && error.kind() == io::ErrorKind::ReadOnlyFilesystem
    {
        messages::note("control groups are mounted read-only here: processes are followed by their parents instead");
    }
    group.ok()
}

fn target(arguments: &arguments::Record, gate: Option<&Gate>, group: Option<&Group>) -> Result<(Target, Vec<u8>), Message> {
    let target = &arguments.target;
    if let Some(id) = group.and_then(|group| group.id().ok()) {
        let tasks =
            gate.map_or_else(|| task_events(group.map(Group::processes).unwrap_or_default()), |gate| first_task(gate.pid()));
        return Ok((Target::ControlGroup(id), tasks));
    }
    if let Some(gate) = gate {
        return Ok((Target::Processes(vec![gate.pid()]), first_task(gate.pid())));
    }
    if target.all {
        let all = all_processes().map_err(|error| Message::new(format!("/proc: {error}"), "is /proc mounted?"))?;
        return Ok((Target::All, task_events(all)));
    }
    let pids = [target.pid.clone(), watched::below(&target.pid)].concat();
    let tasks = task_events(pids.iter().copied());
    Ok((Target::Processes(pids), tasks))
}

/// Add processes that were started between the scan for children and the time from which forks are
/// reported.
fn follow_late_children(target: Target, probes: &Probes, tasks: &mut Vec<u8>) -> Result<Target, sysdock_bpf::ProbeError> {
    let Target::Processes(mut pids) = target else { return Ok(target) };
    // Their own children of the meantime are found in the next round, unless they are reported.
    const ROUNDS: usize = 8;
    for _ in 0..ROUNDS {
        let late = watched::below(&pids);
        if late.is_empty() {
            break;
        }
        tasks.extend(probes.follow(&late)?);
        pids.extend(late);
    }
    Ok(Target::Processes(pids))
}

/// A process held by a descriptor, which stays valid if its number is reused.
struct HeldProcess {
    pid: u32,
    descriptor: OwnedFd,
}

impl HeldProcess {
    fn has_ended(&self) -> bool {
        poll(&mut [PollFd::new(&self.descriptor, PollFlags::IN)], Some(&Timespec::default())) == Ok(1)
    }
}

/// Open descriptors of the processes with these numbers.
fn hold(pids: &[u32]) -> Result<Vec<HeldProcess>, Message> {
    let hold = |pid: &u32| {
        let process = Pid::from_raw(pid.cast_signed()).ok_or_else(|| no_such_process(*pid))?;
        let descriptor = pidfd_open(process, PidfdFlags::empty()).map_err(|_| no_such_process(*pid))?;
        Ok(HeldProcess { pid: *pid, descriptor })
    };
    pids.iter().map(hold).collect()
}

fn no_such_process(pid: u32) -> Message {
    Message::new(format!("-p {pid}: no such process"), "pgrep -a NAME lists processes by name")
}

/// The calls for which stacks are recorded.
fn stacks(arguments: &arguments::Record) -> Stacks {
    let named = arguments.what.iter().any(|word| word == sysdock_bpf::STACKS.name);
    let usual = if named { Stacks::All } else { Stacks::Off };
    arguments.details.stacks.as_ref().map_or(usual, |(_, stacks)| *stacks)
}

/// Time between two samples of a CPU. Not a multiple of the periods of common programs.
pub(crate) fn sample_period(arguments: &arguments::Record) -> Duration {
    const USUAL_HZ: u32 = 199;
    Duration::from_secs(1) / arguments.details.freq.unwrap_or(USUAL_HZ)
}

/// The recorded processes that run already, as far as they are known without the kernel side.
pub(crate) fn processes_there(target: &Target, group: Option<&Group>) -> Vec<u32> {
    match (target, group) {
        (Target::All, _) => all_processes().unwrap_or_default(),
        (_, Some(group)) => group.processes(),
        (Target::Processes(pids), None) => pids.clone(),
        (Target::ControlGroup(_), None) => Vec::new(),
    }
}

/// Let the command run and record it to its end.
fn record(
    arguments: &arguments::Record,
    prepared: Prepared,
    recording: Recording,
    mut rows: Vec<environment::Row>,
    relay: Relay,
) -> Result<Exit, Message> {
    let Prepared { probes, probe_list, target, gate, group, tasks, names, meters, attach } = prepared;
    note_what_is_watched(arguments, &recording);
    let mut spool = Spool::create(recording.folder())?;
    note_what_is_missing(arguments, &probes.families);
    let start = Start {
        families: probes.families.clone(),
        probe_list,
        sample_period_ns: i64::try_from(sample_period(arguments).as_nanos()).ok(),
        ..start_note(&recording, gate.as_ref())
    };
    spool.note(&Note::Start(Box::new(start)))?;
    spool.append(sysdock_bpf::NO_CPU, &tasks)?;
    spool.flush()?;
    let hold = if arguments.no_loss { group.as_ref().and_then(|group| group.freezer().ok()) } else { None };
    // Before threads are started. The command's process exists already and is not confined.
    rows.push(environment::of_its_limits(confine::recorder(recording.folder())));
    let mut capture = Capture::new(probes, spool, hold, meters.map(|meters| Box::new(meters) as _))?;
    if let Err(error) = privileges::drop_rest(arguments.as_root) {
        messages::note(&format!("rights that are no longer needed could not be dropped: {error}"));
    }
    let child = gate.map(Gate::open).transpose().map_err(|error| cannot_run(arguments, &error))?;
    let mut watch = Watch::new(child, group, arguments, relay);
    let recorded = capture.run(|| watch.is_over());
    let reason = match &recorded {
        Ok(()) if watch.interrupted => Reason::Interrupted,
        Ok(()) => Reason::Done,
        // A write error ends the recording, not the program.
        Err(_) => Reason::Full,
    };
    let status = watch.wait();
    let why_empty = watched::why_empty(&target, watch.group.as_ref());
    let finished = capture.finish(|_| Note::End(end_note(status, reason)));
    // Samples of these programs get their names when the tables are made.
    let _programs = capture.into_programs();
    let attach = finished.as_ref().ok().map(|totals| environment::of_the_recorder(attach, totals.detach));
    if let Some(lost) = finished.as_ref().ok().map(|totals| totals.dropped).filter(|lost| *lost > 0 && arguments.no_loss) {
        messages::note(&format!("{lost} events were lost despite --no-loss: use larger rings (--ring 64)"));
    }
    rows.extend(attach.into_iter().flatten());
    let failed = recorded.err().or(finished.err());
    let closed = close_with_rows(Unfinished { recording, names, why_empty }, &rows, arguments, reason, failed);
    match (closed, status) {
        // From here on the caller waits for the command's status.
        (Err(message), Some(status)) => {
            messages::print(&message);
            Ok(status.into())
        }
        (Err(message), None) => Err(message),
        (Ok(()), Some(status)) => Ok(status.into()),
        (Ok(()), None) => Ok(Exit::Code(if watch.interrupted { EXIT_INTERRUPTED } else { 0 })),
    }
}

/// Make tables of the recording. If recording failed, that is the error, even if the tables can be
/// made.
fn close_with_rows(
    mut unfinished: Unfinished,
    rows: &[environment::Row],
    arguments: &arguments::Record,
    reason: Reason,
    failed: Option<BpfError>,
) -> Result<(), Message> {
    let spool = unfinished.recording.folder().path().join(sysdock_bpf::SPOOL);
    let Some(failed) = failed else {
        environment::write(&mut unfinished.recording, rows)?;
        return close(unfinished, arguments, reason);
    };
    let closed = close(unfinished, arguments, reason);
    Err(match (closed, failed) {
        (Ok(()), BpfError::Full(_)) => {
            Message::new(messages::full(&spool), "what was recorded until then can be read; the command went on to its end")
        }
        // If there is no room for the tables either, this names the file with the events and the
        // way to read it.
        (_, failed) => failed.into(),
    })
}

/// Tell a user who named a process that its children are recorded too.
fn note_what_is_watched(arguments: &arguments::Record, recording: &Recording) {
    if let Some(watched) = recording.manifest.watched.as_ref() {
        let until = if arguments.time.is_some() { "" } else { "; Ctrl-C ends it" };
        messages::note(&format!("recording {}{until}", watched::description(watched)));
    }
}

pub(crate) fn note_what_is_missing(arguments: &arguments::Record, states: &[FamilyState]) {
    let mut wanted = families(arguments);
    if stacks(arguments) != Stacks::Off && !wanted.contains(&sysdock_bpf::STACKS) {
        wanted.push(sysdock_bpf::STACKS);
    }
    for family in wanted {
        let state = states.iter().find(|state| state.family == family.name);
        if let Some(reason) = state.and_then(|state| state.missing.as_ref()) {
            messages::note(&format!("{} are not recorded: {}", family.shows, sentences::sentence(reason)));
        }
    }
}

fn start_note(recording: &Recording, gate: Option<&Gate>) -> Start {
    let manifest = &recording.manifest;
    Start {
        command: manifest.command.clone(),
        watched: manifest.watched.clone(),
        directory: manifest.directory.clone(),
        host: manifest.host.clone(),
        options: manifest.capture().options.clone(),
        pid: gate.map(Gate::pid),
        boot: sysdock_bpf::boot(),
        ..Start::default()
    }
}

fn end_note(status: Option<ExitStatus>, reason: Reason) -> End {
    use std::os::unix::process::ExitStatusExt;
    End { exit_code: status.and_then(|status| status.code()), exit_signal: status.and_then(|status| status.signal()), reason }
}

fn cannot_run(arguments: &arguments::Record, error: &std::io::Error) -> Message {
    let name = arguments.command.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    Message::new(format!("{name}: cannot be run: {error}"), "can the user who called sudo run it? --as-root runs it as root")
}

/// Monitors the command, the time limit and the user's signals.
struct Watch {
    child: Option<Child>,
    status: Option<ExitStatus>,
    group: Option<Group>,
    until: Option<Instant>,
    relay: Relay,
    /// Number of SIGINTs that the command did not handle.
    unhandled: u32,
    interrupted: bool,
    left_behind: LeftBehind,
}

impl Watch {
    fn new(child: Option<Child>, group: Option<Group>, arguments: &arguments::Record, relay: Relay) -> Self {
        let until = arguments.time.map(|time| Instant::now() + time);
        let left_behind = LeftBehind::new(arguments.wait);
        Watch { child, status: None, group, until, relay, unhandled: 0, interrupted: false, left_behind }
    }

    /// Whether the recording is to end now.
    fn is_over(&mut self) -> bool {
        self.heed_signals();
        if self.interrupted || self.until.is_some_and(|until| Instant::now() >= until) {
            return true;
        }
        if self.child.is_none() {
            return false;
        }
        self.check_for_its_end();
        // Processes that the command left in the background are recorded too, as with strace -f.
        let left = self.group.as_ref().filter(|group| self.status.is_some() && group.is_populated());
        match left {
            Some(group) => !self.left_behind.is_waited_for(|| group.processes()),
            None => self.status.is_some(),
        }
    }

    fn check_for_its_end(&mut self) {
        if let Some(child) = self.child.as_mut().filter(|_| self.status.is_none()) {
            self.status = child.try_wait().ok().flatten();
        }
    }

    /// Handle the signals to the recorder. Each is passed on to the command unless the command
    /// received it too. A second SIGINT that the command does not handle shows that the command
    /// will not end: then the recording ends and the command continues. If no command is running,
    /// every signal that requests an end ends the recording.
    fn heed_signals(&mut self) {
        let received = self.relay.received();
        if received.is_empty() {
            return;
        }
        // This signal may have ended it: signals that came before its end was known were meant for
        // it.
        let Some(child) = self.child.as_ref().filter(|_| self.status.is_none()) else {
            self.interrupted |= received.iter().any(|one| signals::requests_an_end(one.signal));
            return;
        };
        command::pass_on(&received, child.id());
        self.unhandled += u32::from(relay::has_unhandled_sigint(&received, child.id()));
        self.interrupted |= self.unhandled >= 2;
    }

    /// The exit status of the command. If the recording ended for lack of space, the command is
    /// waited for; if the user ended it, it is not.
    fn wait(&mut self) -> Option<ExitStatus> {
        self.check_for_its_end();
        while self.child.is_some()
            && self.status.is_none()
            && !self.interrupted
            && self.until.is_none_or(|until| Instant::now() < until)
        {
            thread::sleep(Duration::from_millis(20));
            self.heed_signals();
            self.check_for_its_end();
        }
        self.status
    }
}

/// Make tables of the spool, and remove the spool once they are complete.
fn close(unfinished: Unfinished, arguments: &arguments::Record, reason: Reason) -> Result<(), Message> {
    let Unfinished { mut recording, names, why_empty } = unfinished;
    let mut reporter = Reporter::new(&arguments.progress);
    let ending = sysdock_bpf::convert_own(&mut recording, names, &Cancel::default(), &mut |progress| reporter.report(progress))?;
    // A full disk had no room for the last note with the reason.
    let ending = if reason == Reason::Full { Ending::WriteError } else { ending };
    if ending == Ending::InputError {
        messages::note("the recording is incomplete: no call of the command is in it, or what was recorded is damaged");
    }
    let manifest = sysdock_bpf::finish_converted(recording, ending)?;
    let calls = manifest.tables.get("calls").map_or(0, |table| table.rows);
    if let Some(watched) = manifest.watched.as_ref().filter(|_| calls == 0) {
        let (what, seconds) = (watched::description(watched), Duration::from_nanos(manifest.duration_ns.max(0).cast_unsigned()));
        messages::note(&format!("no system call was recorded of {what} in {:.1} s: {why_empty}", seconds.as_secs_f64()));
    }
    Ok(())
}

/// `sysdock-native salvage`: make tables of the spool of a recorder that died. Returns the exit
/// status.
pub(crate) fn salvage(arguments: &arguments::Salvage) -> Result<u8, Message> {
    if arguments.dry_run {
        privileges::become_caller()?;
        let events = sysdock_bpf::waiting(&arguments.recording)?;
        return Ok(if writeln!(io::stdout(), "{events}").is_ok() { 0 } else { EXIT_ERROR });
    }
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let mut reporter = Reporter::new(&arguments.progress);
    let folder = Folder::open(&arguments.recording, privileges::access(false))?;
    privileges::become_caller()?;
    confine::parser(&folder);
    sysdock_bpf::salvage(folder, &cancel, &mut |progress| reporter.report(progress))?;
    Ok(if cancel.requested() { EXIT_INTERRUPTED } else { 0 })
}
