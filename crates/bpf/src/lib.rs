//! Converts kernel events, recorded through BPF, to the tables about system calls.
//!
//! [`families`] defines what is recorded and how it becomes rows, with a folder for each family.
//! [`probes`] loads their programs ([`refusal`] explains why the kernel refuses one), which
//! [`config`] configures, and [`transport`] brings their events into a spool, unparsed. [`gate`]
//! starts a command that waits until it is recorded, [`group`] creates its control group.
//! Afterwards [`conversion`] makes the tables from the spool, or [`salvage`] does if the recorder
//! died; [`stacks`] finds functions for it.
//!
//! [`flight`] keeps recent events in memory and makes a spool of them when something happens.
//!
//! [`live`] serves users who watch the machine, and records nothing.

#[macro_use]
mod programs;

pub mod accounting;
mod companion;
mod config;
mod conversion;
mod counters;
mod error;
mod events;
mod families;
mod flight;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gate;
mod group;
mod keeper;
pub mod live;
mod objects;
mod probe_list;
mod probes;
mod refusal;
#[cfg(test)]
mod stack_depth;
mod stacks;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod transport;

pub use companion::Companion;
pub use config::{Stacks, Target, own_pid_namespace};
pub use conversion::{convert, convert_own, finish_converted, manifest, salvage, waiting};
pub use error::BpfError;
pub use families::{
    FAMILIES, Family, IO, PROBES, Recorded, STACKS, SYSCALLS, SYSTEM, chosen,
    probes::attach::{NoPlace, Refused},
    processes::{
        signals::name as signal_name,
        tasks::{all_processes, first_task, task_events},
        tree::{ancestors, descendants},
    },
    system::meters::Meters,
};
pub use flight::{
    Dump, Flight, Flying, Held,
    recovery::{Elements, RINGS_MAP, Recovered, recover},
    store::MAP as FLIGHT_MAP,
    triggers::{Cause, Trigger, WrongTrigger},
};
pub use gate::Gate;
pub use group::{Freezer, Group};
pub use probe_list::{Ends, Probe, ProbeList, WrongProbe};
pub use probes::{ProbeError, Probes, Settings, Step};
pub use stacks::kernel::{KernelNames, boot};
pub use transport::{
    capture::{Capture, Polled, Totals},
    notes::{End, Note, Reason, Start},
    ring::Ring,
    spool::{NO_CPU, SPOOL, Spool, Syncer, clock_note, monotonic_ns},
};
