//! Names, lines and types from what compilers and the kernel leave, for the recorder of kernel
//! events, the reader of crash dumps and instruction traces.
//!
//! ```text
//! elf      segments, sections, build ids; what unwinding needs of a binary       btf        types of a kernel, its modules, or an object
//! image    functions of a file, and the code in it                               kallsyms   functions and variables of a kernel
//! names    functions and lines of addresses, with inlined functions              lines      lines of all addresses of a file
//! demangle names as they were written
//! ```
//!
//! Whatever a file contains is no reason to panic: what cannot be read is missing.

pub mod btf;
#[cfg(feature = "debug-info")]
mod demangle;
pub mod elf;
#[cfg(feature = "debug-info")]
mod image;
pub mod kallsyms;
#[cfg(feature = "debug-info")]
mod lines;
#[cfg(feature = "debug-info")]
mod names;

#[cfg(feature = "debug-info")]
pub use {
    demangle::demangle,
    image::ElfImage,
    names::{Naming, Symbol, symbols},
};
