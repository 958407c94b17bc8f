//! Rows of `syscall_times` from sums.

use rustc_hash::FxHashMap;
use sysdock_calls::syscalls::CLASS_WORDS;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, TableError,
    rows::{self, SyscallTimesColumns},
};

use crate::{
    conversion::{Conversion, owners::Owners},
    events::{CallTimes, CallTimesEvent},
    families::calls::call_kinds::CallKinds,
};

/// `CLASSES_OF_A_POWER` of events.h.
const CLASSES: u64 = 8;

/// Process (start and number), call, class of durations.
type Key = (u64, u32, u16, u16);

/// The last value of each sum, and its value when recording began.
#[derive(Default)]
pub(super) struct Times {
    last: FxHashMap<Key, CallTimes>,
    before: FxHashMap<Key, CallTimes>,
}

impl Times {
    /// Add the value of a sum; `is_before`: the value when recording began.
    pub(super) fn add(&mut self, sum: &CallTimesEvent, is_before: bool) {
        let key = (sum.key.started_ns, sum.key.pid, sum.key.number, sum.key.duration_class);
        let sums = if is_before { &mut self.before } else { &mut self.last };
        sums.insert(key, sum.times);
    }

    /// Write all rows. At the end it is known which task had which process number.
    pub(super) fn write(self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let owners = Owners::of(&conversion.threads);
        let mut meanings = CallKinds::new();
        let mut sums: Vec<_> = self.last.iter().map(|(key, times)| (*key, added(*times, self.before.get(key)))).collect();
        sums.retain(|(_, times)| times.number > 0);
        sums.sort_unstable_by_key(|(key, _)| *key);
        let mut batch = Batch::<SyscallTimesColumns>::default();
        for ((_, pid, number, class), times) in sums {
            let meaning = meanings.of(number);
            let (lower_ns, upper_ns) = bounds(class);
            batch.push(&rows::SyscallTimes {
                task_id: owners.task(pid, conversion.clock.epoch_ns(times.first_ns)),
                call: meanings.calls.names()[usize::from(meaning.call)].as_str().into(),
                class: CLASS_WORDS[meaning.class as usize].into(),
                lower_ns: signed(lower_ns),
                upper_ns: signed(upper_ns),
                number: signed(times.number),
                failed: signed(times.failed),
                time_ns: signed(times.time_ns),
            });
            if batch.len() >= ROWS_PER_GROUP {
                conversion.recording.write_batch(&mut batch)?;
            }
        }
        conversion.recording.write_batch(&mut batch)
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The increase of a sum since `before`.
fn added(times: CallTimes, before: Option<&CallTimes>) -> CallTimes {
    let Some(before) = before else { return times };
    CallTimes {
        number: times.number.saturating_sub(before.number),
        failed: times.failed.saturating_sub(before.failed),
        time_ns: times.time_ns.saturating_sub(before.time_ns),
        ..times
    }
}

/// The durations of a class: from the first up to, but not including, the second [ns].
pub(super) fn bounds(class: u16) -> (u64, u64) {
    let class = u64::from(class);
    let (power, place) = (class / CLASSES, class % CLASSES);
    if power == 0 {
        return (class, class + 1);
    }
    let width = 1_u64.checked_shl((power - 1) as u32).unwrap_or(u64::MAX);
    ((CLASSES + place).saturating_mul(width), (CLASSES + place + 1).saturating_mul(width))
}
