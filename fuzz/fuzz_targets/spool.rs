//! Any bytes as the spool of a kernel recorder: no panic, truthful coverage. Checksums of frames are not
//! verified here, so that their contents are read too.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_bpf::fuzzing::spool(data, folder)));
