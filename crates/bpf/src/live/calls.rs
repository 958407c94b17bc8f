//! System calls by process.

use std::io;

use super::Sums;
use crate::{events, probes::ProbeError};

pub(super) const OBJECT: &[u8] = programs!("live_calls");

/// System calls of a process that returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSum {
    /// The process.
    pub pid: u32,
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub errors: u64,
    /// How long they took together [ns].
    pub time_ns: u64,
}

/// Counts them.
pub struct CallSums(Sums);

impl CallSums {
    /// Begin to count.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or a kernel without what it needs.
    pub fn begin() -> Result<CallSums, ProbeError> {
        Sums::begin(OBJECT).map(CallSums)
    }

    /// Since the last time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<Vec<CallSum>> {
        let sums = self.0.take::<u32, events::CallSum>()?;
        let sum = |(pid, events::CallSum { calls, errors, time_ns })| CallSum { pid, calls, errors, time_ns };
        Ok(sums.into_iter().map(sum).collect())
    }

    /// Calls that found no room, since it began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}
