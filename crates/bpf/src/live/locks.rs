//! Sums of waits by lock of the kernel.

use std::io;

use super::Sums;
use crate::{
    events::{LockSum, until_nul},
    families::locks::namer::Namer,
    probes::ProbeError,
};

pub(super) const OBJECT: &[u8] = programs!("live_locks");

/// A lock that threads waited for.
#[derive(Clone, Debug, Default)]
pub struct WaitedLock {
    /// As `locks.name` in a recording.
    pub name: String,
    /// As `locks.kind`.
    pub kind: &'static str,
    /// Address of the lock. Several locks may have one name, as each object has its own lock.
    pub address: u64,
    /// Number of waits.
    pub waits: u64,
    /// Total duration of the waits [ns].
    pub wait_ns: u64,
    /// The longest wait [ns].
    pub longest_ns: u64,
    /// Name of the thread that waited longest; any bytes.
    pub waiter: Vec<u8>,
    /// Name of the thread that held the lock when that wait began. Empty: unknown.
    pub holder: Vec<u8>,
}

/// Counts waits for locks.
pub struct LockSums {
    sums: Sums,
    namer: Namer,
}

impl LockSums {
    /// Begin to count.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or the kernel lacks a feature.
    pub fn begin() -> Result<LockSums, ProbeError> {
        Ok(LockSums { sums: Sums::begin(OBJECT)?, namer: Namer::default() })
    }

    /// The sums since the last call.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&mut self) -> io::Result<Vec<WaitedLock>> {
        let sums = self.sums.take::<u64, LockSum>()?;
        Ok(sums.into_iter().map(|(address, sum)| waited(address, &sum, &mut self.namer)).collect())
    }

    /// Number of waits that found no room since counting began.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sums.lost()
    }
}

fn waited(address: u64, sum: &LockSum, namer: &mut Namer) -> WaitedLock {
    let frames = (sum.bytes as usize / 8).min(sum.frames.len());
    let (name, kind) = namer.name(&sum.place, sum.flags, &sum.frames[..frames]);
    WaitedLock {
        name,
        kind,
        address,
        waits: sum.waits,
        wait_ns: sum.wait_ns,
        longest_ns: sum.longest_ns,
        waiter: until_nul(&sum.waiter).to_vec(),
        holder: until_nul(&sum.holder).to_vec(),
    }
}
