//! Classes of places on the device, and their colours.

/// What a place of the device is used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    Free,
    /// Part of a file that has one fragment.
    Unfragmented,
    /// Part of a file with several fragments, except where one begins.
    Contiguous,
    /// The first block of a fragment, except the first fragment of its file.
    Break,
    Metadata,
    /// Allocated, but reads as zeros.
    Unwritten,
    Compressed,
    /// In no table.
    #[default]
    Unknown,
}

/// How the two colours of a class alternate, so that it is distinguishable in grey as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    Plain,
    Checks,
    Diagonals,
    Lines,
}

/// How a class is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    /// Red, green and blue (sRGB).
    pub colour: [u8; 3],
    /// The other colour of the pattern.
    pub second: [u8; 3],
    /// How the two alternate.
    pub pattern: Pattern,
}

const fn plain(colour: [u8; 3]) -> Paint {
    Paint { colour, second: colour, pattern: Pattern::Plain }
}

const BLUE: [u8; 3] = [0x5A, 0x99, 0xC8];

/// By class. The plain colours were found by a search: they stay distinguishable for colour-blind
/// eyes and in grey (a test computes it). Patterns combine the colour of data with a second one
/// that differs strongly in lightness.
const PAINTS: [Paint; Class::COUNT] = [
    plain([0xF7, 0xF7, 0xF7]),
    plain(BLUE),
    plain([0xE2, 0xAF, 0x07]),
    plain([0x9D, 0x53, 0x0B]),
    plain([0x2B, 0x2B, 0x2B]),
    Paint { colour: BLUE, second: [0xDC, 0xE9, 0xF3], pattern: Pattern::Checks },
    Paint { colour: BLUE, second: [0x1F, 0x4E, 0x79], pattern: Pattern::Diagonals },
    Paint { colour: [0xDE, 0xDE, 0xDE], second: [0x9A, 0x9A, 0x9A], pattern: Pattern::Lines },
];

/// Colour of cells that match a search.
pub(super) const LIT: [u8; 3] = [0xC2, 0x00, 0x7B];

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 8;

    /// All classes, in the order of their numbers.
    pub const ALL: [Class; Class::COUNT] = [
        Class::Free,
        Class::Unfragmented,
        Class::Contiguous,
        Class::Break,
        Class::Metadata,
        Class::Unwritten,
        Class::Compressed,
        Class::Unknown,
    ];

    /// Name of the class.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["free", "unfragmented", "contiguous", "break", "metadata", "unwritten", "compressed", "unknown"][self as usize]
    }

    /// How the class is drawn.
    #[must_use]
    pub fn paint(self) -> Paint {
        PAINTS[self as usize]
    }
}

impl Paint {
    /// The colour of a pixel.
    pub(super) fn at(&self, x: u32, y: u32) -> [u8; 3] {
        let is_second = match self.pattern {
            Pattern::Plain => false,
            Pattern::Checks => (x / 2 + y / 2) % 2 == 1,
            Pattern::Diagonals => (x + y).is_multiple_of(4),
            Pattern::Lines => y.is_multiple_of(4),
        };
        if is_second { self.second } else { self.colour }
    }
}
