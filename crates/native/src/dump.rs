//! `sysdock-native dump`: what a kernel was doing when it died.

use std::{
    io::{self, BufRead, Write},
    time::SystemTime,
};

use serde_json::json;
use sysdock_dump::{Description, DumpError, Kernel, Outcome, Part, Question, Source};
use sysdock_table::{Capture, Ending, Folder, Manifest, Recording};

use crate::{
    arguments, confine, environment, import,
    messages::{self, Message},
    privileges,
};

/// Say what a dump is of, as JSON; returns the exit status.
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

/// Answer questions, a line each, until there are no more; returns the exit status.
pub(crate) fn serve(arguments: &arguments::DumpServe) -> Result<u8, Message> {
    let source = Source::named(&arguments.core)?;
    confine::reader();
    let mut kernel = open(source, &arguments.debug_info)?;
    if !arguments.user_memory {
        kernel.hide_users().map_err(|fault| {
            let what = "pages of users cannot be told from those of the kernel";
            Message::bare(format!("{}: {what}: {}", arguments.core.display(), fault.word()))
        })?;
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| Message::bare(format!("standard input: {error}")))?;
        let answer = match serde_json::from_str::<Question>(&line) {
            Ok(question) => kernel.answer(&question),
            Err(error) => Err(format!("not a question: {error}")),
        };
        let shown = match answer {
            Ok(answer) => json!({ "answer": answer }),
            Err(sentence) => json!({ "error": sentence }),
        };
        let written = serde_json::to_writer(&mut out, &shown).map_err(io::Error::from).and_then(|()| writeln!(out));
        match written.and_then(|()| out.flush()) {
            Ok(()) => {}
            // Whoever asked is gone.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(Message::bare(format!("standard output: {error}"))),
        }
    }
    Ok(0)
}

/// Read a dump into a recording; returns the exit status.
pub(crate) fn run(arguments: &arguments::DumpRun) -> Result<u8, Message> {
    let source = Source::named(&arguments.core)?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    let mut recording = Recording::create_in(folder, manifest())?;
    // A dump, and the names in it, may be a stranger's.
    let confined = confine::parser(recording.folder());
    let parts = if arguments.parts.is_empty() { Part::ALL.to_vec() } else { arguments.parts.clone() };
    let read = open(source, &arguments.debug_info)
        .and_then(|kernel| Ok((sysdock_dump::write(&kernel, &arguments.core, &parts, &mut recording)?, kernel)));
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
    say(kernel.description(), &outcome);
    Ok(import::status(recording.finish(Ending::EndOfInput)?.capture().ended_by))
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
        capture.clock.note = Some(format!("the wall clock of the kernel when it stopped; {}", clock.log.words()));
    }
    for (issue, _) in &outcome.issues {
        *capture.issues.entry((*issue).into()).or_default() += 1;
    }
    if let Some(clock) = outcome.clock {
        recording.manifest.cover(clock.epoch_of_boot_ns, clock.epoch_of_boot(clock.last_tick_ns));
    }
}

fn say(about: &Description, outcome: &Outcome) {
    let release = about.release.as_deref().unwrap_or("of an unknown release");
    messages::note(&format!("{}: Linux {release}, {} of memory", about.format, mebibytes(about.bytes)));
    messages::note(&match &outcome.panic {
        Some(panic) => format!("panic: {panic}"),
        None => "the log of the kernel names no panic".into(),
    });
    for (issue, detail) in &outcome.issues {
        let prefix = if *issue == sysdock_dump::UNREADABLE { "could not be read: " } else { "" };
        messages::note(&format!("{prefix}{detail}"));
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
