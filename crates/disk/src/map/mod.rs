//! A map of a device: cells in the order of addresses along a curve, coloured by their content.
//!
//! [`read`] makes a [`Space`] from a recording: ranges ordered by address that do not overlap.
//! [`Space::cells`] iterates over them once and sums up each cell, [`draw`] gives cells their
//! position ([`Curve`]) and colour ([`Class`]).

mod class;
mod columns;
mod curve;
mod error;
mod labels;
mod packed;
mod picture;
mod pieces;
mod read;

pub use class::{Class, Paint, Pattern};
pub use columns::expect_panics_of_libraries;
pub use curve::Curve;
pub use error::{Damage, MapError};
pub use labels::{Group, Label, labels};
pub use packed::{Packed, pack};
pub use picture::{Picture, Settings, draw};
pub use pieces::{Cell, Piece, Space, Window};
pub use read::{Device, Facts, Recorded, read};
