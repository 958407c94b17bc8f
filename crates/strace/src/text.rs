//! Numbers, quoted strings and descriptor tags, as strace prints them.

use std::borrow::Cow;

/// Eight decimal digits, the first in the lowest byte; `None` if one is no digit. All at once, by three multiplications.
fn eight_digits(bytes: u64) -> Option<u64> {
    let digits = bytes ^ 0x3030_3030_3030_3030;
    if (digits.wrapping_add(0x7676_7676_7676_7676) | digits) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (digits * 10) + (digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = ((pairs >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    Some((low.wrapping_add(high)) >> 32)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
}

/// Six digits in the lower bytes, as a number of millionths.
fn six_digits(bytes: u64) -> Option<i64> {
    // Two zeros behind them make eight.
    let eight = eight_digits((bytes & 0x0000_ffff_ffff_ffff) | 0x3030_0000_0000_0000)?;
    Some((eight / 100).cast_signed())
}

/// Times from here on (10^8 s, in 1973) are dates; `-r` prints at most the length of a run.
pub(crate) const DATED_NS: i64 = 100_000_000_000_000_000;

/// `1700000000.123456 ` at the start of `text`, as nanoseconds; the form of nearly every line of a `-ttt` log.
pub(crate) fn epoch_micros(text: &[u8]) -> Option<i64> {
    if text.get(10) != Some(&b'.') || text.get(17) != Some(&b' ') {
        return None;
    }
    let high = eight_digits(word(text, 0)?)?.cast_signed();
    let low = two_digits(&text[8..10])?;
    let micros = six_digits(word(text, 11)?)?;
    // Past the year 2262 nanoseconds do not fit; before 1973 it is a time since the line before.
    let whole = (high * 100 + low).checked_mul(1_000_000_000)?.checked_add(micros * 1000)?;
    (whole >= DATED_NS).then_some(whole)
}

/// `23:59:59.123456 ` at the start of `text`, as nanoseconds since midnight; the form of nearly every line of a `-tt` log.
pub(crate) fn day_micros(text: &[u8]) -> Option<i64> {
    if text.get(2) != Some(&b':') || text.get(5) != Some(&b':') || text.get(8) != Some(&b'.') || text.get(15) != Some(&b' ') {
        return None;
    }
    let (hours, minutes, seconds) = (two_digits(&text[..2])?, two_digits(&text[3..5])?, two_digits(&text[6..8])?);
    let micros = six_digits(word(text, 9)?)?;
    (hours < 24 && minutes < 60 && seconds < 61)
        .then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000 + micros * 1000)
}

fn two_digits(text: &[u8]) -> Option<i64> {
    let (tens, ones) = (text[0].wrapping_sub(b'0'), text[1].wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then_some(i64::from(tens) * 10 + i64::from(ones))
}

/// `<0.000123>` at the end of `text`, as nanoseconds; the form of nearly every duration.
pub(crate) fn last_micros(text: &[u8]) -> Option<i64> {
    let start = text.len().checked_sub(10)?;
    let end = word(text, start + 2)?;
    if text[start] != b'<' || end & 0xff != u64::from(b'.') || end >> 56 != u64::from(b'>') {
        return None;
    }
    let seconds = text[start + 1].wrapping_sub(b'0');
    (seconds < 10).then_some(i64::from(seconds) * 1_000_000_000 + six_digits(end >> 8)? * 1000)
}

/// A number at the start of `text` and what follows it: decimal, `0x` hexadecimal, or octal with a leading 0, as strace prints
/// return values. Hexadecimal values above `i64::MAX` (addresses) wrap, as the register did.
pub(crate) fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    // Most are short and decimal.
    if let Some(b'1'..=b'9') = text.first() {
        let mut value = 0;
        for (at, byte) in text.iter().enumerate().take(18) {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return Some((value, &text[at..]));
            }
            value = value * 10 + i64::from(digit);
        }
    }
    any_number(text)
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
        at = next_of_two(text, at, b'"', b'\\')?;
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

/// Finds the bytes `"()[]{}<,` of a text one after another.
///
/// Stops are a few bytes apart: sixteen bytes are compared once, and their stops are taken from a mask.
pub(crate) struct Stops<'a> {
    text: &'a [u8],
    /// Where the block begins that `mask` is of.
    block: usize,
    mask: u32,
}

impl<'a> Stops<'a> {
    pub(crate) fn new(text: &'a [u8], from: usize) -> Self {
        let mut stops = Stops { text, block: from, mask: 0 };
        stops.load();
        stops
    }

    fn load(&mut self) {
        let rest = self.text.get(self.block..).unwrap_or_default();
        self.mask = match rest.first_chunk() {
            Some(sixteen) => stops_of_16(sixteen),
            None => {
                // Zeros are no stops.
                let mut sixteen = [0; 16];
                sixteen[..rest.len()].copy_from_slice(rest);
                stops_of_16(&sixteen)
            }
        };
    }

    /// The next stop.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<usize> {
        while self.mask == 0 {
            self.block += 16;
            if self.block >= self.text.len() {
                return None;
            }
            self.load();
        }
        let at = self.block + self.mask.trailing_zeros() as usize;
        self.mask &= self.mask - 1;
        Some(at)
    }

    /// Go on at a later place.
    #[inline]
    pub(crate) fn skip_to(&mut self, at: usize) {
        if at < self.block + 16 {
            self.mask &= u32::MAX << (at - self.block);
        } else {
            self.block = at;
            self.load();
        }
    }
}

/// Where the next of two bytes stands, from `at` on.
#[inline]
fn next_of_two(text: &[u8], at: usize, one: u8, other: u8) -> Option<usize> {
    next(text, at, |sixteen| of_two_of_16(sixteen, one, other), |byte| byte == one || byte == other)
}

/// Search by 16 bytes at a time, and the rest one by one.
#[inline]
fn next(text: &[u8], mut at: usize, of_16: impl Fn(&[u8; 16]) -> u32, of_one: impl Fn(u8) -> bool) -> Option<usize> {
    while let Some(sixteen) = text.get(at..).and_then(<[u8]>::first_chunk) {
        let found = of_16(sixteen);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += 16;
    }
    let rest = text.get(at..)?;
    rest.iter().position(|byte| of_one(*byte)).map(|offset| at + offset)
}

/// A bit for each of 16 bytes that is a stop. SSE2, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
#[inline]
fn stops_of_16(bytes: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: SSE2 is part of x86-64, and 16 bytes are there to be read.
    unsafe {
        let all = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
        let is = |value: __m128i, byte: u8| _mm_cmpeq_epi8(value, _mm_set1_epi8(byte.cast_signed()));
        let mut found = _mm_or_si128(is(all, b'"'), is(all, b','));
        found = _mm_or_si128(found, is(all, b'<'));
        // `(` and `)` differ in the lowest bit; `[` and `{`, `]` and `}` in one bit too.
        found = _mm_or_si128(found, is(_mm_and_si128(all, _mm_set1_epi8(!1)), b'('));
        let upper = _mm_or_si128(all, _mm_set1_epi8(0x20));
        found = _mm_or_si128(found, _mm_or_si128(is(upper, b'{'), is(upper, b'}')));
        _mm_movemask_epi8(found).cast_unsigned()
    }
}

/// A bit for each of 16 bytes that is one of two.
#[cfg(target_arch = "x86_64")]
#[inline]
fn of_two_of_16(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8};
    // SAFETY: as above.
    unsafe {
        let all = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
        let is = |byte: u8| _mm_cmpeq_epi8(all, _mm_set1_epi8(byte.cast_signed()));
        _mm_movemask_epi8(_mm_or_si128(is(one), is(other))).cast_unsigned()
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stops_of_16(bytes: &[u8; 16]) -> u32 {
    bits(bytes, |byte| b"\"()[]{}<,".contains(&byte))
}

#[cfg(not(target_arch = "x86_64"))]
fn of_two_of_16(bytes: &[u8; 16], one: u8, other: u8) -> u32 {
    bits(bytes, |byte| byte == one || byte == other)
}

#[cfg(not(target_arch = "x86_64"))]
fn bits(bytes: &[u8; 16], found: impl Fn(u8) -> bool) -> u32 {
    (0u32..).zip(bytes).fold(0, |bits, (at, byte)| bits | u32::from(found(*byte)) << at)
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
    fn stops_are_found_at_any_place() {
        for stop in b"\"()[]{}<," {
            for at in 0..40 {
                let mut text = vec![b'_'; 40];
                text[at] = *stop;
                let mut stops = Stops::new(&text, 0);
                assert_eq!((stops.next(), stops.next()), (Some(at), None));
                for from in 0..=40 {
                    let mut stops = Stops::new(&text, 3);
                    stops.skip_to(from.max(3));
                    assert_eq!(stops.next(), Some(at).filter(|at| *at >= from.max(3)), "{at} from {from}");
                }
            }
        }
        let others: Vec<u8> = (0..=255).filter(|byte| !b"\"()[]{}<,".contains(byte)).collect();
        assert_eq!(Stops::new(&others, 0).next(), None);
        assert_eq!(Stops::new(b"", 0).next(), None);
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
