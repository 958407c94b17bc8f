//! What a kernel was doing when it stopped, from memory that kdump, makedumpfile or qemu has
//! written.
//!
//! No debug information is needed: symbols ([`symbols`]) and types (BTF) are those that the kernel
//! itself contains. Everything that is read may be damaged: each address that cannot be read
//! becomes a [`Fault`] in its row, and each walk has an end.
//!
//! ```text
//! format/  file -> physical pages      memory   kernel addresses -> physical      symbols   names out of the memory
//! kernel   all of these together       clock    which time it was
//! walk, tasks, threads, stacks, locks, log, panic, requests, sockets, counts, usage   what is asked                     tables        rows
//! ```

// Whatever comes from a file, a device or a traced program is an error, not a panic. Exceptions state their reason.
#![cfg_attr(not(any(test, feature = "fuzzing")), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

mod clock;
mod counts;
mod debug_info;
mod error;
mod files;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod kernel;
mod locks;
mod log;
mod maps;
mod memory;
mod modules;
mod mounts;
mod orc;
mod panic;
mod paths;
mod processors;
mod questions;
mod reading;
mod requests;
mod search;
mod sockets;
mod stacks;
mod symbols;
mod tables;
mod tasks;
mod threads;
mod usage;
mod users;
mod vmcoreinfo;
mod walk;

pub use clock::{Clock, LogClock};
pub use counts::Count;
pub use error::{Damage, DumpError, Fault, NoDump, NotReadable, Section, Unanswered};
pub use files::{OpenFile, OpenFiles};
pub use format::{Guest, Source};
pub use kernel::{Description, Kernel};
pub use locks::{LockKind, LockWait};
pub use log::{Log, LogRecord};
pub use maps::BpfArray;
pub use mounts::{Module, Mount};
pub use panic::{Cause, Panic, SavedAt, SavedRegisters, cause};
pub use processors::Processor;
pub use questions::Question;
pub use requests::{Request, RequestState, Requests};
pub use sockets::Socket;
pub use stacks::{Frame, Stacks};
pub use tables::{Outcome, Part, Sink, UNREADABLE, write};
pub use tasks::{Task, Tasks};
pub use usage::{MemoryUse, Slab};

/// The subject of a dump, as in `about` of `knowhow/tables`.
pub const ABOUT: &str = "dump";
