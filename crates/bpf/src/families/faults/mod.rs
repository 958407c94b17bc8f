//! Page faults on mapped files: the table `file_faults`.

mod rows;
#[cfg(test)]
pub(crate) mod tests;

use crate::{
    BpfError,
    conversion::Conversion,
    counters::Counter,
    events::{EVENT_FAULT, FaultEvent, Raw},
    families::{Converter, Family, Recorded},
};

use rows::FaultRows;

/// Value of `enum perf_sw_ids` (linux/perf_event.h).
const MINOR_FAULTS: u64 = 5;
const MAJOR_FAULTS: u64 = 6;

/// Collects rows of `file_faults`.
#[derive(Debug, Default)]
pub(crate) struct Faults(FaultRows);

impl Converter for Faults {
    const FAMILY: Family = Family {
        name: "faults",
        shows: "page faults on mapped files",
        recorded: Recorded::Usually,
        object: programs!("faults"),
        left_out: &[&[], &["map_around"]],
        counters: &[("end_minor", Counter::Event(MINOR_FAULTS)), ("end_major", Counter::Event(MAJOR_FAULTS))],
        kinds: &[(EVENT_FAULT, "file_faults")],
        tables: &["file_faults"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        event.holds::<FaultEvent>()
    }

    #[inline]
    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        let (fault, _) = event.read::<FaultEvent>()?;
        Some(fault.start_ns.saturating_add(fault.duration_ns))
    }

    fn event(&mut self, event: &Raw<'_>, _at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some((fault, _)) = event.read::<FaultEvent>() else { return Ok(()) };
        if self.0.push(&rows::row(&fault, event.flags, conversion)) {
            self.0.flush(conversion.recording)?;
        }
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.flush(conversion.recording)?)
    }
}
