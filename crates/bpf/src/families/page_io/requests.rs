//! Rows of requests to devices. Requests of direct I/O transfer memory of a program; their file is
//! that of the call in which their thread is, which is known when the call returns. Until then the
//! rows wait.

use rustc_hash::FxHashMap;
use sysdock_calls::CallRow;
use sysdock_table::{ROWS_PER_GROUP, Recording, TableError, rows::Row};

/// Limit for requests of one thread that wait for the end of their call; further ones are
/// attributed to no call.
const MOST_WAITING: usize = 4096;

/// A row of a request. Times are since the Unix epoch [ns].
pub(crate) trait Request: Row {
    /// When the request was created.
    fn made_ns(&self) -> i64;

    /// When its event was recorded, by which rows are ordered.
    fn event_ns(&self) -> i64;

    /// Set the file of the request, an id in `paths`.
    fn set_file(&mut self, path_id: i32);
}

/// Rows that are not written yet.
pub(crate) struct RequestRows<R> {
    rows: Vec<R>,
    /// Rows that wait for a call, by thread.
    waiting: FxHashMap<u32, Vec<R>>,
}

impl<R> Default for RequestRows<R> {
    fn default() -> Self {
        RequestRows { rows: Vec::new(), waiting: FxHashMap::default() }
    }
}

impl<R: Request> RequestRows<R> {
    /// Add the row of a request. `waits_for`: the thread whose current call determines the file.
    pub(crate) fn push(&mut self, row: R, waits_for: Option<u32>, recording: &mut Recording) -> Result<(), TableError> {
        let Some(tid) = waits_for else {
            self.rows.push(row);
            return self.flush_if_due(recording);
        };
        let waiting = self.waiting.entry(tid).or_default();
        waiting.push(row);
        if waiting.len() < MOST_WAITING {
            return Ok(());
        }
        self.rows.append(waiting);
        self.flush_if_due(recording)
    }

    /// A call of a thread returned: requests for memory that the thread made during the call are
    /// for the call's file.
    #[inline]
    pub(crate) fn call(&mut self, tid: u32, call: &CallRow, recording: &mut Recording) -> Result<(), TableError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Some(mut rows) = self.waiting.remove(&tid) else { return Ok(()) };
        if call.object >= 0 && call.transferred > 0 {
            rows.iter_mut().filter(|row| row.made_ns() >= call.ts_ns).for_each(|row| row.set_file(call.object));
        }
        self.rows.append(&mut rows);
        self.flush_if_due(recording)
    }

    /// Write the remaining rows, including those that still wait for a call.
    pub(crate) fn finish(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        self.rows.extend(self.waiting.drain().flat_map(|(_, rows)| rows));
        self.rows.sort_by_key(R::event_ns);
        self.flush(recording)
    }

    fn flush_if_due(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        if self.rows.len() >= ROWS_PER_GROUP { self.flush(recording) } else { Ok(()) }
    }

    fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() { Ok(()) } else { recording.write_rows(rows) }
    }
}
