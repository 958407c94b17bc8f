//! Rows of `calls`, collected in blocks, which are sorted and encoded in parallel with reading.

use rustc_hash::FxHashMap;
use sysdock_table::{
    BlockEncoder, EncodedGroup, EncoderThread, GroupEncoder, NULL, ROWS_PER_BLOCK, ROWS_PER_GROUP, Recording, TableError,
    rows::{CallsColumns, CallsRow, CallsTexts, ObjectUseTexts},
};

use crate::{
    object_use::{self, ObjectUse},
    objects::ObjectId,
    syscalls::{CLASS_WORDS, Class},
};

/// Ten years [ns]: longer than any call is traced.
pub const LONGEST_NS: i64 = 10 * 366 * 86_400 * 1_000_000_000;

/// Represents NULL in the integer columns of a call.
pub const NONE: i64 = NULL;

/// A row of `calls`. It is flat and without pointers, because blocks of rows are sorted and turned
/// into columns.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub offset: i64,
    pub requested: i64,
    pub transferred: i64,
    pub result: i64,
    pub to_offset: i64,
    pub task: u32,
    pub comm: i32,
    pub fd: i32,
    pub object: i32,
    pub to_object: i32,
    pub stack: i32,
    pub call: u16,
    pub errno: i16,
    pub open_flags: i16,
    pub class: u8,
    pub via: Via,
    /// Calls on the same open file overlapped: the log cannot show which came first.
    pub uncertain: bool,
}

impl CallRow {
    /// A call that has begun; all else is unknown.
    pub fn begun(ts_ns: i64, task: u32, comm: i32, call: u16, class: Class) -> Self {
        CallRow {
            ts_ns,
            dur_ns: NONE,
            offset: NONE,
            requested: NONE,
            transferred: NONE,
            result: NONE,
            to_offset: NONE,
            task,
            comm,
            fd: -1,
            object: -1,
            to_object: -1,
            stack: -1,
            call,
            errno: -1,
            open_flags: -1,
            class: class as u8,
            via: Via::Call,
            uncertain: false,
        }
    }

    /// Mark that another call moved the same position meanwhile, so this call began at one of
    /// several possible positions. `is_target`: the position is that of the file that a copy
    /// writes. The position after a seek is certain.
    pub fn overlap(&mut self, is_target: bool) {
        let offset = if is_target { self.to_offset } else { self.offset };
        self.uncertain |= self.class != Class::Seek as u8 && offset != NONE;
    }

    /// Join an interrupted call and its next part: the result starts with the first, ends with the
    /// last, and takes the time of both.
    #[must_use]
    pub fn joined(self, next: CallRow) -> CallRow {
        let dur_ns = if self.dur_ns == NONE || next.dur_ns == NONE {
            NONE
        } else {
            self.dur_ns.saturating_add(next.dur_ns).min(LONGEST_NS)
        };
        if self.call == next.call {
            return CallRow { ts_ns: self.ts_ns, dur_ns, ..next };
        }
        CallRow { dur_ns, result: next.result, errno: next.errno, stack: next.stack, ..self }
    }
}

/// How an operation was issued: the values of `calls.via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By the system call itself.
    Call,
    /// By `io_submit`.
    Libaio,
    /// By a submission to an io_uring.
    IoUring,
}

const VIA_WORDS: [&str; 3] = ["", "libaio", "io_uring"];

/// An object as a column value.
pub fn object_id(object: Option<ObjectId>) -> i32 {
    object.map_or(-1, |object| object as i32)
}

/// Names of errors, or flags of opens, numbered in order of appearance.
#[derive(Debug, Default)]
pub struct Numbered {
    numbers: FxHashMap<Box<[u8]>, i16>,
    names: Vec<String>,
}

impl Numbered {
    /// The number of a name. Above a thousand names, and if names are very long, they share one
    /// number.
    pub fn number(&mut self, name: &[u8]) -> i16 {
        // Linux has fewer than 140 errors, and programs use some dozens of sets of flags; a garbage
        // log may contain any number.
        const LIMIT: usize = 1024;
        const LONGEST: usize = 256;
        let fits = name.len() <= LONGEST && (self.names.len() < LIMIT || self.numbers.contains_key(name));
        let name = if fits { name } else { b"(other)" };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = i16::try_from(self.names.len()).expect("limited above");
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.into(), number);
        number
    }
}

/// The texts that numbers in rows stand for.
#[derive(Debug)]
struct Texts {
    calls: Vec<String>,
    errnos: Vec<String>,
    open_flags: Vec<String>,
}

/// The end of a row group.
struct End {
    words: Texts,
    /// It is the last group: the sums are to be written, too.
    is_end: bool,
}

/// Encoded groups of `calls` and of its sums, ready to be written.
struct Groups {
    calls: Option<EncodedGroup>,
    sums: Option<EncodedGroup>,
}

/// Collects the rows of `calls`.
#[derive(Debug)]
pub struct CallRows {
    block: Vec<CallRow>,
    /// The last full block, held back so that its rows can still be changed.
    held: Vec<CallRow>,
    /// Number of rows of the group that were passed to the encoder.
    encoded: usize,
    /// Number of rows of all earlier groups.
    before: u64,
    encoder: Encoder,
    /// Numbers for [`CallRow::errno`].
    pub errnos: Numbered,
    /// Numbers for [`CallRow::open_flags`].
    pub open_flags: Numbered,
}

impl CallRows {
    /// With `in_parallel`, rows are encoded in a thread of their own.
    pub fn new(in_parallel: bool) -> Self {
        /// Number of blocks that may wait for the encoder.
        const WAITING: usize = 16;
        let encoder = match in_parallel {
            true => Encoder::EncoderThread(EncoderThread::new(WAITING, CallEncoder::default)),
            false => Encoder::Here(Box::default()),
        };
        let block = Vec::with_capacity(ROWS_PER_BLOCK);
        let (errnos, open_flags) = <(Numbered, Numbered)>::default();
        CallRows { block, held: Vec::new(), encoded: 0, before: 0, encoder, errnos, open_flags }
    }

    /// Add a row, and return its serial number. The rows of the last two blocks can still be
    /// changed.
    #[inline]
    pub fn push(&mut self, row: &CallRow, recording: &mut Recording, calls: &[String]) -> Result<u64, TableError> {
        if self.block.len() == ROWS_PER_BLOCK {
            self.pass_on(recording, calls)?;
        }
        let serial = self.total();
        self.block.push(*row);
        Ok(serial)
    }

    /// Pass the full block on.
    fn pass_on(&mut self, recording: &mut Recording, calls: &[String]) -> Result<(), TableError> {
        self.send_held();
        if self.encoded >= ROWS_PER_GROUP { self.finish_group(recording, calls, false) } else { Ok(()) }
    }

    /// Number of rows so far.
    #[inline]
    pub fn total(&self) -> u64 {
        self.before + (self.encoded + self.held.len() + self.block.len()) as u64
    }

    /// The row with this serial number, if it was not passed to the encoder yet.
    pub fn recent(&mut self, serial: u64) -> Option<&mut CallRow> {
        let index = usize::try_from(serial.checked_sub(self.before + self.encoded as u64)?).ok()?;
        match index.checked_sub(self.held.len()) {
            None => self.held.get_mut(index),
            Some(index) => self.block.get_mut(index),
        }
    }

    /// Write all rows; with `is_end`, also their sums.
    pub fn flush(&mut self, recording: &mut Recording, calls: &[String], is_end: bool) -> Result<(), TableError> {
        self.send_held();
        self.send_held();
        self.finish_group(recording, calls, is_end)?;
        self.encoder.wait(recording)
    }

    /// Pass on the block that was held back; the current one takes its place.
    fn send_held(&mut self) {
        if !self.held.is_empty() {
            self.encoded += self.held.len();
            self.encoder.block(&mut self.held);
        }
        std::mem::swap(&mut self.block, &mut self.held);
    }

    fn finish_group(&mut self, recording: &mut Recording, calls: &[String], is_end: bool) -> Result<(), TableError> {
        self.before += self.encoded as u64;
        self.encoded = 0;
        let (errnos, open_flags) = (self.errnos.names.clone(), self.open_flags.names.clone());
        self.encoder.finish(End { words: Texts { calls: calls.to_vec(), errnos, open_flags }, is_end }, recording)
    }
}

/// Turns blocks into row groups, in this thread or in another.
enum Encoder {
    Here(Box<CallEncoder>),
    EncoderThread(EncoderThread<CallEncoder>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Encoder::Here(_)) { "Here" } else { "EncoderThread" })
    }
}

impl Encoder {
    /// Take the rows; `block` is empty afterwards.
    fn block(&mut self, block: &mut Vec<CallRow>) {
        match self {
            Encoder::Here(encoder) => {
                encoder.block(block);
                block.clear();
            }
            Encoder::EncoderThread(encoder) => encoder.block(std::mem::replace(block, Vec::with_capacity(ROWS_PER_BLOCK))),
        }
    }

    /// End the group. It is appended to the recording now, or once it is encoded.
    fn finish(&mut self, end: End, recording: &mut Recording) -> Result<(), TableError> {
        match self {
            Encoder::Here(encoder) => encoder.finish(end).append_to(recording),
            Encoder::EncoderThread(encoder) => {
                encoder.finish(end);
                std::iter::from_fn(|| encoder.done()).try_for_each(|groups| groups.append_to(recording))
            }
        }
    }

    /// Wait for the groups that are not encoded yet, and append them.
    fn wait(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        match self {
            Encoder::Here(_) => Ok(()),
            Encoder::EncoderThread(encoder) => encoder.rest().try_for_each(|groups| groups.append_to(recording)),
        }
    }
}

impl Groups {
    fn append_to(self, recording: &mut Recording) -> Result<(), TableError> {
        let calls = self.calls.map_or(Ok(()), |group| recording.append("calls", group));
        calls.and_then(|()| self.sums.map_or(Ok(()), |group| recording.append("object_use", group)))
    }
}

/// Sorts blocks and encodes their columns.
#[derive(Default)]
struct CallEncoder {
    groups: GroupEncoder<CallsColumns>,
    /// Number of rows of the group so far.
    rows: usize,
    sums: ObjectUse,
}

impl BlockEncoder for CallEncoder {
    type Row = CallRow;
    type End = End;
    type Done = Groups;

    fn block(&mut self, rows: &[CallRow]) {
        self.rows += rows.len();
        self.sums.add(rows);
        match in_order(rows) {
            None => self.groups.block(&rows.iter()),
            Some(order) => self.groups.block(&order.iter().map(|index| &rows[*index as usize])),
        }
    }

    fn finish(&mut self, end: End) -> Groups {
        let sums = if end.is_end || self.sums.is_full() { self.sums.take() } else { Vec::new() };
        let has_calls = std::mem::take(&mut self.rows) > 0;
        Groups { calls: has_calls.then(|| self.groups.finish(&end.words)), sums: object_use::encode(&sums, &end.words) }
    }
}

impl CallsRow for CallRow {
    fn ts_ns(&self) -> i64 {
        self.ts_ns
    }

    fn dur_ns(&self) -> Option<i64> {
        known(self.dur_ns)
    }

    fn task_id(&self) -> i32 {
        self.task.cast_signed()
    }

    fn comm_id(&self) -> Option<i32> {
        id(self.comm)
    }

    fn call(&self) -> usize {
        usize::from(self.call)
    }

    fn class(&self) -> usize {
        usize::from(self.class)
    }

    fn fd(&self) -> Option<i32> {
        id(self.fd)
    }

    fn path_id(&self) -> Option<i32> {
        id(self.object)
    }

    fn offset_bytes(&self) -> Option<i64> {
        known(self.offset)
    }

    fn offset_uncertain(&self) -> bool {
        self.uncertain
    }

    fn requested_bytes(&self) -> Option<i64> {
        known(self.requested)
    }

    fn transferred_bytes(&self) -> Option<i64> {
        known(self.transferred)
    }

    fn value(&self) -> Option<i64> {
        known(self.result).filter(|result| *result != self.transferred)
    }

    fn errno(&self) -> Option<usize> {
        usize::try_from(self.errno).ok()
    }

    fn to_path_id(&self) -> Option<i32> {
        id(self.to_object)
    }

    fn to_offset_bytes(&self) -> Option<i64> {
        known(self.to_offset)
    }

    fn via(&self) -> Option<usize> {
        Some(self.via as usize).filter(|_| self.via != Via::Call)
    }

    fn stack_id(&self) -> Option<i32> {
        id(self.stack)
    }

    fn open_flags(&self) -> Option<usize> {
        usize::try_from(self.open_flags).ok()
    }
}

impl ObjectUseTexts for Texts {
    fn call(&self, number: usize) -> &str {
        CallsTexts::call(self, number)
    }

    fn class(&self, number: usize) -> &str {
        CallsTexts::class(self, number)
    }

    fn errno(&self, number: usize) -> &str {
        CallsTexts::errno(self, number)
    }

    fn via(&self, number: usize) -> &str {
        CallsTexts::via(self, number)
    }

    fn open_flags(&self, number: usize) -> &str {
        CallsTexts::open_flags(self, number)
    }
}

impl CallsTexts for Texts {
    fn call(&self, number: usize) -> &str {
        &self.calls[number]
    }

    fn class(&self, number: usize) -> &str {
        CLASS_WORDS[number]
    }

    fn errno(&self, number: usize) -> &str {
        &self.errnos[number]
    }

    fn via(&self, number: usize) -> &str {
        VIA_WORDS[number]
    }

    fn open_flags(&self, number: usize) -> &str {
        &self.open_flags[number]
    }
}

/// A number, if it does not represent NULL.
pub(crate) fn known(number: i64) -> Option<i64> {
    (number != NONE).then_some(number)
}

/// An id or descriptor: negative numbers represent NULL.
pub(crate) fn id(number: i32) -> Option<i32> {
    (number >= 0).then_some(number)
}

/// Indices of the rows by start time, rows of equal time in their given order; `None` if they are
/// in order already. Keys are sorted apart from the rows, which are several times as wide.
fn in_order(rows: &[CallRow]) -> Option<Vec<u32>> {
    if rows.is_sorted_by_key(|row| row.ts_ns) {
        return None;
    }
    let mut keys: Vec<(i64, u32)> = rows.iter().zip(0u32..).map(|(row, index)| (row.ts_ns, index)).collect();
    sort_nearly_sorted(&mut keys);
    Some(keys.into_iter().map(|(_, index)| index).collect())
}

/// Calls end almost in the order in which they began, so most keys move by a few places only.
fn sort_nearly_sorted(keys: &mut [(i64, u32)]) {
    const STEPS_PER_KEY: usize = 8;
    let mut steps = keys.len() * STEPS_PER_KEY;
    for at in 1..keys.len() {
        let key = keys[at];
        let mut place = at;
        while place > 0 && keys[place - 1] > key {
            keys[place] = keys[place - 1];
            place -= 1;
        }
        keys[place] = key;
        steps = steps.saturating_sub(at - place);
        if steps == 0 {
            return keys.sort_unstable();
        }
    }
}
