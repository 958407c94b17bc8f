//! Any bytes through the reader and what it rebuilds, but for the writing: no panic, truthful coverage. The target `import` has the
//! writing too: it makes two recordings each time, which takes longer than all else.

#![no_main]

use std::{cell::RefCell, fs, path::PathBuf};

use libfuzzer_sys::fuzz_target;
use sysdock_strace::{Logs, Options};
use sysdock_table::{Manifest, Recording};

/// What stays from one execution to the next: files and folders cost more than reading a log.
struct Desk {
    _folder: tempfile::TempDir,
    log: PathBuf,
    recording: Recording,
}

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
}

fn desk() -> Desk {
    let folder = sysdock_fuzz::folder();
    let recording = Recording::create(&folder.path().join("rec"), Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    Desk { log: folder.path().join("log"), recording, _folder: folder }
}

fuzz_target!(|data: &[u8]| {
    DESK.with_borrow_mut(|slot| {
        let Desk { log, recording, .. } = slot.get_or_insert_with(desk);
        fs::write(&*log, data).expect("room on the disk");
        let options = Options { threads: 1, ..Options::default() };
        let Ok(logs) = Logs::open(&[log.clone()], &options) else { return };
        let Some((lines, lost, _)) = logs.rebuild(recording, &options) else { return };
        assert!(lost <= lines);
        let is_compressed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let newlines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
        if !is_compressed {
            assert_eq!(lines, newlines + u64::from(data.last().is_some_and(|byte| *byte != b'\n')), "every line is counted");
        }
    });
});
