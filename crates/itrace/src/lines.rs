//! Events as lines of text, for people and for other programs.

use std::{io::Write, path::Path};

use sysdock_itrace_file::{Access, Event, Note};

use crate::convert::{ItraceError, Trace};

/// Selection of steps to print.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// From this step on.
    pub first_step: u64,
    /// At most this many lines; 0: all.
    pub limit: u64,
}

/// Print the words of the event file in a folder, one per line: `block ADDRESS INSTRUCTIONS`, `load
/// ADDRESS BYTES`, `store ADDRESS BYTES`, and notes. An error of the output ends it without an
/// error here.
///
/// # Errors
/// [`ItraceError`].
pub fn print_lines(folder: &Path, filter: &Filter, out: &mut dyn Write) -> Result<(), ItraceError> {
    let trace = Trace::open(folder, None)?;
    let mut step = 0;
    let mut lines = 0;
    trace.sections(|words| {
        for &word in words {
            let Some(event) = Event::unpack(word) else { continue };
            let before = step;
            if let Event::Block(block) = event {
                step += trace.reader.blocks.get(block as usize).map_or(0, |block| block.lengths.len() as u64);
            }
            if before < filter.first_step {
                continue;
            }
            if print_event(&trace, event, out).is_err() {
                return false;
            }
            lines += 1;
            if filter.limit != 0 && lines >= filter.limit {
                return false;
            }
        }
        true
    });
    Ok(())
}

fn print_event(trace: &Trace, event: Event, out: &mut dyn Write) -> std::io::Result<()> {
    match event {
        Event::Block(number) => {
            let block = &trace.reader.blocks[number as usize];
            writeln!(out, "block {:#x} {}", block.address, block.lengths.len())
        }
        Event::Access(Access { address, store, size_log2, instruction }) => {
            let what = if store { "store" } else { "load" };
            writeln!(out, "{what} {address:#x} {} {instruction}", 1 << size_log2)
        }
        Event::Note(note) => match note {
            Note::Left(count) => writeln!(out, "left {count}"),
            Note::Marker(value) => writeln!(out, "marker {value}"),
            Note::Task(task) => writeln!(out, "task {task}"),
            Note::Untraced(number) => writeln!(out, "system_call {}", crate::system_call_name(number)),
            Note::Signal(number) => writeln!(out, "signal {number}"),
        },
    }
}
