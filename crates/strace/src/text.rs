//! Numbers, quoted strings and descriptor tags, as strace prints them.

use std::borrow::Cow;

/// A number at the start of `text` and what follows it: decimal, `0x` hexadecimal, or octal with a leading 0, as strace prints
/// return values. Hexadecimal values above `i64::MAX` (addresses) wrap, as the register did.
pub(crate) fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let (radix, digits): (u64, &[u8]) = match digits {
        [b'0', b'x', rest @ ..] => (16, rest),
        [b'0', rest @ ..] if rest.first().is_some_and(u8::is_ascii_digit) => (8, rest),
        _ => (10, digits),
    };
    let mut value: u64 = 0;
    let mut used = 0;
    for &byte in digits {
        let Some(digit) = (byte as char).to_digit(16).map(u64::from).filter(|&d| d < radix) else { break };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        used += 1;
    }
    if used == 0 {
        return None;
    }
    let value = value.cast_signed();
    Some((if negative { value.wrapping_neg() } else { value }, &digits[used..]))
}

/// A number that fills `text`, or is followed by a tag, a comment or a symbolic form only.
pub(crate) fn leading_number(text: &[u8]) -> Option<i64> {
    number(text).map(|(value, _)| value)
}

/// Seconds with any number of decimals, as nanoseconds; digits beyond the ninth are dropped.
pub(crate) fn seconds(text: &[u8]) -> Option<i64> {
    let mut value = 0i64;
    let mut at = 0;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        value = value.checked_mul(10)?.checked_add(i64::from(digit))?;
        at += 1;
    }
    if at == 0 {
        return None;
    }
    let fraction = match text.get(at) {
        None => 0,
        Some(b'.') => fraction_ns(&text[at + 1..])?,
        Some(_) => return None,
    };
    value.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Digits after a decimal point, as nanoseconds.
fn fraction_ns(digits: &[u8]) -> Option<i64> {
    const SCALE: [i64; 10] = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];
    let mut value = 0;
    for byte in digits.iter().take(9) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    let rest = digits.get(9..).unwrap_or_default();
    rest.iter().all(u8::is_ascii_digit).then_some(value * SCALE[digits.len().min(9)])
}

/// A string of decimal digits only.
pub(crate) fn decimal(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut value = 0;
    for &byte in text {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(value)
}

/// Where the quoted string that starts at `text[0] == '"'` ends: the index after the closing quote.
pub(crate) fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// The contents of an argument that is a quoted string, unescaped. `None` for NULL, addresses and the like.
pub(crate) fn string(argument: &[u8]) -> Option<Cow<'_, [u8]>> {
    if argument.first() != Some(&b'"') {
        return None;
    }
    let end = string_end(argument)?;
    Some(unescape(&argument[1..end - 1]))
}

/// Undo strace's escapes: `\n`-like letters, 1-3 octal digits, `\xNN`.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_vec();
    let mut rest = &text[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' || tail.is_empty() {
            out.push(byte);
            rest = tail;
            continue;
        }
        let (value, used) = escape(tail);
        out.push(value);
        rest = &tail[used..];
    }
    Cow::Owned(out)
}

/// The byte that the escape after a backslash stands for, and its length.
fn escape(tail: &[u8]) -> (u8, usize) {
    let octal = tail.iter().take(3).take_while(|b| matches!(b, b'0'..=b'7')).count();
    if octal > 0 {
        let value = tail[..octal].iter().fold(0u8, |v, b| v.wrapping_mul(8).wrapping_add(b - b'0'));
        return (value, octal);
    }
    let hex = |b: Option<&u8>| b.and_then(|b| (*b as char).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    if tail[0] == b'x'
        && let (Some(high), Some(low)) = (hex(tail.get(1)), hex(tail.get(2)))
    {
        return (high * 16 + low, 3);
    }
    let value = match tail[0] {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'v' => 11,
        b'f' => 12,
        other => other,
    };
    (value, 1)
}

/// Where the descriptor tag that starts at `text[0] == '<'` ends: the index after its `>`.
///
/// strace escapes `<` and `>` in file names, so in a path tag brackets only nest (`</dev/null<char 1:3>>`). Socket tags may hold
/// a raw `->`, but only between `[` and `]`.
pub(crate) fn tag_end(text: &[u8]) -> Option<usize> {
    let is_path = text.get(1) == Some(&b'/');
    let mut depth = 0u32;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'<' => depth += 1,
            b'>' if !is_path && text[at - 1] == b'-' => {}
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_all_bases() {
        assert_eq!(number(b"42 x"), Some((42, &b" x"[..])));
        assert_eq!(number(b"-1 E"), Some((-1, &b" E"[..])));
        assert_eq!(number(b"0x7f"), Some((127, &b""[..])));
        assert_eq!(number(b"022"), Some((18, &b""[..])));
        assert_eq!(number(b"0"), Some((0, &b""[..])));
        assert_eq!(number(b"0xffffffffffffffff"), Some((-1, &b""[..])));
        assert_eq!(number(b"NULL"), None);
    }

    #[test]
    fn seconds_of_any_precision() {
        assert_eq!(seconds(b"0.000048"), Some(48_000));
        assert_eq!(seconds(b"1700000000.123456789"), Some(1_700_000_000_123_456_789));
        assert_eq!(seconds(b"3"), Some(3_000_000_000));
        assert_eq!(seconds(b"3."), Some(3_000_000_000));
        assert_eq!(seconds(b"3.x"), None);
    }

    #[test]
    fn strings_hide_what_looks_like_a_call_end() {
        assert_eq!(string_end(br#""a\") = 3", 4"#), Some(10));
        assert_eq!(string(br#""\346\227\245\n\x41"..."#).unwrap().as_ref(), "日\nA".as_bytes());
        assert_eq!(string(b"NULL"), None);
    }

    #[test]
    fn tags_nest_for_devices_and_keep_socket_arrows() {
        assert_eq!(tag_end(b"</dev/null<char 1:3>>, "), Some(21));
        assert_eq!(tag_end(b"<TCP:[127.0.0.1:1->127.0.0.1:2]>)"), Some(32));
        assert_eq!(tag_end(b"</tmp/odd->, 1"), Some(11));
        assert_eq!(tag_end(b"</tmp/cut"), None);
    }
}
