//! Load on a file system: what so many processes asked of it, what it did, and whether that number may be believed.
//!
//! A [`Step`] says what is to be done; a [`Measured`] is what came of it, one row of `load_results`. Logs of other tools become the same rows
//! (`foreign`).
//!
//! Modules, from what is requested to what is reported: `step` (what is to be done), `run` (a folder, and steps one after the other),
//! `workspace` (the folder, and what killed runs left), `workers` (processes and their phases), `board` (memory that they share: the barrier),
//! `items` (what a worker does), `meter` (counts it), `data` (what is written), `device` (what lies below, and what it did), `judge` (whether
//! the number may be believed), `measured` (rows). `foreign` has nothing to do with these: it reads. Nor has `http`: it makes load on a web
//! server.

mod board;
mod clock;
mod data;
mod device;
mod error;
pub mod foreign;
mod guarded;
mod histogram;
pub mod http;
mod items;
mod judge;
mod measured;
mod meter;
mod run;
mod step;
mod workers;
mod workspace;

pub use error::LoadError;
pub use measured::{LatencyClass, Measured, Progress, Status, write};
pub use run::{Load, Settings};
pub use step::{Item, Layout, Operation, Step, Sync};
pub use workers::Caller;
pub use workspace::Leftover;

/// What the tables of a load are about (`about` in `knowhow/tables`).
pub const ABOUT: &str = "load";
