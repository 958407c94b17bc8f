//! From an event of a request to a block device to its row in `file_cache`.

use rustc_hash::FxHashMap;
use sysdock_calls::{CallRow, ObjectId};
use sysdock_table::{ROWS_PER_GROUP, Recording, TableError, rows::FileCache};

use crate::{BpfError, convert::Conversion, events::PageIo};

/// Requests of one thread that wait for the end of the call that they belong to; with more, the rest is of no call.
const MOST_WAITING: usize = 4096;

/// Requests not yet written.
#[derive(Debug, Default)]
pub(crate) struct PageIoRows {
    rows: Vec<FileCache<'static>>,
    /// By thread: requests for memory of the program. Whose file they are for, the call says that the thread is in, at its return.
    direct: FxHashMap<u32, Vec<FileCache<'static>>>,
}

impl PageIoRows {
    /// Write what was collected; at the end, also what no call came for.
    pub(crate) fn flush(&mut self, recording: &mut Recording, last: bool) -> Result<(), TableError> {
        if last {
            self.rows.extend(self.direct.drain().flat_map(|(_, rows)| rows));
            self.rows.sort_by_key(|row| row.ts_ns);
        }
        recording.write_rows(std::mem::take(&mut self.rows))
    }
}

impl Conversion<'_> {
    pub(crate) fn page_io(&mut self, event: &PageIo, at_ns: i64) -> Result<(), BpfError> {
        self.seen(at_ns, at_ns);
        let thread = (event.tid != 0).then(|| self.thread(event.tid, at_ns));
        let row = FileCache {
            ts_ns: at_ns,
            life_id: thread.map(|thread| self.threads.get_mut(thread).life as i32),
            path_id: self.file_of(event).map(ObjectId::cast_signed),
            kind: kind(event).into(),
            pages: pages(event).into(),
            offset_bytes: Some(event.offset).filter(|offset| *offset >= 0),
            length_bytes: i64::from(event.bytes),
        };
        if !event.is_memory() || event.tid == 0 {
            return self.keep_page_io(vec![row]);
        }
        let waiting = self.page_io.direct.entry(event.tid).or_default();
        waiting.push(row);
        let rows = if waiting.len() < MOST_WAITING { Vec::new() } else { std::mem::take(waiting) };
        self.keep_page_io(rows)
    }

    /// A call has returned: requests for memory that its thread made meanwhile are direct I/O on its file.
    #[inline]
    pub(crate) fn direct_io(&mut self, tid: u32, call: &CallRow) -> Result<(), BpfError> {
        if self.page_io.direct.is_empty() {
            return Ok(());
        }
        let mut rows = self.page_io.direct.remove(&tid).unwrap_or_default();
        if call.object >= 0 && call.moved > 0 {
            rows.iter_mut().filter(|row| row.ts_ns >= call.ts_ns).for_each(|row| row.path_id = Some(call.object));
        }
        self.keep_page_io(rows)
    }

    fn keep_page_io(&mut self, rows: Vec<FileCache<'static>>) -> Result<(), BpfError> {
        self.page_io.rows.extend(rows);
        if self.page_io.rows.len() >= ROWS_PER_GROUP {
            self.page_io.flush(self.recording, false)?;
        }
        Ok(())
    }

    /// The file whose pages they are. What is read before anybody names the file is known by its inode only.
    fn file_of(&mut self, event: &PageIo) -> Option<ObjectId> {
        if event.is_device() || event.is_memory() {
            return None;
        }
        let told = self.places.object(event.file, &mut self.objects);
        let object = told.or_else(|| self.places.object_of_inode((event.device, event.inode), &mut self.objects));
        self.unknown_paths += u64::from(object.is_none());
        object
    }
}

fn kind(event: &PageIo) -> &'static str {
    match (event.is_write(), event.is_ahead()) {
        (true, _) => "write",
        (false, true) => "readahead",
        (false, false) => "read",
    }
}

fn pages(event: &PageIo) -> &'static str {
    match (event.is_device(), event.is_memory()) {
        (true, _) => "device",
        (false, true) => "memory",
        (false, false) => "file",
    }
}
