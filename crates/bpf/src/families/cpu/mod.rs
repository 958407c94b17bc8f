//! CPU samples of running threads: the table `samples`.

mod rows;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::Conversion,
    counters::Counter,
    events::{EVENT_SAMPLE, Raw},
    families::{Converter, Family, Recorded, Shrink},
};

use rows::{Sample, SampleRows};

/// Collects rows of `samples`.
#[derive(Default)]
pub(crate) struct Cpu(SampleRows);

impl Converter for Cpu {
    const FAMILY: Family = Family {
        name: "cpu",
        shows: "samples of threads that run",
        recorded: Recorded::Usually,
        object: programs!("cpu"),
        counters: &[("sample", Counter::Clock)],
        unused_maps: &[Shrink::Entries("layouts")],
        kinds: &[(EVENT_SAMPLE, "samples")],
        tables: &["samples", "stacks"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        Sample::of(event).is_some()
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(sample) = Sample::of(event) else { return Ok(()) };
        Ok(self.0.push(&sample, at_ns, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.flush(conversion.recording)?)
    }
}
