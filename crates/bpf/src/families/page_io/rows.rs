//! From an event of a request to a block device to its row in `page_io`.

use sysdock_calls::{CallRow, ObjectId};
use sysdock_table::{ROWS_PER_GROUP, Recording, TableError, rows::PageIo};

use crate::{
    conversion::Conversion,
    events::{PAGE_IO_AHEAD, PAGE_IO_DEVICE, PAGE_IO_MEMORY, PAGE_IO_WRITE, PageIoEvent},
    families::page_io::direct::{Direct, OfCall},
};

/// Requests not yet written.
#[derive(Debug, Default)]
pub(super) struct PageIoRows {
    rows: Vec<PageIo<'static>>,
    direct: Direct<PageIo<'static>>,
}

impl OfCall for PageIo<'_> {
    fn made_ns(&self) -> i64 {
        self.ts_ns
    }

    fn set_file(&mut self, path_id: i32) {
        self.path_id = Some(path_id);
    }
}

impl PageIoRows {
    /// Write what was collected; at the end, also what no call came for.
    pub(super) fn flush(&mut self, recording: &mut Recording, last: bool) -> Result<(), TableError> {
        if last {
            self.rows.extend(self.direct.rest());
            self.rows.sort_by_key(|row| row.ts_ns);
        }
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() { Ok(()) } else { recording.write_rows(rows) }
    }

    /// Add the row of a request. Who made one for memory of a program learns from a call whose file it is for.
    pub(super) fn push(
        &mut self,
        row: PageIo<'static>,
        waits_for: Option<u32>,
        recording: &mut Recording,
    ) -> Result<(), TableError> {
        let rows = self.direct.push(row, waits_for);
        self.keep(rows, recording)
    }

    /// A call of a thread has returned.
    #[inline]
    pub(super) fn call(&mut self, tid: u32, call: &CallRow, recording: &mut Recording) -> Result<(), TableError> {
        let rows = self.direct.call(tid, call);
        if rows.is_empty() { Ok(()) } else { self.keep(rows, recording) }
    }

    fn keep(&mut self, rows: Vec<PageIo<'static>>, recording: &mut Recording) -> Result<(), TableError> {
        self.rows.extend(rows);
        if self.rows.len() >= ROWS_PER_GROUP {
            self.flush(recording, false)?;
        }
        Ok(())
    }
}

/// The row of an event.
pub(super) fn row(event: &PageIoEvent, flags: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> PageIo<'static> {
    conversion.seen(at_ns, at_ns);
    let life = (event.tid != 0).then(|| conversion.life(event.tid, at_ns));
    PageIo {
        ts_ns: at_ns,
        task_id: life.map(|life| life as i32),
        path_id: file_of(event, flags, conversion).map(ObjectId::cast_signed),
        kind: kind(flags).into(),
        pages: pages(flags).into(),
        offset_bytes: Some(event.offset).filter(|offset| *offset >= 0),
        length_bytes: i64::from(event.bytes),
    }
}

/// The file whose pages they are. What is read before anybody names the file is known by its inode only.
fn file_of(event: &PageIoEvent, flags: u32, conversion: &mut Conversion<'_>) -> Option<ObjectId> {
    if flags & (PAGE_IO_DEVICE | PAGE_IO_MEMORY) != 0 {
        return None;
    }
    let Conversion { places, objects, unknown_paths, .. } = conversion;
    let told = places.object(event.file, objects);
    let object = told.or_else(|| places.object_of_inode((event.device, event.inode), objects));
    *unknown_paths += u64::from(object.is_none());
    object
}

fn kind(flags: u32) -> &'static str {
    match (flags & PAGE_IO_WRITE != 0, flags & PAGE_IO_AHEAD != 0) {
        (true, _) => "write",
        (false, true) => "readahead",
        (false, false) => "read",
    }
}

fn pages(flags: u32) -> &'static str {
    match (flags & PAGE_IO_DEVICE != 0, flags & PAGE_IO_MEMORY != 0) {
        (true, _) => "device",
        (false, true) => "memory",
        (false, false) => "file",
    }
}
