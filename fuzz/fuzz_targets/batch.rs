//! Any bytes as a request to a collector, and as its answer: what is taken has the rows that were counted, and lands.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_agent::fuzzing::batch(data, folder)));
