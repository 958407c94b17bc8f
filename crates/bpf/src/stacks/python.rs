//! Functions of Python on a stack: code objects, and the lines of instructions in them.
//!
//! The C stack of an interpreter contains its evaluation loop, once for each call from C into
//! Python. The Python frames that such a call evaluates are placed before it.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::{
    events::PythonCodeEvent,
    stacks::python_events::{PythonCode, PythonFrames},
};

/// Limits for code objects, and for the size of a table of lines. More are forged.
const MOST_CODES: usize = 1 << 20;
const MOST_LINES_BYTES: usize = 256 << 20;
/// Size of an instruction [B].
const CODE_UNIT: u32 = 2;
/// The function of an interpreter that evaluates frames. Compilers split it into parts, whose names
/// begin the same.
const EVALUATION: &str = "_PyEval_EvalFrameDefault";

/// A function of Python on a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PythonFrame {
    code: u64,
    /// 0: unknown.
    line: u32,
    /// Whether C called it: the last frame of one call of the evaluation loop.
    entry: bool,
}

/// A code object.
#[derive(Clone, Debug)]
struct Code {
    file: String,
    name: String,
    first_line: u32,
    first_instruction: u32,
    /// `co_linetable`.
    lines: Rc<[u8]>,
}

/// All code objects that were reported.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    by_id: FxHashMap<u64, Code>,
    lines_bytes: usize,
}

impl Codes {
    pub(crate) fn add(&mut self, code: &PythonCode<'_>) {
        let left = MOST_LINES_BYTES - self.lines_bytes;
        if self.by_id.len() >= MOST_CODES || code.lines.len() > left {
            return;
        }
        let PythonCode { fixed, lines } = code;
        let PythonCodeEvent { id, first_line, first_instruction, .. } = *fixed;
        let (file, name) = (fixed.file.text(), fixed.name.text());
        let code = Code { file, name, first_line, first_instruction, lines: (*lines).into() };
        if self.by_id.insert(id, code).is_none() {
            self.lines_bytes += lines.len();
        }
    }

    /// Frames with their lines, the innermost first.
    pub(crate) fn frames(&self, frames: &PythonFrames<'_>) -> Box<[PythonFrame]> {
        let line = |code: u64, at: u32| self.by_id.get(&code).map_or(0, |code| code.line(at));
        frames.frames().map(|(code, at, entry)| PythonFrame { code, line: line(code, at), entry }).collect()
    }

    /// File, function, and file with line.
    pub(crate) fn names(&self, frame: &PythonFrame) -> (Option<String>, Option<String>, Option<String>) {
        let Some(code) = self.by_id.get(&frame.code) else { return (None, Some(UNKNOWN.into()), None) };
        let source = (frame.line > 0).then(|| format!("{}:{}", code.file, frame.line));
        (Some(code.file.clone()), Some(code.name.clone()), source)
    }
}

/// Name of a function whose code object was never reported.
const UNKNOWN: &str = "[function of Python]";

impl Code {
    /// The line of the instruction at offset `at` of the code object; the first line if the table
    /// does not contain it.
    fn line(&self, at: u32) -> u32 {
        let Some(place) = at.checked_sub(self.first_instruction) else { return self.first_line };
        line_of(&self.lines, self.first_line, place / CODE_UNIT).unwrap_or(self.first_line)
    }
}

/// The line of an instruction, by the table that PEP 626 and CPython's `Objects/locations.md`
/// describe: each entry has a byte with a code and a length in instructions, and adds to the line.
fn line_of(table: &[u8], first_line: u32, place: u32) -> Option<u32> {
    let mut line = i64::from(first_line);
    let mut end = 0;
    let mut rest = table;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        // Bytes other than the first of an entry have the highest bit clear.
        let length = rest.iter().position(|byte| byte & 0x80 != 0).unwrap_or(rest.len());
        let (arguments, next) = rest.split_at(length);
        rest = next;
        let code = first >> 3 & 15;
        line += match code {
            13 | 14 => signed_number(arguments),
            10..=12 => i64::from(code) - 10,
            _ => 0,
        };
        end += u32::from(first & 7) + 1;
        if place < end {
            return u32::try_from(line).ok().filter(|line| code != 15 && *line > 0);
        }
    }
    None
}

/// A signed number: six bits per byte, the lowest first. The seventh bit says that more follow; the
/// lowest bit of all is the sign.
fn signed_number(bytes: &[u8]) -> i64 {
    const MOST_BYTES: usize = 6;
    let mut number = 0;
    for (index, byte) in bytes.iter().take(MOST_BYTES).enumerate() {
        number |= i64::from(byte & 63) << (6 * index);
        if byte & 64 == 0 {
            break;
        }
    }
    if number & 1 == 0 { number >> 1 } else { -(number >> 1) }
}

/// Inserts frames of Python between those of C: before each evaluating function those that it
/// evaluates.
#[derive(Debug)]
pub(crate) struct Between<'a>(&'a [PythonFrame]);

impl<'a> Between<'a> {
    pub(crate) fn new(frames: &'a [PythonFrame]) -> Self {
        Between(frames)
    }

    /// Frames of Python to insert before a function of C.
    pub(crate) fn before(&mut self, function: &str) -> &'a [PythonFrame] {
        if !function.starts_with(EVALUATION) {
            return &[];
        }
        let number = self.0.iter().position(|frame| frame.entry).map_or(self.0.len(), |entry| entry + 1);
        let (now, later) = self.0.split_at(number);
        self.0 = later;
        now
    }

    /// The remaining frames, if the C stack is incomplete.
    pub(crate) fn left(self) -> &'a [PythonFrame] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_table() {
        // Code, length and arguments: line 10 for two instructions, +1 (short form 11), no line, -2
        // by a number, +1 and columns.
        let table =
            [0x80 | 10 << 3 | 1, 1, 2, 0x80 | 11 << 3, 3, 4, 0x80 | 15 << 3, 0x80 | 13 << 3, 5, 0x80 | 14 << 3, 2, 0, 1, 1];
        let lines: Vec<_> = (0..7).map(|place| line_of(&table, 10, place)).collect();
        assert_eq!(lines, [Some(10), Some(10), Some(11), None, Some(9), Some(10), None]);
        assert_eq!(signed_number(&[0x40 | 1, 2]), -64);
    }

    #[test]
    fn whatever_a_table_holds_is_no_reason_to_panic() {
        let mut random = crate::testing::Random(9);
        for _ in 0..20_000 {
            let table: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
            line_of(&table, random.below(1 << 32) as u32, random.below(300) as u32);
        }
    }

    #[test]
    fn frames_stand_before_the_loop_that_works_on_them() {
        let frame = |line, entry| PythonFrame { code: 1, line, entry };
        let frames = [frame(1, false), frame(2, true), frame(3, true), frame(4, false)];
        let mut between = Between::new(&frames);
        assert_eq!(between.before("_PyEval_EvalFrameDefault"), &frames[..2]);
        assert_eq!(between.before("PyObject_Call"), &[]);
        assert_eq!(between.before("_PyEval_EvalFrameDefault.cold"), &frames[2..3]);
        assert_eq!(between.left(), &frames[3..]);
    }
}
