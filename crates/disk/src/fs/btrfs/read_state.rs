//! Whether everything that was read belongs to one committed state.
//!
//! A search of a tree sees what the current transaction has changed so far, and the extent tree
//! lags behind the trees of files until the transaction is committed. So pending changes are
//! committed first. As long as no transaction was begun since, all trees are as they were
//! committed: whatever changes a tree begins a transaction, or joins the current one.

use std::{io, os::fd::RawFd};

use super::map::newest_transaction;
use crate::ioctl;

/// Number of a transaction.
#[repr(C)]
#[derive(Default)]
struct Transaction(u64);

// SAFETY: both ioctls take a number of 64 bits.
unsafe impl ioctl::Request for Transaction {}

/// Commits the current transaction; returns its number, or the last one's if there is none.
const BTRFS_IOC_START_SYNC: libc::Ioctl = ioctl::read(0x94, 24, size_of::<Transaction>());
/// Returns when the transaction is committed.
const BTRFS_IOC_WAIT_SYNC: libc::Ioctl = ioctl::write(0x94, 22, size_of::<Transaction>());

/// The state that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadState {
    /// That of this committed transaction.
    Committed(u64),
    /// It changes all the time.
    Changing,
    /// This kernel does not report it.
    Unknown,
}

impl ReadState {
    /// Commit pending changes, and return the resulting state. A failure to write them is not ours
    /// to report.
    pub(super) fn settled(file: RawFd) -> ReadState {
        /// Number of commits to wait for: a program that writes all the time begins another
        /// transaction at once.
        const TRIES: usize = 3;
        if cfg!(feature = "fuzzing") {
            // The fuzzed kernel has nothing to write, and the folder is not on a file system of its
            // own.
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

    /// The state after everything was read: no longer committed, if anything was changed meanwhile.
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
