//! Kernel events, by BPF, to the tables about system calls.
//!
//! [`probes`] loads the programs of `bpf/`, which write events into a ring for each CPU; [`ring`] reads those. `bpf/events.h` says what
//! an event is, [`config`] what the programs are told.

mod config;
mod numbers;
mod probes;
mod ring;

pub use config::Target;
pub use probes::{Probes, ProbeError, Settings};
pub use ring::Ring;
