//! Threads and processes: creations, programs, ends, signals, and those that exist when recording
//! begins. [`Threads`](crate::conversion::threads::Threads) keeps the tasks, which all families
//! refer to. This family receives the events and writes the tables.

pub(crate) mod events;
pub(crate) mod signals;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use sysdock_calls::{SignalRows, write_commands, write_processes};
use sysdock_table::rows;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_SIGNAL, EVENT_TASK, ExitEvent, ForkEvent, Raw, SignalEvent},
    families::{Converter, Family, Recorded},
};

use events::{Exec, FoundTask};

/// Rows of the family's tables.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    signals: SignalRows,
}

impl Converter for Processes {
    const FAMILY: Family = Family {
        name: "processes",
        shows: "processes",
        recorded: Recorded::Always,
        object: programs!("processes"),
        kinds: &[
            (EVENT_FORK, "processes"),
            (EVENT_EXEC, "processes"),
            (EVENT_EXIT, "processes"),
            (EVENT_TASK, "processes"),
            (EVENT_SIGNAL, "signals"),
        ],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        match event.kind {
            EVENT_FORK => event.holds::<ForkEvent>(),
            EVENT_EXEC => Exec::of(event).is_some(),
            EVENT_EXIT => event.holds::<ExitEvent>(),
            EVENT_TASK => FoundTask::of(event).is_some(),
            _ => event.holds::<SignalEvent>(),
        }
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        if event.kind == EVENT_SIGNAL {
            return event.read().map_or(Ok(()), |(signal, _)| self.signal(&signal, at_ns, conversion));
        }
        let begun_ns = conversion.clock.epoch_ns(conversion.begun_ns());
        let threads = &mut conversion.threads;
        conversion.gone = match event.kind {
            EVENT_FORK => event.read().and_then(|(fork, _)| threads.fork(&fork, at_ns)),
            EVENT_EXEC => Exec::of(event).and_then(|exec| threads.exec(&exec, at_ns)),
            EVENT_EXIT => event.read().and_then(|(exit, _)| threads.exit(&exit, at_ns)),
            _ => FoundTask::of(event).and_then(|task| threads.task(&task, at_ns, begun_ns)),
        };
        // Threads that existed before do not extend the time span of the recording.
        if event.kind != EVENT_TASK {
            conversion.seen(at_ns, at_ns);
        }
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Conversion { recording, threads, .. } = conversion;
        self.signals.flush(recording)?;
        write_processes(recording, &threads.tasks, &[String::new()])?;
        write_commands(recording, &threads.commands.names)?;
        Ok(())
    }
}

impl Processes {
    fn signal(&mut self, event: &SignalEvent, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        conversion.seen(at_ns, at_ns);
        let thread = conversion.thread(event.tid, at_ns);
        let sender = signals::has_sender(event.signal, event.code, event.sender_pid);
        let row = rows::Signals {
            ts_ns: at_ns,
            task_id: conversion.threads.get_mut(thread).task as i32,
            signal: signals::name(event.signal).into(),
            code: Some(signals::code(event.signal, event.code).into()),
            sender_pid: sender.then_some(event.sender_pid.cast_signed()),
        };
        if self.signals.push(&row) {
            self.signals.flush(conversion.recording)?;
        }
        Ok(())
    }
}
