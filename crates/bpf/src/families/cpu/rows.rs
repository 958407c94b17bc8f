//! Samples as rows of `samples`.

use sysdock_calls::syscalls::CLASS_WORDS;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{Samples, SamplesColumns},
};

use crate::{
    conversion::Conversion,
    events::{Raw, SAMPLE_CUT, SAMPLE_KERNEL, SampleEvent},
    families::calls::call_kinds::CallKinds,
    stacks::{events::Of, unwind::End},
};

/// A sample as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'a> {
    fixed: SampleEvent,
    flags: u32,
    frames: &'a [u8],
}

impl<'a> Sample<'a> {
    /// `None`: the event is broken.
    pub(super) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, frames) = event.read::<SampleEvent>()?;
        Some(Sample { fixed, flags: event.flags, frames })
    }

    /// Addresses of functions of the kernel, the innermost first.
    fn frames(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.frames.chunks_exact(8).map(|address| u64::from_le_bytes(address.try_into().expect("eight bytes")))
    }

    fn end(&self) -> End {
        if self.flags & SAMPLE_CUT == 0 { End::Whole } else { End::TooDeep }
    }
}

/// Rows of `samples` that are not written yet.
pub(super) struct SampleRows {
    rows: Batch<SamplesColumns>,
    meanings: CallKinds,
}

impl Default for SampleRows {
    fn default() -> Self {
        SampleRows { rows: Batch::default(), meanings: CallKinds::new() }
    }
}

impl SampleRows {
    pub(super) fn push(&mut self, sample: &Sample<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let SampleEvent { stack, tid, cpu, call, .. } = sample.fixed;
        conversion.seen(at_ns, at_ns);
        let stack = conversion.stack(stack, (tid, Of::Sample));
        let kernel_stack = conversion.stacks.kernel_number(sample.frames(), sample.end(), true);
        let Some(task_id) = conversion.threads.task_of(tid).map(|task| task as i32) else { return Ok(()) };
        let meaning = u16::try_from(call).ok().map(|call| self.meanings.of(call));
        let names = self.meanings.calls.names();
        self.rows.push(&Samples {
            ts_ns: at_ns,
            period_ns: conversion.start.sample_period_ns.unwrap_or(0),
            task_id,
            cpu: i32::from(cpu),
            in_kernel: sample.flags & SAMPLE_KERNEL != 0,
            call: meaning.map(|meaning| names[usize::from(meaning.call)].as_str().into()),
            class: meaning.map(|meaning| CLASS_WORDS[meaning.class as usize].into()),
            stack_id: Some(stack).filter(|stack| *stack >= 0),
            kernel_stack_id: Some(kernel_stack).filter(|stack| *stack >= 0),
        });
        if self.rows.len() >= ROWS_PER_GROUP { self.flush(conversion.recording) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.rows)
    }
}
