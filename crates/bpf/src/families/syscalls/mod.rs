//! Durations of system calls, where an event for each would be too much: histograms by process and
//! call, in the table `syscall_times`.

#[cfg(test)]
mod tests;
mod times;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{CallTimesEvent, EVENT_CALL_TIMES, Raw, SUMS_BEFORE},
    families::{Converter, Family, Recorded},
};

use times::Times;

/// Makes rows of the sums.
#[derive(Default)]
pub(crate) struct Syscalls(Times);

impl Converter for Syscalls {
    const FAMILY: Family = Family {
        name: "syscalls",
        shows: "how long system calls take, added up by process and call",
        recorded: Recorded::OnDemand,
        object: programs!("syscalls"),
        sums: &[("call_times", EVENT_CALL_TIMES)],
        kinds: &[(EVENT_CALL_TIMES, "syscall_times")],
        tables: &["syscall_times"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        event.holds::<CallTimesEvent>()
    }

    fn at_ns(_: &Raw<'_>) -> Option<u64> {
        None
    }

    fn survey(&mut self, event: &Raw<'_>, _: &mut Places) {
        if let Some((sum, _)) = event.read::<CallTimesEvent>() {
            self.0.add(&sum, event.flags & SUMS_BEFORE != 0);
        }
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(std::mem::take(&mut self.0).write(conversion)?)
    }
}
