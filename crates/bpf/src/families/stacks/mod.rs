//! Where in programs calls are made: rows of `stacks`, and the number of one in the rows of calls. `stacks.h` tells stacks apart by a
//! fingerprint and copies each once, `layouts.h` tells what code lies where, `interpreters.h` and `python.h` find functions of Python.

pub(crate) mod events;
pub(crate) mod layouts;
pub(crate) mod python_events;
pub(crate) mod rows;

use sysdock_calls::{CallRow, Issue, syscalls::Shape};

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_MAPPED, EVENT_PROGRAM, EVENT_PYTHON, EVENT_PYTHON_CODE, EVENT_STACK, MappedEvent, Raw},
    families::{Converter, Family, Recorded, Spared, calls::events::Call},
    transport::notes::Start,
};

use events::{ProgramMapped, StackPart};
use python_events::{PythonCode, PythonFrames};
use rows::{Counts, StackRows};

/// Numbers the stacks of calls.
#[derive(Default)]
pub(crate) struct Stacks(StackRows);

impl Converter for Stacks {
    const FAMILY: Family = Family {
        word: "stacks",
        shows: "where in programs calls are made",
        recorded: Recorded::OnDemand,
        left_out: &[],
        spared: &[
            Spared::Value("known_stacks"),
            Spared::Value("learned_tops"),
            Spared::Value("told_codes"),
            Spared::Entries("layouts"),
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
        // The others are needed before their time: a stack may be copied on another CPU.
        let is_timed = matches!(event.kind, EVENT_STACK | EVENT_PYTHON);
        event.first_number().filter(|_| is_timed)
    }

    fn begins(&mut self, start: &Start, places: &mut Places) {
        places.keeps_files |= start.records(&Self::FAMILY);
    }

    fn survey(&mut self, event: &Raw<'_>, _places: &mut Places) {
        let StackRows { frames, codes, .. } = &mut self.0;
        match event.kind {
            EVENT_MAPPED => event.read().into_iter().for_each(|(mapped, _)| frames.images.mapped(mapped)),
            EVENT_PROGRAM => ProgramMapped::of(event).into_iter().for_each(|program| frames.images.program(program)),
            EVENT_PYTHON_CODE => PythonCode::of(event).iter().for_each(|code| codes.tell(code)),
            _ => {}
        }
    }

    fn event(&mut self, event: &Raw<'_>, _at_ns: i64, _conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        match event.kind {
            EVENT_STACK => StackPart::of(event).iter().for_each(|part| self.0.part(part)),
            EVENT_PYTHON => PythonFrames::of(event).iter().for_each(|frames| self.0.python(frames)),
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Conversion { places, clock, .. } = conversion;
        row.stack = self.0.number(call.stack, call.tid, places, &|ns| clock.epoch_ns(ns));
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Counts { lost, compared, differed, cut } = self.0.counts;
        let issues = &mut conversion.issues;
        issues.add_many(Issue::StackLost, 0, lost, format!("{lost} calls have a stack that was lost"));
        let detail = format!("{cut} of {} stacks end early; their last frame says why", self.0.len());
        issues.add_many(Issue::StackCut, 0, cut, detail);
        let detail = format!("{differed} of {compared} stacks that were copied again had other frames than the first");
        issues.add_many(Issue::StackDiffers, 0, differed, detail);
        Ok(self.0.write(conversion.recording)?)
    }
}
