//! Whether all that was read is of one committed state.
//!
//! A search of a tree sees what the transaction that is in progress has changed so far, and the extent tree lags behind the trees of files until it is
//! committed. So what waits is committed first. As long as no transaction was begun since, all trees are as they were committed: whatever changes
//! a tree begins one, or joins one that is in progress.

use std::{io, os::fd::RawFd};

use super::map::newest_transaction;
use crate::ioctl;

/// A transaction.
#[repr(C)]
#[derive(Default)]
struct Transaction(u64);

// SAFETY: both ioctls are for a number of 64 bits.
unsafe impl ioctl::Request for Transaction {}

/// Commits what is in progress; returns its number, or the last one's if there is none.
const BTRFS_IOC_START_SYNC: libc::Ioctl = ioctl::read(0x94, 24, size_of::<Transaction>());
/// Returns when it is committed.
const BTRFS_IOC_WAIT_SYNC: libc::Ioctl = ioctl::write(0x94, 22, size_of::<Transaction>());

/// The state that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// It is this transaction's, committed.
    Committed(u64),
    /// It changes all the time.
    Changing,
    /// This kernel does not report it.
    Unknown,
}

impl ReadState {
    /// Have what waits written, and return which state that is. What cannot be written is not ours to report.
    pub(super) fn settled(file: RawFd) -> ReadState {
        /// Commits to wait for: a program that writes all the time begins another at once.
        const TRIES: usize = 3;
        if cfg!(feature = "fuzzing") {
            // The kernel that answers there has nothing to write, and the folder that is asked about is not its own.
            return ReadState::Unknown;
        }
        // SAFETY: the descriptor is open.
        unsafe { libc::syncfs(file) };
        for _ in 0..TRIES {
            let reported = committed(file).and_then(|last| Ok((last, newest_transaction(file)?)));
            match reported {
                Ok((last, Some(newest))) if last == newest => return ReadState::Committed(last),
                Ok((_, Some(_))) => {}
                Ok((_, None)) | Err(_) => return ReadState::Unknown,
            }
        }
        ReadState::Changing
    }

    /// The same after all was read: no longer committed, if anything was changed meanwhile.
    pub(super) fn after(self, file: RawFd) -> ReadState {
        match self {
            ReadState::Committed(number) => match newest_transaction(file) {
                Ok(Some(newest)) if newest == number => self,
                Ok(_) => ReadState::Changing,
                Err(_) => ReadState::Unknown,
            },
            other => other,
        }
    }

    /// The value of `file_systems.moment`.
    pub(super) fn name(self) -> &'static str {
        match self {
            ReadState::Committed(_) => "one",
            ReadState::Changing => "many",
            ReadState::Unknown => "unknown",
        }
    }
}

fn committed(file: RawFd) -> io::Result<u64> {
    let mut last = Transaction::default();
    ioctl::query(file, BTRFS_IOC_START_SYNC, &mut last)?;
    let mut waited = Transaction(last.0);
    ioctl::query(file, BTRFS_IOC_WAIT_SYNC, &mut waited)?;
    Ok(last.0)
}
