//! The notes of a spool: what was recorded, how it ended, what was lost. They go into the manifest.

use rustc_hash::FxHashMap;
use sysdock_calls::Task;
use sysdock_table::{
    Batch, Ending, Fact, Manifest, Recording, TableError,
    rows::{self, MarksColumns},
};

use sysdock_table::facts;

use crate::{
    End, Note, Reason, Start,
    conversion::{clock::Clock, survey::Survey, threads::Threads},
    families::{self, processes::signals},
};

/// A moment that matters for the whole recording.
#[derive(Debug)]
pub(crate) struct Mark {
    monotonic_ns: u64,
    /// Id of the thread; 0: none.
    tid: u32,
    what: Fact,
}

/// Content of the notes.
#[derive(Debug, Default)]
pub(crate) struct SpoolNotes {
    pub(crate) start: Start,
    end: Option<End>,
    pub(crate) marks: Vec<Mark>,
    /// Number of lost events by kind.
    lost: Vec<(u8, u64)>,
    /// Number of events that cannot be read, in readable frames.
    pub(crate) broken: u64,
    pub(crate) unknown: u64,
    pub(crate) events: u64,
    /// Whether bytes before the end of the spool are missing.
    damaged: bool,
}

impl SpoolNotes {
    pub(crate) fn of(survey: &Survey) -> Self {
        let mut notes = SpoolNotes {
            broken: survey.broken + survey.broken_notes,
            unknown: survey.unknown,
            events: survey.events,
            damaged: survey.damages > 0,
            ..SpoolNotes::default()
        };
        let mut drops: FxHashMap<(u32, u8), u64> = FxHashMap::default();
        for note in &survey.notes {
            match note {
                Note::Start(start) => notes.start = (**start).clone(),
                Note::Drops { cpu, kind, count, .. } => {
                    let most = drops.entry((*cpu, *kind)).or_default();
                    *most = (*most).max(*count);
                }
                Note::Mark { monotonic_ns, tid, what } => {
                    notes.marks.push(Mark { monotonic_ns: *monotonic_ns, tid: *tid, what: what.clone() });
                }
                Note::End(end) => notes.end = Some(end.clone()),
                Note::Clock { .. } | Note::Unknown => {}
            }
        }
        for ((_, kind), count) in drops {
            match notes.lost.iter_mut().find(|(other, _)| *other == kind) {
                Some((_, sum)) => *sum = sum.saturating_add(count),
                None => notes.lost.push((kind, count)),
            }
        }
        notes
    }

    /// Write the rows of `marks`.
    pub(crate) fn write_marks(&self, recording: &mut Recording, clock: &Clock, threads: &Threads) -> Result<(), TableError> {
        let mut batch = Batch::<MarksColumns>::default();
        let mut marks: Vec<&Mark> = self.marks.iter().collect();
        marks.sort_by_key(|mark| mark.monotonic_ns);
        for mark in marks {
            batch.push(&rows::Marks {
                ts_ns: clock.epoch_ns(mark.monotonic_ns),
                text: mark.what.clone().into(),
                task_id: threads.task_of(mark.tid).filter(|_| mark.tid != 0).map(|task| task as i32),
            });
        }
        recording.write_batch(&mut batch)
    }

    pub(crate) fn ending(&self) -> Ending {
        match self.end.as_ref().map(|end| end.reason) {
            Some(Reason::Done) if self.damaged => Ending::InputError,
            Some(Reason::Done) => Ending::EndOfInput,
            Some(Reason::Full) => Ending::WriteError,
            Some(Reason::Interrupted) | None => Ending::Interrupted,
        }
    }

    /// Write what the manifest says about the spool. `tasks`: the tasks of all threads.
    pub(crate) fn describe(&self, manifest: &mut Manifest, tasks: &[Task]) {
        let capture = manifest.capture_mut();
        capture.total = self.events + self.broken;
        capture.understood = self.events - self.unknown;
        describe_command(manifest, self, tasks);
        for (kind, count) in &self.lost {
            let capture = manifest.capture_mut();
            capture.lost = sum(capture.lost, *count);
            if let Some(table) = families::table_of(*kind).and_then(|table| manifest.tables.get_mut(table)) {
                table.lost = sum(table.lost, *count);
            }
        }
    }
}

/// A sum that readers with signed integers can read.
fn sum(one: u64, other: u64) -> u64 {
    one.saturating_add(other).min(i64::MAX.cast_unsigned())
}

fn describe_command(manifest: &mut Manifest, notes: &SpoolNotes, tasks: &[Task]) {
    let Start { command, watched, directory, host, options, families, pid, .. } = &notes.start;
    manifest.command = manifest.command.take().or_else(|| command.clone());
    manifest.watched = manifest.watched.take().or_else(|| watched.clone());
    manifest.directory = manifest.directory.take().or_else(|| directory.clone());
    manifest.host = manifest.host.take().or_else(|| host.clone());
    let capture = manifest.capture_mut();
    capture.families.truncate(1);
    if notes.start.without_calls {
        capture.families[0].missing = Some(facts::capture::not_requested());
    }
    capture.families.extend_from_slice(families);
    if capture.options.is_empty() {
        capture.options.clone_from(options);
    }
    let first = pid.and_then(|pid| tasks.iter().find(|task| task.tid == pid.cast_signed()));
    if let Some(end) = &notes.end {
        manifest.exit_code = end.exit_code;
        manifest.exit_signal = end.exit_signal.map(signals::name);
    } else if let Some(first) = first {
        manifest.exit_code = first.exit_code;
        manifest.exit_signal.clone_from(&first.exit_signal);
    }
}
