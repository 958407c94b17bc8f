//! The text that strace and truss print, turned into the tables of a recording.
//!
//! One pass: [`input`] cuts a log into chunks, [`chunk`] splits those by [`line`] and [`fields`], [`merge`] gives the lines in order, [`events`]
//! says what each adds, [`finish`] makes rows of calls. [`system`], [`threads`], [`files`] and [`objects`] hold what the traced system looks
//! like by now; [`bounds`] says which numbers cannot be; [`effects`], [`transfers`] and [`resolve`] say what a call means in it and change it. Rows are collected and written by
//! `sysdock_calls`; [`waits`] makes the critical path of them. What is peculiar to truss is in [`truss`].

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

#[cfg(feature = "fuzzing")]
pub mod fuzzing;

pub use align::Estimate;
pub use foreign::{Sign, Tool};
pub use import::{ImportError, Logs, Options, manifest};
pub use input::unpacked;
pub use truss::Columns as TrussColumns;
