//! `sysdock-native disk`: the location of files on a device.

use std::time::{Instant, SystemTime};

use sysdock_disk::{Cost, DiskError, Found, Outcome, Settings, Target, add_usage};
use sysdock_table::{Cancel, Capture, Ending, Fact, Folder, Manifest, Recording, TableError, facts};

use crate::{
    arguments, confine, environment, import,
    messages::{self, Message},
    privileges,
    progress::Reporter,
    sentences, signals,
};

/// Scan; returns the exit status.
pub(crate) fn scan(arguments: &arguments::Scan) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let target = Target::of(&arguments.target)?;
    if arguments.usage.is_some() {
        target.root()?;
    }
    let started = (Instant::now(), SystemTime::now());
    let mut recording = match arguments.into {
        true => Recording::extend(Folder::open(&arguments.output, privileges::access(false))?, capture())?,
        false => {
            let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
            Recording::create_in(folder, manifest(started.1))?
        }
    };
    // The image and the names in it may come from an attacker.
    let confined = confine::parser(recording.folder());
    let mut reporter = Reporter::new(&arguments.progress);
    let settings = Settings { threads: arguments.threads, without_names: arguments.no_names };
    let outcome = sysdock_disk::scan(&target, &mut recording, settings, &cancel, &mut |progress| reporter.report(progress));
    let outcome = outcome.and_then(|outcome| {
        // Nothing can be looked up on a device that disappeared.
        let list = arguments.usage.as_deref().filter(|_| outcome.ending != Ending::InputError);
        let used = list.map(|list| add_usage(&target, outcome.method, list, &mut recording)).transpose()?;
        Ok((outcome, used))
    });
    match outcome {
        Ok((outcome, used)) => {
            // Queries of a scan expect every table, even if a method or a folder has no rows for
            // it.
            for table in ["inodes", "extents", "free_extents", "layout", "devices", "paths", "file_usage"] {
                recording.manifest.tables.entry(table.into()).or_default();
            }
            describe(&mut recording, &outcome, started);
            let cost = measured(arguments, &target, &cancel);
            write_environment(arguments, &target, &outcome, &cost, confined, &mut recording)?;
            let ending = recording.finish(outcome.ending)?.capture().ended_by;
            print_remarks(&outcome);
            said_of_device(&cost);
            used.iter().for_each(said_of_usage);
            if used.is_none() && arguments.usage.is_some() {
                messages::note("the used files were not looked up, as the scan ended early");
            }
            Ok(import::status(ending))
        }
        Err(DiskError::Table(error)) => {
            let _ = recording.finish(Ending::WriteError);
            Err(error.into())
        }
        Err(error) => {
            recording.abandon();
            Err(error.into())
        }
    }
}

fn write_environment(
    arguments: &arguments::Scan,
    target: &Target,
    outcome: &Outcome,
    cost: &Result<Cost, Fact>,
    confined: String,
    recording: &mut Recording,
) -> Result<(), TableError> {
    // The earlier capture describes the machine.
    let mut rows = match arguments.into {
        true => Vec::new(),
        false => environment::of_this_machine(&std::env::args_os().collect::<Vec<_>>(), None),
    };
    if !arguments.into {
        rows.push(environment::of_its_limits(confined));
    }
    rows.extend(environment::of_file_system(&outcome.facts));
    rows.extend(environment::of_device(&target.device().to_string_lossy(), cost));
    environment::add(recording, &rows)
}

/// The cost of a request to the device, or the reason why it was not measured.
fn measured(arguments: &arguments::Scan, target: &Target, cancel: &Cancel) -> Result<Cost, Fact> {
    if arguments.no_measure {
        return Err(facts::disk::measuring_off());
    }
    sysdock_disk::measure(target, cancel)
}

fn said_of_device(cost: &Result<Cost, Fact>) {
    messages::note(&match cost {
        Ok(cost) => {
            let (request, speed) = (cost.request_ns as f64 / 1e3, cost.bytes_per_second as f64 / 1e6);
            format!("measured: one more request costs the device {request:.1} us; it reads {speed:.0} MB/s in order")
        }
        Err(why) => format!("what a request costs was not measured: {}", sentences::sentence(why)),
    });
}

fn said_of_usage(found: &Found) {
    let Found { files, gone, elsewhere } = found;
    messages::note(&format!(
        "{files} used files are on this file system; {gone} no longer exist or cannot be accessed, {elsewhere} are elsewhere"
    ));
}

/// The description of the scan's capture before the scan begins.
fn capture() -> Capture {
    let mut capture = Capture::new("disk", "files", sysdock_disk::ABOUT);
    capture.clock.kind = "epoch".into();
    capture
}

fn manifest(started: SystemTime) -> Manifest {
    let mut manifest = Manifest::of(capture());
    manifest.started_ns = environment::epoch_ns(started);
    manifest.host = environment::host_name();
    manifest
}

/// Set when the scan ran, and how much of the file system it read.
fn describe(recording: &mut Recording, outcome: &Outcome, (clock, started): (Instant, SystemTime)) {
    let start_ns = environment::epoch_ns(started);
    let dur_ns = clock.elapsed().as_nanos().try_into().unwrap_or(i64::MAX);
    recording.manifest.cover(start_ns, start_ns.saturating_add(dur_ns));
    let capture = recording.manifest.capture_mut();
    capture.total = outcome.files;
    capture.understood = outcome.files.saturating_sub(outcome.unread);
    for (issue, _) in &outcome.issues {
        *capture.issues.entry((*issue).into()).or_default() += 1;
    }
}

/// Print the method and its reason, and everything that could not be read.
fn print_remarks(outcome: &Outcome) {
    messages::note(&format!("{}: {}", outcome.method, sentences::all(&outcome.reason)));
    for (issue, detail) in &outcome.issues {
        messages::note(&format!("{issue}: {}", sentences::sentence(detail)));
    }
    if outcome.unread == 0 {
        return;
    }
    let example = outcome.example.as_ref().map(|(path, error)| format!(", such as {}: {error}", path.display()));
    let (unread, files) = (outcome.unread, outcome.files);
    messages::note(&format!("{unread} of {files} files could not be read{}", example.unwrap_or_default()));
}
