//! Searches for delimiters, sixteen bytes at a time.

/// Finds the bytes `"()[]{}<,` of a text one after another.
///
/// Stops are a few bytes apart: sixteen bytes are compared at once, and their stops are taken from
/// a mask.
pub(crate) struct Stops<'a> {
    text: &'a [u8],
    /// Offset of the block that `mask` describes.
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

    /// Continue at a later offset.
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

/// The offset of the next opening parenthesis.
#[inline]
pub(crate) fn open_parenthesis(text: &[u8]) -> Option<usize> {
    next_of_two(text, 0, b'(', b'(')
}

/// Call `found` with the offset of each newline.
pub(crate) fn newlines(text: &[u8], mut found: impl FnMut(usize)) {
    let blocks = text.chunks_exact(64);
    let (rest, from) = (blocks.remainder(), text.len() - blocks.remainder().len());
    for (block, start) in blocks.zip((0..).step_by(64)) {
        let (sixteens, _) = block.as_chunks::<16>();
        let mut mask = (0..)
            .zip(sixteens)
            .fold(0, |mask, (number, sixteen)| mask | u64::from(of_two_of_16(sixteen, b'\n', b'\n')) << (16 * number));
        while mask != 0 {
            found(start + mask.trailing_zeros() as usize);
            mask &= mask - 1;
        }
    }
    (from..).zip(rest).filter(|(_, byte)| **byte == b'\n').for_each(|(at, _)| found(at));
}

/// The offset of the next of two bytes, from `at` on.
#[inline]
pub(crate) fn next_of_two(text: &[u8], at: usize, one: u8, other: u8) -> Option<usize> {
    next(text, at, |sixteen| of_two_of_16(sixteen, one, other), |byte| byte == one || byte == other)
}

/// Search 16 bytes at a time, and the rest one by one.
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

/// A mask of the stops among 16 bytes. Uses SSE2, which every x86-64 has.
#[cfg(target_arch = "x86_64")]
#[inline]
fn stops_of_16(bytes: &[u8; 16]) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // SAFETY: SSE2 is part of x86-64, and the array has 16 readable bytes.
    unsafe {
        let all = _mm_loadu_si128(bytes.as_ptr().cast::<__m128i>());
        let is = |value: __m128i, byte: u8| _mm_cmpeq_epi8(value, _mm_set1_epi8(byte.cast_signed()));
        let mut found = _mm_or_si128(is(all, b'"'), is(all, b','));
        found = _mm_or_si128(found, is(all, b'<'));
        // `(` and `)` differ in the lowest bit; `[` and `{`, `]` and `}` differ in one bit too.
        found = _mm_or_si128(found, is(_mm_and_si128(all, _mm_set1_epi8(!1)), b'('));
        let upper = _mm_or_si128(all, _mm_set1_epi8(0x20));
        found = _mm_or_si128(found, _mm_or_si128(is(upper, b'{'), is(upper, b'}')));
        _mm_movemask_epi8(found).cast_unsigned()
    }
}

/// A mask of the bytes among 16 that equal one of two.
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
    fn newlines_are_found_at_any_place() {
        for len in 0..200 {
            let text: Vec<u8> = (0..len).map(|at| if at % 7 == 3 || at % 64 == 0 { b'\n' } else { b'x' }).collect();
            let mut found = Vec::new();
            newlines(&text, |at| found.push(at));
            assert_eq!(found, memchr::memchr_iter(b'\n', &text).collect::<Vec<_>>());
        }
    }
}
