//! Rows of `memory_stalls` from events.

use sysdock_calls::syscalls::CLASS_WORDS;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{self, MemoryStallsColumns},
};

use crate::{
    conversion::Conversion,
    events::{MemoryStallEvent, STALL_COMPACTION, STALL_DIRECT, STALL_GROUP, STALL_NODE, STALL_OOM_KILL},
    families::calls::call_kinds::CallKinds,
};

/// Rows of `memory_stalls` that are not written yet.
pub(super) struct StallRows {
    batch: Batch<MemoryStallsColumns>,
    meanings: CallKinds,
}

impl Default for StallRows {
    fn default() -> Self {
        StallRows { batch: Batch::default(), meanings: CallKinds::new() }
    }
}

impl StallRows {
    pub(super) fn push(
        &mut self,
        stall: &MemoryStallEvent,
        kind: u32,
        at_ns: i64,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), TableError> {
        let dur_ns = i64::try_from(stall.at_ns.saturating_sub(stall.begin_ns)).unwrap_or(i64::MAX);
        let ts_ns = at_ns.saturating_sub(dur_ns);
        conversion.seen(ts_ns, at_ns);
        let meaning = u16::try_from(stall.call).ok().map(|call| self.meanings.of(call));
        let names = self.meanings.calls.names();
        self.batch.push(&rows::MemoryStalls {
            ts_ns,
            dur_ns,
            task_id: (stall.tid != 0).then(|| conversion.task(stall.tid, at_ns) as i32),
            kind: word(kind).into(),
            page_order: (kind != STALL_OOM_KILL).then_some(stall.order.cast_signed()),
            pages: Some(stall.pages).filter(|pages| *pages >= 0),
            call: meaning.map(|meaning| names[usize::from(meaning.call)].as_str().into()),
            class: meaning.map(|meaning| CLASS_WORDS[meaning.class as usize].into()),
        });
        if self.batch.len() >= ROWS_PER_GROUP { self.flush(conversion.recording) } else { Ok(()) }
    }

    pub(super) fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.batch)
    }
}

fn word(kind: u32) -> &'static str {
    match kind {
        STALL_DIRECT => "direct reclaim",
        STALL_GROUP => "group reclaim",
        STALL_NODE => "node reclaim",
        STALL_COMPACTION => "compaction",
        STALL_OOM_KILL => "oom kill",
        _ => "?",
    }
}
