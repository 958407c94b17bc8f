//! From an event of a page fault to its row in `file_faults`.

use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError};

use crate::{BpfError, convert::Conversion, events::Fault};

const PAGE_BYTES: u64 = 4096;

/// One row of `file_faults`.
#[derive(Debug)]
struct FaultRow {
    ts_ns: i64,
    dur_ns: i64,
    life: i32,
    object: Option<i32>,
    address: i64,
    offset: i64,
    access: &'static str,
    major: bool,
    shared: bool,
    was_mapped: bool,
    in_call: bool,
    around_offset: Option<i64>,
    around_bytes: Option<i64>,
    brought_in_bytes: Option<i64>,
}

/// Faults not yet written.
#[derive(Debug, Default)]
pub(crate) struct FaultRows(Vec<FaultRow>);

impl FaultRows {
    /// Write what was collected.
    pub(crate) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.0);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::Int64(rows.iter().map(|row| Some(row.ts_ns)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.dur_ns)).collect()),
            Column::Int32(rows.iter().map(|row| Some(row.life)).collect()),
            Column::Int32(rows.iter().map(|row| row.object).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.address)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.offset)).collect()),
            Column::words(rows.iter().map(|row| Some(row.access))),
            Column::Bool(rows.iter().map(|row| row.major).collect()),
            Column::Bool(rows.iter().map(|row| row.shared).collect()),
            Column::Bool(rows.iter().map(|row| row.was_mapped).collect()),
            Column::Bool(rows.iter().map(|row| row.in_call).collect()),
            Column::Int64(rows.iter().map(|row| row.around_offset).collect()),
            Column::Int64(rows.iter().map(|row| row.around_bytes).collect()),
            Column::Int64(rows.iter().map(|row| row.brought_in_bytes).collect()),
        ];
        recording.write("file_faults", columns)
    }
}

impl Conversion<'_> {
    pub(crate) fn fault(&mut self, event: &Fault) -> Result<(), BpfError> {
        let ts_ns = self.clock.epoch_ns(event.start_ns);
        let thread = self.thread(event.tid, ts_ns);
        let dur_ns = event.duration_ns.min(i64::MAX.cast_unsigned()).cast_signed();
        self.seen(ts_ns, ts_ns.saturating_add(dur_ns));
        let has_around = event.around_pages > 0;
        let row = FaultRow {
            ts_ns,
            dur_ns,
            life: self.threads.get_mut(thread).life as i32,
            object: Some(self.file(event.file)).filter(|object| *object >= 0),
            address: event.address.cast_signed(),
            offset: event.offset.cast_signed(),
            access: access(event),
            major: event.is_major(),
            shared: event.is_shared(),
            was_mapped: event.was_mapped(),
            in_call: event.is_in_call(),
            around_offset: has_around.then(|| event.around_page.wrapping_mul(PAGE_BYTES).cast_signed()),
            around_bytes: has_around.then(|| bytes(event.around_pages)),
            brought_in_bytes: event.brought_in_pages().map(bytes),
        };
        self.faults.0.push(row);
        if self.faults.0.len() >= ROWS_PER_GROUP {
            self.faults.flush(self.recording)?;
        }
        Ok(())
    }
}

fn bytes(pages: u32) -> i64 {
    (u64::from(pages) * PAGE_BYTES).cast_signed()
}

fn access(event: &Fault) -> &'static str {
    match (event.is_write(), event.is_fetch()) {
        (true, _) => "write",
        (false, true) => "execute",
        (false, false) => "read",
    }
}
