//! Converts a complete call to its row.
//!
//! Parts of calls that a signal interrupted are joined here; `interrupted.rs` of the calls crate
//! has the states.

use sysdock_calls::{
    CallRow, Issue, NONE, Part,
    syscalls::{Class, Shape},
};
use sysdock_table::{TableError, facts::issues as facts, rows};

use crate::{bounds, effects::Context, fields::Call, files::Held, import::Import, open_flags, output, text, threads::Printed};

impl Import<'_> {
    /// `listed` is the index of a known call, or [`syscalls::UNLISTED`].
    pub(crate) fn finish_call(
        &mut self,
        thread: usize,
        listed: u16,
        call: &Call<'_>,
        started_ns: i64,
        held: Option<&Held>,
    ) -> Result<(), TableError> {
        let (number, &(class, ref shape)) = self.calls.look_up(listed, call.name);
        if let Some(what) = bounds::impossible(shape, call) {
            return self.note(Issue::ImpossibleNumber, what);
        }
        let mut row = self.row(thread, number, class, started_ns);
        self.system.next_row = self.rows.total();
        let overlapped = self.system.apply(shape, class, &Context { thread, call, held, started_ns }, &mut row);
        if let Some(what) = bounds::impossible_place(shape, call, &mut row) {
            return self.note(Issue::ImpossibleNumber, what);
        }
        if class == Class::Write && row.transferred < row.requested && row.transferred >= 0 {
            output::correct_asked(call, &mut row);
        }
        if row.comm < 0 {
            // The first exec names the program that it starts.
            row.comm = self.comm(thread);
        }
        self.fill_result(&mut row, call);
        if let Some(serial) = overlapped
            && let Some(earlier) = self.rows.recent(serial)
        {
            earlier.overlap(false);
        }
        match *shape {
            Shape::Open(..) | Shape::OpenQueue => {
                let flags = if let Shape::Open(_, _, flags) = *shape { flags } else { 1 };
                let names = open_flags::flag_names(call.arguments.get(flags));
                row.open_flags = if names.is_empty() { -1 } else { self.rows.open_flags.number(names) };
            }
            Shape::Map => {
                self.mapped(call, &row);
                self.mappings.flush(self.recording, false)?;
            }
            Shape::Messages if row.result > 0 && row.transferred == NONE => {
                let detail = facts::messages_without_size(row.result);
                self.note(Issue::UnknownBytes, detail)?;
            }
            Shape::Submit => self.submitted(thread, call, &row),
            Shape::Reap => self.reaped(thread, call, &row)?,
            Shape::Ring if row.result != NONE => self.note(Issue::InvisibleIo, facts::io_uring())?,
            _ => {}
        }
        self.sockets.see(call, &row, &self.system.objects);
        self.waits.see(call, class, &row, &self.system.objects, &self.system.threads.tasks);
        if let Some(sightings) = &mut self.sightings {
            sightings.see(self.system.threads.get(thread).session, *shape, class, call, &row);
        }
        if self.system.threads.get(thread).interrupted.is_empty() && !is_interrupted(call) {
            return self.push(thread, &row);
        }
        self.join_interrupted(thread, call, row)
    }

    /// `mmap(address, length, protection, flags, fd, offset) = address`
    fn mapped(&mut self, call: &Call<'_>, row: &CallRow) {
        if row.fd < 0 || row.result == NONE {
            return;
        }
        let argument = |index| text::leading_number(call.arguments.get(index));
        // mmap2 counts pages of 4096 bytes (man 2 mmap2).
        let unit = if call.name == b"mmap2" { 4096 } else { 1 };
        let protection = call.arguments.get(2);
        self.mappings.push(&rows::Mappings {
            ts_ns: row.ts_ns,
            task_id: row.task.cast_signed(),
            path_id: (row.object >= 0).then_some(row.object),
            address: row.result,
            length_bytes: argument(1).unwrap_or(0),
            offset_bytes: argument(5).and_then(|offset| bounds::place(offset.saturating_mul(unit))),
            protection: String::from_utf8_lossy(&protection[..protection.len().min(64)]),
            shared: memchr::memmem::find(call.arguments.get(3), b"MAP_SHARED").is_some(),
        });
    }

    fn comm(&self, thread: usize) -> i32 {
        self.system.threads.get(thread).program.as_ref().map_or(-1, |program| program.comm_id)
    }

    pub(crate) fn fill_result(&mut self, row: &mut CallRow, call: &Call<'_>) {
        row.result = bounds::result(call.returned.value);
        row.errno = call.returned.errno.map_or(-1, |errno| self.rows.errnos.number(errno));
        row.dur_ns = call.dur_ns.unwrap_or(NONE);
        self.has_durations |= call.dur_ns.is_some();
    }

    /// A call of a thread that has interrupted calls, or that is interrupted itself.
    fn join_interrupted(&mut self, thread: usize, call: &Call<'_>, row: CallRow) -> Result<(), TableError> {
        let part = Part {
            goes_on: call.name == b"restart_syscall",
            gives_up: matches!(call.name, b"rt_sigreturn" | b"sigreturn") && call.returned.errno == Some(b"EINTR"),
            is_interrupted: is_interrupted(call),
        };
        let joined = self.system.threads.get_mut(thread).interrupted.join(row, part, call.all_arguments(), continues);
        self.restarted_calls += u64::from(joined.restarted);
        joined.rows.iter().flatten().try_for_each(|row| self.push(thread, row))
    }

    /// At the end of a thread, write its interrupted calls as they are.
    pub(crate) fn give_up_interrupted(&mut self, thread: usize) -> Result<(), TableError> {
        self.system.threads.get_mut(thread).interrupted.give_up().try_for_each(|row| self.push(thread, &row))
    }

    #[inline]
    pub(crate) fn push(&mut self, thread: usize, row: &CallRow) -> Result<(), TableError> {
        let task = self.system.threads.get(thread).task;
        self.system.threads.tasks[task].calls += 1;
        self.system.threads.get_mut(thread).last_row = self.rows.total();
        self.push_row(row)
    }

    /// Add a row that is not joined with others.
    #[inline]
    pub(crate) fn push_row(&mut self, row: &CallRow) -> Result<(), TableError> {
        self.rows_since_checkpoint += 1;
        // A call that began before the log counts from its start.
        self.note_time(row.ts_ns);
        // A call of truss has the time of its end, and a duration of another kind.
        let after_ns = if self.truss.seen { 0 } else { row.dur_ns.max(0) };
        self.last_ns = self.last_ns.max(row.ts_ns.saturating_add(after_ns));
        let serial = self.rows.push(row, self.recording, self.calls.names())?;
        self.stacks.belong_to(serial);
        Ok(())
    }
}

fn is_interrupted(call: &Call<'_>) -> bool {
    call.returned.errno.is_some_and(|errno| errno.starts_with(b"ERESTART"))
}

/// Whether a call is the next part of an interrupted one: the kernel starts it again with the same
/// arguments.
///
/// A buffer is printed as an address until the call succeeds, and by its contents afterwards.
fn continues(first: &CallRow, known: &Printed, next: &CallRow, arguments: &Printed) -> bool {
    let number = |argument: &[u8]| matches!(argument.first(), Some(b'-' | b'0'..=b'9' | b'A'..=b'Z'));
    let same = |(one, other): (&[u8], &[u8])| one == other || !(number(one) && number(other));
    let mut pairs = known.iter().map(AsRef::as_ref).zip(arguments.iter().map(AsRef::as_ref));
    first.call == next.call && pairs.all(same)
}
