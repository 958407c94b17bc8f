//! Rows of requests that disks had not completed.

use sysdock_table::{TableError, facts::dump as facts, readable, rows};

use super::{Outcome, UNREADABLE, note};
use crate::{Fault, Kernel, Request, Requests, Sink};

/// Write `dump_requests`.
pub(super) fn write(kernel: &Kernel, out: &mut impl Sink, outcome: &mut Outcome) -> Result<(), TableError> {
    let found = kernel.requests();
    note(outcome, "requests of the disks", found.as_ref().err());
    let Requests { requests, broken } = found.unwrap_or_default();
    outcome.issues.extend(broken.iter().map(|(what, fault)| (UNREADABLE, facts::unread(what.as_str(), fault.name()))));
    out.write_rows(requests.iter().map(|request| row(request, outcome)))
}

fn row<'r>(request: &'r Request, outcome: &Outcome) -> rows::DumpRequests<'r> {
    // Clocks are compared from tick to tick at best.
    const APART_NS: i64 = 1_000_000_000;
    let clock = outcome.clock;
    let stopped = clock.zip(outcome.stopped_ns).map(|(clock, stopped)| clock.boot_of_log(stopped));
    let after_boot = |ns: u64| clock.map(|clock| clock.boot_of_monotonic(ns));
    // No request was created after the kernel stopped.
    let is_past = |ns: &u64| {
        let latest = stopped.map_or(i64::MAX, |stopped| stopped.saturating_add(APART_NS));
        ns.cast_signed() >= 0 && after_boot(*ns).is_none_or(|made| made <= latest)
    };
    let (made_ns, issued_ns) = (request.made_ns.filter(is_past), request.issued_ns.filter(is_past));
    let is_damaged = made_ns != request.made_ns || issued_ns != request.issued_ns;
    let fault = request.fault.or(is_damaged.then_some(Fault::Damaged));
    let since = |ns: Option<u64>| Some(stopped?.saturating_sub(after_boot(ns?)?).max(0));
    rows::DumpRequests {
        disk: readable(request.disk.as_bytes()),
        ts_ns: clock.zip(made_ns).map(|(clock, ns)| clock.epoch_of_boot(clock.boot_of_monotonic(ns))),
        age_ns: since(made_ns),
        issued_ns: since(issued_ns),
        operation: readable(request.operation.as_bytes()),
        sector: request.sector.map(u64::cast_signed),
        bytes: request.bytes.map(u64::cast_signed),
        state: request.state.name().into(),
        tag: request.tag.map(u32::cast_signed),
        queue: request.queue.map(u32::cast_signed),
        status: fault.map_or("ok", Fault::name).into(),
    }
}
