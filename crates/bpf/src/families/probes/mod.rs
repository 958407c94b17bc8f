//! Places in programs that the user named (`--probe`), and requests from one to another
//! (`--request`): the tables `probe_events` and `probe_requests`.

pub(crate) mod attach;
mod rows;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_PROBE, Raw},
    families::{Converter, Family, Recorded, Shrink},
    transport::notes::Start,
};

use rows::{ProbeRows, Reached};

/// Collects rows of both.
#[derive(Default)]
pub(crate) struct Probes(ProbeRows);

impl Converter for Probes {
    const FAMILY: Family = Family {
        name: "probes",
        shows: "places that --probe and --request name",
        recorded: Recorded::OnDemand,
        object: programs!("probes"),
        unused_maps: &[Shrink::Entries("layouts")],
        kinds: &[(EVENT_PROBE, "probe_events")],
        tables: &["probe_events", "probe_requests"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        Reached::of(event).is_some()
    }

    fn begins(&mut self, start: &Start, _: &mut Places) {
        self.0 = ProbeRows::new(start.probe_list.clone());
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(reached) = Reached::of(event) else { return Ok(()) };
        Ok(self.0.push(&reached, at_ns, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.finish(conversion)?)
    }
}
