//! `sysdock-native dump`: the state of a kernel when it died.

use std::{
    io::{self, BufRead, Write},
    sync::{
        Mutex,
        mpsc::{RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, SystemTime},
};

use serde_json::json;
use sysdock_bpf::{BpfError, Elements, KernelNames, Recovered};
use sysdock_dump::{BpfArray, Description, DumpError, Kernel, Outcome, Part, Question, Source};
use sysdock_table::{Cancel, Capture, Ending, Fact, Folder, Manifest, Recording, facts};

use crate::{
    arguments, confine, environment, import,
    messages::{self, Message},
    privileges,
    progress::Reporter,
    sentences, signals,
};

/// Describe a dump as JSON; returns the exit status.
pub(crate) fn info(arguments: &arguments::DumpInfo) -> Result<u8, Message> {
    let source = Source::named(&arguments.core)?;
    confine::reader();
    let kernel = Kernel::open(source)?;
    let mut shown = kernel.description().to_json();
    shown["path"] = arguments.core.to_string_lossy().into();
    writeln!(io::stdout(), "{shown}").map_err(|error| Message::bare(format!("standard output: {error}")))?;
    Ok(0)
}

fn open(source: Source, debug_info: &arguments::DebugInfo) -> Result<Kernel, DumpError> {
    let mut kernel = Kernel::open(source)?;
    if let Some(path) = &debug_info.vmlinux {
        kernel.use_debug_info(path, debug_info.force)?;
    }
    Ok(kernel)
}

/// Answer requests, one per line, until the end of input; returns the exit status.
pub(crate) fn serve(arguments: &arguments::DumpServe) -> Result<u8, Message> {
    let source = Source::named(&arguments.core)?;
    confine::reader();
    let mut kernel = open(source, &arguments.debug_info)?;
    if !arguments.user_memory {
        kernel.hide_users().map_err(|fault| {
            let what = "cannot distinguish user pages from kernel pages (--user-memory reads both)";
            Message::bare(format!("{}: {what}: {}", arguments.core.display(), fault.name()))
        })?;
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Message::bare(format!("standard input: {error}")))?;
        let answer = match serde_json::from_str::<Question>(&line) {
            Ok(question) => kernel.answer(&question).map_err(messages::unanswered),
            Err(error) => Err(format!("not a question: {error}")),
        };
        let shown = match answer {
            Ok(answer) => json!({ "answer": answer }),
            Err(sentence) => json!({ "error": sentence }),
        };
        let written = serde_json::to_writer(&mut out, &shown).map_err(io::Error::from).and_then(|()| writeln!(out));
        match written.and_then(|()| out.flush()) {
            Ok(()) => {}
            // The reader closed its end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Message::bare(format!("standard output: {error}"))),
        }
    }
    Ok(0)
}

/// Read a dump into a recording; returns the exit status.
pub(crate) fn run(arguments: &arguments::DumpRun) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let source = Source::named(&arguments.core)?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    let mut recording = Recording::create_in(folder, manifest())?;
    // The dump and the names in it may come from an attacker.
    let confined = confine::parser(recording.folder());
    let parts = if arguments.parts.is_empty() { Part::ALL.to_vec() } else { arguments.parts.clone() };
    let read = open(source, &arguments.debug_info).and_then(|mut kernel| {
        kernel.cancel_by(&cancel);
        let outcome = with_progress(&arguments.progress, parts.len(), |begins| {
            sysdock_dump::write(&kernel, &arguments.core, &parts, &mut recording, begins)
        });
        Ok((outcome?, kernel))
    });
    let (outcome, kernel) = match read {
        Ok(read) => read,
        Err(DumpError::Table(error)) => {
            let _ = recording.finish(Ending::WriteError);
            return Err(error.into());
        }
        Err(error) => {
            recording.abandon();
            return Err(error.into());
        }
    };
    let mut rows = environment::of_this_machine(&std::env::args_os().collect::<Vec<_>>(), None);
    rows.push(environment::of_its_limits(confined));
    environment::add(&mut recording, &rows)?;
    describe(&mut recording, &outcome);
    print_summary(kernel.description(), &outcome);
    let ending = if outcome.interrupted { Ending::Interrupted } else { Ending::EndOfInput };
    let status = import::status(recording.finish(ending)?.capture().ended_by);
    if parts.contains(&Part::Flight) && !outcome.interrupted {
        add_flight(arguments, &kernel, &outcome)?;
    }
    Ok(status)
}

/// Run `work` while a thread reports the current part repeatedly, because a single part may take
/// long.
fn with_progress<R>(progress: &arguments::Progress, parts: usize, work: impl FnOnce(&dyn Fn(Part)) -> R) -> R {
    const INTERVAL: Duration = Duration::from_millis(250);
    let now = &Mutex::new((0_usize, None));
    let begins = |part: Part| {
        if let Ok(mut now) = now.lock() {
            *now = (now.0 + 1, Some(part));
        }
    };
    let (done, waiting) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut reporter = Reporter::new(progress);
            while waiting.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if let Ok((begun, Some(part))) = now.lock().map(|now| *now) {
                    let event = json!({ "event": "progress", "what": part.name(), "done": begun - 1, "total": parts });
                    reporter.event(&event);
                }
            }
        });
        let result = work(&begins);
        drop(done);
        result
    })
}

/// Add the contents of a flight recorder at the time of the crash, as a capture of its own.
fn add_flight(arguments: &arguments::DumpRun, kernel: &Kernel, outcome: &Outcome) -> Result<(), Message> {
    let Some(store) = kernel.bpf_arrays(sysdock_bpf::FLIGHT_MAP).unwrap_or_default().into_iter().max_by_key(|array| array.id)
    else {
        return Ok(());
    };
    // A recorder creates its rings before its store.
    let rings = kernel.bpf_arrays(sysdock_bpf::RINGS_MAP).unwrap_or_default().into_iter();
    let rings = rings.filter(|array| array.id < store.id).max_by_key(|array| array.id);
    let stopped = outcome.clock.zip(outcome.stopped_ns).and_then(|(clock, stopped)| {
        let monotonic_ns = u64::try_from(clock.boot_of_log(stopped) - clock.boot_of_monotonic_ns).ok()?;
        Some((monotonic_ns, outcome.panic.clone().map_or_else(facts::marks::dump_made, facts::marks::stated)))
    });
    let folder = Folder::open(&arguments.output, privileges::access(arguments.share))?;
    let found = write_spool(&folder, kernel, &store, rings.as_ref(), stopped)?;
    let Some(found) = found else {
        messages::note("a flight recorder was running, but its contents cannot be read");
        return folder.remove(sysdock_bpf::SPOOL).map_err(|error| spool_error(&folder, error));
    };
    let mut recording = Recording::extend(folder, sysdock_bpf::manifest().captures.remove(0))?;
    let names = KernelNames::of_recorded(kernel.kallsyms());
    let ending = match sysdock_bpf::convert_own(&mut recording, names, &Cancel::default(), &mut |_| {}) {
        Ok(ending) => ending,
        Err(error) => {
            // The tables of the dump itself stay as they are.
            recording.abandon();
            return Err(error.into());
        }
    };
    let capture = sysdock_bpf::finish_converted(recording, ending)?.capture().clone();
    let damaged = if found.damaged > 0 { format!("; {} parts cannot be read", found.damaged) } else { String::new() };
    let lost = if capture.lost > 0 { format!("; {} found no room in its rings", capture.lost) } else { String::new() };
    let incomplete =
        if found.incomplete > 0 { format!("; {} bytes of its rings are incomplete", found.incomplete) } else { String::new() };
    messages::note(&format!(
        "a flight recorder ran: {} events until the kernel stopped{lost}{damaged}{incomplete}",
        capture.total
    ));
    Ok(())
}

fn write_spool(
    folder: &Folder,
    kernel: &Kernel,
    store: &BpfArray,
    rings: Option<&BpfArray>,
    stopped: Option<(u64, Fact)>,
) -> Result<Option<Recovered>, Message> {
    let reader = |array: &BpfArray| {
        let array = *array;
        move |at: u64, out: &mut [u8]| {
            kernel.read_array(&array, at, out);
        }
    };
    let failed = |error| spool_error(folder, error);
    let mut out = io::BufWriter::new(folder.create_appended(sysdock_bpf::SPOOL).map_err(failed)?);
    let elements = |array: &BpfArray| (array.stride, array.elements);
    let of_store = reader(store);
    let of_rings = rings.map(|rings| (elements(rings), reader(rings)));
    let rings = of_rings.as_ref().map(|((stride, count), read)| Elements { stride: *stride, count: *count, read });
    let store = Elements { stride: store.stride, count: store.elements, read: &of_store };
    let found = sysdock_bpf::recover(&store, rings.as_ref(), stopped, &mut out).map_err(failed)?;
    out.flush().map_err(failed)?;
    Ok(found)
}

fn spool_error(folder: &Folder, error: io::Error) -> Message {
    let path = folder.path().join(sysdock_bpf::SPOOL);
    BpfError::spool(&path, error).into()
}

fn manifest() -> Manifest {
    let mut capture = Capture::new("dump", "tasks", sysdock_dump::ABOUT);
    // Until the kernel's clocks are known.
    capture.clock.kind = "relative".into();
    let mut manifest = Manifest::of(capture);
    manifest.started_ns = environment::epoch_ns(SystemTime::now());
    manifest.tool.host = environment::host_name();
    manifest
}

fn describe(recording: &mut Recording, outcome: &Outcome) {
    recording.manifest.host.clone_from(&outcome.host);
    let capture = recording.manifest.capture_mut();
    capture.total = outcome.tasks;
    capture.understood = outcome.whole_tasks;
    if let Some(clock) = outcome.clock {
        capture.clock.kind = "epoch".into();
        capture.clock.note = [facts::clock::of_the_stopped_kernel(), clock.log.note()].into_iter().collect();
    }
    for (issue, _) in &outcome.issues {
        *capture.issues.entry((*issue).into()).or_default() += 1;
    }
    if let Some(clock) = outcome.clock {
        recording.manifest.cover(clock.epoch_of_boot_ns, clock.epoch_of_boot(clock.last_tick_ns));
    }
}

fn print_summary(about: &Description, outcome: &Outcome) {
    let release = about.release.as_deref().unwrap_or("of an unknown release");
    messages::note(&format!("{}: Linux {release}, {} of memory", about.format, mebibytes(about.bytes)));
    match &outcome.panic {
        Some(panic) => messages::note(&format!("panic: {panic}")),
        None if outcome.interrupted => {}
        None => messages::note("the log of the kernel names no panic"),
    }
    for (issue, detail) in &outcome.issues {
        let prefix = if *issue == sysdock_dump::UNREADABLE { "could not be read: " } else { "" };
        messages::note(&format!("{prefix}{}", sentences::sentence(detail)));
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
