//! Any bytes as the answers of a monitor of qemu.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_dump::fuzzing::monitor(data, folder)));
