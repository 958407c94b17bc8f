//! Load on a file system: the requested work of several processes, the results, and whether they
//! are valid.
//!
//! A [`Step`] describes the work; a [`Measured`] is a result, one row of `load_results`. Logs of
//! other tools become the same rows (`foreign`).
//!
//! Modules, from the request to the report: `step` (the work), `run` (a folder, and steps one after
//! another), `workspace` (the folder, and leftovers of killed runs), `actor` (as whom root works in
//! it), `workers` (processes and their
//! phases), `board` (shared memory: the barriers), `items` (the work of a worker), `meter` (counts
//! it), `data` (the written data), `device` (the devices below, and their transfers), `judge`
//! (whether the results are valid), `measured` (rows). Two modules are independent of these:
//! `foreign` reads logs, and `http` makes load on a web server.

// Whatever comes from a file, a device or a traced program is an error, not a panic. Exceptions state their reason.
#![cfg_attr(not(any(test, feature = "fuzzing")), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

mod actor;
#[expect(clippy::indexing_slicing, reason = "workers, lanes, barriers and parts are numbered here, not by input")]
mod board;
mod clock;
#[expect(clippy::indexing_slicing, reason = "ranges are limited to the length of the buffer")]
mod data;
mod device;
mod error;
pub mod foreign;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod guarded;
mod histogram;
pub mod http;
#[expect(clippy::indexing_slicing, reason = "workers, lanes, barriers and parts are numbered here, not by input")]
mod items;
mod judge;
mod measured;
#[expect(clippy::indexing_slicing, reason = "workers, lanes, barriers and parts are numbered here, not by input")]
mod meter;
mod run;
mod step;
#[expect(clippy::indexing_slicing, reason = "workers, lanes, barriers and parts are numbered here, not by input")]
mod workers;
mod workspace;

pub use error::{LoadError, WrongAddress, WrongRequest, WrongStep};
pub use measured::{LatencyClass, Measured, Progress, Status, write};
pub use run::{Load, Settings};
pub use step::{Item, Layout, Operation, Plan, Step, Sync};
pub use workers::Caller;
pub use workspace::{Leftover, Stays};

/// The subject of a load, as in `about` of `knowhow/tables`.
pub const ABOUT: &str = "load";
