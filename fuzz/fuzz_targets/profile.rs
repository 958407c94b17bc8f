//! Any bytes as a profile of callgrind: tables, or why there are none.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sysdock_itrace::callgrind::Profile;
use sysdock_table::{Ending, Manifest, Recording};

fuzz_target!(|data: &[u8]| {
    let mut profile = Profile::default();
    if profile.read(data).is_err() {
        return;
    }
    sysdock_fuzz::in_folder(|folder| {
        let path = folder.join("rec");
        let mut recording = Recording::create(&path, Manifest::new("fuzz", "instructions", "itrace")).expect("an empty folder");
        profile.write(&mut recording).expect("room on the disk");
        recording.finish(Ending::EndOfInput).expect("room on the disk");
        std::fs::remove_dir_all(&path).expect("it is there");
    });
});
