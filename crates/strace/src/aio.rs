//! Linux native asynchronous I/O (libaio): `io_submit` names the operations, `io_getevents` their
//! results.
//!
//! strace prints a control block as `{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3,
//! aio_buf=..., aio_nbytes=4096, aio_offset=0}` (man 2 io_submit) and an event as `{data=0x1,
//! obj=0x..., res=4096, res2=0}`. They are joined by `data`; operations with the same `data` are
//! assumed to end in the order in which they began.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use sysdock_calls::{
    CallRow, NONE, Via, error_name, error_of, object_id,
    syscalls::{self, Class},
};
use sysdock_table::TableError;

use crate::{
    bounds,
    fields::Call,
    files::OpenFile,
    import::Import,
    paths,
    resolve::{descriptor, shown},
    text,
};

/// Greatest number of operations in progress: a damaged log may state any number.
const MOST: usize = 1 << 20;

/// Session, process, context and data. A context is an address, so it is unique within a process
/// only.
type Key = (u32, i32, i64, i64);

/// Operations that were submitted and have not been reaped yet.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    operations: FxHashMap<Key, VecDeque<CallRow>>,
    count: usize,
}

impl Import<'_> {
    /// `io_submit(context, n, [{...}, ...]) = accepted`
    pub(crate) fn submitted(&mut self, thread: usize, call: &Call<'_>, submit: &CallRow) {
        let Some(accepted) = usize::try_from(submit.result).ok() else { return };
        for block in structures(call.arguments.get(2)).take(accepted) {
            let Some(row) = self.operation(thread, block, submit) else { continue };
            let data = number_of(block, b"aio_data=").or_else(|| number_of(block, b"data=")).unwrap_or(0);
            if self.aio.count < MOST {
                self.aio.count += 1;
                let key = self.aio_key(thread, call, data);
                self.aio.operations.entry(key).or_default().push_back(row);
            }
        }
    }

    /// The row of one operation that has not completed yet.
    fn operation(&mut self, thread: usize, block: &[u8], submit: &CallRow) -> Option<CallRow> {
        let opcode = field(block, b"aio_lio_opcode=")?;
        let (name, class) = syscalls::aio_operation_named(opcode);
        let (number, _) = self.calls.look_up(syscalls::UNLISTED, name.as_bytes());
        let mut row =
            CallRow { call: number, class: class as u8, via: Via::Libaio, ..self.row(thread, number, class, submit.ts_ns) };
        let (fd, tag) = descriptor(field(block, b"aio_fildes=")?)?;
        row.fd = shown(fd).unwrap_or(-1);
        let file = self.system.threads.get(thread).fds.borrow().get(fd).cloned();
        let object = match (tag, file) {
            (Some(tag), file) => {
                let object = self.system.intern_tag(tag);
                if file.is_none() {
                    self.system.set_fd(thread, fd, OpenFile::new(Some(object), None, false), false);
                }
                Some(object)
            }
            (None, Some(file)) => file.object.get(),
            (None, None) => None,
        };
        row.object = object_id(object);
        if matches!(class, Class::Read | Class::Write) {
            row.offset = number_of(block, b"aio_offset=").and_then(bounds::place).unwrap_or(NONE);
            row.requested = number_of(block, b"aio_nbytes=").unwrap_or(NONE);
        }
        Some(row)
    }

    /// `io_getevents(context, min, n, [{...}, ...], timeout) = count`
    pub(crate) fn reaped(&mut self, thread: usize, call: &Call<'_>, reap: &CallRow) -> Result<(), TableError> {
        let Some(count) = usize::try_from(reap.result).ok() else { return Ok(()) };
        for event in structures(call.arguments.get(3)).take(count) {
            let data = number_of(event, b"data=").unwrap_or(0);
            let Some(mut row) = self.take_operation(self.aio_key(thread, call, data)) else { continue };
            let end_ns = reap.ts_ns.saturating_add(reap.dur_ns.max(0));
            row.dur_ns = bounds::duration(end_ns.saturating_sub(row.ts_ns).max(0)).unwrap_or(NONE);
            let result = number_of(event, b"res=").and_then(bounds::transferred).unwrap_or(NONE);
            if result >= 0 && row.requested != NONE {
                row.transferred = result;
            }
            match error_of(result) {
                Some(error) => row.errno = self.rows.errnos.number(error_name(error).as_bytes()),
                None => row.result = result,
            }
            self.push_row(&row)?;
        }
        Ok(())
    }

    fn aio_key(&self, thread: usize, call: &Call<'_>, data: i64) -> Key {
        let context = text::leading_number(call.arguments.get(0)).unwrap_or(0);
        let thread = self.system.threads.get(thread);
        (thread.session, thread.pid, context, data)
    }

    fn take_operation(&mut self, key: Key) -> Option<CallRow> {
        let queue = self.aio.operations.get_mut(&key)?;
        let operation = queue.pop_front()?;
        if queue.is_empty() {
            self.aio.operations.remove(&key);
        }
        self.aio.count -= 1;
        Some(operation)
    }

    /// Write the operations without an end in the log, in order of their start.
    pub(crate) fn never_reaped(&mut self) -> Result<(), TableError> {
        let left = std::mem::take(&mut self.aio);
        let mut rows: Vec<CallRow> = left.operations.into_values().flatten().collect();
        rows.sort_by_key(|row| (row.ts_ns, row.offset, row.object));
        rows.iter().try_for_each(|row| self.push_row(row))
    }
}

/// The `{...}` items of a printed list.
fn structures(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    paths::list(list).into_iter().filter(|item| item.starts_with(b"{"))
}

/// The value of a field. Only top-level fields are compared, so strings that look like a field do
/// not count.
fn field<'a>(structure: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    paths::structure(structure).into_iter().find_map(|field| field.strip_prefix(name))
}

fn number_of(structure: &[u8], name: &[u8]) -> Option<i64> {
    field(structure, name).and_then(text::leading_number)
}
