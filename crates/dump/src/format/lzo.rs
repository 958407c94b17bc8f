//! LZO1X, as the kernel and liblzo2 write it: bounded decompression of one page.
//!
//! Source of the format: `Documentation/staging/lzo.rst` of the kernel (version 0 of the bit
//! stream).

/// Decompress `packed` into `out`. Returns the number of bytes, or `None` if the data is no LZO1X
/// or does not fit.
pub(super) fn unpack(packed: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut stream = Stream { packed, at: 0 };
    let mut done = 0;
    // Number of literals that the last instruction copied: the meaning of instructions 0 to 15
    // depends on it.
    let mut state = 0;
    let first = *packed.first()?;
    if first > 17 {
        stream.at = 1;
        let literals = usize::from(first) - 17;
        stream.literals(literals, out, &mut done)?;
        state = literals.min(4);
    }
    loop {
        let word = usize::from(stream.byte()?);
        let (length, distance, follow) = match word {
            0..=15 if state == 0 => {
                let literals = if word == 0 { stream.long(15)? } else { word } + 3;
                stream.literals(literals, out, &mut done)?;
                state = 4;
                continue;
            }
            0..=15 => {
                let high = usize::from(stream.byte()?) << 2;
                let (length, distance) = if state < 4 { (2, high + (word >> 2) + 1) } else { (3, high + (word >> 2) + 2049) };
                (length, distance, word & 3)
            }
            16..=31 => {
                let length = if word & 7 == 0 { stream.long(7)? } else { word & 7 } + 2;
                let low = stream.short()?;
                let distance = ((word & 8) << 11) + (low >> 2);
                if distance == 0 {
                    // The end: an instruction of length 3.
                    return (length == 3 && stream.at == packed.len()).then_some(done);
                }
                (length, distance + 16384, low & 3)
            }
            32..=63 => {
                let length = if word & 31 == 0 { stream.long(31)? } else { word & 31 } + 2;
                let low = stream.short()?;
                (length, (low >> 2) + 1, low & 3)
            }
            _ => {
                let length = if word < 128 { 3 + (word >> 5 & 1) } else { 5 + (word >> 5 & 3) };
                let distance = (usize::from(stream.byte()?) << 3) + (word >> 2 & 7) + 1;
                (length, distance, word & 3)
            }
        };
        copy(distance, length, out, &mut done)?;
        stream.literals(follow, out, &mut done)?;
        state = follow;
    }
}

/// Most copies are shorter. This many bytes are copied at once if there is room; excess bytes are
/// overwritten by what follows.
const WIDE: usize = 16;
const STEP: usize = 8;

struct Stream<'p> {
    packed: &'p [u8],
    at: usize,
}

impl Stream<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.packed.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn short(&mut self) -> Option<usize> {
        Some(usize::from(self.byte()?) | usize::from(self.byte()?) << 8)
    }

    /// A length that did not fit: zero bytes count 255 each.
    fn long(&mut self, base: usize) -> Option<usize> {
        let mut length = base;
        loop {
            match self.byte()? {
                0 => length += 255,
                byte => return Some(length + usize::from(byte)),
            }
        }
    }

    fn literals(&mut self, count: usize, out: &mut [u8], done: &mut usize) -> Option<()> {
        let wide = (self.packed.get(self.at..self.at + WIDE), out.get_mut(*done..*done + WIDE));
        if let (0..=WIDE, (Some(from), Some(to))) = (count, wide) {
            to.copy_from_slice(from);
            self.at += count;
            *done += count;
            return Some(());
        }
        let from = self.packed.get(self.at..self.at.checked_add(count)?)?;
        out.get_mut(*done..done.checked_add(count)?)?.copy_from_slice(from);
        self.at += count;
        *done += count;
        Some(())
    }
}

/// Repeat earlier output. The source may overlap the bytes being written.
fn copy(distance: usize, length: usize, out: &mut [u8], done: &mut usize) -> Option<()> {
    let from = done.checked_sub(distance)?;
    let end = done.checked_add(length).filter(|end| *end <= out.len())?;
    if distance >= STEP && end + STEP <= out.len() {
        for (at, to) in (from..).step_by(STEP).zip((*done..end).step_by(STEP)) {
            let step: [u8; STEP] = *out.get(at..)?.first_chunk()?;
            out.get_mut(to..to + STEP)?.copy_from_slice(&step);
        }
        *done = end;
        return Some(());
    }
    if distance >= length {
        out.copy_within(from..from + length, *done);
    } else {
        for at in 0..length {
            *out.get_mut(*done + at)? = *out.get(from + at)?;
        }
    }
    *done = end;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_repetitions_come_out() {
        // Four literals, then 8 bytes from 4 back (an instruction of the third kind), and the end.
        let packed = [21, b'a', b'b', b'c', b'd', 32 | 6, 3 << 2, 0, 17, 0, 0];
        let mut out = [0; 64];
        assert_eq!(unpack(&packed, &mut out), Some(12));
        assert_eq!(&out[..12], b"abcdabcdabcd");
        // Only half of it has room.
        assert_eq!(unpack(&packed, &mut [0; 8]), None);
        assert_eq!(unpack(&packed[..7], &mut out), None);
    }

    #[test]
    fn what_is_no_lzo_is_refused() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut packed = [0; 40];
            for byte in &mut packed {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
            let mut out = [0; 256];
            if let Some(length) = unpack(&packed, &mut out) {
                assert!(length <= out.len());
            }
        }
    }
}
