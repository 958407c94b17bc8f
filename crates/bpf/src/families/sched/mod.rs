//! When threads run, what they wait for, and who wakes them: the tables `run_states` and `critical_path`.

mod absences;
mod cause;
mod critical_path;
mod rows;
#[cfg(test)]
mod tests;

use sysdock_calls::{CallRow, syscalls::Shape};

use crate::{
    BpfError,
    conversion::Conversion,
    events::{EVENT_SWITCH, EVENT_WAKE, Raw, SwitchEvent, WakeEvent},
    families::{Converter, Family, Recorded, calls::events::Call},
};

use absences::Absences;

/// Collects rows of both.
#[derive(Default)]
pub(crate) struct Sched(Absences);

impl Converter for Sched {
    const FAMILY: Family = Family {
        name: "sched",
        shows: "when threads run, and what they wait for",
        recorded: Recorded::Usually,
        object: programs!("sched"),
        kinds: &[(EVENT_SWITCH, "run_states"), (EVENT_WAKE, "run_states")],
        tables: &["run_states", "critical_path"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        if event.kind == EVENT_SWITCH { event.holds::<SwitchEvent>() } else { event.holds::<WakeEvent>() }
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        if event.kind == EVENT_WAKE {
            if let Some((wake, _)) = event.read::<WakeEvent>() {
                self.0.woken(&wake, event.flags, at_ns, conversion);
            }
            return Ok(());
        }
        let Some((switch, _)) = event.read::<SwitchEvent>() else { return Ok(()) };
        conversion.seen(at_ns, at_ns);
        self.0.leaves(&switch, event.flags, at_ns, conversion)?;
        Ok(self.0.returns(&switch, at_ns, conversion)?)
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: Shape, row: &mut CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        if call.ring {
            return Ok(());
        }
        Ok(self.0.call(call.tid, row, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.0.finish(conversion)?)
    }
}
