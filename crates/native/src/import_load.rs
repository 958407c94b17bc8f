//! `sysdock-native import` of results that load generators printed.

use std::{
    fs::File,
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    time::SystemTime,
};

use sysdock_load::foreign::{self, BEGINNING, LONGEST_LOG, Log, Tool};
use sysdock_strace::unpacked;
use sysdock_table::{Capture, Ending, Fact, Folder, Manifest, Recording, Source, TableError, facts, rows};

use crate::{
    arguments, confine, environment,
    messages::{self, Message},
    privileges, sentences,
};

/// A result in a log that is missing from the tables; a value of `import_issues.issue`, explained
/// in docs/reference/import-issues.md.
const BROKEN_RESULT: &str = "broken_result";
/// A log that could not be read to its end; the same issue as for logs of calls.
const DAMAGED: &str = "damaged_input";
/// Size of a read [B].
const BLOCK: usize = 1 << 16;

/// An open log, with its tool recognized from its beginning.
struct Input {
    path: PathBuf,
    file: Option<File>,
    tool: Tool,
    written_ns: Option<i64>,
    /// Size on disk [B].
    bytes: Option<u64>,
}

/// Import, if these are logs of load; returns the exit status, or `None` if none of them is.
pub(crate) fn run(arguments: &arguments::Import) -> Result<Option<u8>, Message> {
    let Some(inputs) = inputs(&arguments.logs)? else { return Ok(None) };
    crate::import::refuse_options(arguments, &inputs[0].path, &format!("output of {}", inputs[0].tool.name))?;
    let folder = Folder::create(&arguments.output, privileges::access(arguments.share))?;
    privileges::become_caller()?;
    let confined = confine::parser(&folder);
    let mut recording = Recording::create_in(folder, manifest(&inputs))?;
    for table in ["load_results", "load_latencies", "import_issues"] {
        recording.manifest.tables.entry(table.into()).or_default();
    }
    match import(inputs, &mut recording) {
        Ok(damaged) => {
            let mut environment = environment::of_log(&recording.manifest);
            environment.push(environment::of_its_limits(confined));
            environment::write(&mut recording, &environment)?;
            let ending = if damaged { Ending::InputError } else { Ending::EndOfInput };
            Ok(Some(crate::import::status(recording.finish(ending)?.capture().ended_by)))
        }
        Err(Failure::Input(message)) => {
            recording.abandon();
            Err(message)
        }
        Err(Failure::Table(error)) => {
            let _ = recording.finish(Ending::WriteError);
            Err(error.into())
        }
    }
}

enum Failure {
    Input(Message),
    Table(TableError),
}

impl From<TableError> for Failure {
    fn from(error: TableError) -> Self {
        Failure::Table(error)
    }
}

/// Open all logs, if they are of load; `None` if none is.
fn inputs(logs: &[PathBuf]) -> Result<Option<Vec<Input>>, Message> {
    let identified: Vec<Option<Input>> = logs.iter().map(|path| identify(path)).collect();
    if identified.iter().all(Option::is_none) {
        return Ok(None);
    }
    let other = logs.iter().zip(&identified).find_map(|(path, input)| input.is_none().then_some(path));
    if let Some(path) = other {
        // A missing file is not a log of calls either.
        if let Some(error) = path.metadata().err().filter(|_| path != Path::new("-")) {
            return Err(Message::bare(format!("{}: {error}", path.display())));
        }
        let first = identified.iter().flatten().next().map(|input| input.path.display().to_string()).unwrap_or_default();
        let fact = format!("{}: no output of {}, which {first} is", path.display(), foreign::shown());
        return Err(Message::new(fact, "import logs of system calls and logs of load into recordings of their own"));
    }
    Ok(Some(identified.into_iter().flatten().collect()))
}

/// Recognize a log by its beginning. `None` for one that cannot be opened: the reader of logs of
/// calls reports the error.
fn identify(path: &Path) -> Option<Input> {
    if path == Path::new("-") {
        // Nothing is consumed: the same bytes are read again.
        let beginning = io::stdin().lock().fill_buf().ok()?.to_vec();
        let tool = foreign::recognize(&beginning)?;
        let written_ns = Some(environment::epoch_ns(SystemTime::now()));
        return Some(Input { path: path.into(), file: None, tool, written_ns, bytes: None });
    }
    // Bytes read from a pipe would be lost.
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let tool = {
        let mut beginning = Vec::with_capacity(BEGINNING);
        unpacked(File::open(path).ok()?, BLOCK).ok()?.take(BEGINNING as u64).read_to_end(&mut beginning).ok();
        foreign::recognize(&beginning)?
    };
    let written_ns = metadata.modified().ok().map(environment::epoch_ns).filter(|ns| *ns > 0);
    Some(Input { path: path.into(), file: Some(File::open(path).ok()?), tool, written_ns, bytes: Some(metadata.len()) })
}

fn manifest(inputs: &[Input]) -> Manifest {
    let tool = inputs[0].tool;
    let recorder = if inputs.iter().all(|input| input.tool == tool) { format!("{}-log", tool.name) } else { "load-log".into() };
    let mut capture = Capture::new(&recorder, "results", sysdock_load::ABOUT);
    capture.clock.kind = "epoch".into();
    let name = |path: &Path| if path == Path::new("-") { "<stdin>".into() } else { path.to_string_lossy().into_owned() };
    capture.sources = inputs.iter().map(|input| Source { path: name(&input.path), ..Source::default() }).collect();
    let mut manifest = Manifest::of(capture);
    manifest.tool.host = environment::host_name();
    manifest
}

/// Read all logs into the recording; returns whether one could not be read to its end.
fn import(inputs: Vec<Input>, recording: &mut Recording) -> Result<bool, Failure> {
    let (mut next_id, mut damaged) = (1, false);
    let (mut first_ns, mut last_ns) = (None::<i64>, None::<i64>);
    for (number, input) in inputs.into_iter().enumerate() {
        let written_ns = input.written_ns;
        let (text, failure) = text(&input).map_err(Failure::Input)?;
        let log = foreign::read(&text);
        if log.measured.is_empty() {
            return Err(Failure::Input(nothing(&input, &log)));
        }
        next_id = sysdock_load::write(recording, &log.measured, next_id)?;
        issues(number, &log, failure.as_deref(), recording)?;
        recording.manifest.capture_mut().sources[number].bytes = input.bytes.unwrap_or(text.len() as u64);
        damaged |= failure.is_some();
        let times = || log.measured.iter().flat_map(|row| [row.started_ns, row.ended_ns]).flatten();
        let otherwise = log.written_ns.or(written_ns);
        first_ns = first_ns.into_iter().chain(times().min().or(otherwise)).min();
        last_ns = last_ns.into_iter().chain(times().max().or(otherwise)).max();
    }
    if let (Some(first), Some(last)) = (first_ns, last_ns) {
        recording.manifest.cover(first, last);
    }
    Ok(damaged)
}

/// The text of a log, and the reason if it is incomplete.
fn text(input: &Input) -> Result<(Vec<u8>, Option<String>), Message> {
    let mut text = Vec::new();
    let place = input.path.display();
    let reader: Box<dyn Read> = match &input.file {
        Some(file) => {
            let unpacked = file.try_clone().and_then(|file| unpacked(file, BLOCK));
            unpacked.map_err(|error| Message::bare(format!("{place}: {error}")))?
        }
        None => Box::new(io::stdin()),
    };
    let failure = reader.take(LONGEST_LOG + 1).read_to_end(&mut text).err().map(|error| error.to_string());
    if text.len() as u64 > LONGEST_LOG {
        return Err(Message::new(
            format!("{place}: more than {} MiB of output of {}", LONGEST_LOG >> 20, input.tool.name),
            "split it between runs, and import the parts together: sysdock import PART... -o REC",
        ));
    }
    Ok((text, failure))
}

/// The error for a log without any rows.
fn nothing(input: &Input, log: &Log) -> Message {
    let (place, tool) = (input.path.display(), input.tool.name);
    let why = match log.broken.first() {
        Some(broken) => format!("line {}: {}", broken.line, sentences::sentence(&broken.detail)),
        None => "it has no result of a file system".into(),
    };
    Message::new(format!("{place}: output of {tool}, and none of it was understood ({why})"), input.tool.hint)
}

/// Write the completeness of a log to the tables.
fn issues(source: usize, log: &Log, failure: Option<&str>, recording: &mut Recording) -> Result<(), TableError> {
    let path = recording.manifest.capture().sources[source].path.clone();
    let row = |line: u64, issue: &'static str, detail: Fact, excerpt: Option<String>| (line, issue, detail, excerpt);
    let broken = log.broken.iter().map(|broken| {
        let excerpt = sysdock_table::readable(broken.text.trim_end().as_bytes()).into_owned();
        row(broken.line, BROKEN_RESULT, broken.detail.clone(), Some(excerpt))
    });
    let found: Vec<_> = broken.chain(failure.map(|why| row(0, DAMAGED, facts::load::error(why), None))).collect();
    recording.write_rows(found.iter().map(|(line, issue, detail, excerpt)| rows::ImportIssues {
        source: path.as_str().into(),
        line: line.cast_signed(),
        issue: (*issue).into(),
        understood: false,
        detail: detail.clone().into(),
        excerpt: excerpt.as_deref().map(Into::into),
    }))?;
    let capture = recording.manifest.capture_mut();
    capture.understood += log.measured.len() as u64;
    capture.total += (log.measured.len() + log.broken.len()) as u64;
    capture.sources[source].lines = log.lines;
    for (_, issue, ..) in &found {
        *capture.issues.entry((*issue).into()).or_default() += 1;
    }
    for row in &log.measured {
        *capture.counts.entry(row.status.name().into()).or_default() += 1;
    }
    if !log.broken.is_empty() {
        messages::note(&format!("{path}: {} results could not be read; see the table import_issues", log.broken.len()));
    }
    Ok(())
}
