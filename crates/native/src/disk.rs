//! `sysdock-native disk`: where files lie.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sysdock_disk::{DiskError, Outcome, Settings, Target};
use sysdock_table::{Cancel, Ending, Manifest, Recording};

use crate::{
    arguments, environment,
    messages::{self, EXIT_INTERRUPTED, Message},
    progress::Reporter,
    signals,
};

/// Scan; returns the exit status.
pub(crate) fn scan(arguments: &arguments::Scan) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let target = Target::of(&arguments.target)?;
    let started = (Instant::now(), SystemTime::now());
    let mut recording = Recording::create(&arguments.output, manifest(started.1))?;
    let mut reporter = Reporter::new(&arguments.progress);
    let settings = Settings { threads: arguments.threads, without_names: arguments.no_names };
    let outcome = sysdock_disk::scan(&target, &mut recording, settings, &cancel, &mut |progress| reporter.report(progress));
    match outcome {
        Ok(outcome) => {
            // Questions about a scan find every table, also where a method, or a folder, has nothing for it.
            for table in ["inodes", "extents", "free_extents", "layout", "paths"] {
                recording.manifest.tables.entry(table.into()).or_default();
            }
            recording.manifest.duration_ns = started.0.elapsed().as_nanos().try_into().unwrap_or(i64::MAX);
            let mut rows = environment::of_this_machine(&std::env::args_os().collect::<Vec<_>>(), None);
            rows.extend(environment::of_file_system(&outcome.facts));
            environment::write(&mut recording, &rows)?;
            let ending = recording.finish(outcome.ending)?.ended_by;
            said(&outcome);
            Ok(if ending == Ending::Interrupted { EXIT_INTERRUPTED } else { 0 })
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

fn manifest(started: SystemTime) -> Manifest {
    let mut manifest = Manifest::new("disk");
    let since_epoch = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    manifest.started_ns = since_epoch.as_nanos().try_into().unwrap_or(i64::MAX);
    manifest.host = environment::host_name();
    manifest.clock.kind = "epoch".into();
    manifest
}

/// By which method and why, and what could not be read.
fn said(outcome: &Outcome) {
    messages::note(&format!("{}: {}", outcome.method, outcome.reason));
    for (issue, detail) in &outcome.issues {
        messages::note(&format!("{issue}: {detail}"));
    }
    if outcome.unread == 0 {
        return;
    }
    let example = outcome.example.as_ref().map(|(path, error)| format!(", such as {}: {error}", path.display()));
    let (unread, files) = (outcome.unread, outcome.files);
    messages::note(&format!("{unread} of {files} files could not be read{}", example.unwrap_or_default()));
}
