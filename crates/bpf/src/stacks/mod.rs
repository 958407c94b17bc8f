//! From copies of stacks to frames and their names. [`images`] knows what code lay where in a process, [`elf`] the files that it is in,
//! [`unwind`] finds the frames and [`symbols`] their names, [`jitted`] those of code that a program made, [`kernel`] those of the kernel, of which [`vdso`] is a part in each process; [`python`] has lines of functions of Python, and where in a stack they belong.
//! The events with all that: `families/stacks`.

pub(crate) mod elf;
pub(crate) mod images;
pub(crate) mod jitted;
pub(crate) mod kernel;
pub(crate) mod python;
pub(crate) mod symbols;
pub(crate) mod unwind;
pub(crate) mod vdso;
