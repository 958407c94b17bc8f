//! How events get from the kernel into a file and back, unparsed: [`capture`] empties the rings of the CPUs ([`ring`]) into a spool
//! ([`spool`]), between [`notes`] of the recorder's own; [`hold`] stops the processes where events come too fast;
//! [`sums`] reads what programs add up in the kernel; [`reported`] has them report again what they report once. Later, [`frames`] reads
//! what the spool holds, whatever became of it, and [`streams`] puts the events of all CPUs in the order of their times.

pub(crate) mod capture;
pub(crate) mod frames;
pub(crate) mod hold;
pub(crate) mod notes;
pub(crate) mod reported;
pub(crate) mod ring;
pub(crate) mod spool;
pub(crate) mod streams;
pub(crate) mod sums;
