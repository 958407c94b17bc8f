//! The view `lock`: waits for locks of the kernel. Locks of the same name, such as those of all
//! inodes, are one row.

use std::collections::HashMap;

use sysdock_bpf::live::{LockSums, WaitedLock};

use super::{
    table::Cell,
    views::{View, cannot, unreadable},
};
use crate::messages::Message;

/// The view of locks.
pub(super) struct Locks(LockSums);

impl Locks {
    pub(super) fn begin() -> Result<Locks, Message> {
        LockSums::begin().map(Locks).map_err(|error| cannot("the view lock", &error))
    }
}

impl View for Locks {
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message> {
        let locks = self.0.take().map_err(|error| unreadable(&error))?;
        Ok(by_name(locks).iter().map(|(lock, number)| row(lock, *number)).collect())
    }

    fn lost(&self) -> u64 {
        self.0.lost()
    }
}

/// Sums by name, with the number of locks in each.
pub(super) fn by_name(locks: Vec<WaitedLock>) -> Vec<(WaitedLock, u64)> {
    let mut sums: HashMap<(String, &str), (WaitedLock, u64)> = HashMap::new();
    for lock in locks {
        let key = (lock.name.clone(), lock.kind);
        let Some((sum, number)) = sums.get_mut(&key) else {
            sums.insert(key, (lock, 1));
            continue;
        };
        *number += 1;
        sum.waits += lock.waits;
        sum.wait_ns += lock.wait_ns;
        if lock.longest_ns > sum.longest_ns {
            (sum.longest_ns, sum.waiter, sum.holder) = (lock.longest_ns, lock.waiter, lock.holder);
        }
    }
    sums.into_values().collect()
}

fn row(lock: &WaitedLock, number: u64) -> Vec<Cell> {
    let holder = if lock.holder.is_empty() { Cell::Missing } else { Cell::name(&lock.holder) };
    vec![
        Cell::seconds(lock.wait_ns),
        Cell::Whole(lock.waits),
        Cell::seconds(lock.longest_ns),
        Cell::Text(lock.kind.to_string()),
        Cell::name(&lock.waiter),
        holder,
        Cell::seconds(lock.wait_ns / lock.waits.max(1)),
        Cell::Whole(number),
        Cell::name(lock.name.as_bytes()),
    ]
}
