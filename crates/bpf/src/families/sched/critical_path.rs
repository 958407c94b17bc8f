//! The table `critical_path`, from switches and wake-ups.

use sysdock_calls::{
    Cause,
    critical_path::{self, MOST_ABSENCES, Part, Piece, critical_path},
};
use sysdock_table::{
    Batch, TableError,
    rows::{CriticalPath as Row, CriticalPathColumns},
};

use crate::conversion::Conversion;

use super::rows::{Absence, Names, State, Waker};

/// The absences that the path is computed from.
#[derive(Default)]
pub(super) struct CriticalPath {
    absences: Vec<Absence>,
    is_too_long: bool,
}

impl critical_path::Absence for Absence {
    fn task(&self) -> u32 {
        self.task
    }

    fn times(&self) -> (i64, i64, i64) {
        (self.from_ns, self.woken_ns, self.until_ns)
    }

    fn follows(&self) -> Option<u32> {
        match self.waker {
            Waker::Thread(waker) if depends_on_waker(self) => Some(waker),
            _ => None,
        }
    }

    fn lock(&self) -> i32 {
        self.lock
    }
}

impl CriticalPath {
    pub(super) fn add(&mut self, absence: &Absence) {
        if self.absences.len() < MOST_ABSENCES {
            self.absences.push(*absence);
        } else {
            self.is_too_long = true;
        }
    }

    /// Write the rows, ordered by time.
    pub(super) fn write(mut self, words: &mut Names, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        if self.is_too_long {
            // No path is better than a wrong one.
            conversion.recording.manifest.tables.remove("critical_path");
            return Ok(());
        }
        let pid = conversion.command_pid();
        let Some(first) = conversion.threads.tasks.iter().position(|task| i64::from(task.tid) == pid) else { return Ok(()) };
        let end_ns = conversion.threads.tasks[first].end_ns.unwrap_or(conversion.last_ns());
        let mut rows = Batch::<CriticalPathColumns>::default();
        for piece in critical_path(&mut self.absences, first as u32, end_ns, &conversion.threads.tasks) {
            rows.push(&row(&piece, words));
        }
        conversion.recording.write_batch(&mut rows)
    }
}

/// Whether the wait depends on the thread that ends it. A wait for a timer or a disk does not: the
/// interrupt comes to a CPU that may be running any thread.
fn depends_on_waker(absence: &Absence) -> bool {
    match absence.state {
        State::New => true,
        _ if absence.cause == Some(Cause::KernelLock) => true,
        State::Sleeping => absence.cause != Some(Cause::Timer),
        State::Uninterruptible => matches!(absence.cause, Some(Cause::Child | Cause::Kernel)),
        _ => false,
    }
}

fn row<'a>(piece: &Piece<'_, Absence>, words: &'a mut Names) -> Row<'a> {
    let absence = piece.absence;
    let call = absence.and_then(|absence| words.call(absence.call));
    let (call, class) = call.map(|call| words.call_name(call)).unzip();
    Row {
        ts_ns: piece.from_ns,
        dur_ns: piece.until_ns - piece.from_ns,
        task_id: piece.task.cast_signed(),
        part: piece.part.name().into(),
        cause: absence.and_then(|absence| absence.cause).filter(|_| piece.part == Part::Waiting).map(|cause| cause.name().into()),
        waker: absence.and_then(|absence| words.waker_name(absence.waker)),
        call,
        class,
        path_id: absence.map(|absence| absence.object).filter(|object| *object >= 0),
        stack_id: absence.map(|absence| absence.stack).filter(|stack| *stack >= 0),
        lock_id: Some(piece.lock).filter(|lock| *lock >= 0),
    }
}
