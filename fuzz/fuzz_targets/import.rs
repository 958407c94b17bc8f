//! Any bytes through the whole import: no panic, truthful coverage. One input of 16 is imported by two threads too: the same tables.

#![no_main]

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

use libfuzzer_sys::fuzz_target;
use sysdock_strace::{ImportError, Logs, Options};
use sysdock_table::{Cancel, Manifest, Recording, TableEntry};

/// One in this many inputs is also imported by two threads, because starting them is slow.
const BY_TWO: u64 = 16;

/// Rows and hashes of the tables; nothing if the input was refused.
type Outcome = Option<BTreeMap<String, (u64, Vec<String>)>>;

thread_local! {
    /// Stays from one execution to the next.
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

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
            remove(folder, &manifest);
            let of = |entry: &TableEntry| (entry.rows, entry.parts.iter().map(|part| part.sha256.clone()).collect());
            Some(manifest.tables.iter().map(|(name, entry)| (name.clone(), of(entry))).collect())
        }
        Err(ImportError::NotStrace(..) | ImportError::Foreign(..) | ImportError::Empty(_)) => {
            recording.abandon();
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Remove what recording.json lists, and with it all that there is: looking for it would take longer.
fn remove(folder: &Path, manifest: &Manifest) {
    for (table, entry) in &manifest.tables {
        entry.parts.iter().for_each(|part| fs::remove_file(folder.join(&part.file)).expect("a part that is listed is there"));
        let _ = fs::remove_dir(folder.join(table));
    }
    fs::remove_file(folder.join("recording.json")).expect("it is there");
    fs::remove_dir(folder).expect("nothing but what is listed is there");
}

fn is_for_two(data: &[u8]) -> bool {
    let mut hasher = DefaultHasher::new();
    data.hash(&mut hasher);
    hasher.finish().is_multiple_of(BY_TWO)
}

fuzz_target!(|data: &[u8]| {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(sysdock_fuzz::folder);
        let log = folder.path().join("log");
        fs::write(&log, data).expect("room on the disk");
        let newlines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
        let compressed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let lines = if compressed { 0 } else { newlines + u64::from(data.last().is_some_and(|byte| *byte != b'\n')) };
        let one = import(&log, &folder.path().join("one"), 1, lines);
        if is_for_two(data) {
            let two = import(&log, &folder.path().join("two"), 2, lines);
            assert_eq!(one, two, "one thread and two");
        }
    });
});
