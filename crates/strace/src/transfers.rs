//! Calls that move data: the bytes requested and moved, and their offset in the file.

use std::rc::Rc;

use memchr::memmem;

use crate::{
    bounds,
    effects::{Context, set_file},
    files::OpenFile,
    paths,
    resolve::{descriptor, shown},
    system::System,
    text,
};
use sysdock_calls::{
    CallRow, Kind, NONE, ObjectId, object_id,
    syscalls::{At, Class, Requested},
};

/// strace starts the clock of a duration only after it has printed the arguments, so a call ends up
/// to this much later than time stamp plus duration [ns].
const SLACK_NS: i64 = 100_000;

/// Where a transfer began, as far as it is known.
#[derive(Clone, Copy, Debug, Default)]
struct TransferStart {
    offset: Option<i64>,
    uncertain: bool,
    overlapped: Option<u64>,
}

impl TransferStart {
    /// An offset that the call states.
    fn of(offset: Option<i64>) -> Self {
        TransferStart { offset: offset.filter(|offset| *offset >= 0), ..TransferStart::default() }
    }
}

impl System {
    /// A call that moves data between memory and a file. Like [`System::apply`], it fills the row
    /// and returns an earlier one.
    pub(crate) fn transfer(
        &mut self,
        context: &Context<'_>,
        row: &mut CallRow,
        class: Class,
        requested: Requested,
        at: At,
    ) -> Option<u64> {
        let arguments = &context.call.arguments;
        let target = descriptor(arguments.get(0))?;
        let file = self.file(context, target, context.held_file());
        let requested = match requested {
            Requested::Argument(index) => text::leading_number(arguments.get(index)),
            Requested::Vector(index) => vector_bytes(arguments.get(index)),
        };
        let transferred = context.call.returned.value.filter(|value| *value >= 0);
        let object = file.as_ref().and_then(|file| file.object.get());
        // An offset other than the position of the file.
        let elsewhere = match at {
            At::Nowhere => Some(None),
            At::Position => None,
            At::Argument(index) => Some(text::leading_number(arguments.get(index))),
            At::ArgumentOrPosition(index) => {
                Some(text::leading_number(arguments.get(index))).filter(|offset| *offset != Some(-1))
            }
        };
        let place = match (file, elsewhere) {
            (None, _) => TransferStart::default(),
            (Some(_), Some(offset)) => TransferStart::of(offset),
            (Some(file), None) => self.move_on(context, &file, class, transferred),
        };
        if let (Class::Write, Some(object), Some(offset), Some(transferred)) = (class, object, place.offset, transferred) {
            self.objects.grow(object, offset.saturating_add(transferred));
        }
        set_file(row, shown(target.0), object);
        (row.requested, row.transferred) = (requested.unwrap_or(NONE), transferred.unwrap_or(NONE));
        (row.offset, row.uncertain) = (place.offset.unwrap_or(NONE), place.uncertain);
        place.overlapped
    }

    /// The position at which a transfer began; moves the position of the file to its end.
    #[inline]
    fn move_on(&mut self, context: &Context<'_>, file: &OpenFile, class: Class, transferred: Option<i64>) -> TransferStart {
        let Some(object) = file.object.get().filter(|object| self.has_position(*object)) else { return TransferStart::default() };
        let start = if class == Class::Write && file.append.get() { self.objects.size(object) } else { file.position.get() };
        let (uncertain, overlapped) = self.overlap(context, file);
        if let Some(transferred) = transferred {
            file.position.set(start.map(|start| start.saturating_add(transferred)));
            file.moves.set(file.moves.get().wrapping_add(u32::from(transferred > 0)));
        }
        TransferStart { offset: start, uncertain: uncertain && start.is_some(), overlapped }
    }

    /// Whether another call moved the position of the same open file at the same time.
    ///
    /// A single log prints such calls in halves. Merged logs contain whole calls, which are
    /// compared by time; the earlier row is marked too.
    fn overlap(&self, context: &Context<'_>, file: &OpenFile) -> (bool, Option<u64>) {
        let printed = context.held.map_or(file.is_moving(), |held| {
            if std::ptr::eq(&raw const *held.file, file) { held.was_disturbed() } else { file.is_moving() }
        });
        if !self.merged {
            return (printed, None);
        }
        let (end_ns, thread, row) = file.last_move.get();
        let timed = thread != context.thread && context.started_ns < end_ns.saturating_add(SLACK_NS);
        if context.ended_ns() > end_ns {
            file.last_move.set((context.ended_ns(), context.thread, self.next_row));
        }
        (printed || timed, timed.then_some(row))
    }

    pub(crate) fn receive_message(&mut self, context: &Context<'_>, row: &mut CallRow, class: Class) -> Option<u64> {
        let message = context.call.arguments.get(1);
        if let Some(at) = memmem::find(message, b"SCM_RIGHTS") {
            self.forget_received(context.thread, &message[at..]);
        }
        self.transfer(context, row, class, Requested::Vector(1), At::Nowhere)
    }

    /// A call with several messages. Its result is the number of messages, and each states its
    /// bytes.
    pub(crate) fn messages(&mut self, context: &Context<'_>, row: &mut CallRow, class: Class) {
        const RIGHTS: &[u8] = b"SCM_RIGHTS";
        let vector = context.call.arguments.get(1);
        let mut places = memmem::find_iter(vector, RIGHTS).filter(|_| class == Class::Read).peekable();
        while let Some(at) = places.next() {
            // Only up to the next one, so that the line is not read again for each.
            self.forget_received(context.thread, &vector[at..places.peek().copied().unwrap_or(vector.len())]);
        }
        self.on_fd(context, row);
        let number = context.call.returned.value.filter(|number| *number >= 0);
        row.transferred = number.and_then(|number| messages_bytes(vector, number)).unwrap_or(NONE);
    }

    /// Forget descriptors that came with a message: their files are known from tags only.
    fn forget_received(&mut self, thread: usize, rights: &[u8]) {
        let Some(start) = memmem::find(rights, b"cmsg_data=[") else { return };
        for item in paths::list(&rights[start + 10..]) {
            let Some((fd, tag)) = descriptor(item) else { continue };
            let object = tag.map(|tag| self.intern_tag(tag));
            let fds = Rc::clone(&self.threads.get(thread).fds);
            fds.borrow_mut().set(fd, OpenFile::new(object, None, false), false);
        }
    }

    /// A copy between two files; both positions move.
    pub(crate) fn between(
        &mut self,
        context: &Context<'_>,
        row: &mut CallRow,
        from: (usize, Option<usize>),
        to: (usize, Option<usize>),
        size: usize,
    ) -> Option<u64> {
        let arguments = &context.call.arguments;
        let transferred = context.call.returned.value.filter(|value| *value >= 0);
        let requested = text::leading_number(arguments.get(size));
        let source = descriptor(arguments.get(from.0))?;
        let file = self.file(context, source, context.held_file());
        let object = file.as_ref().and_then(|file| file.object.get());
        let pointer = |index: usize| Some(arguments.get(index)).filter(|pointer| pointer.first() == Some(&b'['));
        let from_place = match (file, from.1.and_then(pointer)) {
            (None, _) => TransferStart::default(),
            (Some(_), Some(pointer)) => TransferStart::of(text::leading_number(&pointer[1..])),
            (Some(file), None) => self.move_on(context, &file, Class::Read, transferred),
        };
        set_file(row, shown(source.0), object);
        (row.requested, row.transferred) = (requested.unwrap_or(NONE), transferred.unwrap_or(NONE));
        (row.offset, row.uncertain) = (from_place.offset.unwrap_or(NONE), from_place.uncertain);
        let mut overlapped = from_place.overlapped;
        if let Some(target) = descriptor(arguments.get(to.0))
            && let Some(file) = self.file(context, target, None)
        {
            let to_object = file.object.get();
            let place = match to.1.and_then(pointer) {
                Some(pointer) => TransferStart::of(text::leading_number(&pointer[1..])),
                None => self.move_on(context, &file, Class::Write, transferred),
            };
            (row.to_object, row.to_offset) = (object_id(to_object), place.offset.unwrap_or(NONE));
            row.uncertain |= place.uncertain;
            overlapped = overlapped.or(place.overlapped);
            if let (Some(object), Some(offset), Some(transferred)) = (to_object, place.offset, transferred) {
                self.objects.grow(object, offset.saturating_add(transferred));
            }
        }
        overlapped
    }

    pub(crate) fn seek(&mut self, context: &Context<'_>, row: &mut CallRow) {
        let Some(target) = descriptor(context.call.arguments.get(0)) else { return };
        let file = self.file(context, target, context.held_file());
        let object = file.as_ref().and_then(|file| file.object.get());
        let mut offset = context.call.returned.value;
        if context.call.name == b"_llseek" {
            offset = offset.and_then(|_| text::leading_number(context.call.arguments.get(2).strip_prefix(b"[")?));
        }
        if let (Some(file), Some(offset)) = (file, offset) {
            file.position.set(Some(offset));
            file.moves.set(file.moves.get().wrapping_add(1));
            if context.call.arguments.get(2) == b"SEEK_END"
                && let (Some(object), Some(0)) = (object, text::leading_number(context.call.arguments.get(1)))
            {
                self.objects.set_size(object, Some(offset));
            }
        }
        set_file(row, shown(target.0), object);
        row.offset = offset.unwrap_or(NONE);
    }

    /// Whether reads and writes of this object have an offset.
    fn has_position(&self, object: ObjectId) -> bool {
        match self.objects.kind(object) {
            Kind::File | Kind::Virtual | Kind::Unknown => true,
            Kind::Directory | Kind::Pipe | Kind::Socket => false,
            Kind::Anonymous => self.objects.name(object).starts_with(b"/memfd:"),
            Kind::Device => paths::is_block_device(self.objects.name(object)),
        }
    }
}

/// Sum of `iov_len` in a printed vector; `None` if strace cut the vector short.
fn vector_bytes(argument: &[u8]) -> Option<i64> {
    if argument == b"[]" {
        return Some(0);
    }
    let (sum, found) = sum_of(b"iov_len=", argument)?;
    (found > 0 && !argument.ends_with(b", ...]")).then_some(sum)
}

/// Sum of `msg_len` in a printed array of messages; `None` if strace printed fewer than were moved,
/// or only their address.
fn messages_bytes(argument: &[u8], number: i64) -> Option<i64> {
    let (sum, found) = sum_of(b"msg_len=", argument)?;
    bounds::transferred(sum).filter(|sum| found == number && *sum >= 0)
}

/// Sum and count of the numbers after a field's name in the text.
fn sum_of(field: &[u8], argument: &[u8]) -> Option<(i64, i64)> {
    let mut rest = argument;
    let (mut sum, mut found) = (0i64, 0);
    // A buffer may contain the name of the field, so quoted strings are skipped. Other names may
    // end with it, as cmsg_len does with msg_len.
    while let Some(at) = memchr::memchr2(b'"', field[0], rest) {
        let is_whole = at == 0 || !rest[at - 1].is_ascii_alphanumeric();
        rest = &rest[at..];
        if rest[0] == b'"' {
            rest = &rest[text::string_end(rest)?..];
        } else if let Some(tail) = rest.strip_prefix(field).filter(|_| is_whole) {
            let (number, tail) = text::number(tail)?;
            sum = sum.checked_add(number)?;
            found += 1;
            rest = tail;
        } else {
            rest = &rest[1..];
        }
    }
    Some((sum, found))
}
