//! Locks of the kernel that threads wait for: the tables `lock_waits` and `locks`.

mod kinds;
mod members;
pub(crate) mod namer;
mod naming;
mod rows;
#[cfg(test)]
mod tests;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_LOCK, EVENT_LOCK_WAIT, LockEvent, Raw},
    families::{Converter, Family, Recorded},
};

use rows::{Descriptions, LockRows, Wait};

/// Collects rows of `lock_waits` and `locks`.
#[derive(Default)]
pub(crate) struct Locks {
    descriptions: Descriptions,
    rows: LockRows,
}

impl Converter for Locks {
    const FAMILY: Family = Family {
        name: "locks",
        shows: "waits for locks of the kernel",
        recorded: Recorded::OnDemand,
        object: programs!("locks"),
        kinds: &[(EVENT_LOCK_WAIT, "lock_waits"), (EVENT_LOCK, "locks")],
        tables: &["lock_waits", "locks", "stacks"],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        if event.kind == EVENT_LOCK { event.holds::<LockEvent>() } else { Wait::of(event).is_some() }
    }

    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        (event.kind == EVENT_LOCK_WAIT).then(|| event.first_number()).flatten()
    }

    fn survey(&mut self, event: &Raw<'_>, _: &mut Places) {
        if event.kind == EVENT_LOCK
            && let Some((description, _)) = event.read::<LockEvent>()
        {
            self.descriptions.add(description);
        }
    }

    fn event(&mut self, event: &Raw<'_>, at_ns: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(wait) = Wait::of(event) else { return Ok(()) };
        Ok(self.rows.push(&wait, at_ns, &mut self.descriptions, conversion)?)
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(self.rows.finish(conversion)?)
    }
}
