//! Any bytes as a binary (ELF, its tables of frames, its symbols and debug information) and as a copy of a stack in it: no panic.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_bpf::fuzzing::elf(data, &folder.join("binary"))));
