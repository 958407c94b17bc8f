//! The text that strace prints, turned into the tables of a recording.
//!
//! One pass: [`merge`] gives lines in order, [`line`] and [`fields`] split them, [`events`] says what each adds. [`system`], [`threads`],
//! [`files`] and [`objects`] hold what the traced system looks like by now; [`effects`], [`transfers`] and [`resolve`] say what a call
//! means in it and change it. [`rows`] collects rows and writes them.

mod aio;
mod align;
mod call_rows;
mod chunk;
mod clock;
mod effects;
mod events;
mod fields;
mod files;
mod finish;
mod format;
mod import;
mod input;
mod line;
mod merge;
mod objects;
mod parsers;
mod paths;
mod resolve;
mod rows;
mod sessions;
mod stacks;
mod syscalls;
mod system;
mod terminal;
mod text;
mod threads;
mod transfers;
mod truss;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use align::Estimate;
pub use import::{ImportError, Logs, Options};
pub use truss::Columns as TrussColumns;
