//! Operations of io_uring. Their events are those of the equivalent system calls
//! (`families/calls/events.h`, `CALL_RING`). This family only counts rings, to report operations
//! that were not recorded.

use sysdock_calls::{CallRow, Issue, NONE, syscalls::Shape};

use sysdock_table::facts::issues as facts;

use crate::{
    BpfError,
    conversion::Conversion,
    families::{Converter, Family, Recorded, calls::events::Call},
};

/// Counts rings.
#[derive(Debug, Default)]
pub(crate) struct Uring {
    /// Number of calls that set up an io_uring.
    rings: u64,
}

impl Converter for Uring {
    const FAMILY: Family = Family {
        name: "uring",
        shows: "operations of io_uring",
        recorded: Recorded::Usually,
        object: programs!("uring"),
        // In 6.1 the tracepoint of the submission has another name, and up to 6.12 that of the
        // completion has other arguments.
        left_out: &[&["submitted_early", "completed_early"], &["submitted_early", "completed"], &["submitted", "completed"]],
        ..Family::NONE
    };

    #[inline]
    fn call(&mut self, call: &Call<'_>, shape: Shape, row: &mut CallRow, _: &mut Conversion<'_>) -> Result<(), BpfError> {
        self.rings += u64::from(matches!(shape, Shape::Ring) && row.result != NONE && !call.ring);
        Ok(())
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        if !conversion.records(&Self::FAMILY) {
            conversion.issues.add_many(Issue::InvisibleIo, 0, self.rings, facts::io_uring());
        }
        Ok(())
    }
}
