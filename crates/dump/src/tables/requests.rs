//! Requests that disks had not completed, as rows.

use sysdock_table::{TableError, readable, rows};

use super::{Outcome, UNREADABLE, note};
use crate::{Fault, Kernel, Request, Requests, Sink};

/// `dump_requests`.
pub(super) fn write(kernel: &Kernel, out: &mut impl Sink, outcome: &mut Outcome) -> Result<(), TableError> {
    let found = kernel.requests();
    note(outcome, "requests of the disks", found.as_ref().err());
    let Requests { requests, broken } = found.unwrap_or_default();
    outcome.issues.extend(broken.iter().map(|(what, fault)| (UNREADABLE, format!("{what}: {}", fault.word()))));
    out.write_rows(requests.iter().map(|request| row(request, outcome)))
}

fn row<'r>(request: &'r Request, outcome: &Outcome) -> rows::DumpRequests<'r> {
    let clock = outcome.clock;
    let since = |ns: Option<u64>| {
        let (clock, stopped) = clock.zip(outcome.stopped_ns)?;
        Some(clock.boot_of_log(stopped).saturating_sub(clock.boot_of_monotonic(ns?)).max(0))
    };
    rows::DumpRequests {
        disk: readable(request.disk.as_bytes()),
        ts_ns: clock.zip(request.made_ns).map(|(clock, ns)| clock.epoch_of_boot(clock.boot_of_monotonic(ns))),
        age_ns: since(request.made_ns),
        issued_ns: since(request.issued_ns),
        operation: readable(request.operation.as_bytes()),
        sector: request.sector.map(u64::cast_signed),
        bytes: request.bytes.map(u64::cast_signed),
        state: request.state.word().into(),
        tag: request.tag.map(u32::cast_signed),
        queue: request.queue.map(u32::cast_signed),
        status: request.fault.map_or("ok", Fault::word).into(),
    }
}
