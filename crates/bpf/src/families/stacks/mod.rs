//! Places in programs from which calls are made: the number of a stack in the rows of calls, if
//! requested, else in those of long waits; and the rows of `stacks`, which samples use, too.
//! `stacks.h` distinguishes stacks by a fingerprint and copies each once, `layouts.h` reports
//! mapped code, `interpreters.h` and `python.h` find functions of Python.

pub(crate) mod layouts;
pub(crate) mod rows;

use sysdock_calls::{CallRow, Issue, syscalls::Shape};

use sysdock_table::facts::issues as facts;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_MAPPED, EVENT_PROGRAM, EVENT_PYTHON, EVENT_PYTHON_CODE, EVENT_STACK, MappedEvent, Raw},
    families::{CPU, Converter, Family, Recorded, SCHED, STACKS, Shrink, calls::events::Call},
    stacks::{
        events::{Of, ProgramMapped, StackPart},
        kernel,
        python_events::{PythonCode, PythonFrames},
    },
    transport::notes::Start,
};

use rows::Counts;

/// Numbers the stacks of calls.
#[derive(Default)]
pub(crate) struct Stacks {
    /// Whether stacks were requested; else only waits have them.
    is_asked_for: bool,
}

impl Converter for Stacks {
    const FAMILY: Family = Family {
        name: "stacks",
        shows: "where in programs calls are made",
        recorded: Recorded::OnDemand,
        left_out: &[],
        unused_maps: &[
            Shrink::Value("known_stacks"),
            Shrink::Value("learned_tops"),
            Shrink::Value("reported_codes"),
            Shrink::Entries("layouts"),
        ],
        kinds: &[
            (EVENT_STACK, "stacks"),
            (EVENT_MAPPED, "stacks"),
            (EVENT_PROGRAM, "stacks"),
            (EVENT_PYTHON, "stacks"),
            (EVENT_PYTHON_CODE, "stacks"),
        ],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        match event.kind {
            EVENT_STACK => StackPart::of(event).is_some(),
            EVENT_MAPPED => event.holds::<MappedEvent>(),
            EVENT_PROGRAM => ProgramMapped::of(event).is_some(),
            EVENT_PYTHON => PythonFrames::of(event).is_some(),
            _ => PythonCode::of(event).is_some(),
        }
    }

    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        // The other events are needed before their time: a stack may be copied on another CPU.
        let is_timed = matches!(event.kind, EVENT_STACK | EVENT_PYTHON);
        event.first_number().filter(|_| is_timed)
    }

    fn begins(&mut self, start: &Start, places: &mut Places) {
        self.is_asked_for |= start.records(Self::FAMILY.name);
        places.keeps_files |= [STACKS, CPU, SCHED].iter().any(|family| start.records(family.name));
        places.is_this_boot = start.boot.is_some() && start.boot == kernel::boot();
    }

    fn survey(&mut self, event: &Raw<'_>, places: &mut Places) {
        match event.kind {
            EVENT_MAPPED => event.read().into_iter().for_each(|(mapped, _)| places.images.mapped(mapped)),
            EVENT_PROGRAM => ProgramMapped::of(event).into_iter().for_each(|program| places.images.program(program)),
            EVENT_PYTHON_CODE => PythonCode::of(event).iter().for_each(|code| places.codes.add(code)),
            _ => {}
        }
    }

    fn event(&mut self, event: &Raw<'_>, _at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Conversion { stacks, places, .. } = conversion;
        match event.kind {
            EVENT_STACK => StackPart::of(event).iter().for_each(|part| stacks.part(part)),
            EVENT_PYTHON => PythonFrames::of(event).iter().for_each(|frames| stacks.python(frames, &places.codes)),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        conversion.call_stack = conversion.stack(call.stack, (call.tid, Of::Call));
        if self.is_asked_for {
            row.stack = conversion.call_stack;
        }
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Counts { lost, compared, differed, cut } = conversion.stacks.counts;
        let issues = &mut conversion.issues;
        issues.add_many(Issue::StackLost, 0, lost, facts::stacks_lost(lost));
        let cut = if self.is_asked_for { cut } else { 0 };
        let detail = facts::stacks_cut(cut, conversion.stacks.len());
        issues.add_many(Issue::StackCut, 0, cut, detail);
        let detail = facts::stacks_differ(differed, compared);
        issues.add_many(Issue::StackDiffers, 0, differed, detail);
        let Conversion { stacks, places, names, start, recording, .. } = conversion;
        Ok(stacks.write(places, (names, start.boot.as_deref()), recording)?)
    }
}
