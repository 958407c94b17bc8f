//! System calls, and operations of libaio, which calls begin and end. Other families add to their
//! rows.

mod aio;
pub(crate) mod call_kinds;
pub(crate) mod compat;
pub(crate) mod events;
pub(crate) use sysdock_calls::numbers;
mod rows;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod words;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use sysdock_calls::{CallRow, CallRows, Issue, MappingRows, syscalls::Shape};
use sysdock_table::{ROWS_PER_PART, Recording, facts::issues as facts};

use crate::{
    BpfError,
    conversion::Conversion,
    events::{AioDoneEvent, AioSubmitEvent, EVENT_AIO_DONE, EVENT_AIO_SUBMIT, EVENT_CALL, Raw},
    families::{Converter, Family, Recorded},
};

use aio::UnderWay;
use call_kinds::CallKinds;
use events::Call;

/// A call that moved a position: its end, task and row, and whether the position is that of the
/// file that a copy writes.
type Move = (i64, u32, u64, bool);

/// The rows of `calls` and `mappings`, and the state needed to make them.
pub(crate) struct Calls {
    meanings: CallKinds,
    rows: CallRows,
    mappings: MappingRows,
    /// Numbers of errors and open flags in the rows; -1: none yet.
    errno_numbers: Vec<i16>,
    open_flag_numbers: FxHashMap<u64, i16>,
    full_path: Vec<u8>,
    /// The last calls that moved the position, by process and descriptor.
    last_moves: FxHashMap<(i32, i32), VecDeque<Move>>,
    aio: UnderWay,
    restarted: u64,
    /// Number of calls that began before the recording.
    began_before: u64,
    /// Number of calls with messages whose bytes could not be read.
    unknown_messages: u64,
    /// Number of rows at the last checkpoint.
    rows_written: u64,
}

impl Default for Calls {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Calls {
            meanings: CallKinds::new(),
            rows: CallRows::new(cores > 1),
            mappings: MappingRows::default(),
            errno_numbers: vec![-1; 4096],
            open_flag_numbers: FxHashMap::default(),
            full_path: Vec::new(),
            last_moves: FxHashMap::default(),
            aio: UnderWay::default(),
            restarted: 0,
            began_before: 0,
            unknown_messages: 0,
            rows_written: 0,
        }
    }
}

impl Converter for Calls {
    const FAMILY: Family = Family {
        name: "io",
        shows: "system calls",
        recorded: Recorded::Always,
        object: programs!("calls"),
        kinds: &[(EVENT_CALL, "calls"), (EVENT_AIO_SUBMIT, "calls"), (EVENT_AIO_DONE, "calls")],
        tables: sysdock_calls::TABLES,
        ..Family::NONE
    };

    #[inline]
    fn is_whole(event: &Raw<'_>) -> bool {
        match event.kind {
            EVENT_CALL => Call::is_whole(event),
            EVENT_AIO_SUBMIT => event.holds::<AioSubmitEvent>(),
            _ => event.holds::<AioDoneEvent>(),
        }
    }

    #[inline]
    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        if event.kind == EVENT_CALL { Call::end_ns(event) } else { event.first_number() }
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        for thread in conversion.threads.running() {
            for row in conversion.threads.get_mut(thread).interrupted.give_up() {
                self.push(&row, conversion)?;
            }
        }
        self.aio_left(conversion)?;
        self.rows.flush(conversion.recording, self.meanings.calls.names(), true)?;
        self.mappings.flush(conversion.recording, true)?;
        let counts = &mut conversion.recording.manifest.capture_mut().counts;
        counts.insert(sysdock_calls::RESTARTED_CALLS.into(), self.restarted);
        let detail = facts::began_before(self.began_before);
        conversion.issues.add_many(Issue::BeganBefore, 0, self.began_before, detail);
        let detail = facts::messages_unread(self.unknown_messages);
        conversion.issues.add_many(Issue::UnknownBytes, 0, self.unknown_messages, detail);
        Ok(())
    }
}

impl Calls {
    /// Convert an event of this family. `others` are called with each call.
    #[inline]
    pub(super) fn convert(
        &mut self,
        event: &Raw<'_>,
        at_ns: i64,
        conversion: &mut Conversion<'_>,
        others: &mut impl FnMut(&Call<'_>, Shape, &mut CallRow, &mut Conversion<'_>) -> Result<(), BpfError>,
    ) -> Result<(), BpfError> {
        match event.kind {
            EVENT_CALL => match &Call::of(event) {
                Some(call) => self.call(call, conversion, others),
                None => Ok(()),
            },
            EVENT_AIO_SUBMIT => event.read().map_or(Ok(()), |(begun, _)| self.aio_submitted(&begun, at_ns, conversion)),
            _ => event.read().map_or(Ok(()), |(ended, _)| self.aio_reaped(&ended, at_ns, conversion)),
        }
    }

    /// Called after an event of another family. If it found that a thread is gone, the interrupted
    /// calls of the thread are complete.
    pub(super) fn after(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(mut thread) = conversion.gone.take() else { return Ok(()) };
        thread.interrupted.give_up().try_for_each(|row| self.push(&row, conversion))
    }

    /// Number of calls so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.total()
    }

    /// Make a checkpoint when a part is so large that readers can still divide their work.
    pub(crate) fn checkpoint_if_due(&mut self, recording: &mut Recording) -> Result<(), BpfError> {
        if self.rows.total() - self.rows_written >= ROWS_PER_PART {
            self.rows_written = self.rows.total();
            self.rows.flush(recording, self.meanings.calls.names(), false)?;
            recording.checkpoint()?;
        }
        Ok(())
    }
}
