//! What the fuzzing targets share.

use std::{cell::OnceCell, path::Path};

thread_local! {
    static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// A new folder, in memory where there is one for it.
///
/// # Panics
/// If none can be made.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Run something with a folder that stays from one execution to the next: a new one costs more than reading a log.
pub fn in_folder(run: impl FnOnce(&Path)) {
    FOLDER.with(|folder| run(folder.get_or_init(self::folder).path()));
}
