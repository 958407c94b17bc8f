//! Sums of system calls by process.

use std::io;

use super::Sums;
use crate::{events, probes::ProbeError};

pub(super) const OBJECT: &[u8] = programs!("live_calls");

/// System calls of a process that returned.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallSum {
    pub pid: u32,
    /// Number of calls.
    pub calls: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Total duration [ns].
    pub time_ns: u64,
}

/// Counts system calls.
pub struct CallSums(Sums);

impl CallSums {
    /// Begin to count.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or the kernel lacks a feature.
    pub fn begin() -> Result<CallSums, ProbeError> {
        Sums::begin(OBJECT).map(CallSums)
    }

    /// The sums since the last call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<Vec<CallSum>> {
        let sums = self.0.take::<u32, events::CallSum>()?;
        let sum = |(pid, events::CallSum { calls, errors, time_ns })| CallSum { pid, calls, errors, time_ns };
        Ok(sums.into_iter().map(sum).collect())
    }

    /// Number of calls that found no room since counting began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}
