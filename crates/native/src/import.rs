//! `sysdock-native import`: imports existing logs.

use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sysdock_strace::{ImportError, Logs, Options, TrussColumns};
use sysdock_table::{Cancel, Ending, Folder, Recording};

use crate::{
    arguments, confine, environment, import_callgrind, import_load,
    messages::{self, EXIT_ERROR, EXIT_INTERRUPTED, Message},
    privileges,
    progress::Reporter,
    signals,
};

/// Imports files that are not logs of system calls, all of them or none; returns the exit status,
/// or `None` if the files are of another kind.
type Reader = fn(&arguments::Import) -> Result<Option<u8>, Message>;

/// The readers, in the order in which they are asked. What none of them takes is a log of calls.
const READERS: [Reader; 2] = [import_callgrind::run, import_load::run];

/// Import; returns the exit status.
pub(crate) fn run(arguments: &arguments::Import) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_reads_on_signal(&cancel);
    for read in READERS {
        if let Some(status) = read(arguments)? {
            return Ok(status);
        }
    }
    let mut options = Options {
        date: date(arguments)?,
        offsets: offsets(arguments)?,
        threads: arguments.threads,
        follow: arguments.follow,
        truss_columns: truss_columns(arguments)?,
        ..Options::default()
    };
    allow_many_files();
    let mut reporter = Reporter::new(&arguments.progress);
    if arguments.align {
        // The logs are opened twice here, so all of this runs with the caller's rights, not just
        // the work after opening.
        privileges::become_caller()?;
        options.offsets.extend(estimated_offsets(arguments, &options, &cancel, &mut reporter)?);
    }
    let logs = Logs::open(&arguments.logs, &options)?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    // The logs are open, and so is the folder.
    privileges::become_caller()?;
    let confined = confine::parser(&folder);
    let mut manifest = sysdock_strace::manifest("strace-log");
    manifest.tool.host = environment::host_name();
    let mut recording = Recording::create_in(folder, manifest)?;
    let outcome = logs.import(&mut recording, &options, &cancel, &mut |progress| reporter.report(progress)).and_then(|ending| {
        let mut rows = environment::of_log(&recording.manifest);
        rows.push(environment::of_its_limits(confined));
        environment::write(&mut recording, &rows)?;
        Ok(ending)
    });
    Ok(status(finish(recording, outcome)?))
}

/// Close a recording after its import, or remove it if there was nothing to record.
pub(crate) fn finish(recording: Recording, outcome: Result<Ending, ImportError>) -> Result<Ending, Message> {
    match outcome {
        Ok(ending) => Ok(recording.finish(ending)?.capture().ended_by),
        Err(ImportError::Table(error)) => {
            // Closed parts stay; on a full disk their list may fail to be written.
            let _ = recording.finish(Ending::WriteError);
            Err(error.into())
        }
        Err(error) => {
            recording.abandon();
            Err(error.into())
        }
    }
}

/// Refuse options about times of calls for a file that has no calls; `what` describes the file.
pub(crate) fn refuse_options(arguments: &arguments::Import, path: &Path, what: &str) -> Result<(), Message> {
    let given = [
        (arguments.date.is_some(), "--date"),
        (!arguments.offset.is_empty(), "--offset"),
        (arguments.align, "--align"),
        (arguments.follow, "--follow"),
        (arguments.truss_columns.is_some(), "--truss-columns"),
    ];
    match given.iter().find(|(given, _)| *given) {
        Some((_, option)) => {
            Err(Message::new(format!("{option}: {} is {what}, which is read without it", path.display()), "leave the option out"))
        }
        None => Ok(()),
    }
}

/// Raise the limit of open files: a set of logs by strace -ff has a file for each thread, and all
/// are open at once.
fn allow_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If the limit stays, opening the files fails.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The exit status for a recording that ended like this.
pub(crate) fn status(ending: Ending) -> u8 {
    match ending {
        Ending::EndOfInput => 0,
        Ending::Interrupted => EXIT_INTERRUPTED,
        _ => EXIT_ERROR,
    }
}

/// Compare the clocks of the logs and report the result, even if there is none.
fn estimated_offsets(
    arguments: &arguments::Import,
    options: &Options,
    cancel: &Cancel,
    reporter: &mut Reporter,
) -> Result<Vec<(String, i64)>, Message> {
    let logs = Logs::open(&arguments.logs, options)?;
    let mut folder = arguments.output.clone().into_os_string();
    folder.push(".align");
    let folder = Folder::create(folder.as_ref(), privileges::access(false))?;
    let mut scratch = Recording::create_in(folder, sysdock_strace::manifest("strace-log"))?;
    let compared = logs.compare_clocks(&mut scratch, options, cancel, &mut |progress| reporter.report(progress));
    scratch.abandon();
    let estimates = compared?;
    for (log, estimate) in estimates.iter().skip(1) {
        messages::note(&messages::clock(log, estimate.as_ref()));
    }
    Ok(estimates.into_iter().filter_map(|(log, estimate)| Some((log, estimate?.offset_ns))).filter(|(_, ns)| *ns != 0).collect())
}

/// `HOST=SECONDS`, exact to the nanosecond.
fn offsets(arguments: &arguments::Import) -> Result<Vec<(String, i64)>, Message> {
    let parse = |text: &String| {
        let (name, seconds) = text.split_once('=')?;
        let (negative, digits) = match seconds.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, seconds.strip_prefix('+').unwrap_or(seconds)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if name.is_empty() || whole.is_empty() || fraction.len() > 9 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        let ns = format!("{whole}{fraction:0<9}").parse::<i64>().ok()?;
        Some((name.to_string(), if negative { -ns } else { ns }))
    };
    let refuse = |text: &String| Message::new(format!("--offset {text}: not HOST=SECONDS"), "write it as node3=-0.25");
    arguments.offset.iter().map(|text| parse(text).ok_or_else(|| refuse(text))).collect()
}

fn truss_columns(arguments: &arguments::Import) -> Result<Option<TrussColumns>, Message> {
    let parse = |letters: &String| {
        let message =
            || Message::new(format!("--truss-columns {letters}: not columns of truss"), "any of the letters d, D and E");
        TrussColumns::from_letters(letters).ok_or_else(message)
    };
    arguments.truss_columns.as_ref().map(parse).transpose()
}

fn date(arguments: &arguments::Import) -> Result<Option<chrono::NaiveDate>, Message> {
    let parse =
        |text: &String| text.parse().map_err(|_| Message::new(format!("--date {text}: not a date"), "write it as 2026-11-20"));
    arguments.date.as_ref().map(parse).transpose()
}
