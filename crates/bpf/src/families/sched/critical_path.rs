//! On which thread the end of the command depended at each moment: the table `critical_path`.
//!
//! From the end of the command's first thread backwards. Where a thread ran, or had no CPU, the end depended on it. Where it waited until
//! another recorded thread woke it, on that one, and so on from the moment of the wake-up; where it was new, on the one that made it. Where
//! something else woke it (a disk, a timer, a program that is not recorded), it is the wait itself. Of a wait for a lock of the kernel it is
//! known which lock: for as long as the path is with others for its sake, its pieces say so.

use sysdock_calls::Life;
use sysdock_table::{
    Batch, TableError,
    rows::{CriticalPath as Row, CriticalPathColumns},
};

use crate::conversion::Conversion;

use super::{
    cause::Cause,
    rows::{Absence, State, Waker, Words},
};

/// With more, the path is not looked for [64 B each].
const MOST: usize = 4_000_000;

const WAITING: &str = "waiting";

/// What it is made of.
#[derive(Default)]
pub(super) struct CriticalPath {
    absences: Vec<Absence>,
    is_too_long: bool,
}

/// A part of the path: a thread from a time on, and why it did not run.
#[derive(Clone, Copy)]
struct Piece<'a> {
    life: u32,
    from_ns: i64,
    until_ns: i64,
    part: &'static str,
    absence: Option<&'a Absence>,
    /// The lock that the path is here for, or that the thread waits for; below 0: none.
    lock: i32,
}

/// Locks that the path is with another thread for, each with the time when the wait for it began; the last one holds.
#[derive(Default)]
struct HeldUp(Vec<(i32, i64)>);

impl HeldUp {
    /// A piece as one or several, the latest first: each belongs to the lock that was waited for then.
    fn split<'a>(&mut self, pieces: &mut Vec<Piece<'a>>, mut piece: Piece<'a>) {
        while let Some((lock, since_ns)) = self.0.last().copied() {
            if since_ns < piece.until_ns {
                add(pieces, Piece { from_ns: piece.from_ns.max(since_ns), lock, ..piece });
                piece.until_ns = since_ns;
            }
            if piece.until_ns <= piece.from_ns {
                return;
            }
            self.0.pop();
        }
        add(pieces, piece);
    }
}

impl CriticalPath {
    pub(super) fn add(&mut self, absence: &Absence) {
        if self.absences.len() < MOST {
            self.absences.push(*absence);
        } else {
            self.is_too_long = true;
        }
    }

    /// Write its rows, in the order of time.
    pub(super) fn write(mut self, words: &mut Words, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        if self.is_too_long {
            // Nothing is said rather than something wrong.
            conversion.recording.manifest.tables.remove("critical_path");
            return Ok(());
        }
        self.absences.sort_unstable_by_key(|absence| (absence.life, absence.from_ns, absence.until_ns));
        let pid = conversion.command_pid();
        let Some(first) = conversion.threads.lives.iter().position(|life| i64::from(life.tid) == pid) else { return Ok(()) };
        let end_ns = conversion.threads.lives[first].end_ns.unwrap_or(conversion.last_ns());
        let mut pieces = self.pieces(first as u32, end_ns, &conversion.threads.lives);
        pieces.reverse();
        let mut rows = Batch::<CriticalPathColumns>::default();
        for piece in pieces {
            rows.push(&row(&piece, words));
        }
        conversion.recording.write_batch(&mut rows)
    }

    /// The path, from its end to its beginning.
    fn pieces(&self, first: u32, end_ns: i64, lives: &[Life]) -> Vec<Piece<'_>> {
        let begin_ns = lives[first as usize].start_ns;
        let mut pieces = Vec::new();
        let (mut life, mut at_ns) = (first, end_ns);
        let mut held_up = HeldUp::default();
        // Each step passes an absence or a birth; events of one moment may make a circle.
        for _ in 0..=self.absences.len() + lives.len() {
            if at_ns <= begin_ns {
                break;
            }
            let last = self.last_before(life, at_ns);
            let run_from_ns = last.map_or(lives[life as usize].start_ns, |absence| absence.until_ns).clamp(begin_ns, at_ns);
            let running = Piece { life, from_ns: run_from_ns, until_ns: at_ns, part: "running", absence: None, lock: -1 };
            held_up.split(&mut pieces, running);
            let Some(absence) = last else {
                // It was made then: by a thread that is not recorded, if by none of these.
                let Some(parent) = lives[life as usize].parent.filter(|_| run_from_ns > begin_ns) else { break };
                (life, at_ns) = (parent as u32, run_from_ns);
                continue;
            };
            let woken_ns = absence.woken_ns.clamp(begin_ns, run_from_ns);
            let away =
                Piece { life, from_ns: woken_ns, until_ns: run_from_ns, part: "runnable", absence: Some(absence), lock: -1 };
            held_up.split(&mut pieces, away);
            at_ns = woken_ns;
            match absence.waker {
                Waker::Thread(waker) if depends_on_waker(absence) => {
                    life = waker;
                    if absence.lock >= 0 {
                        held_up.0.push((absence.lock, absence.from_ns));
                    }
                }
                _ => {
                    at_ns = absence.from_ns.clamp(begin_ns, woken_ns);
                    let waiting = Piece { from_ns: at_ns, until_ns: woken_ns, part: WAITING, lock: absence.lock, ..away };
                    held_up.split(&mut pieces, waiting);
                }
            }
        }
        pieces
    }

    /// The last absence of a thread that began before.
    fn last_before(&self, life: u32, at_ns: i64) -> Option<&Absence> {
        let behind = self.absences.partition_point(|absence| (absence.life, absence.from_ns) < (life, at_ns));
        self.absences[..behind].last().filter(|absence| absence.life == life)
    }
}

fn add<'a>(pieces: &mut Vec<Piece<'a>>, piece: Piece<'a>) {
    if piece.from_ns < piece.until_ns {
        pieces.push(piece);
    }
}

/// Whether what a thread waits for is done by another: not by a timer, nor by a disk, whose interrupt comes to a CPU that may be running
/// any thread.
fn depends_on_waker(absence: &Absence) -> bool {
    match absence.state {
        State::New => true,
        _ if absence.cause == Some(Cause::KernelLock) => true,
        State::Sleeping => absence.cause != Some(Cause::Timer),
        State::Uninterruptible => matches!(absence.cause, Some(Cause::Child | Cause::Kernel)),
        _ => false,
    }
}

fn row<'a>(piece: &Piece<'_>, words: &'a mut Words) -> Row<'a> {
    let absence = piece.absence;
    let call = absence.and_then(|absence| words.call(absence.call));
    let (call, class) = call.map(|call| words.call_name(call)).unzip();
    Row {
        ts_ns: piece.from_ns,
        dur_ns: piece.until_ns - piece.from_ns,
        task_id: piece.life.cast_signed(),
        part: piece.part.into(),
        cause: absence.and_then(|absence| absence.cause).filter(|_| piece.part == WAITING).map(|cause| cause.word().into()),
        waker: absence.and_then(|absence| words.waker_name(absence.waker)),
        call,
        class,
        path_id: absence.map(|absence| absence.object).filter(|object| *object >= 0),
        stack_id: absence.map(|absence| absence.stack).filter(|stack| *stack >= 0),
        lock_id: Some(piece.lock).filter(|lock| *lock >= 0),
    }
}
