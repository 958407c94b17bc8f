//! Pieces for a page that draws the map itself.

use super::{Piece, Space};

/// Pieces as bytes: columns one after another, of numbers of 7 bits a byte with the lowest first; see [`pack`].
#[derive(Debug)]
pub struct Packed {
    /// The columns.
    pub bytes: Vec<u8>,
    /// Numbers by which files are named in it, ascending.
    pub owners: Vec<u32>,
    /// Pieces in it.
    pub count: usize,
    /// What all numbers of bytes are divided by.
    pub unit: u64,
    /// Pieces that were left out, what they held [B], and the length below which they were [B].
    pub left_out: (usize, u64, u64),
}

/// Pack the pieces of a space, of more than `most` the longest. The columns are: the gap before each piece, its length, its class and marks
/// (class + 8 where it is a break + 16 where it was searched for), and 0 for no owner's, else 1 + the difference of its file's place in `owners`
/// to that of the piece before, folded (0, -1, 1, -2, ...).
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

/// The length that pieces must have so that about `most` have it; 0 where all may stay.
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

/// The greatest common one.
fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
