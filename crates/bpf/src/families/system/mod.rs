//! The kernel's counters of the whole machine while it is recorded: the table `system_metrics`. The
//! recorder reads them in user space ([`meters`]); the lines become rows here.

pub(crate) mod meters;
mod rows;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{EVENT_SYSTEM, Raw},
    families::{Converter, Family, Recorded},
};

use rows::{MetricRows, Reading};

/// Collects rows of `system_metrics`.
#[derive(Default)]
pub(crate) struct System(MetricRows);

impl Converter for System {
    const FAMILY: Family = Family {
        name: "system",
        shows: "load of the whole machine",
        recorded: Recorded::Usually,
        kinds: &[(EVENT_SYSTEM, "system_metrics")],
        tables: &["system_metrics"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        Reading::of(event).is_some()
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(reading) = Reading::of(event) else { return Ok(()) };
        Ok(self.0.push(&reading, at_ns, conversion.recording)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.flush(conversion.recording)?)
    }
}
