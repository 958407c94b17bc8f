//! Cancellation and progress of long work.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// A request to stop, set by a signal handler and polled once per block of work.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Ask the work to stop at the next convenient place.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for a signal handler.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// Progress of an import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of input read, as stored on disk: of compressed input, compressed bytes.
    pub bytes_done: u64,
    /// Bytes of input in total; `None` for a pipe.
    pub bytes_total: Option<u64>,
    /// Number of lines read.
    pub lines: u64,
}
