//! Any bytes as the spool of a kernel recorder: no panic, truthful coverage. Checksums of frames are not
//! verified here, so that their contents are read too.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use sysdock_bpf::{BpfError, SPOOL, convert};
use sysdock_table::{Cancel, Manifest, Recording};

fuzz_target!(|data: &[u8]| {
    let folder = sysdock_fuzz::folder();
    let spool = folder.path().join(SPOOL);
    fs::write(&spool, data).expect("room on the disk");
    let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    match convert(&spool, &mut recording, &Cancel::default(), &mut |_| {}) {
        Ok(ending) => {
            let manifest = recording.finish(ending).expect("room on the disk");
            assert!(manifest.capture().understood <= manifest.capture().total);
        }
        Err(BpfError::NotASpool(_)) => recording.abandon(),
        Err(error) => panic!("{error}"),
    }
});
