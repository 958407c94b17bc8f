//! Cells as pixels, and pixels as PNG.

use std::io::Write;

use super::{Cell, Class, Curve, Space, Window, class::LIT};

/// What to draw, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Side of the picture [pixels]: a power of two.
    pub side: u32,
    /// How addresses are laid out.
    pub curve: Curve,
    /// Whether to paint a cell as a break if a quarter of it is one.
    pub is_worst: bool,
    /// The part of the device to draw.
    pub window: Window,
    /// Whether to fade everything that does not match the search.
    pub is_search: bool,
}

/// A map as pixels.
#[derive(Debug)]
pub struct Picture {
    /// Side [pixels].
    pub side: u32,
    /// The square has 2^order by 2^order cells.
    pub order: u32,
    /// Sum of the whole window.
    pub sum: Cell,
    /// Red, green, blue; row by row.
    pixels: Vec<u8>,
}

/// Draw a window of a space.
#[must_use]
pub fn draw(space: &Space, settings: &Settings) -> Picture {
    let most = settings.side.max(1).ilog2();
    let side = 1_u32 << most;
    let order = space.clipped(settings.window).order(space.block(), most);
    let scale = side >> order;
    let mut pixels = vec![0; side as usize * side as usize * 3];
    let (mut sum, palette) = (Cell::default(), Palette::new());
    space.cells(settings.window, order, |index, cell| {
        sum.include(cell);
        let (column, row) = settings.curve.place(order, index);
        for y in row * scale..(row + 1) * scale {
            for x in column * scale..(column + 1) * scale {
                let at = (y as usize * side as usize + x as usize) * 3;
                pixels[at..at + 3].copy_from_slice(&palette.colour(cell, x, y, settings));
            }
        }
    });
    Picture { side, order, sum, pixels }
}

/// Number of columns and rows after which all patterns repeat.
const PERIOD: u32 = 4;

/// The colours of all classes as numbers to sum up, by the position of a pixel in the patterns.
/// (Four numbers per colour, so that they are summed at once.)
struct Palette([[[f32; 4]; Class::COUNT]; (PERIOD * PERIOD) as usize]);

impl Palette {
    fn new() -> Self {
        let number = |place: u32, class: Class| {
            let [red, green, blue] = class.paint().at(place % PERIOD, place / PERIOD).map(f32::from);
            [red, green, blue, 0.0]
        };
        Palette(std::array::from_fn(|place| Class::ALL.map(|class| number(place as u32, class))))
    }

    /// The colour of a pixel of a cell.
    fn colour(&self, cell: &Cell, x: u32, y: u32, settings: &Settings) -> [u8; 3] {
        if cell.lit > 0 {
            return LIT;
        }
        let broken = cell.bytes[Class::Break as usize];
        let colour = if settings.is_worst && broken > 0 && broken >= cell.total() / 4 {
            Class::Break.paint().colour
        } else {
            self.blend(cell, x, y)
        };
        if settings.is_search { colour.map(|value| (value / 2).saturating_add(0x7B)) } else { colour }
    }

    /// The colours of all classes, weighted by their shares. It has no branches, because they could
    /// not be predicted.
    fn blend(&self, cell: &Cell, x: u32, y: u32) -> [u8; 3] {
        let colours = &self.0[(y % PERIOD * PERIOD + x % PERIOD) as usize];
        let total = cell.total();
        if cell.bytes[cell.last as usize] == total {
            return bytes(colours[cell.last as usize]);
        }
        let per_byte = 1.0 / total as f32;
        let mut mixed = [0.5_f32; 4];
        for (bytes, colour) in cell.bytes.iter().zip(colours) {
            let share = bytes.cast_signed() as f32 * per_byte;
            mixed.iter_mut().zip(colour).for_each(|(sum, value)| *sum += share * value);
        }
        bytes(mixed)
    }
}

fn bytes(colour: [f32; 4]) -> [u8; 3] {
    let [red, green, blue, _] = colour.map(|value| value as u8);
    [red, green, blue]
}

impl Picture {
    /// Red, green and blue of a pixel.
    #[must_use]
    pub fn pixel(&self, x: u32, y: u32) -> [u8; 3] {
        let at = (y as usize * self.side as usize + x as usize) * 3;
        [self.pixels[at], self.pixels[at + 1], self.pixels[at + 2]]
    }

    /// Write it as PNG.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn write_png(&self, sink: impl Write) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(sink, self.side, self.side);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header()?.write_image_data(&self.pixels)
    }
}
