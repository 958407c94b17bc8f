//! Rows of `calls`: collected in blocks, sorted and encoded beside the reading.

use rustc_hash::FxHashMap;
use sysdock_table::{
    Beside, BlockEncoder, EncodedGroup, GroupEncoder, NULL, ROWS_PER_BLOCK, ROWS_PER_GROUP, Recording, TableError,
};

use crate::{
    objects::ObjectId,
    syscalls::{CLASS_WORDS, Class},
};

/// Stands for NULL in the integer columns of a call.
pub const NONE: i64 = NULL;

/// One row of `calls`. Flat and without pointers: a block of them is sorted and turned into columns at a time.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct CallRow {
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub offset: i64,
    pub asked: i64,
    pub moved: i64,
    pub result: i64,
    pub to_offset: i64,
    pub life: u32,
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
    /// Calls on the same open file overlapped: the log cannot tell which came first.
    pub uncertain: bool,
}

impl CallRow {
    /// A call that has begun, of which nothing else is known yet.
    pub fn begun(ts_ns: i64, life: u32, comm: i32, call: u16, class: Class) -> Self {
        CallRow {
            ts_ns,
            dur_ns: NONE,
            offset: NONE,
            asked: NONE,
            moved: NONE,
            result: NONE,
            to_offset: NONE,
            life,
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

    /// An interrupted call and its next part as one: it began with the first, ended with the last, and took the time of both.
    #[must_use]
    pub fn joined(self, next: CallRow) -> CallRow {
        let dur_ns = if self.dur_ns == NONE || next.dur_ns == NONE { NONE } else { self.dur_ns.saturating_add(next.dur_ns) };
        if self.call == next.call {
            return CallRow { ts_ns: self.ts_ns, dur_ns, ..next };
        }
        CallRow { dur_ns, result: next.result, errno: next.errno, stack: next.stack, ..self }
    }
}

/// How an operation was issued; the words of `calls.via`.
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

/// Names of errors, or flags of opens, numbered as they appear.
#[derive(Debug, Default)]
pub struct Numbered {
    numbers: FxHashMap<Box<[u8]>, i16>,
    names: Vec<String>,
}

impl Numbered {
    /// The number of a name; past a thousand names they share one.
    pub fn number(&mut self, name: &[u8]) -> i16 {
        // Linux has fewer than 140 errors, and programs use some dozen sets of flags; a log of garbage may hold any number.
        const LIMIT: usize = 1024;
        let name = if self.names.len() < LIMIT || self.numbers.contains_key(name) { name } else { b"(other)" };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = i16::try_from(self.names.len()).expect("limited above");
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.numbers.insert(name.into(), number);
        number
    }
}

/// The words that codes in rows stand for.
#[derive(Debug)]
struct Words {
    calls: Vec<String>,
    errnos: Vec<String>,
    open_flags: Vec<String>,
}

/// The calls of the row group under construction.
#[derive(Debug)]
pub struct CallRows {
    block: Vec<CallRow>,
    /// The full block before, held back so that its rows can still be changed.
    held: Vec<CallRow>,
    /// Rows of the group that are with the encoder already.
    encoded: usize,
    /// Rows of all groups before.
    before: u64,
    encoder: Encoder,
    /// Numbers for [`CallRow::errno`].
    pub errnos: Numbered,
    /// Numbers for [`CallRow::open_flags`].
    pub open_flags: Numbered,
}

impl CallRows {
    /// With `beside`, rows are encoded in a thread of their own.
    pub fn new(beside: bool) -> Self {
        /// Blocks that may wait for the encoder.
        const WAITING: usize = 16;
        let encoder = match beside {
            true => Encoder::Beside(Beside::new(WAITING, CallEncoder::new)),
            false => Encoder::Here(Box::new(CallEncoder::new())),
        };
        let block = Vec::with_capacity(ROWS_PER_BLOCK);
        let (errnos, open_flags) = <(Numbered, Numbered)>::default();
        CallRows { block, held: Vec::new(), encoded: 0, before: 0, encoder, errnos, open_flags }
    }

    /// Add a row. The last thousands stay changeable.
    #[inline]
    pub fn push(&mut self, row: &CallRow, recording: &mut Recording, calls: &[String]) -> Result<u64, TableError> {
        if self.block.len() == ROWS_PER_BLOCK {
            self.pass_on(recording, calls)?;
        }
        let serial = self.total();
        self.block.push(*row);
        Ok(serial)
    }

    /// The block is full.
    fn pass_on(&mut self, recording: &mut Recording, calls: &[String]) -> Result<(), TableError> {
        self.send_held();
        if self.encoded >= ROWS_PER_GROUP { self.finish_group(recording, calls) } else { Ok(()) }
    }

    /// Rows so far.
    #[inline]
    pub fn total(&self) -> u64 {
        self.before + (self.encoded + self.held.len() + self.block.len()) as u64
    }

    /// A row that is still here, by its serial number.
    pub fn recent(&mut self, serial: u64) -> Option<&mut CallRow> {
        let index = usize::try_from(serial.checked_sub(self.before + self.encoded as u64)?).ok()?;
        match index.checked_sub(self.held.len()) {
            None => self.held.get_mut(index),
            Some(index) => self.block.get_mut(index),
        }
    }

    /// Write everything.
    pub fn flush(&mut self, recording: &mut Recording, calls: &[String]) -> Result<(), TableError> {
        self.send_held();
        self.send_held();
        self.finish_group(recording, calls)?;
        self.encoder.wait(recording)
    }

    /// Send the block that was held back; the current one takes its place.
    fn send_held(&mut self) {
        if !self.held.is_empty() {
            self.encoded += self.held.len();
            self.encoder.block(&mut self.held);
        }
        std::mem::swap(&mut self.block, &mut self.held);
    }

    fn finish_group(&mut self, recording: &mut Recording, calls: &[String]) -> Result<(), TableError> {
        if self.encoded == 0 {
            return Ok(());
        }
        self.before += self.encoded as u64;
        self.encoded = 0;
        let (errnos, open_flags) = (self.errnos.names.clone(), self.open_flags.names.clone());
        self.encoder.finish(Words { calls: calls.to_vec(), errnos, open_flags }, recording)
    }
}

/// Where blocks become row groups.
enum Encoder {
    Here(Box<CallEncoder>),
    Beside(Beside<CallEncoder>),
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Encoder::Here(_)) { "Here" } else { "Beside" })
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
            Encoder::Beside(encoder) => encoder.block(std::mem::replace(block, Vec::with_capacity(ROWS_PER_BLOCK))),
        }
    }

    /// End the group. It is appended to the recording now, or when it is done.
    fn finish(&mut self, words: Words, recording: &mut Recording) -> Result<(), TableError> {
        match self {
            Encoder::Here(encoder) => recording.append("calls", encoder.finish(words)),
            Encoder::Beside(encoder) => {
                encoder.finish(words);
                std::iter::from_fn(|| encoder.done()).try_for_each(|group| recording.append("calls", group))
            }
        }
    }

    /// Append what is not done yet.
    fn wait(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        match self {
            Encoder::Here(_) => Ok(()),
            Encoder::Beside(encoder) => encoder.rest().try_for_each(|group| recording.append("calls", group)),
        }
    }
}

/// Sorts blocks and encodes their columns.
struct CallEncoder {
    groups: GroupEncoder,
}

impl CallEncoder {
    fn new() -> Self {
        CallEncoder { groups: GroupEncoder::new("calls") }
    }
}

impl BlockEncoder for CallEncoder {
    type Row = CallRow;
    type Words = Words;

    fn block(&mut self, rows: &[CallRow]) {
        let order = in_order(rows);
        self.groups.block(rows.len(), |column, out| {
            macro_rules! each {
                ($value:expr) => {{
                    let value = $value;
                    let first = rows.first().map_or(NONE, value);
                    // Columns for rare things have the same value throughout.
                    if rows.iter().all(|row| value(row) == first) {
                        return Some(first);
                    }
                    match &order {
                        None => out.extend(rows.iter().map(value)),
                        Some(order) => out.extend(order.iter().map(|index| &rows[*index as usize]).map(value)),
                    }
                }};
            }
            // In the order of knowhow/tables/calls.toml.
            match column {
                0 => each!(|row: &CallRow| row.ts_ns),
                1 => each!(|row: &CallRow| row.dur_ns),
                2 => each!(|row: &CallRow| i64::from(row.life)),
                3 => each!(|row: &CallRow| id(row.comm)),
                4 => each!(|row: &CallRow| i64::from(row.call)),
                5 => each!(|row: &CallRow| i64::from(row.class)),
                6 => each!(|row: &CallRow| id(row.fd)),
                7 => each!(|row: &CallRow| id(row.object)),
                8 => each!(|row: &CallRow| row.offset),
                9 => each!(|row: &CallRow| i64::from(row.uncertain)),
                10 => each!(|row: &CallRow| row.asked),
                11 => each!(|row: &CallRow| row.moved),
                12 => each!(|row: &CallRow| if row.moved == NONE { row.result } else { NONE }),
                13 => each!(|row: &CallRow| id(i32::from(row.errno))),
                14 => each!(|row: &CallRow| id(row.to_object)),
                15 => each!(|row: &CallRow| row.to_offset),
                16 => each!(|row: &CallRow| if row.via == Via::Call { NONE } else { row.via as i64 }),
                17 => each!(|row: &CallRow| id(row.stack)),
                _ => each!(|row: &CallRow| id(i32::from(row.open_flags))),
            }
            None
        });
    }

    fn finish(&mut self, words: Words) -> EncodedGroup {
        self.groups.finish(|column, word| match column {
            4 => words.calls[word].clone(),
            5 => CLASS_WORDS[word].into(),
            13 => words.errnos[word].clone(),
            16 => VIA_WORDS[word].into(),
            _ => words.open_flags[word].clone(),
        })
    }
}

/// Ids and descriptors have no negative numbers: those stand for NULL.
fn id(number: i32) -> i64 {
    if number < 0 { NONE } else { i64::from(number) }
}

/// Indices of the rows by start time, equal times as they came; `None` where they are in order. Keys are sorted apart from the rows, which
/// are several times as wide.
fn in_order(rows: &[CallRow]) -> Option<Vec<u32>> {
    if rows.is_sorted_by_key(|row| row.ts_ns) {
        return None;
    }
    let mut keys: Vec<(i64, u32)> = rows.iter().zip(0u32..).map(|(row, index)| (row.ts_ns, index)).collect();
    sort_nearly_sorted(&mut keys);
    Some(keys.into_iter().map(|(_, index)| index).collect())
}

/// Calls end almost in the order in which they began: most keys have few places to go.
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
