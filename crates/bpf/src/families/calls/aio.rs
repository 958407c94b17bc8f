//! Operations of libaio: rows of `calls` from the operations of `io_submit` and the results of
//! `io_getevents` (`aio.h`).
//!
//! The address of the control block joins the two, together with that of the context: both belong
//! to a process. If another thread takes the result before `io_submit` has returned, the end is
//! reported before the beginning.

use rustc_hash::FxHashMap;
use sysdock_calls::{
    CallRow, Issue, NONE, Via, error_of,
    syscalls::{self, Class, aio_operation},
};

use sysdock_table::facts::issues as facts;

use crate::{
    BpfError,
    conversion::Conversion,
    events::{AioDoneEvent, AioSubmitEvent},
    families::calls::Calls,
};

/// Limit for operations in progress, or ended but not begun yet: a garbage spool may name any
/// number.
const MOST: usize = 1 << 20;

/// Process, context and control block.
type Key = (i32, u64, u64);

/// Operations of which one end is still missing.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    begun: FxHashMap<Key, CallRow>,
    /// Time and result of operations whose beginning is not known yet.
    ended: FxHashMap<Key, (i64, i64)>,
    /// Number of results without an operation.
    unmatched: u64,
}

impl Calls {
    pub(super) fn aio_submitted(
        &mut self,
        event: &AioSubmitEvent,
        at_ns: i64,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), BpfError> {
        let thread = conversion.thread(event.tid, at_ns);
        let row = self.aio_row(thread, event, conversion);
        let key = (conversion.threads.process_of(thread), event.context, event.block);
        if let Some((end_ns, result)) = self.aio.ended.remove(&key) {
            return self.aio_done(row, end_ns, result, conversion);
        }
        if self.aio.begun.len() >= MOST {
            return self.add(&row, conversion);
        }
        // The control block is used again, so the program itself took the result from the
        // completion ring.
        match self.aio.begun.insert(key, row) {
            Some(never_reaped) => self.add(&never_reaped, conversion),
            None => Ok(()),
        }
    }

    pub(super) fn aio_reaped(
        &mut self,
        event: &AioDoneEvent,
        at_ns: i64,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), BpfError> {
        let thread = conversion.thread(event.tid, at_ns);
        let key = (conversion.threads.process_of(thread), event.context, event.block);
        if let Some(row) = self.aio.begun.remove(&key) {
            return self.aio_done(row, at_ns, event.result, conversion);
        }
        if self.aio.ended.len() < MOST {
            self.aio.ended.insert(key, (at_ns, event.result));
        } else {
            self.aio.unmatched += 1;
        }
        Ok(())
    }

    /// The row of an operation that has begun.
    fn aio_row(&mut self, thread: usize, event: &AioSubmitEvent, conversion: &mut Conversion<'_>) -> CallRow {
        let (task, comm) = {
            let thread = conversion.threads.get_mut(thread);
            (thread.task, thread.comm)
        };
        let (name, class) = aio_operation(event.opcode);
        let (call, _) = self.meanings.calls.look_up(syscalls::UNLISTED, name.as_bytes());
        let is_data = matches!(class, Class::Read | Class::Write);
        let known = |number: i64| if is_data && number >= 0 { number } else { NONE };
        CallRow {
            offset: known(event.offset),
            requested: known(event.bytes),
            fd: event.fd.max(-1),
            object: conversion.file(event.file),
            via: Via::Libaio,
            ..CallRow::begun(conversion.clock.epoch_ns(event.start_ns), task as u32, comm, call, class)
        }
    }

    fn aio_done(&mut self, mut row: CallRow, end_ns: i64, result: i64, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        row.dur_ns = end_ns.saturating_sub(row.ts_ns).max(0);
        match error_of(result) {
            Some(error) => row.errno = self.errno(error),
            None => row.result = result,
        }
        if [Class::Read as u8, Class::Write as u8].contains(&row.class) {
            row.transferred = row.result;
        }
        self.add(&row, conversion)
    }

    /// Write operations whose end was not seen, in the order of their beginning.
    pub(super) fn aio_left(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let UnderWay { begun, ended, unmatched } = std::mem::take(&mut self.aio);
        let mut rows: Vec<CallRow> = begun.into_values().collect();
        rows.sort_by_key(|row| (row.ts_ns, row.offset, row.object));
        rows.iter().try_for_each(|row| self.add(row, conversion))?;
        let results = unmatched + ended.len() as u64;
        let detail = facts::results_without_operations(results);
        conversion.issues.add_many(Issue::InvisibleIo, 0, results, detail);
        Ok(())
    }
}
