//! A device as ranges ordered by address, and its cells.

use super::Class;

/// A range of the device that is used for one purpose [B].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its beginning.
    pub start: u64,
    pub length: u64,
    /// Index of its file, [`Piece::NO_OWNER`] if there is none.
    pub owner: u32,
    /// What it is used for.
    pub class: Class,
    /// Whether a new fragment of a file begins here: its first block is a [`Class::Break`].
    pub is_break: bool,
    /// Whether it matches the search.
    pub is_lit: bool,
}

impl Piece {
    /// The range belongs to no file.
    pub const NO_OWNER: u32 = u32::MAX;

    fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// A device, or several one after another.
#[derive(Debug, Default)]
pub struct Space {
    size: u64,
    block: u64,
    pieces: Vec<Piece>,
    /// Bytes that more than one row claims (files that share extents, a file's data in free space):
    /// each was counted once.
    pub claimed_again: u64,
    /// Bytes of rows beyond the end of the device.
    pub beyond: u64,
}

/// A part of the device [B].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: u64,
    pub length: u64,
}

/// Content of a cell, or of a whole window [B].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cell {
    /// By [`Class`].
    pub bytes: [u64; Class::COUNT],
    /// Bytes that match the search.
    pub lit: u64,
    /// The class found last: most cells of a small window contain no other.
    pub(super) last: Class,
}

impl Space {
    /// Sort ranges. If two overlap, the common part belongs to the one that begins first.
    #[must_use]
    pub fn new(size: u64, block: u64, mut pieces: Vec<Piece>) -> Self {
        let mut space = Space { size, block: block.max(1), ..Space::default() };
        // Among ranges with the same start, those that match the search come first, then the
        // longest.
        let order = |piece: &Piece| (piece.start, !piece.is_lit, u64::MAX - piece.length);
        if !pieces.is_sorted_by_key(order) {
            pieces.sort_unstable_by_key(order);
        }
        let mut covered = 0;
        pieces.retain_mut(|piece| {
            let end = piece.start.saturating_add(piece.length).min(size);
            let start = piece.start.min(size);
            space.beyond = space.beyond.saturating_add(piece.length - (end - start));
            let first = start.max(covered).min(end);
            space.claimed_again = space.claimed_again.saturating_add(first - start);
            piece.is_break &= first == piece.start;
            (piece.start, piece.length) = (first, end - first);
            covered = covered.max(end);
            piece.length > 0
        });
        space.pieces = pieces;
        space
    }

    /// Extend the space to at least this size [B]. The added part is unknown: for maps of several
    /// devices, or states of one, at the same scale.
    pub fn extend_to(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Size [B].
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Size of a block [B].
    #[must_use]
    pub fn block(&self) -> u64 {
        self.block
    }

    /// Ranges ordered by address, without overlap.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The window that covers the whole space.
    #[must_use]
    pub fn whole(&self) -> Window {
        Window { from: 0, length: self.size }
    }

    /// The part of a window that is on the device.
    #[must_use]
    pub fn clipped(&self, window: Window) -> Window {
        let from = window.from.min(self.size);
        Window { from, length: window.length.min(self.size - from) }
    }

    /// Sum up each of the 4^order cells of a window, from the first to the last.
    pub fn cells(&self, window: Window, order: u32, mut visit: impl FnMut(u64, &Cell)) {
        let window = self.clipped(window);
        let mut start = window.from;
        let mut rest = &self.pieces[self.pieces.partition_point(|piece| piece.end() <= start)..];
        for index in 0..1_u64 << (2 * order) {
            let end = window.from + window.boundary(order, index + 1);
            let mut cell = Cell::default();
            let mut known = 0;
            while let [piece, after @ ..] = rest
                && piece.start < end
            {
                let (from, until) = (piece.start.max(start), piece.end().min(end));
                cell.add(piece, from, until, self.block);
                known += until - from;
                if piece.end() > end {
                    break;
                }
                rest = after;
            }
            cell.bytes[Class::Unknown as usize] += end - start - known;
            visit(index, &cell);
            start = end;
        }
    }
}

impl Window {
    /// Beginning of a cell, from the start of the window: the same boundary exists at every higher
    /// order.
    fn boundary(&self, order: u32, index: u64) -> u64 {
        ((u128::from(self.length) * u128::from(index)) >> (2 * order)) as u64
    }

    /// The order at which a cell is about a block, or `most` if that is less.
    #[must_use]
    pub fn order(&self, block: u64, most: u32) -> u32 {
        let fits = |order: &u32| {
            let cells = 1_u128 << (2 * order);
            cells <= u128::from(self.length) && cells * u128::from(block) < 4 * u128::from(self.length)
        };
        (0..=most).rev().find(fits).unwrap_or(0)
    }
}

impl Cell {
    /// Sum of its content [B].
    #[must_use]
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Add the content of another cell.
    pub fn include(&mut self, other: &Cell) {
        self.bytes.iter_mut().zip(other.bytes).for_each(|(sum, bytes)| *sum += bytes);
        self.lit += other.lit;
    }

    fn add(&mut self, piece: &Piece, mut from: u64, until: u64, block: u64) {
        if piece.is_lit {
            self.lit += until - from;
        }
        if piece.is_break && from - piece.start < block {
            let broken = piece.start.saturating_add(block).min(until) - from;
            self.bytes[Class::Break as usize] += broken;
            from += broken;
        }
        self.bytes[piece.class as usize] += until - from;
        self.last = piece.class;
    }
}
