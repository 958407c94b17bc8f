//! Rows of the tables about system calls, from any recorder: a log of strace or truss, or the kernel's own events.
//!
//! [`syscalls`] says what each call does and where its arguments stand; the other modules collect rows and write them.

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

/// What a recording of system calls is about, as `knowhow/tables` has it.
pub const ABOUT: &str = "calls";
/// The count in recording.json of parts of calls that a signal interrupted and the kernel started again.
pub const RESTARTED_CALLS: &str = "restarted_calls";

pub use call_rows::{CallRow, CallRows, LONGEST_NS, NONE, Numbered, Via, object_id};
pub use cause::Cause;
pub use errors::{common_name, error_name, error_of, is_restart};
pub use interrupted::{Interrupted, Joined, Part};
pub use issues::{Issue, Issues};
pub use names::{Commands, comm, normal};
pub use objects::{Kind, ObjectId, Objects, write_paths};
pub use rows::{MappingRows, SignalRows};
pub use tasks::{Program, Task, Usage, write_commands, write_processes};

/// Tables that a recording of calls always lists: an empty table is a statement, a missing one is not.
pub const TABLES: &[&str] = &["calls", "commands", "import_issues", "mappings", "paths", "processes", "signals", "stacks"];
