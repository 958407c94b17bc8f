//! Events about functions of Python.

use crate::{
    events::{self, Layout, PYTHON_CUT, PythonCodeEvent, PythonEvent, PythonFrame, PythonText, Raw},
    stacks::events::Of,
};

/// Functions of Python on a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonFrames<'a> {
    pub(crate) id: u64,
    pub(crate) tid: u32,
    pub(crate) of: Of,
    /// Whether there are more.
    pub(crate) cut: bool,
    bytes: &'a [u8],
}

impl<'a> PythonFrames<'a> {
    /// `None`: the event is broken.
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<PythonEvent>()?;
        let number = usize::try_from(fixed.number).ok()?;
        let bytes = rest.get(..number.checked_mul(PythonFrame::BYTES)?)?;
        Some(PythonFrames { id: fixed.id, tid: fixed.tid, of: Of::flags(event.flags), cut: event.flags & PYTHON_CUT != 0, bytes })
    }

    /// Code object, offset in it [B], and whether C called it; the innermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, u32, bool)> + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || events::take(&mut rest)).map(|PythonFrame { code, at, entry }| (code, at, entry != 0))
    }
}

/// A code object of Python.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonCode<'a> {
    pub(crate) fixed: PythonCodeEvent,
    /// The table of lines; may be cut.
    pub(crate) lines: &'a [u8],
}

impl<'a> PythonCode<'a> {
    /// `None`: the event is broken.
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<PythonCodeEvent>()?;
        let length = usize::try_from(fixed.lines_bytes).unwrap_or(usize::MAX);
        Some(PythonCode { fixed, lines: &rest[..rest.len().min(length)] })
    }
}

impl PythonText {
    /// A text as Python keeps it: one, two or four bytes for each character. Characters that were
    /// not copied are shown as dots.
    pub(crate) fn text(&self) -> String {
        let length = self.length as usize;
        let size = match self.state >> 2 & 7 {
            size @ (1 | 2 | 4) => size as usize,
            _ => return String::new(),
        };
        let number = |character: &[u8]| character.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let characters = self.bytes.chunks_exact(size).take(length).map(number);
        let mut text: String = characters.map(|number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        if length > self.bytes.len() / size {
            text.push_str("...");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::{EVENT_PYTHON, EVENT_PYTHON_CODE, split},
        testing::{Bytes, Random},
    };

    fn text(length: u32, state: u32, bytes: &[u8]) -> PythonText {
        let mut text = PythonText { length, state, ..PythonText::default() };
        text.bytes[..bytes.len()].copy_from_slice(bytes);
        text
    }

    #[test]
    fn a_code_object_is_read_with_its_names() {
        // The state of a text: bytes for each character from the third bit on.
        let file = text(3, 2 << 2, &[0xe5, 0x65, b'a', 0, 0x2c, 0x67]);
        let name = text(600, 1 << 2, &[b'f'; 512]);
        let fixed = PythonCodeEvent { id: 7, first_line: 11, first_instruction: 184, file, name, lines_bytes: 3 };
        let bytes = Bytes::of(EVENT_PYTHON_CODE, &fixed).text(&[1, 2, 3]).bytes();
        let (raw, _) = split(&bytes).unwrap();
        let code = PythonCode::of(&raw).unwrap();
        let PythonCodeEvent { id, first_line, first_instruction, file, name, .. } = code.fixed;
        assert_eq!((id, first_line, first_instruction, code.lines), (7, 11, 184, &[1u8, 2, 3][..]));
        assert_eq!((file.text(), name.text()), ("日a本".into(), "f".repeat(512) + "..."));
    }

    #[test]
    fn whatever_is_cut_or_made_up_is_no_reason_to_panic() {
        let mut random = Random(13);
        for _ in 0..5000 {
            let body: Vec<u8> = (0..random.below(1300)).map(|_| random.below(256) as u8).collect();
            for kind in [EVENT_PYTHON, EVENT_PYTHON_CODE] {
                let bytes = Bytes::new(kind).text(&body).bytes();
                let (raw, _) = split(&bytes).unwrap();
                let frames = PythonFrames::of(&raw);
                frames.iter().for_each(|frames| assert!(frames.frames().count() <= bytes.len() / PythonFrame::BYTES));
                let code = PythonCode::of(&raw).map(|code| code.fixed);
                code.iter().for_each(|code| assert!(code.file.text().len() + code.name.text().len() < 5000));
            }
        }
    }
}
