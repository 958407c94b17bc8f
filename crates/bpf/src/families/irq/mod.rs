//! Interrupts, softirqs and timers, which take CPUs from threads: the table `interrupts`.

mod rows;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_INTERRUPT, EVENT_TIMER, Raw, TimerEvent},
    families::{Converter, Family, Recorded},
};

use rows::{Functions, InterruptRows, Run};

/// Collects rows of `interrupts`.
#[derive(Default)]
pub(crate) struct Interrupts {
    functions: Functions,
    rows: InterruptRows,
}

/// Programs for interrupts that a CPU itself raises.
const VECTORS: &[&str] = &[
    "local_timer_begins",
    "local_timer_ends",
    "reschedule_begins",
    "reschedule_ends",
    "call_function_begins",
    "call_function_ends",
    "call_function_single_begins",
    "call_function_single_ends",
    "irq_work_begins",
    "irq_work_ends",
];

impl Converter for Interrupts {
    const FAMILY: Family = Family {
        name: "irq",
        shows: "interrupts, softirqs and timers",
        recorded: Recorded::OnDemand,
        object: programs!("irq"),
        left_out: &[&[], VECTORS],
        kinds: &[(EVENT_INTERRUPT, "interrupts"), (EVENT_TIMER, "interrupts")],
        tables: &["interrupts"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        Run::of(event).is_some()
    }

    // All addresses are resolved at once, because that reads the whole list of the kernel's
    // functions.
    fn survey(&mut self, event: &Raw<'_>, _: &mut Places) {
        if let Some((timer, _)) = event.read::<TimerEvent>().filter(|_| event.kind == EVENT_TIMER) {
            self.functions.add(timer.function);
        }
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(run) = Run::of(event) else { return Ok(()) };
        self.functions.name(conversion);
        Ok(self.rows.push(&run, at_ns, &self.functions, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.rows.flush(conversion.recording)?)
    }
}
