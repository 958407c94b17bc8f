//! Converts the text that strace and truss print to the tables of a recording.
//!
//! One pass: [`input`] cuts a log into chunks, [`wrapping`] removes what was added to its lines,
//! [`chunk`] splits those by [`line`] and [`fields`],
//! [`merge`] gives the lines in order, [`events`] adds each line to the tables, [`finish`] makes
//! rows of calls. [`system`], [`threads`], [`files`] and [`objects`] hold the current state of the
//! traced system; [`bounds`] rejects impossible numbers; [`effects`], [`transfers`] and [`resolve`]
//! interpret a call and apply it to that state. Rows are collected and written by `sysdock_calls`;
//! [`waits`] computes the critical path from them. Code that is specific to truss is in [`truss`].

mod aio;
mod align;
mod bounds;
mod chunk;
mod clock;
mod effects;
mod events;
mod fields;
mod files;
mod finish;
mod foreign;
mod format;
mod import;
mod input;
mod line;
mod merge;
mod notice;
mod open_flags;
mod output;
mod parsers;
mod paths;
mod resolve;
mod search;
mod sessions;
mod sockets;
mod stacks;
mod system;
mod terminal;
mod text;
mod threads;
mod transfers;
mod truss;
mod waits;
mod wrapping;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use align::Estimate;
pub use foreign::{Sign, Tool};
pub use import::{ImportError, Logs, Options, manifest};
pub use input::unpacked;
pub use truss::Columns as TrussColumns;
