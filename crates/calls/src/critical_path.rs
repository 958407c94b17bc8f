//! The critical path: the thread on which the end of a command depended at each moment.
//!
//! It is followed backwards from the end of the command's first thread. While a thread ran, or had
//! no CPU, the end depended on it. While it waited until another recorded thread woke it, the path
//! continues on that thread, from the moment of the wake-up; before it was created, on its creator.
//! A wait that something else ended (a disk, a timer, a program that is not recorded) is part of
//! the path itself. If the lock that a thread waits for is known, the pieces name it for as long as
//! the path is with other threads because of that wait.

use crate::Task;

/// With more absences, which take some 64 B each, the path is not computed.
pub const MOST_ABSENCES: usize = 4_000_000;

/// A time in which a thread did not run.
pub trait Absence {
    /// The thread.
    fn task(&self) -> u32;
    /// When the thread stopped running and when it ran again, and when it was woken in between
    /// [ns].
    fn times(&self) -> (i64, i64, i64);
    /// The thread on which the path continues from the wake-up.
    fn follows(&self) -> Option<u32>;
    /// The lock that the thread waited for; below 0: none is known.
    fn lock(&self) -> i32 {
        -1
    }
}

/// What a thread did in a piece of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It ran on a CPU.
    Running,
    /// It could have run, but had no CPU.
    Runnable,
    /// It waited.
    Waiting,
}

impl Part {
    /// The values of `critical_path.part`.
    pub fn name(self) -> &'static str {
        match self {
            Part::Running => "running",
            Part::Runnable => "runnable",
            Part::Waiting => "waiting",
        }
    }
}

/// A piece of the path: one thread for some time, and why it did not run.
#[derive(Debug)]
pub struct Piece<'a, A> {
    pub task: u32,
    pub from_ns: i64,
    pub until_ns: i64,
    pub part: Part,
    pub absence: Option<&'a A>,
    /// The lock because of which the path is with this thread, or for which the thread waits; below
    /// 0: none.
    pub lock: i32,
}

impl<A> Clone for Piece<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Piece<'_, A> {}

/// Locks because of which the path is with another thread, each with the time when the wait for it
/// began. The last one applies.
#[derive(Default)]
struct HeldUp(Vec<(i32, i64)>);

impl HeldUp {
    /// Split a piece where the lock changes, the latest part first: each belongs to the lock that
    /// was waited for at that time.
    fn split<'a, A>(&mut self, pieces: &mut Vec<Piece<'a, A>>, mut piece: Piece<'a, A>) {
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

fn add<'a, A>(pieces: &mut Vec<Piece<'a, A>>, piece: Piece<'a, A>) {
    if piece.from_ns < piece.until_ns {
        pieces.push(piece);
    }
}

/// The path of the thread `first`, from its start to `end_ns`, without a gap. Sorts `absences` by
/// thread and time.
pub fn critical_path<'a, A: Absence>(absences: &'a mut [A], first: u32, end_ns: i64, tasks: &[Task]) -> Vec<Piece<'a, A>> {
    absences.sort_unstable_by_key(|absence| (absence.task(), absence.times()));
    let mut pieces = backwards(absences, first, end_ns, tasks);
    pieces.reverse();
    pieces
}

fn backwards<'a, A: Absence>(absences: &'a [A], first: u32, end_ns: i64, tasks: &[Task]) -> Vec<Piece<'a, A>> {
    let begin_ns = tasks[first as usize].start_ns;
    let mut pieces = Vec::new();
    let (mut task, mut at_ns) = (first, end_ns);
    let mut held_up = HeldUp::default();
    // Each step passes an absence or a creation; events of the same time may form a circle.
    for _ in 0..=absences.len() + tasks.len() {
        if at_ns <= begin_ns {
            break;
        }
        let last = last_before(absences, task, at_ns);
        let run_from_ns = last.map_or(tasks[task as usize].start_ns, |absence| absence.times().2).clamp(begin_ns, at_ns);
        let running = Piece { task, from_ns: run_from_ns, until_ns: at_ns, part: Part::Running, absence: None, lock: -1 };
        held_up.split(&mut pieces, running);
        let Some(absence) = last else {
            // The thread was created here, by a thread that is not recorded if by none of these.
            let Some(parent) = tasks[task as usize].parent.filter(|_| run_from_ns > begin_ns) else { break };
            (task, at_ns) = (parent as u32, run_from_ns);
            continue;
        };
        let (left_ns, woken_ns, _) = absence.times();
        let woken_ns = woken_ns.clamp(begin_ns, run_from_ns);
        let away =
            Piece { task, from_ns: woken_ns, until_ns: run_from_ns, part: Part::Runnable, absence: Some(absence), lock: -1 };
        held_up.split(&mut pieces, away);
        at_ns = woken_ns;
        if let Some(waker) = absence.follows() {
            task = waker;
            if absence.lock() >= 0 {
                held_up.0.push((absence.lock(), left_ns));
            }
            continue;
        }
        at_ns = left_ns.clamp(begin_ns, woken_ns);
        let waiting = Piece { from_ns: at_ns, until_ns: woken_ns, part: Part::Waiting, lock: absence.lock(), ..away };
        held_up.split(&mut pieces, waiting);
    }
    pieces
}

/// The last absence of a thread that began before this time.
fn last_before<A: Absence>(absences: &[A], task: u32, at_ns: i64) -> Option<&A> {
    let after = absences.partition_point(|absence| (absence.task(), absence.times().0) < (task, at_ns));
    absences[..after].last().filter(|absence| absence.task() == task)
}
