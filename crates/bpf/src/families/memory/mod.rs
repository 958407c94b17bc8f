//! Memory of the kernel: sums of allocations by place, in the table `allocations`, and waits of
//! threads for memory, in `memory_stalls`.

mod rows;
mod sites;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{AllocationEvent, EVENT_ALLOCATIONS, EVENT_MEMORY_STALL, MemoryStallEvent, Raw, SUMS_BEFORE},
    families::{Converter, Family, Recorded},
};

use rows::StallRows;
use sites::Allocations;

/// Collects rows of both.
#[derive(Default)]
pub(crate) struct Memory {
    allocations: Allocations,
    stalls: StallRows,
}

impl Converter for Memory {
    const FAMILY: Family = Family {
        name: "memory",
        shows: "memory that the kernel allocates, and waits for it",
        recorded: Recorded::OnDemand,
        object: programs!("memory"),
        // The tracepoint has one of two arguments, depending on the kernel.
        left_out: &[&["kills_number"], &["kills"]],
        sums: &[("allocations", EVENT_ALLOCATIONS)],
        kinds: &[(EVENT_ALLOCATIONS, "allocations"), (EVENT_MEMORY_STALL, "memory_stalls")],
        tables: &["allocations", "memory_stalls"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        if event.kind == EVENT_ALLOCATIONS { event.holds::<AllocationEvent>() } else { event.holds::<MemoryStallEvent>() }
    }

    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        (event.kind == EVENT_MEMORY_STALL).then(|| event.first_number()).flatten()
    }

    fn survey(&mut self, event: &Raw<'_>, _: &mut Places) {
        if event.kind == EVENT_ALLOCATIONS
            && let Some((sum, _)) = event.read::<AllocationEvent>()
        {
            self.allocations.add(sum, event.flags & SUMS_BEFORE != 0);
        }
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some((stall, _)) = event.read::<MemoryStallEvent>() else { return Ok(()) };
        Ok(self.stalls.push(&stall, event.flags, at_ns, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        self.stalls.flush(conversion.recording)?;
        Ok(self.allocations.write(conversion)?)
    }
}
