//! The table `stacks`: call stacks that `strace -k` prints below a call.

use std::hash::{BuildHasher, BuildHasherDefault};

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use sysdock_calls::CallRows;
use sysdock_table::{Recording, TableError, readable, rows};

use crate::text;

/// All distinct stacks. Equal ones are recognized by their text: a stack that was seen before costs
/// a hash and a comparison.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// Texts of the stacks, one after another.
    texts: Vec<u8>,
    ends: Vec<usize>,
    index: HashTable<i32>,
    /// Whether a stack is being read; its text begins after the last of `ends`.
    open: bool,
    /// The row that frames belong to.
    row: Option<u64>,
    written: usize,
}

/// One frame, as printed: ` > object(function+0x1d) [0x2711d] source.c:12`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Frame<'a> {
    object: Option<&'a [u8]>,
    function: Option<&'a [u8]>,
    offset: Option<i64>,
    source: Option<&'a [u8]>,
    address: Option<i64>,
}

fn hash(text: &[u8]) -> u64 {
    BuildHasherDefault::<FxHasher>::default().hash_one(text)
}

impl Stacks {
    /// Assign the frames that follow to this row of `calls`.
    pub(crate) fn belong_to(&mut self, row: u64) {
        self.row = Some(row);
    }

    /// Read a line with a frame. Frames of a call without a row, because its end comes later, are
    /// dropped; in that case `false` if the line is not a frame.
    pub(crate) fn frame(&mut self, line: &[u8]) -> bool {
        if self.row.is_none() {
            return memchr::memrchr(b'[', line).is_some_and(|open| line[open..].starts_with(b"[0x"));
        }
        self.open = true;
        self.texts.extend_from_slice(line);
        self.texts.push(b'\n');
        true
    }

    /// End the stack at a line without a frame.
    #[inline]
    pub(crate) fn close(&mut self, rows: &mut CallRows) {
        let row = self.row.take();
        if self.open {
            self.open = false;
            self.complete(row, rows);
        }
    }

    fn complete(&mut self, row: Option<u64>, rows: &mut CallRows) {
        let start = self.ends.last().copied().unwrap_or(0);
        let (known, text) = self.texts.split_at(start);
        let hashed = hash(text);
        let ends = &self.ends;
        let found = self.index.find(hashed, |id| slice(known, ends, *id) == text).copied();
        let id = found.unwrap_or_else(|| self.add(hashed));
        if found.is_some() {
            self.texts.truncate(start);
        }
        if let Some(row) = row.and_then(|row| rows.recent(row)) {
            row.stack = id;
        }
    }

    fn add(&mut self, hashed: u64) -> i32 {
        let id = i32::try_from(self.ends.len()).expect("fewer than 2^31 stacks");
        self.ends.push(self.texts.len());
        let (texts, ends) = (&self.texts, &self.ends);
        self.index.insert_unique(hashed, id, |id| hash(slice(texts, ends, *id)));
        id
    }

    /// Write the stacks that are not written yet.
    pub(crate) fn write(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        const STACKS_PER_GROUP: usize = 16_384;
        while self.written < self.ends.len() {
            let upto = self.ends.len().min(self.written + STACKS_PER_GROUP);
            recording.write_rows((self.written..upto).flat_map(|id| self.rows(id)))?;
            self.written = upto;
        }
        Ok(())
    }

    /// The frames of a stack.
    fn rows(&self, id: usize) -> impl Iterator<Item = rows::Stacks<'_>> {
        let stack_id = i32::try_from(id).expect("ids are small");
        let lines = slice(&self.texts, &self.ends, stack_id).split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        (0..).zip(lines.map(parse)).map(move |(number, frame)| rows::Stacks {
            stack_id,
            frame: number,
            object: frame.object.map(readable),
            function: frame.function.map(readable),
            offset: frame.offset,
            source: frame.source.map(readable),
            address: frame.address,
        })
    }
}

fn slice<'a>(texts: &'a [u8], ends: &[usize], id: i32) -> &'a [u8] {
    let id = usize::try_from(id).expect("ids count from 0");
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &texts[start..ends[id]]
}

/// Split a frame. Missing parts are `None`; a line of another form becomes the function's name.
fn parse(line: &[u8]) -> Frame<'_> {
    let body = line.strip_prefix(b" > ").unwrap_or(line);
    let Some(open) = memchr::memrchr(b'[', body) else { return Frame { function: Some(body), ..Frame::default() } };
    let address = text::leading_number(&body[open + 1..]);
    let source = memchr::memchr(b']', &body[open..]).map(|end| body[open + end + 1..].trim_ascii());
    let place = body[..open].trim_ascii_end();
    let frame = Frame { address, source: source.filter(|source| !source.is_empty()), ..Frame::default() };
    // The symbol is in the last parentheses: a file name may contain parentheses too.
    let Some(paren) = place.ends_with(b")").then(|| memchr::memmem::rfind(place, b"(")).flatten() else {
        return Frame { function: Some(place).filter(|place| !place.is_empty()), ..frame };
    };
    let symbol = &place[paren + 1..place.len() - 1];
    let (function, offset) = match memchr::memmem::rfind(symbol, b"+0x") {
        Some(plus) => (&symbol[..plus], text::leading_number(&symbol[plus + 1..])),
        None => (symbol, None),
    };
    Frame { object: Some(&place[..paren]), function: Some(function).filter(|name| !name.is_empty()), offset, ..frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_form() {
        let frame = parse(b" > /usr/lib/libc.so.6(__write+0x14) [0x10e1f4]");
        assert_eq!(frame.object, Some(&b"/usr/lib/libc.so.6"[..]));
        assert_eq!((frame.function, frame.offset, frame.address), (Some(&b"__write"[..]), Some(0x14), Some(0x0010_e1f4)));
        let frame = parse(b" > /tmp/a (b)(main+0x1) [0x10] ./a.c:12");
        assert_eq!((frame.object, frame.source), (Some(&b"/tmp/a (b)"[..]), Some(&b"./a.c:12"[..])));
        let frame = parse(b" > /usr/bin/true() [0x7f]");
        assert_eq!((frame.function, frame.address), (None, Some(0x7f)));
        assert_eq!(parse(b" > unexpected_backtracing_error [0x1]").function, Some(&b"unexpected_backtracing_error"[..]));
    }
}
