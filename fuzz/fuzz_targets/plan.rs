//! Any bytes as a plan of a load, and as what a load left in a folder.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_load::fuzzing::plan(data, folder)));
