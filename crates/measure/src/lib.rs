//! One run of a command, and what it used, from counters that the kernel keeps anyway: nothing is
//! traced, and nothing is sampled while it runs.
//!
//! [`measure`] runs it once. The results are combined from four sources, as none is complete:
//!
//! - `wait` and getrusage(2): complete to the last instruction of the exit, but without processes
//!   that were not waited for (SIGCHLD ignored).
//! - `/proc/self/io`: transfers of the processes that were waited for, which the kernel adds to
//!   ours.
//! - The kernel's record of each task that ends (`taskstats`): delays, and the processes that were
//!   not waited for. It is made when the exit begins, so it lacks the CPU time since the last tick,
//!   the release of memory, and the close of files.
//! - `/proc/PID/schedstat` of the command while it is a zombie: CPU time and run delay of its first
//!   thread in ns, complete.
//!
//! A sum that two of them have is the larger of both ([`Measured`]). A value that none of them has
//! is `None`, and [`Measured::missing`] tells why.
//!
//! Modules, from the request to the report: `command` (what to run), `launch` (the process, and the
//! moment of its release), `waiting` (until it ends, or is ended), `tree` (our running
//! descendants), `taskstats` (records, and which belong to the run), `usage` (getrusage, io and
//! schedstat), `devices` and `machine` (counters before and after), `measured` (all of it
//! combined).

mod clock;
mod command;
mod devices;
mod error;
mod launch;
mod machine;
mod measured;
mod missing;
mod signals;
mod taskstats;
mod tree;
mod usage;
mod waiting;

pub use command::Command;
pub use devices::DeviceUse;
pub use error::{Attempt, MeasureError};
pub use machine::MachineUse;
pub use measured::{Measured, measure};
