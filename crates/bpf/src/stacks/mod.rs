//! From copies of stacks to frames and their names. [`images`] knows what code lay where in a process, [`elf`] the files that it is in,
//! [`unwind`] finds the frames and [`symbols`] their names; [`python`] has lines of functions of Python, and where in a stack they belong.
//! Which events tell all that: `families/stacks`.

pub(crate) mod elf;
pub(crate) mod images;
pub(crate) mod python;
pub(crate) mod symbols;
pub(crate) mod unwind;
