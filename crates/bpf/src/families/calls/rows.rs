//! Rows of `calls` from events.
//!
//! The columns have the same meaning as for a log of strace (`effects.rs` of that crate): where
//! both recorders know a value, they agree.

use sysdock_calls::{
    CallRow, NONE, ObjectId, Part, Via, error_name, error_of, is_restart, normal, object_id,
    syscalls::{At, Class, Requested, Shape},
};
use sysdock_table::rows;

use crate::{
    BpfError,
    conversion::Conversion,
    families::calls::{
        Calls,
        call_kinds::CallKind,
        events::{Call, PathArgument},
        words,
    },
};

const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// `MAP_SHARED` is the lowest bit of the type of a mapping, and part of `MAP_SHARED_VALIDATE`.
const MAP_SHARED: u32 = 1;
/// Largest number of calls of other threads within one call that are checked for overlap.
const MOST_WITHIN: usize = 256;

impl Calls {
    /// Add the row of a call. `others` may add to the row before it is written.
    #[inline]
    pub(super) fn call(
        &mut self,
        event: &Call<'_>,
        conversion: &mut Conversion<'_>,
        others: &mut impl FnMut(&Call<'_>, Shape, &mut CallRow, &mut Conversion<'_>) -> Result<(), BpfError>,
    ) -> Result<(), BpfError> {
        let clipped = self.clipped(event, conversion);
        let event = clipped.as_ref().unwrap_or(event);
        let meaning = self.meanings.of(event.number);
        let ts_ns = conversion.clock.epoch_ns(event.start_ns);
        let thread = conversion.thread(event.tid, ts_ns);
        let mut row = self.row(thread, event, &meaning, ts_ns, conversion);
        self.fill(&mut row, thread, event, &meaning, conversion);
        others(event, meaning.shape, &mut row, conversion)?;
        if event.ring {
            row.via = Via::IoUring;
            return self.add(&row, conversion);
        }
        match meaning.shape {
            Shape::Open(..) | Shape::OpenQueue if !event.unfinished => row.open_flags = self.open_flags(event.extra),
            Shape::Map => self.mapped(event, &row, conversion)?,
            Shape::Fork if event.result > 0 => conversion.threads.forked(thread, ts_ns),
            _ => {}
        }
        if conversion.threads.have_threads {
            self.mark_overlap(&mut row, event, &meaning, conversion);
        }
        let error = if event.unfinished { None } else { error_of(event.result) };
        let interrupted = error.is_some_and(is_restart);
        if !interrupted && conversion.threads.get_mut(thread).interrupted.is_empty() {
            return self.push(&row, conversion);
        }
        self.join_interrupted(thread, &meaning, row, error, conversion)
    }

    /// The part of a call since recording began, if it began before; `None`: the call is wholly
    /// inside.
    #[inline]
    fn clipped<'a>(&mut self, event: &Call<'a>, conversion: &Conversion<'_>) -> Option<Call<'a>> {
        let before_ns = conversion.start.since_ns?.saturating_sub(event.start_ns);
        if before_ns == 0 {
            return None;
        }
        self.began_before += 1;
        let duration_ns = event.duration_ns.saturating_sub(before_ns);
        Some(Call { start_ns: event.start_ns + before_ns, duration_ns, ..*event })
    }

    /// A row with the values that every call has.
    #[inline]
    fn row(
        &mut self,
        thread: usize,
        event: &Call<'_>,
        meaning: &CallKind,
        ts_ns: i64,
        conversion: &mut Conversion<'_>,
    ) -> CallRow {
        let (task, comm) = {
            let thread = conversion.threads.get_mut(thread);
            (thread.task, thread.comm)
        };
        let error = error_of(event.result);
        let timed = !event.unfinished && !event.no_start;
        CallRow {
            dur_ns: if timed { event.duration_ns.cast_signed() } else { NONE },
            result: if event.unfinished || error.is_some() { NONE } else { event.result },
            fd: event.fd.max(-1),
            errno: error.filter(|_| !event.unfinished).map_or(-1, |error| self.errno(error)),
            ..CallRow::begun(ts_ns, task as u32, comm, meaning.call, meaning.class)
        }
    }

    /// Fill in the object of the call, the offset and the size.
    #[inline]
    fn fill(&mut self, row: &mut CallRow, thread: usize, event: &Call<'_>, meaning: &CallKind, conversion: &mut Conversion<'_>) {
        let done = row.result.max(0);
        match meaning.shape {
            Shape::Plain | Shape::CloseRange | Shape::Fork | Shape::Unshare | Shape::Submit | Shape::Reap => {}
            Shape::Transfer(requested, at) => {
                row.object = conversion.file(event.file);
                fill_transfer(row, event, requested, at);
            }
            Shape::ReceiveMessage => {
                row.object = conversion.file(event.file);
                row.transferred = row.result;
                row.requested = if event.unfinished { NONE } else { known(event.extra.cast_signed()) };
            }
            Shape::Messages => {
                row.object = conversion.file(event.file);
                row.transferred = if row.result == NONE { NONE } else { known(event.extra.cast_signed()) };
                self.unknown_messages += u64::from(row.result != NONE && row.transferred == NONE);
            }
            Shape::Between { .. } => {
                row.object = conversion.file(event.file);
                row.transferred = row.result;
                row.requested = known(event.extra.cast_signed());
                // Both offsets are those after the transfer.
                row.offset = begin(event.offset, done);
                if let Some((to, to_offset)) = event.second {
                    row.to_object = conversion.file(to);
                    row.to_offset = begin(to_offset, done);
                }
            }
            Shape::Seek => {
                row.object = conversion.file(event.file);
                row.offset = row.result;
            }
            Shape::Directory => {
                row.object = conversion.file(event.file);
                is_directory(row, conversion);
            }
            Shape::Fcntl => {
                row.object = conversion.file(event.file);
                if matches!(event.extra, F_DUPFD | F_DUPFD_CLOEXEC) && row.result != NONE {
                    row.fd = i32::try_from(row.result).unwrap_or(-1);
                }
            }
            Shape::Map if event.fd < 0 => row.class = Class::Memory as u8,
            Shape::Open(..) | Shape::Create => {
                row.object = if row.result == NONE { -1 } else { conversion.file(event.file) };
                if row.object < 0 {
                    row.object = self.argument(event.path, conversion);
                }
                if words::requests_directory(event.extra) && matches!(meaning.shape, Shape::Open(..)) {
                    is_directory(row, conversion);
                }
            }
            Shape::Path(_) | Shape::Rename(..) | Shape::Remove(..) => row.object = self.argument(event.path, conversion),
            Shape::OpenQueue | Shape::RemoveQueue => {
                row.object = conversion.file(event.file);
                if row.object < 0 {
                    row.object = queue(event.path, conversion);
                }
            }
            Shape::Configure if event.path.is_none() => row.object = conversion.file(event.file),
            Shape::PathAt(..) | Shape::Configure => {
                // An empty path means the descriptor itself; otherwise the descriptor is only the
                // base of the path.
                let itself = event.path.and_then(|path| path.text).is_some_and(<[u8]>::is_empty);
                row.fd = if itself { row.fd } else { -1 };
                row.object = self.argument(event.path, conversion);
            }
            Shape::ChangeDir => {
                row.object = match event.path {
                    // The base is read at the return, so it is the directory that was entered.
                    Some(PathArgument { base, text: Some(text) }) if row.result == 0 && !text.starts_with(b"/") => {
                        conversion.file(base)
                    }
                    path => self.argument(path, conversion),
                };
                is_directory(row, conversion);
            }
            Shape::Exec => self.fill_exec(row, thread, event, conversion),
            Shape::Fd
            | Shape::AddRule
            | Shape::Close
            | Shape::Dup
            | Shape::DupTo
            | Shape::Ioctl
            | Shape::Truncate
            | Shape::NewFd(_)
            | Shape::NewPair(..)
            | Shape::MemfdCreate
            | Shape::Map
            | Shape::ChangeDirFd
            | Shape::Ring => row.object = conversion.file(event.file),
        }
    }

    /// Mark calls of a process whose threads moved the position of one descriptor at the same time:
    /// where each began is unknown.
    fn mark_overlap(&mut self, row: &mut CallRow, event: &Call<'_>, meaning: &CallKind, conversion: &Conversion<'_>) {
        let moves = match meaning.shape {
            Shape::Seek | Shape::Transfer(_, At::Position) => true,
            Shape::Transfer(_, At::ArgumentOrPosition(_)) | Shape::Between { .. } => event.at_position,
            _ => false,
        };
        if row.dur_ns == NONE {
            return;
        }
        let process = conversion.threads.process(row.task);
        for (fd, is_target) in [(moves.then_some(event.fd), false), (event.to_position_of, true)] {
            if let Some(fd) = fd.filter(|fd| *fd >= 0) {
                self.mark_overlap_of((process, fd), is_target, row);
            }
        }
    }

    /// As [`Calls::mark_overlap`], for one descriptor of a process.
    fn mark_overlap_of(&mut self, key: (i32, i32), is_target: bool, row: &mut CallRow) {
        let serial = self.rows.total();
        let (task, start_ns, end_ns) = (row.task, row.ts_ns, row.ts_ns.saturating_add(row.dur_ns));
        // More descriptors than a machine can have open at a time are garbage.
        if self.last_moves.len() > 1 << 15 {
            self.last_moves.clear();
        }
        // Calls are ordered by their ends, so the last ones may all have ended within this one.
        let moves = self.last_moves.entry(key).or_default();
        let within = moves.iter().rev().take_while(|(earlier_end_ns, ..)| start_ns < *earlier_end_ns);
        for (_, _, earlier, was_target) in within.filter(|(_, earlier_task, ..)| *earlier_task != task) {
            row.overlap(is_target);
            if let Some(earlier) = self.rows.recent(*earlier) {
                earlier.overlap(*was_target);
            }
        }
        if moves.len() == MOST_WITHIN {
            moves.pop_front();
        }
        moves.push_back((end_ns, task, serial, is_target));
    }

    /// A successful exec has lost its path argument with its old program; the event of the
    /// program's start contains the path.
    fn fill_exec(&mut self, row: &mut CallRow, thread: usize, event: &Call<'_>, conversion: &mut Conversion<'_>) {
        if event.result != 0 || event.unfinished {
            row.object = self.argument(event.path, conversion);
            return;
        }
        let Some(started) = conversion.threads.get_mut(thread).exec.take() else { return };
        row.object = object_id(Some(program(&started.filename, row.task as usize, conversion)));
        if started.comm_before >= 0 {
            row.comm = started.comm_before;
        }
    }

    /// The row in `paths` of a path argument.
    fn argument(&mut self, argument: Option<PathArgument<'_>>, conversion: &mut Conversion<'_>) -> i32 {
        let Some(PathArgument { base, text: Some(text) }) = argument else { return -1 };
        if text.starts_with(b"/") {
            return object_id(Some(conversion.places.named(&normal(text.into()), &mut conversion.objects)));
        }
        if text.is_empty() {
            return conversion.file(base);
        }
        object_id(Some(self.relative(base, text, conversion)))
    }

    fn relative(&mut self, base: u64, text: &[u8], conversion: &mut Conversion<'_>) -> ObjectId {
        let Some(directory) = conversion.places.path(base).filter(|path| path.starts_with(b"/")) else {
            // A directory that is not open has no path.
            conversion.unknown_paths += u64::from(base != 0);
            return conversion.objects.intern(text);
        };
        self.full_path.clear();
        self.full_path.extend_from_slice(directory);
        self.full_path.push(b'/');
        self.full_path.extend_from_slice(text);
        conversion.places.named(&normal(self.full_path.as_slice().into()), &mut conversion.objects)
    }

    fn mapped(&mut self, event: &Call<'_>, row: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let Some(mapping) = event.mapping.filter(|_| row.fd >= 0 && row.result != NONE) else { return Ok(()) };
        self.mappings.push(&rows::Mappings {
            ts_ns: row.ts_ns,
            task_id: row.task.cast_signed(),
            path_id: (row.object >= 0).then_some(row.object),
            address: row.result,
            length_bytes: mapping.length.cast_signed(),
            offset_bytes: Some(mapping.offset.cast_signed()),
            protection: words::protection(mapping.protection).into(),
            shared: mapping.flags & MAP_SHARED != 0,
        });
        Ok(self.mappings.flush(conversion.recording, false)?)
    }

    pub(super) fn errno(&mut self, error: u16) -> i16 {
        let place = &mut self.errno_numbers[usize::from(error)];
        if *place < 0 {
            *place = self.rows.errnos.number(error_name(error).as_bytes());
        }
        *place
    }

    fn open_flags(&mut self, flags: u64) -> i16 {
        if let Some(number) = self.open_flag_numbers.get(&flags) {
            return *number;
        }
        let number = self.rows.open_flags.number(words::open_flags(flags).as_bytes());
        // A garbage spool may contain any number of sets.
        if self.open_flag_numbers.len() < 4096 {
            self.open_flag_numbers.insert(flags, number);
        }
        number
    }

    /// Add a call of a thread that has interrupted calls, or that is interrupted itself.
    fn join_interrupted(
        &mut self,
        thread: usize,
        meaning: &CallKind,
        row: CallRow,
        error: Option<u16>,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), BpfError> {
        let part = Part {
            goes_on: meaning.goes_on,
            gives_up: meaning.ends_handler && error == Some(libc::EINTR as u16),
            is_interrupted: error.is_some_and(is_restart),
        };
        let joined = conversion.threads.get_mut(thread).interrupted.join(row, part, (), continues);
        self.restarted += u64::from(joined.restarted);
        joined.rows.iter().flatten().try_for_each(|row| self.push(row, conversion))
    }

    #[inline]
    pub(super) fn push(&mut self, row: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        conversion.threads.tasks[row.task as usize].calls += 1;
        self.add(row, conversion)
    }

    /// Add a row that is not a system call of its own.
    #[inline]
    pub(super) fn add(&mut self, row: &CallRow, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        conversion.seen(row.ts_ns, row.ts_ns.saturating_add(row.dur_ns.max(0)));
        self.rows.push(row, conversion.recording, self.meanings.calls.names())?;
        Ok(())
    }
}

#[inline]
fn fill_transfer(row: &mut CallRow, event: &Call<'_>, requested: Requested, at: At) {
    row.transferred = row.result;
    row.requested = match requested {
        _ if event.unfinished => NONE,
        Requested::Argument(_) | Requested::Vector(_) => known(event.extra.cast_signed()),
    };
    row.offset = match at {
        At::Nowhere => NONE,
        // Without an open file there is no offset.
        _ if event.file == 0 => NONE,
        // The recorded position is that after the call.
        At::Position => begin(event.offset, row.result.max(0)),
        At::Argument(_) | At::ArgumentOrPosition(_) => known(event.offset),
    };
}

/// The row in `paths` of a message queue. Its name is in the root of its own file system.
fn queue(argument: Option<PathArgument<'_>>, conversion: &mut Conversion<'_>) -> i32 {
    let Some(name) = argument.and_then(|argument| argument.text).filter(|name| !name.is_empty()) else { return -1 };
    let path = [if name.starts_with(b"/") { &b""[..] } else { b"/" }, name].concat();
    object_id(Some(conversion.objects.intern(&path)))
}

/// The row in `paths` of a program. The base of a relative path is known for the command itself
/// only.
fn program(filename: &[u8], task: usize, conversion: &mut Conversion<'_>) -> ObjectId {
    let first =
        i64::from(conversion.threads.tasks[task].tid) == conversion.command_pid() && conversion.threads.tasks[task].execs == 1;
    if filename.starts_with(b"/") || !first || !conversion.directory().starts_with(b"/") {
        let path = if filename.starts_with(b"/") { normal(filename.into()) } else { filename.into() };
        return conversion.places.named(&path, &mut conversion.objects);
    }
    let path = [conversion.directory(), b"/", filename].concat();
    conversion.places.named(&normal(path.into()), &mut conversion.objects)
}

/// Record that the object of a successful call is a directory.
fn is_directory(row: &CallRow, conversion: &mut Conversion<'_>) {
    if let (Ok(object), true) = (ObjectId::try_from(row.object), row.result != NONE) {
        conversion.objects.set_directory(object);
    }
}

/// A number; below 0: unknown.
fn known(number: i64) -> i64 {
    if number < 0 { NONE } else { number }
}

/// The offset at which a transfer began that ended at `position`.
fn begin(position: i64, transferred: i64) -> i64 {
    if position < 0 { NONE } else { known(position.saturating_sub(transferred)) }
}

/// Whether a call is the next part of an interrupted one, as far as its arguments are recorded.
fn continues(first: &CallRow, (): &(), next: &CallRow, (): &()) -> bool {
    first.call == next.call && first.task == next.task && (first.fd, first.object) == (next.fd, next.object)
}
