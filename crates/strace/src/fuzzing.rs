//! What the fuzzing targets call (feature `fuzzing`), and tests with the inputs that fuzzing has kept.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use sysdock_table::{Cancel, Manifest, Recording, TableEntry};

use crate::{
    ImportError, Logs, Options,
    chunk::{Chunk, Parsed},
};

/// One in this many inputs is also imported by two threads, because starting them is slow.
const BY_TWO: u64 = 16;

/// Split and parse any text, and read every part of what was found.
///
/// # Panics
/// If a part of a line does not lie within it.
pub fn lines(text: &[u8]) {
    let mut chunk = Chunk { text: text.to_vec(), ..Chunk::default() };
    chunk.parse();
    for line in &chunk.lines[..chunk.count] {
        let (whole, event) = (chunk.line(line), chunk.event(line));
        assert!(whole.len() >= event.len());
        if matches!(line.parsed, Parsed::Whole | Parsed::Begun) {
            let call = line.places.call(event);
            assert!(call.arguments.iter().all(|argument| argument.len() <= event.len()));
        }
    }
}

/// Lines of a log that is not compressed; `None` of one that looks as if it were.
fn line_count(data: &[u8]) -> Option<u64> {
    let is_compressed = data.starts_with(&[0x1f, 0x8b]) || data.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let newlines = data.iter().filter(|byte| **byte == b'\n').count() as u64;
    (!is_compressed).then_some(newlines + u64::from(data.last().is_some_and(|byte| *byte != b'\n')))
}

/// What stays from one execution of [`rebuild`] to the next: files and folders cost more than reading a log.
struct Desk {
    log: PathBuf,
    recording: Recording,
}

thread_local! {
    static DESK: RefCell<Option<Desk>> = const { RefCell::new(None) };
}

/// Any bytes through the reader and what it rebuilds, but for the writing. [`import`] has the writing too: it makes two recordings each time,
/// which takes longer than all else. `folder` is the same each time.
///
/// # Panics
/// If the coverage is not truthful.
pub fn rebuild(data: &[u8], folder: &Path) {
    let desk = || {
        let recording =
            Recording::create(&folder.join("rec"), Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
        Desk { log: folder.join("log"), recording }
    };
    DESK.with_borrow_mut(|slot| {
        let Desk { log, recording } = slot.get_or_insert_with(desk);
        fs::write(&*log, data).expect("room on the disk");
        let options = Options { threads: 1, ..Options::default() };
        let Ok(logs) = Logs::open(std::slice::from_ref(log), &options) else { return };
        let Some((lines, lost, _)) = logs.rebuild(recording, &options) else { return };
        assert!(lost <= lines);
        if let Some(count) = line_count(data) {
            assert_eq!(lines, count, "every line is counted");
        }
    });
}

/// Any bytes through the whole import. One input of 16 is imported by two threads too: the same tables.
///
/// # Panics
/// If the coverage is not truthful, or if two threads make other tables than one.
pub fn import(data: &[u8], folder: &Path) {
    let log = folder.join("log");
    fs::write(&log, data).expect("room on the disk");
    let lines = line_count(data).unwrap_or(0);
    let one = import_by(&log, &folder.join("one"), 1, lines);
    if is_for_two(data) {
        let two = import_by(&log, &folder.join("two"), 2, lines);
        assert_eq!(one, two, "one thread and two");
    }
}

/// Rows and hashes of the tables; nothing if the input was refused.
type Outcome = Option<BTreeMap<String, (u64, Vec<String>)>>;

fn import_by(log: &Path, folder: &Path, threads: usize, lines: u64) -> Outcome {
    let options = Options { threads, ..Options::default() };
    // The compressed formats refuse what is none.
    let Ok(logs) = Logs::open(&[log.into()], &options) else { return None };
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

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_lines() {
        sysdock_seeds::each("lines", 1_500_000, 16_384, |data, _| super::lines(data));
    }

    #[test]
    fn any_bytes_are_rebuilt() {
        sysdock_seeds::each("rebuild", 40_000, 16_384, super::rebuild);
    }

    #[test]
    fn any_bytes_are_imported() {
        sysdock_seeds::each("import", 2_000, 16_384, super::import);
    }
}
