//! Turns copies of stacks into frames and their names. [`images`] locates the code in a process,
//! [`unwind`] finds the frames; names are in their files, [`jitted`] has those of generated code, and
//! [`kernel`] those of the kernel, of which [`vdso`] is a part in each process; [`python`] finds
//! lines of functions of Python, and their position in a stack. [`events`] and [`python_events`] are
//! what the programs of `families/stacks` report.

pub(crate) mod events;
pub(crate) mod images;
pub(crate) mod jitted;
pub(crate) mod kernel;
pub(crate) mod python;
pub(crate) mod python_events;
pub(crate) mod unwind;
pub(crate) mod vdso;
