//! Any bytes as what an agent left in its spool: the next one begins with it, or anew.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_agent::fuzzing::agent_notes(data, folder)));
