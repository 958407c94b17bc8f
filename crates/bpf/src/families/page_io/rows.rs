//! Rows of `page_io` from events.

use sysdock_calls::ObjectId;
use sysdock_table::rows::PageIo;

use crate::{
    conversion::Conversion,
    events::{PAGE_IO_AHEAD, PAGE_IO_DEVICE, PAGE_IO_MEMORY, PAGE_IO_WRITE, PageIoEvent},
    families::page_io::requests::Request,
};

impl Request for PageIo<'static> {
    fn made_ns(&self) -> i64 {
        self.ts_ns
    }

    fn event_ns(&self) -> i64 {
        self.ts_ns
    }

    fn set_file(&mut self, path_id: i32) {
        self.path_id = Some(path_id);
    }
}

/// The row for an event.
pub(super) fn row(event: &PageIoEvent, flags: u32, at_ns: i64, conversion: &mut Conversion<'_>) -> PageIo<'static> {
    conversion.seen(at_ns, at_ns);
    let task = (event.tid != 0).then(|| conversion.task(event.tid, at_ns));
    PageIo {
        ts_ns: at_ns,
        task_id: task.map(|task| task as i32),
        path_id: file_of(event, flags, conversion).map(ObjectId::cast_signed),
        kind: kind(flags).into(),
        pages: pages(flags).into(),
        offset_bytes: Some(event.offset).filter(|offset| *offset >= 0),
        length_bytes: i64::from(event.bytes),
    }
}

/// The file to which the pages belong.
fn file_of(event: &PageIoEvent, flags: u32, conversion: &mut Conversion<'_>) -> Option<ObjectId> {
    if flags & (PAGE_IO_DEVICE | PAGE_IO_MEMORY) != 0 {
        return None;
    }
    let Conversion { places, objects, unknown_paths, .. } = conversion;
    let object = places.object_of_request(event.file, (event.device, event.inode), objects);
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
