//! Ranges of the device for a page that draws the map itself.

use super::{Piece, Space};

/// Ranges as bytes: columns one after another, of numbers with 7 bits per byte, the lowest first;
/// see [`pack`].
#[derive(Debug)]
pub struct Packed {
    /// The columns.
    pub bytes: Vec<u8>,
    /// Numbers of the files that are referenced, ascending.
    pub owners: Vec<u32>,
    /// Number of ranges.
    pub count: usize,
    /// All sizes in bytes are divided by this.
    pub unit: u64,
    /// Number of ranges that were left out, their total size [B], and the length below which they
    /// were left out [B].
    pub left_out: (usize, u64, u64),
}

/// Pack the ranges of a space; if there are more than `most`, the longest. The columns are: the gap
/// before each range, its length, its class and marks (class + 8 if it is a break + 16 if it
/// matches the search), and 0 for no owner, else 1 + the difference of its file's index in `owners`
/// to that of the previous range, folded (0, -1, 1, -2, ...).
#[must_use]
pub fn pack(space: &Space, most: usize) -> Packed {
    let least = shortest(space.pieces(), most);
    let mut kept: Vec<&Piece> = space.pieces().iter().filter(|piece| piece.length >= least).collect();
    // Many may be as long as the shortest one.
    kept.truncate(most);
    let held: u64 = kept.iter().map(|piece| piece.length).sum();
    let all: u64 = space.pieces().iter().map(|piece| piece.length).sum();
    let left_out = (space.pieces().len() - kept.len(), all - held, least);
    let unit = kept.iter().fold(space.block(), |unit, piece| divisor(divisor(unit, piece.start), piece.length)).max(1);
    let mut owners: Vec<u32> = kept.iter().map(|piece| piece.owner).filter(|owner| *owner != Piece::NO_OWNER).collect();
    owners.sort_unstable();
    owners.dedup();
    let mut columns: [Vec<u8>; 4] = Default::default();
    let (mut end, mut last) = (0, 0_i64);
    for piece in &kept {
        number(&mut columns[0], (piece.start - end) / unit);
        number(&mut columns[1], piece.length / unit);
        columns[2].push(piece.class as u8 + 8 * u8::from(piece.is_break) + 16 * u8::from(piece.is_lit));
        match owners.binary_search(&piece.owner) {
            Err(_) => number(&mut columns[3], 0),
            Ok(place) => {
                let difference = place as i64 - last;
                number(&mut columns[3], 1 + (difference << 1 ^ difference >> 63).cast_unsigned());
                last = place as i64;
            }
        }
        end = piece.start + piece.length;
    }
    Packed { bytes: columns.concat(), owners, count: kept.len(), unit, left_out }
}

/// The length that about `most` ranges reach; 0 if all may stay.
fn shortest(pieces: &[Piece], most: usize) -> u64 {
    if pieces.len() <= most || most == 0 {
        return 0;
    }
    let mut lengths: Vec<u64> = pieces.iter().map(|piece| piece.length).collect();
    let place = lengths.len() - most;
    *lengths.select_nth_unstable(place).1
}

fn number(column: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        column.push(value as u8 | 128);
        value >>= 7;
    }
    column.push(value as u8);
}

/// The greatest common divisor.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
