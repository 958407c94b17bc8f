//! Positions on a square of the cells of a range of addresses.

/// How a line is laid on a square of 2^order by 2^order cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curve {
    /// Cells that are close on the line are close on the square, and a square of twice the side
    /// shows each cell as four cells at the same position.
    #[default]
    Hilbert,
    /// Row by row, like text.
    Rows,
}

/// The curve in one of its four orientations: itself, mirrored at the diagonal, rotated by half a
/// turn, mirrored at the other diagonal. For each quarter along the curve: its column and row, and
/// the orientation of the curve in it.
const ORIENTATIONS: [[(u32, u32, usize); 4]; 4] = [
    [(0, 0, 1), (0, 1, 0), (1, 1, 0), (1, 0, 3)],
    [(0, 0, 0), (1, 0, 1), (1, 1, 1), (0, 1, 2)],
    [(1, 1, 3), (1, 0, 2), (0, 0, 2), (0, 1, 1)],
    [(1, 1, 2), (0, 1, 3), (0, 0, 3), (1, 0, 0)],
];

/// Number of levels of the curve that [`STEPS`] covers at once.
const LEVELS: u32 = 4;

/// By orientation and index along the curve of 2^LEVELS by 2^LEVELS cells: column, row, and the
/// orientation in the cell.
static STEPS: [[(u8, u8, u8); 1 << (2 * LEVELS)]; 4] = steps();

const fn steps() -> [[(u8, u8, u8); 1 << (2 * LEVELS)]; 4] {
    let mut found = [[(0, 0, 0); 1 << (2 * LEVELS)]; 4];
    let mut orientation = 0;
    while orientation < 4 {
        let mut index = 0;
        while index < found[0].len() {
            let (x, y, next) = descend(LEVELS, index as u64, (0, 0, orientation));
            found[orientation][index] = (x as u8, y as u8, next as u8);
            index += 1;
        }
        orientation += 1;
    }
    found
}

/// Descend `levels` levels from a cell, one by one.
const fn descend(levels: u32, index: u64, from: (u32, u32, usize)) -> (u32, u32, usize) {
    let (mut x, mut y, mut orientation) = from;
    let mut level = levels;
    while level > 0 {
        level -= 1;
        let (column, row, next) = ORIENTATIONS[orientation][(index >> (2 * level)) as usize & 3];
        (x, y, orientation) = (x << 1 | column, y << 1 | row, next);
    }
    (x, y, orientation)
}

impl Curve {
    /// Column and row of a cell.
    #[must_use]
    pub fn place(self, order: u32, index: u64) -> (u32, u32) {
        match self {
            Curve::Rows => ((index & ((1 << order) - 1)) as u32, (index >> order) as u32),
            Curve::Hilbert => {
                let mut level = order / LEVELS * LEVELS;
                let (mut x, mut y, mut orientation) = descend(order - level, index >> (2 * level), (0, 0, 0));
                while level > 0 {
                    level -= LEVELS;
                    let step = (index >> (2 * level)) as usize & ((1 << (2 * LEVELS)) - 1);
                    let (column, row, next) = STEPS[orientation][step];
                    (x, y) = (x << LEVELS | u32::from(column), y << LEVELS | u32::from(row));
                    orientation = usize::from(next);
                }
                (x, y)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_on_the_line_are_neighbours_on_the_square() {
        for order in 0..7 {
            let places: Vec<_> = (0..1 << (2 * order)).map(|index| Curve::Hilbert.place(order, index)).collect();
            assert!(places.windows(2).all(|two| two[0].0.abs_diff(two[1].0) + two[0].1.abs_diff(two[1].1) == 1));
            let mut sorted = places;
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 1 << (2 * order), "each place once");
        }
    }

    #[test]
    fn a_larger_square_refines_a_smaller_one() {
        for index in 0..1 << 12 {
            let (x, y) = Curve::Hilbert.place(6, index);
            assert_eq!(Curve::Hilbert.place(5, index / 4), (x / 2, y / 2));
        }
    }

    #[test]
    fn rows_are_read_like_text() {
        assert_eq!([0, 3, 4, 15].map(|index| Curve::Rows.place(2, index)), [(0, 0), (3, 0), (0, 1), (3, 3)]);
    }
}
