//! Entry points of the fuzzing targets (feature `fuzzing`).

use crate::chunk::{Chunk, Parsed};

/// Split and parse any text, and access every part of the result.
pub fn lines(text: &[u8]) {
    let mut chunk = Chunk { text: text.to_vec(), ..Chunk::default() };
    chunk.parse();
    for line in &chunk.lines[..chunk.count] {
        let (whole, event) = (chunk.line(line), chunk.event(line));
        assert!(whole.len() >= event.len());
        if matches!(line.parsed, Parsed::Whole | Parsed::Begun) {
            let call = line.places.call(event);
            assert!(call.arguments.iter().all(|argument| argument.len() <= event.len()));
        }
    }
}
