//! Events about functions of Python.

use super::{Fixed, Raw};

const CUT: u8 = 1;
/// Sizes of `struct python_frame` and `struct python_text`.
const FRAME: usize = 16;
const TEXT: usize = 520;

impl<'a> Raw<'a> {
    /// As functions of Python on a stack.
    pub(crate) fn python(&self) -> Option<PythonFrames<'a>> {
        let (fixed, rest) = self.fixed::<32>()?;
        let number = usize::try_from(fixed.u32(28)).ok()?;
        let bytes = rest.get(..number.checked_mul(FRAME)?)?;
        Some(PythonFrames { id: fixed.u64(16), tid: fixed.u32(24), cut: self.flags & CUT != 0, bytes })
    }

    /// As a code object of Python.
    pub(crate) fn python_code(&self) -> Option<PythonCode<'a>> {
        let (fixed, rest) = self.fixed::<24>()?;
        let (file, rest) = rest.split_first_chunk::<TEXT>()?;
        let (name, rest) = rest.split_first_chunk::<TEXT>()?;
        let (lines_bytes, rest) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*lines_bytes)).unwrap_or(usize::MAX);
        Some(PythonCode {
            id: fixed.u64(8),
            first_line: fixed.u32(16),
            first_instruction: fixed.u32(20),
            file: PythonText(file),
            name: PythonText(name),
            lines: &rest[..rest.len().min(length)],
        })
    }
}

/// Functions of Python on a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonFrames<'a> {
    pub(crate) id: u64,
    pub(crate) tid: u32,
    /// There are more.
    pub(crate) cut: bool,
    bytes: &'a [u8],
}

impl<'a> PythonFrames<'a> {
    /// Code object, place in it [B], and whether C called it; the innermost first.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, u32, bool)> + use<'a> {
        let (frames, _) = self.bytes.as_chunks::<FRAME>();
        frames.iter().map(|frame| (Fixed(frame).u64(0), Fixed(frame).u32(8), Fixed(frame).u32(12) != 0))
    }
}

/// A code object of Python.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonCode<'a> {
    pub(crate) id: u64,
    pub(crate) first_line: u32,
    pub(crate) first_instruction: u32,
    pub(crate) file: PythonText<'a>,
    pub(crate) name: PythonText<'a>,
    /// May be cut.
    pub(crate) lines: &'a [u8],
}

/// A text as Python keeps it: one, two or four bytes a character.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonText<'a>(&'a [u8; TEXT]);

impl PythonText<'_> {
    /// What was not copied is shown as dots.
    pub(crate) fn text(&self) -> String {
        let fixed = Fixed(self.0);
        let (length, bytes) = (fixed.u32(0) as usize, &self.0[8..]);
        let size = match fixed.u32(4) >> 2 & 7 {
            size @ (1 | 2 | 4) => size as usize,
            _ => return String::new(),
        };
        let number = |character: &[u8]| character.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let characters = bytes.chunks_exact(size).take(length).map(number);
        let mut text: String = characters.map(|number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        if length > bytes.len() / size {
            text.push_str("...");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::{kind, split},
        testing::{Bytes, Random},
    };

    fn text(length: u32, state: u32, bytes: &[u8]) -> Vec<u8> {
        let mut out = [length.to_le_bytes(), state.to_le_bytes()].concat();
        out.extend(bytes);
        out.resize(TEXT, 0);
        out
    }

    #[test]
    fn a_code_object_is_read_with_its_names() {
        // The state of a text: bytes a character from the third bit on.
        let file = text(3, 2 << 2, &[0xe5, 0x65, b'a', 0, 0x2c, 0x67]);
        let name = text(600, 1 << 2, &[b'f'; 512]);
        let event = Bytes::new(kind::PYTHON_CODE).u64(7).u32(11).u32(184).text(&file).text(&name).u64(3).text(&[1, 2, 3]);
        let bytes = event.bytes();
        let (raw, _) = split(&bytes).unwrap();
        let code = raw.python_code().unwrap();
        assert_eq!((code.id, code.first_line, code.first_instruction, code.lines), (7, 11, 184, &[1u8, 2, 3][..]));
        assert_eq!((code.file.text(), code.name.text()), ("日a本".into(), "f".repeat(512) + "..."));
    }

    #[test]
    fn whatever_is_cut_or_made_up_is_no_reason_to_panic() {
        let mut random = Random(13);
        for _ in 0..5000 {
            let body: Vec<u8> = (0..random.below(1300)).map(|_| random.below(256) as u8).collect();
            for kind in [kind::PYTHON, kind::PYTHON_CODE] {
                let bytes = Bytes::new(kind).text(&body).bytes();
                let (raw, _) = split(&bytes).unwrap();
                raw.python().iter().for_each(|frames| assert!(frames.frames().count() <= bytes.len() / FRAME));
                raw.python_code().iter().for_each(|code| assert!(code.file.text().len() + code.name.text().len() < 5000));
            }
        }
    }
}
