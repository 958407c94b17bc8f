//! From an event of a page fault to its row in `file_faults`.

use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{FileFaults, FileFaultsColumns},
};

use crate::{BpfError, convert::Conversion, events::Fault};

const PAGE_BYTES: u64 = 4096;

/// Faults not yet written.
#[derive(Debug, Default)]
pub(crate) struct FaultRows(Batch<FileFaultsColumns>);

impl FaultRows {
    /// Write what was collected.
    pub(crate) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}

impl Conversion<'_> {
    pub(crate) fn fault(&mut self, event: &Fault) -> Result<(), BpfError> {
        let ts_ns = self.clock.epoch_ns(event.start_ns);
        let thread = self.thread(event.tid, ts_ns);
        let dur_ns = event.duration_ns.min(i64::MAX.cast_unsigned()).cast_signed();
        self.seen(ts_ns, ts_ns.saturating_add(dur_ns));
        let has_around = event.around_pages > 0;
        let row = FileFaults {
            ts_ns,
            dur_ns,
            life_id: self.threads.get_mut(thread).life as i32,
            path_id: Some(self.file(event.file)).filter(|object| *object >= 0),
            address: event.address.cast_signed(),
            offset_bytes: event.offset.cast_signed(),
            access: access(event).into(),
            major: event.is_major(),
            shared: event.is_shared(),
            was_mapped: event.was_mapped(),
            in_call: event.is_in_call(),
            around_offset_bytes: has_around.then(|| event.around_page.wrapping_mul(PAGE_BYTES).cast_signed()),
            around_bytes: has_around.then(|| bytes(event.around_pages)),
            brought_in_bytes: event.brought_in_pages().map(bytes),
        };
        self.faults.0.push(&row);
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
