//! Moves events from the kernel into a file and back, unparsed: [`capture`] empties the rings of
//! the CPUs ([`ring`]) into a spool ([`spool`]), with [`notes`] of the recorder in between;
//! [`hold`] freezes the processes if events come too fast; [`sums`] reads what programs add up in
//! the kernel; [`reported`] makes them report again what they report once. Later, [`frames`] reads
//! the spool, whatever happened to it. What the events mean is not known here.

pub(crate) mod capture;
pub(crate) mod frames;
pub(crate) mod hold;
pub(crate) mod notes;
pub(crate) mod reported;
pub(crate) mod ring;
pub(crate) mod spool;
pub(crate) mod sums;
