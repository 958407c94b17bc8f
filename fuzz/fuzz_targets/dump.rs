//! Any bytes as the dump of a kernel: no panic, no endless loop, and an answer to each question, even if it is that nothing can be read.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_dump::fuzzing::dump(data, folder)));
