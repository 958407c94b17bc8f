//! Any bytes through the whole import, by one thread and by two: no panic, truthful coverage, the same tables.

#![no_main]

use std::{collections::BTreeMap, fs, path::Path};

use libfuzzer_sys::fuzz_target;
use sysdock_strace::{ImportError, Logs, Options};
use sysdock_table::{Cancel, Manifest, Recording};

/// Rows and hashes of the tables; nothing if the input was refused.
type Outcome = Option<BTreeMap<String, (u64, Vec<String>)>>;

fn import(log: &Path, folder: &Path, threads: usize, lines: u64) -> Outcome {
    let options = Options { threads, ..Options::default() };
    let logs = match Logs::open(&[log.into()], &options) {
        Ok(logs) => logs,
        Err(ImportError::Empty(_)) => return None,
        // The compressed formats refuse what is none.
        Err(_) => return None,
    };
    let mut recording = Recording::create(folder, Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    match logs.import(&mut recording, &options, &Cancel::default(), &mut |_| {}) {
        Ok(ending) => {
            let manifest = recording.finish(ending).expect("room on the disk");
            assert!(manifest.capture().understood <= manifest.capture().total);
            if lines > 0 {
                assert_eq!(manifest.capture().total, lines, "every line is counted");
            }
            let of = |entry: &sysdock_table::TableEntry| (entry.rows, entry.parts.iter().map(|part| part.sha256.clone()).collect());
            Some(manifest.tables.iter().map(|(name, entry)| (name.clone(), of(entry))).collect())
        }
        Err(ImportError::NotStrace(..) | ImportError::Empty(_)) => {
            recording.abandon();
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let log = folder.path().join("log");
    fs::write(&log, data).expect("room on the disk");
    let newlines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
    let compressed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let lines = if compressed { 0 } else { newlines + u64::from(data.last().is_some_and(|byte| *byte != b'\n')) };
    let one = import(&log, &folder.path().join("one"), 1, lines);
    let two = import(&log, &folder.path().join("two"), 2, lines);
    assert_eq!(one, two, "one thread and two");
});
