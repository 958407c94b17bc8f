//! Any bytes through the line reader: no panic, and every part of a line lies within it.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_strace::fuzzing::lines(data));
