//! Any bytes as a binary (ELF, its tables of frames, its symbols and debug information) and as a copy of a stack in it: no panic.

#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(sysdock_fuzz::folder);
        sysdock_bpf::fuzzing::elf(data, &folder.path().join("binary"));
    });
});
