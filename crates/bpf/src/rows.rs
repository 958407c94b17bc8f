//! From an event of a call to its row.
//!
//! The columns mean what they mean for a log of strace (`effects.rs` of that crate): where both could be asked, both say the same.

use sysdock_calls::{
    CallRow, Issue, NONE, ObjectId, Via, normal, object_id,
    syscalls::{Asked, At, Class, Shape},
};
use sysdock_table::rows;

use crate::{
    BpfError,
    convert::Conversion,
    events::{Call, PathArgument},
    meanings::Meaning,
    stacks::Counts,
    words,
};

const F_DUPFD: u64 = 0;
const F_DUPFD_CLOEXEC: u64 = 1030;
/// `MAP_SHARED` is the lowest bit of the type of a mapping, and part of `MAP_SHARED_VALIDATE`.
const MAP_SHARED: u32 = 1;
/// Calls of other threads that may end within one, and be marked with it: that many of them.
const MOST_WITHIN: usize = 256;

impl Conversion<'_> {
    pub(crate) fn call(&mut self, event: &Call<'_>) -> Result<(), BpfError> {
        let meaning = self.meanings.of(event.number);
        let ts_ns = self.clock.epoch_ns(event.start_ns);
        let thread = self.thread(event.tid, ts_ns);
        let mut row = self.row(thread, event, &meaning, ts_ns);
        row.stack = self.stacks.number(event.stack, event.tid, &self.places, &|ns| self.clock.epoch_ns(ns));
        self.fill(&mut row, thread, event, &meaning);
        if event.ring {
            row.via = Via::IoUring;
            return self.add(&row);
        }
        self.direct_io(event.tid, &row)?;
        match meaning.shape {
            Shape::Open(..) if !event.unfinished => row.open_flags = self.open_flags(event.extra),
            Shape::Map => self.mapped(event, &row)?,
            Shape::Ring if row.result != NONE => self.rings += 1,
            Shape::Fork if event.result > 0 => self.bore(thread, ts_ns),
            _ => {}
        }
        if self.threads.have_threads {
            self.mark_overlap(&mut row, event, &meaning);
        }
        let error = if event.unfinished { None } else { words::error_of(event.result) };
        let interrupted = error.is_some_and(words::is_restart);
        if !interrupted && self.threads.get_mut(thread).interrupted.is_empty() {
            return self.push(&row);
        }
        self.join_interrupted(thread, &meaning, row, error)
    }

    /// A row with what every call has.
    #[inline]
    fn row(&mut self, thread: usize, event: &Call<'_>, meaning: &Meaning, ts_ns: i64) -> CallRow {
        let (life, comm) = {
            let thread = self.threads.get_mut(thread);
            (thread.life, thread.comm)
        };
        let error = words::error_of(event.result);
        let timed = !event.unfinished && !event.no_start;
        CallRow {
            dur_ns: if timed { event.duration_ns.cast_signed() } else { NONE },
            result: if event.unfinished || error.is_some() { NONE } else { event.result },
            fd: event.fd.max(-1),
            errno: error.filter(|_| !event.unfinished).map_or(-1, |error| self.errno(error)),
            ..CallRow::begun(ts_ns, life as u32, comm, meaning.call, meaning.class)
        }
    }

    /// What the call worked on, where, and how much.
    #[inline]
    fn fill(&mut self, row: &mut CallRow, thread: usize, event: &Call<'_>, meaning: &Meaning) {
        let done = row.result.max(0);
        match meaning.shape {
            Shape::Plain | Shape::CloseRange | Shape::Fork | Shape::Unshare | Shape::Submit | Shape::Reap => {}
            Shape::Transfer(asked, at) => {
                row.object = self.file(event.file);
                self.fill_transfer(row, event, asked, at);
            }
            Shape::ReceiveMessage => {
                row.object = self.file(event.file);
                row.moved = row.result;
                row.asked = if event.unfinished { NONE } else { known(event.extra.cast_signed()) };
            }
            Shape::Between { .. } => {
                row.object = self.file(event.file);
                row.moved = row.result;
                row.asked = known(event.extra.cast_signed());
                // Both offsets are those behind the bytes that were moved.
                row.offset = begin(event.offset, done);
                if let Some((to, to_offset)) = event.second {
                    row.to_object = self.file(to);
                    row.to_offset = begin(to_offset, done);
                }
            }
            Shape::Seek => {
                row.object = self.file(event.file);
                row.offset = row.result;
            }
            Shape::Directory => {
                row.object = self.file(event.file);
                self.is_directory(row);
            }
            Shape::Fcntl => {
                row.object = self.file(event.file);
                if matches!(event.extra, F_DUPFD | F_DUPFD_CLOEXEC) && row.result != NONE {
                    row.fd = i32::try_from(row.result).unwrap_or(-1);
                }
            }
            Shape::Map if event.fd < 0 => row.class = Class::Memory as u8,
            Shape::Open(..) | Shape::Create => {
                row.object = if row.result == NONE { -1 } else { self.file(event.file) };
                if row.object < 0 {
                    row.object = self.argument(event.path);
                }
                if words::asks_for_directory(event.extra) && matches!(meaning.shape, Shape::Open(..)) {
                    self.is_directory(row);
                }
            }
            Shape::Path(_) | Shape::Rename(..) | Shape::Remove(..) => row.object = self.argument(event.path),
            Shape::PathAt(..) => {
                // An empty path means the descriptor itself; else that is only where the path starts.
                let itself = event.path.and_then(|path| path.text).is_some_and(<[u8]>::is_empty);
                row.fd = if itself { row.fd } else { -1 };
                row.object = self.argument(event.path);
            }
            Shape::ChangeDir => {
                row.object = match event.path {
                    // The base is read at the return: it is the directory that was entered.
                    Some(PathArgument { base, text: Some(text) }) if row.result == 0 && !text.starts_with(b"/") => {
                        self.file(base)
                    }
                    path => self.argument(path),
                };
                self.is_directory(row);
            }
            Shape::Exec => self.fill_exec(row, thread, event),
            _ => row.object = self.file(event.file),
        }
    }

    /// Threads of a process that move the position of one descriptor at the same time: nobody can tell where each of them began.
    fn mark_overlap(&mut self, row: &mut CallRow, event: &Call<'_>, meaning: &Meaning) {
        let moves = matches!(meaning.shape, Shape::Seek | Shape::Transfer(_, At::Position));
        if !moves || event.fd < 0 || row.dur_ns == NONE {
            return;
        }
        let life = row.life;
        let serial = self.rows.total();
        let end_ns = row.ts_ns.saturating_add(row.dur_ns);
        let key = (self.threads.lives[life as usize].pid, event.fd);
        // Many more than a machine can have open at a time are garbage.
        if self.last_moves.len() > 1 << 15 {
            self.last_moves.clear();
        }
        // Calls come in the order of their ends: the last ones may all have ended within this one.
        let moves = self.last_moves.entry(key).or_default();
        let within = moves.iter().rev().take_while(|(earlier_end_ns, ..)| row.ts_ns < *earlier_end_ns);
        for (_, earlier_life, earlier) in within {
            if *earlier_life == life {
                continue;
            }
            row.uncertain = meaning.shape != Shape::Seek && row.offset != NONE;
            if let Some(earlier) = self.rows.recent(*earlier).filter(|row| row.class != Class::Seek as u8) {
                earlier.uncertain = earlier.offset != NONE;
            }
        }
        if moves.len() == MOST_WITHIN {
            moves.pop_front();
        }
        moves.push_back((end_ns, life, serial));
    }

    #[inline]
    fn fill_transfer(&mut self, row: &mut CallRow, event: &Call<'_>, asked: Asked, at: At) {
        row.moved = row.result;
        row.asked = match asked {
            _ if event.unfinished => NONE,
            Asked::Argument(_) | Asked::Vector(_) => known(event.extra.cast_signed()),
        };
        row.offset = match at {
            At::Nowhere => NONE,
            // Where nothing is open, nothing begins.
            _ if event.file == 0 => NONE,
            // The position is that after the call.
            At::Position => begin(event.offset, row.result.max(0)),
            At::Argument(_) | At::ArgumentOrPosition(_) => known(event.offset),
        };
    }

    /// An exec that succeeded has lost its path argument with its old program; the event of the program's start has it.
    fn fill_exec(&mut self, row: &mut CallRow, thread: usize, event: &Call<'_>) {
        if event.result != 0 || event.unfinished {
            row.object = self.argument(event.path);
            return;
        }
        let Some(started) = self.threads.get_mut(thread).exec.take() else { return };
        row.object = object_id(Some(self.program(&started.filename, row.life as usize)));
        if started.comm_before >= 0 {
            row.comm = started.comm_before;
        }
    }

    /// The row of a program's path. Where a relative one starts is known of the command itself only.
    fn program(&mut self, filename: &[u8], life: usize) -> ObjectId {
        let first = i64::from(self.threads.lives[life].tid) == self.command.0 && self.threads.lives[life].execs == 1;
        if filename.starts_with(b"/") || !first || !self.command.1.starts_with(b"/") {
            let path = if filename.starts_with(b"/") { normal(filename.into()) } else { filename.into() };
            return self.places.named(&path, &mut self.objects);
        }
        let path = [self.command.1.as_slice(), b"/", filename].concat();
        self.places.named(&normal(path.into()), &mut self.objects)
    }

    /// The row in `paths` of a file's id; -1: it has none, or nobody told where it lies.
    #[inline]
    pub(crate) fn file(&mut self, id: u64) -> i32 {
        if id == 0 {
            return -1;
        }
        let object = self.places.object(id, &mut self.objects);
        self.unknown_paths += u64::from(object.is_none());
        object_id(object)
    }

    /// The row of a path argument.
    fn argument(&mut self, argument: Option<PathArgument<'_>>) -> i32 {
        let Some(PathArgument { base, text: Some(text) }) = argument else { return -1 };
        if text.starts_with(b"/") {
            return object_id(Some(self.places.named(&normal(text.into()), &mut self.objects)));
        }
        if text.is_empty() {
            return self.file(base);
        }
        object_id(Some(self.relative(base, text)))
    }

    fn relative(&mut self, base: u64, text: &[u8]) -> ObjectId {
        let Some(directory) = self.places.path(base).filter(|path| path.starts_with(b"/")) else {
            // A directory that is not open has no path.
            self.unknown_paths += u64::from(base != 0);
            return self.objects.intern(text);
        };
        self.full_path.clear();
        self.full_path.extend_from_slice(directory);
        self.full_path.push(b'/');
        self.full_path.extend_from_slice(text);
        self.places.named(&normal(self.full_path.as_slice().into()), &mut self.objects)
    }

    /// A successful call that works on directories only.
    fn is_directory(&mut self, row: &CallRow) {
        if let (Ok(object), true) = (ObjectId::try_from(row.object), row.result != NONE) {
            self.objects.set_directory(object);
        }
    }

    /// The return of the call that made a thread: it began when that call began.
    fn bore(&mut self, thread: usize, ts_ns: i64) {
        if let Some(child) = self.threads.get_mut(thread).child.take() {
            let life = &mut self.threads.lives[child];
            life.start_ns = life.start_ns.min(ts_ns);
        }
    }

    fn mapped(&mut self, event: &Call<'_>, row: &CallRow) -> Result<(), BpfError> {
        let Some(mapping) = event.mapping.filter(|_| row.fd >= 0 && row.result != NONE) else { return Ok(()) };
        self.mappings.push(&rows::Mappings {
            ts_ns: row.ts_ns,
            life_id: row.life.cast_signed(),
            path_id: (row.object >= 0).then_some(row.object),
            address: row.result,
            length_bytes: mapping.length.cast_signed(),
            offset_bytes: Some(mapping.offset.cast_signed()),
            protection: words::protection(mapping.protection).into(),
            shared: mapping.flags & MAP_SHARED != 0,
        });
        Ok(self.mappings.flush(self.recording, false)?)
    }

    pub(crate) fn errno(&mut self, error: u16) -> i16 {
        let place = &mut self.errno_numbers[usize::from(error)];
        if *place < 0 {
            *place = self.rows.errnos.number(words::error(error).as_bytes());
        }
        *place
    }

    fn open_flags(&mut self, flags: u64) -> i16 {
        if let Some(number) = self.open_flag_numbers.get(&flags) {
            return *number;
        }
        let number = self.rows.open_flags.number(words::open_flags(flags).as_bytes());
        // A spool of garbage may hold any number of sets.
        if self.open_flag_numbers.len() < 4096 {
            self.open_flag_numbers.insert(flags, number);
        }
        number
    }

    /// A call of a thread that has interrupted calls, or that is interrupted itself; see `finish.rs` of the strace crate for the states.
    fn join_interrupted(
        &mut self,
        thread: usize,
        meaning: &Meaning,
        mut row: CallRow,
        error: Option<u16>,
    ) -> Result<(), BpfError> {
        const DEEPEST: usize = 16;
        let waiting = &mut self.threads.get_mut(thread).interrupted;
        let mut given_up = None;
        match waiting.last() {
            Some(last) if meaning.goes_on || continues(last, &row) => {
                row = last.joined(row);
                waiting.pop();
                self.restarted += 1;
            }
            Some(_) if meaning.ends_handler && error == Some(libc::EINTR as u16) => given_up = waiting.pop(),
            _ => {}
        }
        let mut lost = None;
        let stays = error.is_some_and(words::is_restart);
        if stays {
            let waiting = &mut self.threads.get_mut(thread).interrupted;
            // What was interrupted and then replaced by another call will not come back.
            lost = (waiting.len() >= DEEPEST).then(|| waiting.remove(0));
            waiting.push(row);
        }
        let rows = [given_up, lost, (!stays).then_some(row)];
        rows.iter().flatten().try_for_each(|row| self.push(row))
    }

    #[inline]
    pub(crate) fn push(&mut self, row: &CallRow) -> Result<(), BpfError> {
        self.threads.lives[row.life as usize].calls += 1;
        self.add(row)
    }

    /// Add a row that is no system call of its own.
    #[inline]
    pub(crate) fn add(&mut self, row: &CallRow) -> Result<(), BpfError> {
        self.seen(row.ts_ns, row.ts_ns.saturating_add(row.dur_ns.max(0)));
        self.rows.push(row, self.recording, self.meanings.calls.names())?;
        Ok(())
    }

    /// Count what stacks were found to lack.
    pub(crate) fn count_stack_issues(&mut self) {
        let Counts { lost, compared, differed, cut } = self.stacks.counts;
        self.issues.add_many(Issue::StackLost, 0, lost, format!("{lost} calls have a stack that was lost"));
        let detail = format!("{cut} of {} stacks end early; their last frame says why", self.stacks.len());
        self.issues.add_many(Issue::StackCut, 0, cut, detail);
        let detail = format!("{differed} of {compared} stacks that were copied again had other frames than the first");
        self.issues.add_many(Issue::StackDiffers, 0, differed, detail);
    }

    /// Count what calls were found to lack.
    pub(crate) fn count_issues(&mut self) {
        let detail = format!("{} times a file that no event tells the place of", self.unknown_paths);
        self.issues.add_many(Issue::UnknownPath, 0, self.unknown_paths, detail);
        if !self.sees_rings {
            self.issues.add_many(Issue::InvisibleIo, 0, self.rings, "io_uring".into());
        }
    }
}

/// A number that may not be known.
fn known(number: i64) -> i64 {
    if number < 0 { NONE } else { number }
}

/// Where a transfer began that ended at `position`.
fn begin(position: i64, moved: i64) -> i64 {
    if position < 0 { NONE } else { known(position.saturating_sub(moved)) }
}

/// Whether a call is the next part of one that was interrupted, as far as its arguments are recorded.
fn continues(first: &CallRow, next: &CallRow) -> bool {
    first.call == next.call && first.life == next.life && (first.fd, first.object) == (next.fd, next.object)
}
