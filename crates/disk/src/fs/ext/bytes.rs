//! Numbers and bits in on-disk structures. Offsets outside read as 0: lengths are checked where a
//! block is divided into fields.

pub(super) fn le16(bytes: &[u8], at: usize) -> u16 {
    field(bytes, at).map_or(0, u16::from_le_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    field(bytes, at).map_or(0, u32::from_le_bytes)
}

pub(super) fn le64(bytes: &[u8], at: usize) -> u64 {
    field(bytes, at).map_or(0, u64::from_le_bytes)
}

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    field(bytes, at).map_or(0, u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    field(bytes, at).map_or(0, u32::from_be_bytes)
}

pub(super) fn be64(bytes: &[u8], at: usize) -> u64 {
    field(bytes, at).map_or(0, u64::from_be_bytes)
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Join two halves that are stored apart.
pub(super) fn wide(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Text up to NUL, or to the end of its field.
pub(super) fn text(bytes: &[u8], at: usize, length: usize) -> Option<String> {
    let field = bytes.get(at..at + length)?;
    let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
    (!text.is_empty()).then(|| sysdock_table::readable(text).into_owned())
}

/// Pass the runs of ones: first and count. `word` returns 64 bits at a time, the lowest first.
pub(super) fn runs(bits: u64, word: impl Fn(u64) -> u64, mut take: impl FnMut(u64, u64)) {
    let mut begun = None;
    for at in (0..bits).step_by(64) {
        let room = (bits - at).min(64);
        let mut rest = word(at) & (u64::MAX >> (64 - room));
        // Nothing changes within most words.
        if begun.is_none() && rest == 0 || begun.is_some() && rest == u64::MAX {
            continue;
        }
        let mut bit = 0;
        while bit < room {
            let ones = begun.is_some();
            let same = u64::from(if ones { (!rest).trailing_zeros() } else { rest.trailing_zeros() }).min(room - bit);
            bit += same;
            rest = rest.checked_shr(same as u32).unwrap_or(0);
            if bit < room {
                match begun.take() {
                    Some(first) => take(first, at + bit - first),
                    None => begun = Some(at + bit),
                }
            }
        }
    }
    if let Some(first) = begun {
        take(first, bits - first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_those_that_counting_bit_by_bit_finds() {
        for (bits, pattern) in
            [(200_u64, 0xf0f0_0000_0000_000f_u64), (64, u64::MAX), (130, u64::MAX), (65, 1), (7, 0x55), (128, 1 << 63)]
        {
            let word = |at: u64| pattern.rotate_left((at / 64) as u32);
            let mut found = vec![false; bits as usize];
            runs(bits, word, |first, count| {
                assert!(first == 0 || !found[first as usize - 1], "runs do not touch");
                (first..first + count).for_each(|bit| found[bit as usize] = true);
            });
            let expected: Vec<bool> = (0..bits).map(|bit| word(bit / 64 * 64) >> (bit % 64) & 1 == 1).collect();
            assert_eq!(found, expected, "{bits} bits of {pattern:x}");
        }
    }
}
