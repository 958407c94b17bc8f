//! Rows of `file_faults` from events.

use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{FileFaults, FileFaultsColumns},
};

use crate::{
    conversion::{Conversion, waits::WaitedFor},
    events::{FAULT_COUNTED, FAULT_FETCH, FAULT_IN_CALL, FAULT_MAJOR, FAULT_MAPPED, FAULT_SHARED, FAULT_WRITE, FaultEvent},
};

const PAGE_BYTES: u64 = 4096;
/// A fault that is shorter than this [ns] kept its CPU: leaving one and coming back takes longer.
const SHORTEST_ABSENCE_NS: i64 = 2_000;

/// Rows of `file_faults` that are not written yet.
#[derive(Debug, Default)]
pub(super) struct FaultRows(Batch<FileFaultsColumns>);

impl FaultRows {
    /// Add a row. Returns whether it is time to [`FaultRows::flush`].
    pub(super) fn push(&mut self, row: &FileFaults<'_>) -> bool {
        self.0.push(row);
        self.0.len() >= ROWS_PER_GROUP
    }

    /// Write the collected rows.
    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}

/// The row for an event.
pub(super) fn row(event: &FaultEvent, flags: u32, conversion: &mut Conversion<'_>) -> FileFaults<'static> {
    let ts_ns = conversion.clock.epoch_ns(event.start_ns);
    let task = conversion.task(event.tid, ts_ns);
    let dur_ns = event.duration_ns.min(i64::MAX.cast_unsigned()).cast_signed();
    conversion.seen(ts_ns, ts_ns.saturating_add(dur_ns));
    let has_around = event.around_pages > 0;
    let has = |flag| flags & flag != 0;
    let object = conversion.file(event.file);
    if dur_ns >= SHORTEST_ABSENCE_NS {
        let wait = WaitedFor::Page { object, from_disk: has(FAULT_MAJOR) };
        conversion.waits.was_at(task as u32, (ts_ns, ts_ns.saturating_add(dur_ns)), wait);
    }
    FileFaults {
        ts_ns,
        dur_ns,
        task_id: task as i32,
        path_id: Some(object).filter(|object| *object >= 0),
        address: event.address.cast_signed(),
        offset_bytes: event.offset.cast_signed(),
        access: access(has(FAULT_WRITE), has(FAULT_FETCH)).into(),
        major: has(FAULT_MAJOR),
        shared: has(FAULT_SHARED),
        was_mapped: has(FAULT_MAPPED),
        in_call: has(FAULT_IN_CALL),
        fault_around_offset_bytes: has_around.then(|| event.around_page.wrapping_mul(PAGE_BYTES).cast_signed()),
        fault_around_bytes: has_around.then(|| bytes(event.around_pages)),
        mapped_bytes: has(FAULT_COUNTED).then(|| bytes(event.brought_in_pages)),
    }
}

fn bytes(pages: u32) -> i64 {
    (u64::from(pages) * PAGE_BYTES).cast_signed()
}

fn access(is_write: bool, is_fetch: bool) -> &'static str {
    match (is_write, is_fetch) {
        (true, _) => "write",
        (false, true) => "execute",
        (false, false) => "read",
    }
}
