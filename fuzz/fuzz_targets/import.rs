//! Any bytes through the whole import: no panic, truthful coverage. One input of 16 is imported by two threads too: the same tables.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_strace::fuzzing::import(data, folder)));
