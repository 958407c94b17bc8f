//! Any bytes as events about functions of Python, which a kernel program copied out of the memory of an interpreter, and about the stacks
//! that they stand in: no panic.

#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;
use sysdock_table::{Manifest, Recording};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(sysdock_fuzz::folder);
        let mut recording =
            Recording::create(&folder.path().join("rec"), Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
        sysdock_bpf::fuzzing::python_stacks(data, &mut recording).expect("room on the disk");
        recording.abandon();
    });
});
