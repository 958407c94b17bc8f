//! `sysdock-native itrace`: records every instruction of a program.

use std::{
    ffi::OsString,
    io::{self, Write},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::ExitStatus,
    time::{Instant, SystemTime},
};

use sysdock_itrace::{Chosen, EVENTS, Executed, Filter, ItraceError, Outcome, facts_of, stepping};
use sysdock_itrace_file::{Facts, FileError, Writer};
use sysdock_table::{Cancel, Capture, Ending, Folder, Manifest, Progress, Recording, facts};

use crate::{
    arguments, by_kernel,
    command::{self, Exit},
    confine, environment, import,
    messages::{self, Message},
    privileges::{self, Caller},
    progress::Reporter,
    signals,
};

/// Step through a process; ends as its command did.
pub(crate) fn attach(arguments: &arguments::ItraceAttach) -> Result<Exit, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let caller = Caller::find();
    if let Some(program) = arguments.command.first() {
        command::check_command(program, command::find_command(&arguments.command, caller.as_ref()).is_some())?;
    }
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    let started = (Instant::now(), SystemTime::now());
    let mut manifest = manifest(started.1);
    manifest.command = arguments.command.first().map(|_| environment::command_text(&arguments.command));
    let mut recording = Recording::create_in(folder, manifest)?;
    let (stepped, end) = match step(arguments, recording.folder(), caller, &cancel) {
        Ok(stepped) => stepped,
        Err(message) => {
            let _ = recording.folder().remove(EVENTS);
            recording.abandon();
            return Err(message);
        }
    };
    recording.manifest.duration_ns = started.0.elapsed().as_nanos() as i64;
    let ending = ending_of(&end, &arguments.output);
    let facts = facts_of(&stepped.tasks, &stepped.mappings, stepped.unread);
    let status = make_tables(&arguments.output, Some(&facts), recording, &arguments.progress, ending, &Cancel::default())?;
    Ok(match end {
        // Without a command, there is no status to pass on.
        stepping::End::Exited(how) if !arguments.command.is_empty() && status == 0 => Exit::from(ExitStatus::from_raw(how)),
        _ => Exit::Code(status),
    })
}

/// Report why tracing ended, if the process continues.
fn ending_of(end: &stepping::End, output: &Path) -> Ending {
    match end {
        stepping::End::Exited(_) => Ending::EndOfInput,
        stepping::End::Limit => {
            messages::note("the limit of instructions is reached: the process continues untraced");
            Ending::EndOfInput
        }
        stepping::End::Cancelled => {
            messages::note("interrupted: the process continues untraced");
            Ending::Interrupted
        }
        stepping::End::Failed(error) => {
            let path = output.join(EVENTS);
            messages::note(&format!("{}: {error}; the process continues untraced", path.display()));
            Ending::WriteError
        }
    }
}

fn step(
    arguments: &arguments::ItraceAttach,
    folder: &Folder,
    caller: Option<Caller>,
    cancel: &Cancel,
) -> Result<(stepping::Stepped, stepping::End), Message> {
    let path = arguments.output.join(EVENTS);
    let cannot_write = |error: io::Error| Message::bare(format!("{}: {error}", path.display()));
    let file = folder.create_file(EVENTS).map_err(cannot_write)?;
    let facts_file = file.try_clone().map_err(cannot_write)?;
    let writer = Writer::create(file, &header("attach")).map_err(cannot_write)?;
    let gate = match arguments.command.is_empty() {
        true => None,
        false => Some(by_kernel::close_gate(&arguments.command, caller)?),
    };
    let pid = gate.as_ref().map_or(arguments.pid, |gate| i32::try_from(gate.pid()).ok()).unwrap_or(-1);
    let stepper = stepping::Stepper::seize(pid, writer).map_err(|error| cannot_trace(pid, &error))?;
    // The stepper waits for the child, like for all processes that it traces.
    let child = match gate {
        Some(gate) => Some(gate.open().map_err(|error| Message::bare(format!("cannot run the command: {error}")))?),
        None => {
            stepper.interrupt();
            None
        }
    };
    let mut reporter = Reporter::new(&arguments.progress);
    let flag = cancel.flag();
    let (stepped, end) = stepper.run(arguments.limit, &flag, |steps| {
        reporter.report(Progress { bytes_done: 0, bytes_total: None, lines: steps });
    });
    drop(child);
    if !matches!(end, stepping::End::Failed(_)) {
        let facts = facts_of(&stepped.tasks, &stepped.mappings, stepped.unread);
        Writer::append_facts(facts_file, &facts).map_err(cannot_write)?;
    }
    Ok((stepped, end))
}

fn cannot_trace(pid: i32, error: &io::Error) -> Message {
    let fact = format!("process {pid}: {error}");
    match error.raw_os_error() {
        Some(libc::ESRCH) => Message::new(fact, "ps shows the processes that run"),
        Some(libc::EPERM) => match tracer_of(pid) {
            Some(tracer) => Message::new(
                format!("process {pid} is traced by process {tracer} already"),
                "a process can be traced by one tracer at a time: end that strace or debugger first",
            ),
            None => Message::new(
                fact,
                "run as root, or as the user of the process where /proc/sys/kernel/yama/ptrace_scope is 0; it can start the process itself: itrace attach -- CMD",
            ),
        },
        _ => Message::bare(fact),
    }
}

fn tracer_of(pid: i32) -> Option<i32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:")?.trim().parse().ok())?;
    (tracer != 0).then_some(tracer)
}

/// Facts about this machine before the first instruction.
pub(crate) fn header(backend: &str) -> Facts {
    let read = |path: &str| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpuinfo.lines().find_map(|line| Some(line.strip_prefix("model name")?.trim_start_matches(['\t', ' ', ':']).to_owned()));
    let mut header = Facts::new();
    header.insert("backend".into(), backend.into());
    for (name, value) in [("cpu", model), ("kernel", read("/proc/sys/kernel/osrelease"))] {
        if let Some(value) = value {
            header.insert(name.into(), value.into());
        }
    }
    header
}

/// Make tables of the event file in a folder.
pub(crate) fn convert(arguments: &arguments::ItraceConvert) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    let recording = Recording::create_in(folder, manifest(SystemTime::now()))?;
    let copied = copy_events(&arguments.folder, recording.folder());
    if let Err(error) = copied {
        recording.abandon();
        return Err(error);
    }
    make_tables(&arguments.folder, None, recording, &arguments.progress, Ending::EndOfInput, &cancel)
}

/// Copy the event file to the recording.
fn copy_events(from: &Path, to: &Folder) -> Result<(), Message> {
    let path = from.join(EVENTS);
    let failed = |error: io::Error| ItraceError::File(path.clone(), FileError::Io(error));
    let mut source = std::fs::File::open(&path).map_err(failed)?;
    let mut copy = to.create_file(EVENTS).map_err(failed)?;
    io::copy(&mut source, &mut copy).map_err(failed)?;
    Ok(())
}

pub(crate) fn make_tables(
    folder: &Path,
    known: Option<&Facts>,
    mut recording: Recording,
    progress: &arguments::Progress,
    ending: Ending,
    cancel: &Cancel,
) -> Result<u8, Message> {
    // The code and the files that it came from may come from an attacker.
    let confined = confine::parser(recording.folder());
    let mut reporter = Reporter::new(progress);
    let report = &mut |done, all| reporter.report(Progress { bytes_done: 8 * done, bytes_total: Some(8 * all), lines: done });
    let outcome = match sysdock_itrace::convert(folder, known, &mut recording, cancel, report) {
        Ok(outcome) => outcome,
        Err(ItraceError::Table(error)) => {
            let _ = recording.finish(Ending::WriteError);
            return Err(error.into());
        }
        Err(error) => {
            let _ = recording.folder().remove(EVENTS);
            recording.abandon();
            return Err(error.into());
        }
    };
    let added = recording.folder().open_appended(EVENTS).and_then(|file| sysdock_itrace::complete(file, &outcome.facts));
    if let Err(error) = added {
        // Its tables are complete; only the instructions have no names.
        messages::note(&format!("{EVENTS}: {error}: names of functions could not be added"));
    }
    let mut rows = environment::of_this_machine(&std::env::args_os().collect::<Vec<OsString>>(), None);
    rows.push(environment::of_its_limits(confined));
    rows.extend(environment::of_trace(&outcome.facts));
    environment::add(&mut recording, &rows)?;
    describe(&mut recording, &outcome);
    print_summary(&outcome);
    let ending = if outcome.cancelled { Ending::Interrupted } else { ending };
    Ok(import::status(recording.finish(ending)?.capture().ended_by))
}

pub(crate) fn manifest(started: SystemTime) -> Manifest {
    let mut capture = Capture::new("itrace", "instructions", sysdock_itrace::ABOUT);
    // Its clock counts steps.
    capture.clock.kind = "relative".into();
    capture.clock.note = facts::clock::instructions_numbered().into();
    let mut manifest = Manifest::of(capture);
    manifest.started_ns = environment::epoch_ns(started);
    manifest.tool.host = environment::host_name();
    manifest
}

fn describe(recording: &mut Recording, outcome: &Outcome) {
    let capture = recording.manifest.capture_mut();
    capture.total = outcome.steps[0] + outcome.lost_steps;
    capture.understood = outcome.steps[0];
    capture.lost = outcome.damaged;
}

fn print_summary(outcome: &Outcome) {
    let facts = &outcome.facts;
    let model = facts.cpu.as_ref().map(|cpu| format!(" on {cpu}")).unwrap_or_default();
    let repeated = outcome.steps[0] - outcome.steps[1];
    messages::note(&format!(
        "{} steps{model} ({repeated} of them repeat a string instruction), backend {}",
        outcome.steps[0], facts.backend
    ));
    let [found, missing] = outcome.kernel_returns;
    if missing > 0 {
        messages::note(&format!("{missing} of {} returns in the kernel found no call", found + missing));
    }
    if outcome.requests == 0 {
        let sought = if facts.cut_by_server { "no server accepted a connection" } else { "its markers are missing" };
        messages::note(&format!("the trace has no request: {sought}"));
    }
    if ["attach", "user"].contains(&facts.backend.as_str()) {
        messages::note("what the kernel does for system calls is not traced");
    }
    if facts.unread > 0 {
        messages::note(&format!("{} accesses by vector addresses (gathers) are not recorded", facts.unread));
    }
    if outcome.damaged > 0 {
        messages::note(&format!("{} sections of the event file are damaged, and missing", outcome.damaged));
    }
    if !outcome.complete {
        messages::note("the event file was not closed by its recorder: its last part may be missing");
    }
}

/// Print instructions.
pub(crate) fn dump(arguments: &arguments::ItraceDump) -> Result<u8, Message> {
    let chosen = Chosen {
        first_step: arguments.first_step,
        end_step: arguments.end_step,
        task: arguments.task.clone(),
        mode: arguments.mode.clone(),
        image: arguments.image.clone(),
        function: arguments.function.clone(),
        addresses: arguments.address,
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let (mut lines, limit) = (0, if arguments.limit == 0 { u64::MAX } else { arguments.limit });
    let mut is_cut = false;
    confine::reader();
    let damaged = sysdock_itrace::each_instruction(&arguments.folder, &chosen, &mut |executed| {
        is_cut = lines == limit;
        lines += 1;
        // A reader that has enough closes its end.
        !is_cut && print_instruction(executed, arguments.format == "json", &mut out).is_ok()
    })?;
    let _ = out.flush();
    if is_cut {
        messages::note(&format!("the first {limit} are shown; --limit 0 shows all"));
    }
    if damaged > 0 {
        messages::note(&format!("{damaged} sections of the event file are damaged, and missing"));
    }
    Ok(0)
}

fn print_instruction(executed: &Executed<'_>, as_json: bool, out: &mut impl io::Write) -> io::Result<()> {
    if as_json {
        serde_json::to_writer(&mut *out, executed).map_err(io::Error::from)?;
        return writeln!(out);
    }
    let pid = executed.pid.map_or_else(|| "?".into(), |pid| pid.to_string());
    let image = executed.image.rsplit('/').next().unwrap_or(executed.image);
    let place = format!("{image} {}", executed.function);
    write!(
        out,
        "{:>10} {pid:>7} {:<7} {:#018x} {place:<44} {}",
        executed.step, executed.mode, executed.address, executed.instruction
    )?;
    for (what, addresses) in [("load", executed.loads), ("store", executed.stores)] {
        if let Some(first) = addresses.first() {
            let more = if addresses.len() > 1 { format!(" and {} more", addresses.len() - 1) } else { String::new() };
            write!(out, "  {what} {first:#x}{more}")?;
        }
    }
    writeln!(out)
}

/// Print events.
pub(crate) fn decode(arguments: &arguments::ItraceDecode) -> Result<u8, Message> {
    let filter = Filter { first_step: arguments.first_step, limit: arguments.limit };
    let mut out = io::BufWriter::new(io::stdout().lock());
    confine::reader();
    sysdock_itrace::print_lines(&arguments.folder, &filter, &mut out)?;
    // A reader that has enough closes its end.
    let _ = out.flush();
    Ok(0)
}
