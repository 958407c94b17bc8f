//! Bytes as text.

use std::borrow::Cow;

/// A name as UTF-8 text; other bytes are written as `\xNN`.
///
/// Different names stay different: if a name contains such an escape itself, its backslash is
/// written as `\x5c`. Bytes that are not UTF-8 are 0x80 or above, so names of systemd (`\x2d`) do
/// not change.
pub fn readable(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) if looks_escaped(text, 0).is_none() => Cow::Borrowed(text),
        _ => {
            let mut out = String::new();
            for chunk in name.utf8_chunks() {
                push_escaped(&mut out, chunk.valid());
                for byte in chunk.invalid() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            Cow::Owned(out)
        }
    }
}

/// Position, from `from` on, of the next escape of a byte or of a backslash in the text.
fn looks_escaped(text: &str, from: usize) -> Option<usize> {
    let is_it = |at: &usize| match text.as_bytes()[at + 1..] {
        [b'x', b'5', b'c', ..] => true,
        [b'x', high, low, ..] => matches!(high, b'8' | b'9' | b'a'..=b'f') && matches!(low, b'0'..=b'9' | b'a'..=b'f'),
        _ => false,
    };
    text[from..].match_indices('\\').map(|(at, _)| from + at).find(is_it)
}

fn push_escaped(out: &mut String, text: &str) {
    let mut from = 0;
    while let Some(at) = looks_escaped(text, from) {
        out.push_str(&text[from..at]);
        out.push_str("\\x5c");
        from = at + 1;
    }
    out.push_str(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_stay_visible() {
        assert_eq!(readable(b"/a\xff\xc3"), "/a\\xff\\xc3");
        assert_eq!(readable("日".as_bytes()), "日");
    }

    #[test]
    fn a_byte_and_its_text_are_two_names() {
        let names: [(&[u8], &str); 7] = [
            (b"/a\xff", "/a\\xff"),
            (b"/a\\xff", "/a\\x5cxff"),
            (b"/a\\x5cxff", "/a\\x5cx5cxff"),
            (b"\xff\\xff", "\\xff\\x5cxff"),
            (b"dev-disk-by\\x2duuid\\x7f", "dev-disk-by\\x2duuid\\x7f"),
            (b"C:\\x\\xfg\\xFF\\x8", "C:\\x\\xfg\\xFF\\x8"),
            (b"\\", "\\"),
        ];
        for (name, expected) in names {
            assert_eq!(readable(name), expected);
        }
    }
}
