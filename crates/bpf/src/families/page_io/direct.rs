//! Direct I/O: requests for memory of a program. Whose file they are for, the call says that their thread is in, at its return.

use rustc_hash::FxHashMap;
use sysdock_calls::CallRow;

/// Requests of one thread that wait for the end of the call that they belong to; with more, the rest is of no call.
const MOST_WAITING: usize = 4096;

/// A row of a request.
pub(crate) trait OfCall {
    /// When the request was made, since the Unix epoch [ns].
    fn made_ns(&self) -> i64;

    /// The file that it is for, an id in `paths`.
    fn set_file(&mut self, path_id: i32);
}

/// Rows of requests that wait for a call, by thread.
#[derive(Debug)]
pub(crate) struct Direct<R>(FxHashMap<u32, Vec<R>>);

impl<R> Default for Direct<R> {
    fn default() -> Self {
        Direct(FxHashMap::default())
    }
}

impl<R: OfCall> Direct<R> {
    /// Keep the row of a request, if it waits for a call of this thread. Returns the rows that wait for none.
    pub(crate) fn push(&mut self, row: R, waits_for: Option<u32>) -> Vec<R> {
        let Some(tid) = waits_for else { return vec![row] };
        let waiting = self.0.entry(tid).or_default();
        waiting.push(row);
        if waiting.len() < MOST_WAITING { Vec::new() } else { std::mem::take(waiting) }
    }

    /// A call of a thread has returned: requests for memory that it made meanwhile are for its file. Returns those that waited for it.
    #[inline]
    pub(crate) fn call(&mut self, tid: u32, call: &CallRow) -> Vec<R> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let mut rows = self.0.remove(&tid).unwrap_or_default();
        if call.object >= 0 && call.moved > 0 {
            rows.iter_mut().filter(|row| row.made_ns() >= call.ts_ns).for_each(|row| row.set_file(call.object));
        }
        rows
    }

    /// Those that no call came for.
    pub(crate) fn rest(&mut self) -> impl Iterator<Item = R> {
        self.0.drain().flat_map(|(_, rows)| rows)
    }
}
