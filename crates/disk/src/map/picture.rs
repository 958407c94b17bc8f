//! Cells as pixels, and pixels as PNG.

use std::io::Write;

use super::{Cell, Class, Curve, Space, Window, class::LIT};

/// What to draw, and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Side of the picture [pixels]: a power of two.
    pub side: u32,
    /// How addresses are laid on it.
    pub curve: Curve,
    /// Paint a cell as a break if a quarter of it is.
    pub is_worst: bool,
    /// What part of the device.
    pub window: Window,
    /// Fade all that was not searched for.
    pub is_search: bool,
}

/// A map as pixels.
#[derive(Debug)]
pub struct Picture {
    /// Side [pixels].
    pub side: u32,
    /// The square has 2^order by 2^order cells.
    pub order: u32,
    /// Of the window as a whole.
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
    let mut sum = Cell::default();
    space.cells(settings.window, order, |index, cell| {
        sum.include(cell);
        let (column, row) = settings.curve.place(order, index);
        for y in row * scale..(row + 1) * scale {
            for x in column * scale..(column + 1) * scale {
                let at = (y as usize * side as usize + x as usize) * 3;
                pixels[at..at + 3].copy_from_slice(&colour(cell, x, y, settings));
            }
        }
    });
    Picture { side, order, sum, pixels }
}

/// The colour of a pixel of a cell.
fn colour(cell: &Cell, x: u32, y: u32, settings: &Settings) -> [u8; 3] {
    if cell.lit > 0 {
        return LIT;
    }
    let total = cell.total();
    let broken = cell.bytes[Class::Break as usize];
    let colour = if settings.is_worst && broken > 0 && broken >= total / 4 {
        Class::Break.paint().colour
    } else {
        blend(cell, total, x, y)
    };
    if settings.is_search { colour.map(|value| (value / 2).saturating_add(0x7B)) } else { colour }
}

/// The colours of all classes, each by its share.
fn blend(cell: &Cell, total: u64, x: u32, y: u32) -> [u8; 3] {
    let mut mixed = [0.5_f32; 3];
    let per_byte = 1.0 / total as f32;
    for class in Class::ALL {
        let bytes = cell.bytes[class as usize];
        if bytes == 0 {
            continue;
        }
        let colour = class.paint().at(x, y);
        if bytes == total {
            return colour;
        }
        let share = bytes as f32 * per_byte;
        mixed.iter_mut().zip(colour).for_each(|(sum, value)| *sum += share * f32::from(value));
    }
    mixed.map(|value| value as u8)
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
    /// What the sink says.
    pub fn write_png(&self, sink: impl Write) -> Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(sink, self.side, self.side);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Fast);
        encoder.write_header()?.write_image_data(&self.pixels)
    }
}
