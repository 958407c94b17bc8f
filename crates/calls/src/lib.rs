//! Rows of the tables about system calls, for all recorders: logs of strace or truss, and the
//! kernel's own events.
//!
//! [`syscalls`] defines what each call does and where its arguments are; the other modules collect
//! rows and write them.

mod actions;
mod call_rows;
mod cause;
pub mod critical_path;
mod errors;
mod interrupted;
mod issues;
mod names;
pub mod numbers;
mod object_use;
mod objects;
mod rows;
pub mod syscalls;
mod tasks;

/// The subject of a recording of system calls, as in `about` of `knowhow/tables`.
pub const ABOUT: &str = "calls";
/// Name of the count in recording.json of call parts that a signal interrupted and the kernel
/// restarted.
pub const RESTARTED_CALLS: &str = "restarted_calls";

pub use actions::action;
pub use call_rows::{CallRow, CallRows, LONGEST_NS, NONE, Numbered, Via, object_id};
pub use cause::Cause;
pub use errors::{common_name, error_name, error_of, is_restart};
pub use interrupted::{Interrupted, Joined, Part};
pub use issues::{Issue, Issues};
pub use names::{Commands, comm, normal};
pub use objects::{Kind, ObjectId, Objects, write_paths};
pub use rows::{MappingRows, SignalRows};
pub use tasks::{Program, Task, Usage, write_commands, write_processes};

/// Tables that each recording of calls lists: an empty table states that there were none, a missing
/// one states nothing.
pub const TABLES: &[&str] = &["calls", "commands", "import_issues", "mappings", "paths", "processes", "signals", "stacks"];
