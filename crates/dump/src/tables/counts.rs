//! Rows of numbers that a kernel keeps twice.

use sysdock_table::{TableError, rows};

use crate::{Kernel, Log, Sink, Tasks};

/// Write `dump_counts`.
pub(super) fn write(kernel: &Kernel, tasks: &Tasks, log: Option<&Log>, out: &mut impl Sink) -> Result<(), TableError> {
    out.write_rows(kernel.counts(tasks, log).iter().map(|count| rows::DumpCounts {
        name: count.name.into(),
        found: count.found.map(u64::cast_signed),
        expected: count.expected.map(u64::cast_signed),
        against: count.against.into(),
        status: count.status().into(),
    }))
}
