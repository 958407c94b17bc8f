//! `sysdock-native import`: logs that exist.

use sysdock_strace::{ImportError, Logs, Options};
use sysdock_table::{Cancel, Ending, Manifest, Recording};

use crate::{
    arguments, environment,
    messages::{EXIT_ERROR, EXIT_INTERRUPTED, Message},
    progress::Reporter,
    signals,
};

/// Import; returns the exit status.
pub(crate) fn run(arguments: &arguments::Import) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let options = Options { date: date(arguments)?, ..Options::default() };
    allow_many_files();
    let logs = Logs::open(&arguments.logs, &options)?;
    let mut recording = Recording::create(&arguments.output, Manifest::new("strace-log"))?;
    let mut reporter = Reporter::new(&arguments.progress);
    let outcome = logs.import(&mut recording, &options, &cancel, &mut |progress| reporter.report(progress)).and_then(|ending| {
        let rows = environment::of_log(&recording.manifest);
        environment::write(&mut recording, &rows)?;
        Ok(ending)
    });
    Ok(status(finish(recording, outcome)?))
}

/// Close a recording after its import, or take it away again where there was nothing to record.
pub(crate) fn finish(recording: Recording, outcome: Result<Ending, ImportError>) -> Result<Ending, Message> {
    match outcome {
        Ok(ending) => Ok(recording.finish(ending)?.ended_by),
        Err(ImportError::Table(error)) => {
            // What was closed stays; whether the list of it can be written is another matter on a full disk.
            let _ = recording.finish(Ending::WriteError);
            Err(error.into())
        }
        Err(error) => {
            recording.abandon();
            Err(error.into())
        }
    }
}

/// A set that strace -ff wrote has a file for each thread, and all are open at once.
fn allow_many_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct lives through both calls. If the limit stays, opening the files says so.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

fn status(ending: Ending) -> u8 {
    match ending {
        Ending::EndOfInput => 0,
        Ending::Interrupted => EXIT_INTERRUPTED,
        _ => EXIT_ERROR,
    }
}

fn date(arguments: &arguments::Import) -> Result<Option<chrono::NaiveDate>, Message> {
    let parse =
        |text: &String| text.parse().map_err(|_| Message::new(format!("--date {text}: not a date"), "write it as 2026-11-20"));
    arguments.date.as_ref().map(parse).transpose()
}
