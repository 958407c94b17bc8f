//! Instruction traces: every instruction that was executed, and the memory it touched.
//!
//! [`stepping`] records a process by ptrace; the plugin of `crates/itrace-plugin` records a guest of qemu, or a program under qemu-user
//! ([`emulated`]). All write an event file (`crates/itrace-file`). [`convert`] makes tables of one:
//!
//! 1. `code` says what each block is: where it ends, and by what.
//! 2. `images` knows what lies where, and the functions in it.
//! 3. `following` goes through the events: tasks, modes, functions, calls.
//! 4. `tables` writes rows.

pub mod callgrind;
mod code;
mod convert;
pub mod emulated;
mod executions;
mod facts;
mod following;
mod images;
mod instructions;
mod lines;
mod reuse;
pub mod stepping;
mod tables;

pub use convert::{EVENTS, FACTS, ItraceError, Outcome, complete, convert, facts_of};
pub use facts::{Mapping, Places, RequestFact, TaskFact, TraceFacts};
pub use instructions::{Chosen, Executed, each_instruction};
pub use lines::{Filter, print_lines};

/// What a recording of instructions is about.
pub const ABOUT: &str = "itrace";

/// Name of a system call of x86-64.
pub(crate) fn system_call_name(number: u32) -> String {
    let names = sysdock_calls::numbers::names();
    match names.get(number as usize) {
        Some(name) if !name.is_empty() => (*name).into(),
        _ => format!("syscall {number}"),
    }
}
