//! What the fuzzing targets share.

/// A new folder, in memory where there is one for it.
///
/// # Panics
/// If none can be made.
#[must_use]
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder")
}
