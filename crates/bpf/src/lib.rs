//! Kernel events, by BPF, to the tables about system calls.
//!
//! [`probes`] loads the programs of `bpf/` ([`refusal`]: or says why not), which write events into a ring for each CPU; [`ring`] reads
//! those. `bpf/events.h` says what an event is, [`config`] what the programs are told, [`families`] what is recorded on demand. [`gate`]
//! starts a command that waits until it is recorded, [`group`] makes the control group that it is in, [`hold`] stops it where events come
//! too fast, [`tasks`] tells of threads that are there already, [`capture`] empties the rings. While recording, what the rings held goes
//! unparsed into a [`spool`]; afterwards [`convert`] makes the tables of it, or [`salvage`] does where the recorder died.

mod aio;
mod capture;
mod clock;
mod config;
mod convert;
mod counters;
mod elf;
mod error;
mod events;
mod families;
mod faults;
mod file_cache;
mod frames;
mod gate;
mod group;
mod hold;
mod images;
mod layouts;
mod meanings;
mod notes;
mod numbers;
mod objects;
mod places;
mod probes;
mod python;
mod refusal;
mod ring;
mod rows;
mod spool;
mod stacks;
mod streams;
mod survey;
mod symbols;
mod tasks;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod threads;
mod unwind;
mod words;

pub use capture::{Capture, Totals};
pub use config::{Stacks, Target};
pub use convert::{convert, manifest, salvage};
pub use error::BpfError;
pub use families::{FAMILIES, Family, IO, STACKS, chosen};
pub use gate::Gate;
pub use group::Group;
pub use notes::{End, Note, Reason, Start};
pub use probes::{ProbeError, Probes, Settings};
pub use ring::Ring;
pub use spool::{NO_CPU, SPOOL, Spool, Syncer, clock_note};
pub use tasks::{all_processes, first_task, task_events};
