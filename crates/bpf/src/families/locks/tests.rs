//! Tests of rows from events of waits for locks.

use crate::{
    events::{EVENT_LOCK, EVENT_LOCK_WAIT, LOCK_IN_SLAB, LOCK_RUN_QUEUE, LockEvent, LockWaitEvent},
    testing::{Bytes, Tables, exec, relative},
};

fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn wait(at_ns: u64, lock: u64, (tid, holder_tid): (u32, u32), flags: u32) -> Bytes {
    let call = i16::try_from(libc::SYS_pwrite64).unwrap();
    let fixed = LockWaitEvent { at_ns, lock, wait_ns: 3, tid, holder_tid, holder: text("kworker/0:1"), cpu: 1, call };
    Bytes::of(EVENT_LOCK_WAIT, &fixed).flag(flags).u64(0xffff_ffff_8100_0000 + lock)
}

fn lies(at_ns: u64, lock: u64, region: u32, cache: &str) -> Bytes {
    let fixed = LockEvent { lock, at_ns, region, object_bytes: 1000, order: 3, cache: text(cache), ..LockEvent::default() };
    Bytes::of(EVENT_LOCK, &fixed)
}

#[test]
fn waits_have_rows_and_so_have_locks() {
    let begin = [exec(5, (7, 7), 7, "/bin/x", "x\0"), exec(6, (8, 8), 8, "/bin/y", "y\0")];
    let events = [
        lies(10, 2040, LOCK_IN_SLAB, "no_such_cache"),
        wait(10, 2040, (7, 8), 4),
        wait(20, 2040, (7, 99), 2),
        lies(29, 64, LOCK_RUN_QUEUE, ""),
        wait(30, 64, (8, 0), 1 | 64),
        // The same memory belongs to another object now.
        lies(40, 2040, LOCK_IN_SLAB, "another_cache"),
        wait(50, 2040, (0, 0), 32 | 128),
    ];
    let tables = Tables::of(&[&begin, &events]);
    let expected = [
        "7 3 0 0 write false false pwrite64 1 -",
        "17 3 0 0 read false false pwrite64 - kworker/0:1",
        "27 3 1 1 - true false pwrite64 - -",
        "47 3 - 2 - false true pwrite64 - -",
    ];
    let columns = "ts_ns dur_ns task_id lock_id mode nested given_up call holder_task_id holder";
    let rows = tables.show("lock_waits", columns);
    assert_eq!(rows.iter().map(|row| relative(row)).collect::<Vec<_>>(), expected);
    // The spool does not name its boot, so nothing is looked up.
    let locks = ["0 no_such_cache+40 rwsem - no_such_cache", "1 lock spinlock - -", "2 another_cache+40 mutex - another_cache"];
    assert_eq!(tables.show("locks", "lock_id name kind named_by cache"), locks);
}

#[test]
fn a_lock_that_nothing_describes_has_a_row() {
    let tables = Tables::of(&[&[wait(10, 5, (7, 0), 8)]]);
    assert_eq!(tables.show("locks", "lock_id name kind cache"), ["0 rtmutex rtmutex -"]);
    assert_eq!(tables.show("lock_waits", "dur_ns lock_id").len(), 1);
}
