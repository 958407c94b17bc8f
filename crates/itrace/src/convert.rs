//! Converts an event file to tables.

use std::{fs::File, path::Path, path::PathBuf, sync::mpsc, thread};

use iced_x86::InstructionInfoFactory;
use sysdock_itrace_file::{FileError, Reader, Writer};
use sysdock_table::{Cancel, Recording, TableError, codes};

use crate::{Mapping, TaskFact, TraceFacts, code::Code, following::Follower, images::Images, tables::Tables};

/// Name of the event file in a recording.
pub const EVENTS: &str = "trace.sdit";
/// Name of the file with the recorder's facts, next to the event file.
pub const FACTS: &str = "facts.json";

/// Why a trace cannot be read.
#[derive(Debug)]
pub enum ItraceError {
    /// The event file cannot be read.
    File(PathBuf, FileError),
    /// The facts cannot be read.
    Facts(PathBuf, serde_json::Error),
    /// The recording cannot be written.
    Table(TableError),
}

codes!(ItraceError { File: "file", Facts: "facts", Table: "table" });

impl From<TableError> for ItraceError {
    fn from(error: TableError) -> ItraceError {
        ItraceError::Table(error)
    }
}

/// Outcome of a conversion.
#[derive(Debug)]
pub struct Outcome {
    /// The facts of the recorder, and the function of each block.
    pub facts: TraceFacts,
    /// Number of words of the file that were read.
    pub events: u64,
    /// Number of steps: with each iteration of a repeated string instruction as a step, and with
    /// each such instruction as one.
    pub steps: [u64; 2],
    /// Number of damaged sections.
    pub damaged: u64,
    /// Number of steps in damaged sections, as far as known.
    pub lost_steps: u64,
    /// Whether the recorder completed the file.
    pub complete: bool,
    /// Number of returns in the kernel whose call was in the trace: those whose frame was found,
    /// and others.
    pub kernel_returns: [u64; 2],
    /// Number of requests; at least one if nothing delimits them.
    pub requests: usize,
    /// Whether the caller cancelled it.
    pub cancelled: bool,
}

/// An event file, and its facts.
pub(crate) struct Trace {
    pub(crate) reader: Reader,
    pub(crate) facts: TraceFacts,
}

impl Trace {
    /// Open the event file in `folder`.
    pub(crate) fn open(folder: &Path, known: Option<&sysdock_itrace_file::Facts>) -> Result<Trace, ItraceError> {
        let path = folder.join(EVENTS);
        let failed = |error: FileError| ItraceError::File(path.clone(), error);
        let reader = Reader::open(File::open(&path).map_err(|error| failed(error.into()))?).map_err(failed)?;
        let mut all = reader.header.clone();
        all.extend(reader.facts.clone());
        let facts_file = folder.join(FACTS);
        if let Ok(text) = std::fs::read_to_string(&facts_file) {
            let more: sysdock_itrace_file::Facts =
                serde_json::from_str(&text).map_err(|error| ItraceError::Facts(facts_file.clone(), error))?;
            all.extend(more);
        }
        all.extend(known.cloned().unwrap_or_default());
        let facts =
            serde_json::from_value(serde_json::Value::Object(all)).map_err(|error| ItraceError::Facts(facts_file, error))?;
        Ok(Trace { reader, facts })
    }

    pub(crate) fn codes(&self) -> Vec<Code> {
        let mut factory = InstructionInfoFactory::new();
        self.reader.blocks.iter().map(|block| Code::of(block, &mut factory)).collect()
    }

    /// Call `take` with the words of each section in turn, while another thread decodes the next
    /// one; `false` ends it. Returns the number of damaged sections, and the steps in them, as far
    /// as known.
    pub(crate) fn sections(&self, mut take: impl FnMut(&[u64]) -> bool) -> (u64, u64) {
        let (mut damaged, mut lost_steps) = (self.reader.damaged().len() as u64, 0);
        thread::scope(|scope| {
            let (send, receive) = mpsc::sync_channel(1);
            scope.spawn(move || {
                for section in &self.reader.sections {
                    let mut words = Vec::new();
                    let decoded = self.reader.events(section, &mut words).map(|()| words).map_err(|_| section.steps);
                    if send.send(decoded).is_err() {
                        break;
                    }
                }
            });
            for decoded in receive {
                match decoded {
                    Ok(words) if !take(&words) => break,
                    Ok(_) => {}
                    Err(steps) => {
                        damaged += 1;
                        lost_steps += steps;
                    }
                }
            }
        });
        (damaged, lost_steps)
    }
}

/// Make the tables from the event file in the folder of a recording. `known`: facts that could not
/// be written there. `report` is called with the number of events so far, and in total.
///
/// # Errors
/// [`ItraceError`]. Damage of single sections is no error, but counted.
pub fn convert(
    folder: &Path,
    known: Option<&sysdock_itrace_file::Facts>,
    recording: &mut Recording,
    cancel: &Cancel,
    report: &mut dyn FnMut(u64, u64),
) -> Result<Outcome, ItraceError> {
    let trace = Trace::open(folder, known)?;
    let codes = trace.codes();
    let all: u64 = trace.reader.sections.iter().map(|section| section.events).sum();
    let steps: u64 = trace.reader.sections.iter().map(|section| section.steps).sum();
    let mut tables = Tables::new(recording, &trace.facts, steps);
    let mut follower = Follower::new(&trace.reader.blocks, &codes, Images::new(&trace.facts, folder), &trace.facts);
    let mut cancelled = false;
    let (damaged, lost_steps) = trace.sections(|words| {
        for &word in words {
            follower.take(word, &mut tables);
        }
        report(follower.events, all);
        cancelled = cancel.requested();
        !cancelled
    });
    follower.finish(&mut tables);
    let requests = tables.finish(&follower)?;
    let mut facts = trace.facts.clone();
    facts.places = Some(follower.found_places());
    // The files next to it are no longer needed.
    facts.kallsyms = None;
    facts.root = None;
    facts.tasks.iter_mut().for_each(|task| task.maps = None);
    Ok(Outcome {
        events: follower.events,
        steps: [follower.steps.single, follower.steps.collapsed],
        damaged,
        lost_steps,
        complete: trace.reader.is_complete(),
        kernel_returns: follower.kernel_returns,
        requests,
        cancelled,
        facts,
    })
}

/// Append the results to the event file of a recording, so that it needs no other file.
///
/// # Errors
/// The file cannot be written.
pub fn complete(file: File, facts: &TraceFacts) -> std::io::Result<()> {
    let serde_json::Value::Object(facts) = serde_json::to_value(facts)? else { return Ok(()) };
    Writer::append_facts(file, &facts)
}

/// What a stepper learned, as the facts of its event file.
#[must_use]
pub fn facts_of(tasks: &[TaskFact], mappings: &[Mapping], unread: u64) -> sysdock_itrace_file::Facts {
    let mut facts = sysdock_itrace_file::Facts::new();
    facts.insert("tasks".into(), serde_json::to_value(tasks).unwrap_or_default());
    facts.insert("mappings".into(), serde_json::to_value(mappings).unwrap_or_default());
    facts.insert("unread".into(), unread.into());
    facts
}
