//! Rows of `block_requests` from events.

use std::borrow::Cow;

use sysdock_calls::{ObjectId, error_name};
use sysdock_table::rows::BlockRequests;

use crate::{
    conversion::Conversion,
    events::{BLOCK_AHEAD, BLOCK_DEVICE, BLOCK_FUA, BLOCK_MEMORY, BLOCK_META, BLOCK_PREFLUSH, BLOCK_SYNC, BlockEvent, until_nul},
    families::page_io::requests::Request,
};

/// First sector of a request without a position on the device.
const NO_SECTOR: u64 = u64::MAX;

/// Number of the flush operation (`enum req_op` of include/linux/blk_types.h).
const FLUSH: u32 = 2;

/// The values of `block_requests.flags`, in their order.
const FLAGS: [(u32, &str); 5] = [
    (BLOCK_SYNC, "sync"),
    (BLOCK_META, "metadata"),
    (BLOCK_AHEAD, "readahead"),
    (BLOCK_PREFLUSH, "preflush"),
    (BLOCK_FUA, "fua"),
];

/// The errors that programs get for errors of devices (`BLK_STS_` in include/linux/blk_types.h,
/// `blk_errors` in block/blk-core.c), from number 1 on. Those after these have other numbers in
/// other kernels.
const ERRORS: [i32; 13] = [
    libc::EOPNOTSUPP,
    libc::ETIMEDOUT,
    libc::ENOSPC,
    libc::ENOLINK,
    libc::EREMOTEIO,
    libc::EBADE,
    libc::ENODATA,
    libc::EILSEQ,
    libc::ENOMEM,
    libc::EIO,
    libc::EREMCHG,
    libc::EAGAIN,
    libc::EBUSY,
];

impl Request for BlockRequests<'static> {
    fn made_ns(&self) -> i64 {
        self.ts_ns
    }

    fn event_ns(&self) -> i64 {
        self.ts_ns.saturating_add(self.queue_ns).saturating_add(self.service_ns)
    }

    fn set_file(&mut self, path_id: i32) {
        self.path_id = Some(path_id);
    }
}

/// The row for an event.
pub(super) fn row(event: &BlockEvent, at_ns: i64, conversion: &mut Conversion<'_>) -> BlockRequests<'static> {
    // The clock of the event is that of the start of recording; earlier times are relative to the
    // end of the request.
    let before = |moment_ns: u64| i64::try_from(event.at_ns.saturating_sub(moment_ns)).unwrap_or(0);
    let (whole_ns, service_ns) = (before(event.queued_ns), before(event.issued_ns));
    let ts_ns = at_ns.saturating_sub(whole_ns);
    conversion.seen(at_ns, at_ns);
    let task = (event.tid != 0).then(|| conversion.task(event.tid, at_ns));
    BlockRequests {
        ts_ns,
        queue_ns: whole_ns.saturating_sub(service_ns).max(0),
        service_ns,
        task_id: task.map(|task| task as i32),
        path_id: file_of(event, conversion).map(ObjectId::cast_signed),
        device: String::from_utf8_lossy(until_nul(&event.device)).into_owned().into(),
        sector: (event.sector != NO_SECTOR).then_some(event.sector.cast_signed()),
        length_bytes: i64::from(event.bytes),
        op: operation(event.operation).into(),
        flags: flags(event).into(),
        depth: (event.depth != 0).then_some(event.depth.cast_signed()),
        errno: (event.error != 0).then(|| error(event.error)),
    }
}

/// The file whose pages a request transfers.
fn file_of(event: &BlockEvent, conversion: &mut Conversion<'_>) -> Option<ObjectId> {
    if event.inode == 0 || event.flags & (BLOCK_DEVICE | BLOCK_MEMORY) != 0 {
        return None;
    }
    let Conversion { places, objects, unknown_paths, .. } = conversion;
    let object = places.object_of_request(event.file, (event.inode_device, event.inode), objects);
    // If all requests of the system are recorded, most are for files that no recorded program has
    // used.
    *unknown_paths += u64::from(object.is_none() && (event.file != 0 || event.tid != 0));
    object
}

fn operation(number: u32) -> &'static str {
    match number {
        0 => "read",
        1 => "write",
        FLUSH => "flush",
        3 => "discard",
        5 => "secure erase",
        9 => "write zeroes",
        7 | 10..20 => "zone",
        _ => "other",
    }
}

fn flags(event: &BlockEvent) -> String {
    // A flush itself also has the flag that requests a flush before it.
    let bits = if event.operation == FLUSH { event.flags & !BLOCK_PREFLUSH } else { event.flags };
    let words = FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| *word);
    words.collect::<Vec<_>>().join("+")
}

fn error(number: i32) -> Cow<'static, str> {
    let known = usize::try_from(number).ok().and_then(|number| ERRORS.get(number.checked_sub(1)?)).copied();
    let errno = known.unwrap_or(number.saturating_neg());
    match u16::try_from(errno) {
        Ok(errno) => error_name(errno).into(),
        Err(_) => "other".into(),
    }
}
