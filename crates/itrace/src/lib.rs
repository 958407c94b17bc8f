//! Instruction traces: every executed instruction, and the memory it accessed.
//!
//! [`stepping`] records a process by ptrace; the plugin of `crates/itrace-plugin` records a guest
//! of qemu, or a program under qemu-user ([`emulated`]). All write an event file
//! (`crates/itrace-file`). [`convert`] makes tables from it:
//!
//! 1. `code` analyses blocks: where each ends, and how.
//! 2. `images` knows the mappings, and the functions in them.
//! 3. `following` follows the events: tasks, modes, functions, calls.
//! 4. `tables` writes rows.

// Whatever comes from a file, a device or a traced program is an error, not a panic. Exceptions state their reason.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

#[expect(clippy::indexing_slicing, reason = "functions and names are numbered as they are read")]
pub mod callgrind;
mod code;
mod convert;
pub mod emulated;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod executions;
mod facts;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod following;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod images;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod instructions;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod lines;
#[expect(clippy::indexing_slicing, reason = "sizes, kinds and classes are those of the arrays")]
mod reuse;
pub mod stepping;
#[expect(clippy::indexing_slicing, reason = "the reader has checked the numbers of blocks; all others are assigned here")]
mod tables;

pub use convert::{EVENTS, FACTS, ItraceError, Outcome, complete, convert, facts_of};
pub use facts::{Mapping, Places, RequestFact, TaskFact, TraceFacts};
pub use instructions::{Chosen, Executed, each_instruction};
pub use lines::{Filter, print_lines};

/// The subject of a recording of instructions, as in `about` of `knowhow/tables`.
pub const ABOUT: &str = "itrace";

/// Name of a system call of x86-64.
pub(crate) fn system_call_name(number: u32) -> String {
    let names = sysdock_calls::numbers::names();
    match names.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).into(),
        _ => format!("syscall {number}"),
    }
}
