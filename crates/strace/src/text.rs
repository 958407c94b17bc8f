//! Numbers, quoted strings and descriptor tags, as strace prints them.

use std::borrow::Cow;

use crate::search::next_of_two;

// Digits are read eight at a time, the first one in the lowest byte; xor with `ZEROS` gives the
// values of the digits.
const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Sets the highest bit of the first byte that is greater than 9. (Later bits may be wrong because
/// of carries.)
#[inline]
fn no_digits(digits: u64) -> u64 {
    (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080
}

/// A number from the values of its eight digits, by three multiplications.
#[inline]
fn eight_values(digits: u64) -> u64 {
    let pairs = (digits * 10) + (digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

/// The leading digits of `text` as a number, and their count, if there are fewer than 8 and `text`
/// has at least 8 bytes.
#[inline]
pub(crate) fn short_number(text: &[u8]) -> Option<(u32, usize)> {
    let digits = word(text, 0)? ^ ZEROS;
    let count = no_digits(digits).trailing_zeros() as usize / 8;
    // Zeros in front make eight digits.
    (1..8).contains(&count).then(|| (eight_values(digits << (64 - 8 * count)) as u32, count))
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
}

/// Times from here on (10^8 s, in 1973) are dates; `-r` prints at most the length of a run.
pub(crate) const DATED_NS: i64 = 100_000_000_000_000_000;

/// `1700000000.123456 ` at the start of `text`, as nanoseconds: the form of nearly every line of a
/// `-ttt` log.
#[inline]
pub(crate) fn epoch_micros(text: &[u8]) -> Option<i64> {
    let text: &[u8; 19] = text.first_chunk()?;
    let (high, low) = (word(text, 0)? ^ ZEROS, last_digits(word(text, 2)?, 2));
    let micros = last_digits(word(text, 9)?, 6);
    if no_digits(high) | no_digits(low) | no_digits(micros) != 0 || text[10] != b'.' || text[17] != b' ' {
        return None;
    }
    let seconds = (eight_values(high) * 100 + eight_values(low)).cast_signed();
    // After the year 2262 nanoseconds overflow; before 1973 it is a time since the line before.
    let whole = seconds.checked_mul(1_000_000_000)?.checked_add(eight_values(micros).cast_signed() * 1000)?;
    (whole >= DATED_NS).then_some(whole)
}

/// `23:59:59.123456 ` at the start of `text`, as nanoseconds since midnight: the form of nearly
/// every line of a `-tt` log.
#[inline]
pub(crate) fn day_micros(text: &[u8]) -> Option<i64> {
    let text: &[u8; 17] = text.first_chunk()?;
    // Only colons become zeros in their places.
    let digits = word(text, 0)? ^ u64::from_le_bytes(*b"00:00:00");
    let micros = last_digits(word(text, 7)?, 6);
    if no_digits(digits) | no_digits(micros) | (digits & 0x0000_ff00_00ff_0000) != 0 || text[8] != b'.' || text[15] != b' ' {
        return None;
    }
    let pairs = digits * 10 + (digits >> 8);
    let pair = |at: u32| ((pairs >> (8 * at)) & 0xff).cast_signed();
    let (hours, minutes, seconds) = (pair(0), pair(3), pair(6));
    (hours < 24 && minutes < 60 && seconds < 61)
        .then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + eight_values(micros).cast_signed() * 1000)
}

/// The last `count` of eight bytes as digit values, preceded by zeros.
#[inline]
fn last_digits(bytes: u64, count: u32) -> u64 {
    let unused = 64 - 8 * count;
    ((bytes ^ ZEROS) >> unused) << unused
}

/// `<0.000123>` at the end of `text`, as nanoseconds: the form of nearly every duration.
#[inline]
pub(crate) fn last_micros(text: &[u8]) -> Option<i64> {
    let start = text.len().checked_sub(10)?;
    let end = word(text, start + 2)?;
    // The first byte is the point, the last one the bracket.
    let micros = last_digits(end << 8, 6);
    let seconds = text[start + 1].wrapping_sub(b'0');
    let framed = text[start] == b'<' && end & 0xff == u64::from(b'.') && end >> 56 == u64::from(b'>');
    (framed && seconds < 10 && no_digits(micros) == 0)
        .then(|| i64::from(seconds) * 1_000_000_000 + eight_values(micros).cast_signed() * 1000)
}

/// A number at the start of `text` and the text after it: decimal, `0x` hexadecimal, or octal with
/// a leading 0, as strace prints return values. Values above `i64::MAX` (addresses) wrap, as in the
/// register; numbers beyond 64 bits saturate.
pub(crate) fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    // Most are 0, or short and decimal.
    if let [b'0', rest @ ..] = text
        && !matches!(rest.first(), Some(b'0'..=b'9' | b'x'))
    {
        return Some((0, rest));
    }
    if let Some(b'1'..=b'9') = text.first() {
        const MOST_DIGITS: usize = 18;
        let (mut value, mut at) = (0, 0);
        while at < text.len() && at < MOST_DIGITS {
            let digit = text[at].wrapping_sub(b'0');
            if digit > 9 {
                return Some((value, &text[at..]));
            }
            value = value * 10 + i64::from(digit);
            at += 1;
        }
        if at == text.len() {
            return Some((value, b""));
        }
    }
    any_number(text)
}

/// The number at the end of `text`, after a blank, and its length.
#[inline]
pub(crate) fn last_number(text: &[u8]) -> Option<(i64, usize)> {
    if !text.last()?.is_ascii_hexdigit() {
        return None;
    }
    let (mut value, mut unit) = (0i64, 1i64);
    for (count, byte) in text.iter().rev().enumerate().take(20) {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            value = value.wrapping_add(i64::from(digit).wrapping_mul(unit));
            unit = unit.wrapping_mul(10);
            continue;
        }
        let number = &text[text.len() - count..];
        // Only short decimal numbers; others are read from the left.
        if *byte == b' ' && (1..18).contains(&count) && (number[0] != b'0' || count == 1) {
            return Some((value, count));
        }
        break;
    }
    let count = text.iter().rev().take(20).position(|byte| *byte == b' ')?;
    let (value, []) = number(&text[text.len() - count..])? else { return None };
    Some((value, count))
}

fn any_number(text: &[u8]) -> Option<(i64, &[u8])> {
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
    let (mut used, mut too_large) = (0, false);
    for &byte in digits {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => break,
        };
        let digit = u64::from(digit);
        if digit >= radix {
            break;
        }
        let next = value.checked_mul(radix).and_then(|value| value.checked_add(digit));
        too_large |= next.is_none();
        value = next.unwrap_or(0);
        used += 1;
    }
    if used == 0 {
        return None;
    }
    let value = if too_large { i64::MAX } else { value.cast_signed() };
    Some((if negative { value.wrapping_neg() } else { value }, &digits[used..]))
}

/// A number that fills `text`, or that only a tag, a comment or a symbolic form follows.
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

/// The end of the quoted string that starts at `text[0] == '"'`: the index after the closing quote.
#[inline]
pub(crate) fn string_end(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    // Binary data is full of escapes, but few of them are of quotes.
    loop {
        let quote = next_of_two(text, at, b'"', b'"')?;
        let escapes = text[at..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        at = quote + 1;
        if escapes.is_multiple_of(2) {
            return Some(at);
        }
    }
}

/// The contents of an argument that is a quoted string, unescaped. `None` for NULL, addresses and
/// the like.
pub(crate) fn string(argument: &[u8]) -> Option<Cow<'_, [u8]>> {
    if argument.first() != Some(&b'"') {
        return None;
    }
    // Most strings have no escape.
    let first = next_of_two(argument, 1, b'"', b'\\')?;
    if argument[first] == b'"' {
        return Some(Cow::Borrowed(&argument[1..first]));
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

/// The byte that the escape after a backslash means, and its length.
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

/// The end of the descriptor tag that starts at `text[0] == '<'`: the index after its `>`.
///
/// strace escapes `<` and `>` in file names, so in the tag of a path brackets only nest
/// (`</dev/null<char 1:3>>`). Socket tags may contain a raw `->`, but only between `[` and `]`.
pub(crate) fn tag_end(text: &[u8]) -> Option<usize> {
    let is_path = text.get(1) == Some(&b'/');
    let mut depth = 0u32;
    let mut from = 0;
    loop {
        let at = next_of_two(text, from, b'<', b'>')?;
        from = at + 1;
        match text[at] {
            b'<' => depth += 1,
            _ if !is_path && text[at - 1] == b'-' => {}
            _ => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
        }
    }
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
        assert_eq!(number(b"18446744073709551615"), Some((-1, &b""[..])));
        assert_eq!(number(b"18446744073709551616 x"), Some((i64::MAX, &b" x"[..])));
        assert_eq!(number(b"-99999999999999999999999"), Some((-i64::MAX, &b""[..])));
        assert_eq!(number(b"NULL"), None);
        for (text, expected) in [
            ("= 0", Some((0, 1))),
            ("= 17", Some((17, 2))),
            ("= -1", Some((-1, 2))),
            ("= 022", Some((18, 3))),
            ("= 0x1f", Some((31, 4))),
            ("= 9223372036854775807", Some((i64::MAX, 19))),
            ("= 1x", None),
            ("= ?", None),
            ("= ", None),
            ("17", None),
        ] {
            assert_eq!(last_number(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_common_forms_of_times_are_read_as_the_general_ones() {
        assert_eq!(epoch_micros(b"1700000000.123456 read"), Some(1_700_000_000_123_456_000));
        assert_eq!(day_micros(b"23:59:60.000001 read(3"), Some(86_400_000_001_000));
        assert_eq!(last_micros(b") = 0 <0.000123>"), Some(123_000));
        assert_eq!(last_micros(b"<9.999999>"), Some(9_999_999_000));
        for broken in ["1700000000.12345x read", "17000000:0.123456 read", "1700000000.123456", "1700000000,123456 read"] {
            assert_eq!(epoch_micros(broken.as_bytes()), None, "{broken}");
        }
        for broken in ["24:00:00.000000 read(3", "23:5/:00.000000 read(3", "23:59:00.00000: read(3", "23:59:00.000000"] {
            assert_eq!(day_micros(broken.as_bytes()), None, "{broken}");
        }
        for broken in ["<0.00012:>", "<0.000123 ", "0.000123>", "<0,000123>", "</.000123>"] {
            assert_eq!(last_micros(broken.as_bytes()), None, "{broken}");
        }
        for byte in 0..=255u8 {
            let text = [b'<', b'0', b'.', b'1', b'2', byte, b'4', b'5', b'6', b'>'];
            assert_eq!(last_micros(&text).is_some(), byte.is_ascii_digit(), "{byte}");
        }
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
