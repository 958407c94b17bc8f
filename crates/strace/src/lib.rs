//! The text that strace prints, turned into the tables of a recording.
//!
//! One pass: [`merge`] gives lines in order, [`line`] and [`fields`] split them, [`system`], [`threads`], [`files`] and [`objects`] hold
//! what the traced system looks like by now, [`effects`] says what a call means in it, [`rows`] collects rows and writes them.

mod clock;
mod effects;
mod fields;
mod files;
mod import;
mod input;
mod line;
mod merge;
mod objects;
mod paths;
mod rows;
mod syscalls;
mod system;
mod text;
mod threads;

pub use import::{ImportError, Logs, Options};
