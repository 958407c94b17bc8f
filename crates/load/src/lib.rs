//! Load on a file system: what so many processes asked of it, what it did, and whether that number may be believed.
//!
//! A [`Step`] says what is to be done; a [`Measured`] is what came of it, one row of `load_results`. Logs of other tools become the same rows
//! (`foreign`).

mod error;
mod measured;
mod step;

pub use error::LoadError;
pub use measured::{LatencyClass, Measured, Progress, Status, write};
pub use step::{Item, Layout, Operation, Step, Sync};

/// What the tables of a load are about (`about` in `knowhow/tables`).
pub const ABOUT: &str = "load";
