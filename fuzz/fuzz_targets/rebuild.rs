//! Any bytes through the reader and what it rebuilds, but for the writing: no panic, truthful coverage. The target `import` has the
//! writing too: it makes two recordings each time, which takes longer than all else.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_strace::fuzzing::rebuild(data, folder)));
