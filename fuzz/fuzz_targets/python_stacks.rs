//! Any bytes as events about functions of Python, which a kernel program copied out of the memory of an interpreter, and about the stacks
//! that they stand in: no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_bpf::fuzzing::python_stacks(data, folder)));
