//! Calls that a signal interrupted, and their next parts.
//!
//! A call that a signal interrupts returns ERESTARTSYS or a similar code to the kernel. The kernel
//! restarts it, at once or after the signal's handler, as the same call or as `restart_syscall`; or
//! it returns EINTR to the program, which is visible as the result of `rt_sigreturn`. For the
//! program, all parts are one call. States of a thread's call: *interrupted* (its row waits) ->
//! *restarted* (the next part joins it) or *given up* (EINTR, another call in its place, end of the
//! thread: the row is written as it is).

use crate::CallRow;

/// Number of interrupted calls that a thread may have at a time: handlers within handlers.
const DEEPEST: usize = 16;

/// The interrupted calls of a thread, the innermost last: a handler's own call may be interrupted too. Besides
/// its row, each keeps the key by which its recorder recognizes the next part.
#[derive(Debug)]
pub struct Interrupted<T>(Vec<(CallRow, T)>);

impl<T> Default for Interrupted<T> {
    fn default() -> Self {
        Interrupted(Vec::new())
    }
}

/// How a call relates to the interrupted ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// It is `restart_syscall`, the next part of the call that was interrupted last.
    pub goes_on: bool,
    /// It is `rt_sigreturn` with EINTR: the interrupted call does not continue.
    pub gives_up: bool,
    /// It was interrupted itself.
    pub is_interrupted: bool,
}

/// The result of adding a call.
#[derive(Debug, Default)]
pub struct Joined {
    /// The call was the next part of an interrupted one.
    pub restarted: bool,
    /// Rows that became complete, in order.
    pub rows: [Option<CallRow>; 3],
}

impl<T> Interrupted<T> {
    /// Whether no interrupted call waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Add a call of a thread that has interrupted calls, or that is interrupted itself.
    /// `continues` decides, by the key of the last interrupted call, whether this one is its next
    /// part; `about` is the key of this one, kept if it waits.
    pub fn join(
        &mut self,
        mut row: CallRow,
        part: Part,
        about: T,
        continues: impl Fn(&CallRow, &T, &CallRow, &T) -> bool,
    ) -> Joined {
        let mut joined = Joined::default();
        match self.0.last() {
            Some((first, known)) if part.goes_on || continues(first, known, &row, &about) => {
                row = first.joined(row);
                self.0.pop();
                joined.restarted = true;
            }
            Some(_) if part.gives_up => joined.rows[0] = self.0.pop().map(|(row, _)| row),
            _ => {}
        }
        if !part.is_interrupted {
            joined.rows[2] = Some(row);
            return joined;
        }
        // A call that was interrupted and then replaced by another call does not come back.
        joined.rows[1] = (self.0.len() >= DEEPEST).then(|| self.0.remove(0).0);
        self.0.push((row, about));
        joined
    }

    /// The thread has ended: the rows of its interrupted calls are complete.
    pub fn give_up(&mut self) -> impl Iterator<Item = CallRow> + use<T> {
        std::mem::take(&mut self.0).into_iter().map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NONE, syscalls::Class};

    fn call(number: u16, ts_ns: i64) -> CallRow {
        CallRow { dur_ns: 10, ..CallRow::begun(ts_ns, 0, -1, number, Class::Read) }
    }

    fn same(first: &CallRow, _: &(), next: &CallRow, _: &()) -> bool {
        first.call == next.call
    }

    const STOPPED: Part = Part { goes_on: false, gives_up: false, is_interrupted: true };

    /// Call, start and duration of the rows that became complete.
    fn complete(joined: &Joined) -> Vec<(u16, i64, i64)> {
        joined.rows.iter().flatten().map(|row| (row.call, row.ts_ns, row.dur_ns)).collect()
    }

    #[test]
    fn parts_become_one_call() {
        let mut waiting = Interrupted::default();
        assert!(complete(&waiting.join(call(1, 100), STOPPED, (), same)).is_empty() && !waiting.is_empty());
        // A call of the handler.
        let other = waiting.join(call(2, 110), Part::default(), (), same);
        assert_eq!((complete(&other), other.restarted), (vec![(2, 110, 10)], false));
        // The same call, interrupted again, and then continued under another name.
        let again = waiting.join(call(1, 120), STOPPED, (), same);
        assert_eq!((complete(&again), again.restarted), (vec![], true));
        let last = waiting.join(call(3, 140), Part { goes_on: true, ..Part::default() }, (), same);
        assert_eq!((complete(&last), last.restarted, waiting.is_empty()), (vec![(1, 100, 30)], true, true));
    }

    #[test]
    fn what_does_not_go_on_is_written_as_it_is() {
        let mut waiting = Interrupted::default();
        waiting.join(call(1, 100), STOPPED, (), same);
        let given_up = waiting.join(call(2, 120), Part { gives_up: true, ..Part::default() }, (), same);
        assert_eq!(complete(&given_up), [(1, 100, 10), (2, 120, 10)]);
        for number in 0..DEEPEST as u16 {
            assert!(complete(&waiting.join(call(number, i64::from(number)), STOPPED, (), same)).is_empty());
        }
        assert_eq!(complete(&waiting.join(call(99, 99), STOPPED, (), same)), [(0, 0, 10)]);
        let left: Vec<i64> = waiting.give_up().map(|row| row.ts_ns).collect();
        assert_eq!((left.len(), left[0], left[DEEPEST - 1], waiting.is_empty()), (DEEPEST, 1, 99, true));
        assert_eq!(call(1, 1).joined(CallRow { dur_ns: NONE, ..call(1, 2) }).dur_ns, NONE);
    }
}
