//! Bytes as text.

use std::borrow::Cow;

/// A name as UTF-8 text; other bytes stand as `\xNN`, so that different names stay different.
pub fn readable(name: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(name) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::new();
            for chunk in name.utf8_chunks() {
                out.push_str(chunk.valid());
                for byte in chunk.invalid() {
                    out.push_str(&format!("\\x{byte:02x}"));
                }
            }
            Cow::Owned(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_stay_visible() {
        assert_eq!(readable(b"/a\xff\xc3"), "/a\\xff\\xc3");
        assert_eq!(readable("日".as_bytes()), "日");
    }
}
