//! Tests of rows from events of requests to block devices.

use crate::{
    events::{BLOCK_AHEAD, BLOCK_FUA, BLOCK_MEMORY, BLOCK_META, BLOCK_PREFLUSH, BLOCK_SYNC, BlockEvent, EVENT_BLOCK},
    testing::{Bytes, Tables, call, path, relative},
};

const F: u64 = 11;
const FLUSH: u32 = 2;
const DISCARD: u32 = 3;

fn device(name: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// A request of one page that was queued, issued and completed at these times.
fn request([queued_ns, issued_ns, at_ns]: [u64; 3]) -> BlockEvent {
    BlockEvent {
        at_ns,
        queued_ns,
        issued_ns,
        sector: 800,
        file: 0,
        inode: 0,
        inode_device: 8 << 20,
        bytes: 4096,
        operation: 0,
        flags: 0,
        error: 0,
        tid: 7,
        depth: 1,
        device: device("sda"),
    }
}

fn event(request: &BlockEvent) -> Bytes {
    Bytes::of(EVENT_BLOCK, request)
}

fn shown(tables: &Tables, columns: &str) -> Vec<String> {
    tables.show("block_requests", columns).iter().map(|row| relative(row)).collect()
}

#[test]
fn times_in_the_queue_and_in_the_device_stand_apart() {
    let events = [
        event(&request([10, 15, 40])),
        event(&BlockEvent { depth: 3, device: device("nvme0n1"), ..request([41, 41, 50]) }),
        // Its issue was not recorded.
        event(&BlockEvent { depth: 0, ..request([20, 60, 60]) }),
        // The clocks disagree.
        event(&request([90, 95, 70])),
    ];
    let tables = Tables::of(&[&events]);
    let expected = ["10 5 25 sda 1", "41 0 9 nvme0n1 3", "20 40 0 sda -", "70 0 0 sda 1"];
    assert_eq!(shown(&tables, "ts_ns queue_ns service_ns device depth"), expected);
}

#[test]
fn requests_name_what_the_device_did_and_its_errors() {
    let flags = BLOCK_SYNC | BLOCK_META | BLOCK_AHEAD | BLOCK_FUA | BLOCK_PREFLUSH;
    let kinds = [
        (0, flags, 0),
        (1, 0, 10),
        (FLUSH, BLOCK_PREFLUSH, 17),
        (DISCARD, BLOCK_SYNC, -5),
        (9, 0, i32::MIN),
        (13, 0, 1),
        (34, 0, 0),
    ];
    let events = (1..).zip(kinds).map(|(at, (operation, flags, error))| {
        let sector = if operation == FLUSH { u64::MAX } else { 8 };
        event(&BlockEvent { operation, flags, error, sector, ..request([at, at, at]) })
    });
    let tables = Tables::of(&[&events.collect::<Vec<_>>()]);
    let expected = [
        "1 read sync+metadata+readahead+preflush+fua - 8",
        "2 write  EIO 8",
        "3 flush  other -",
        "4 discard sync EIO 8",
        "5 write zeroes  other 8",
        "6 zone  EOPNOTSUPP 8",
        "7 other  - 8",
    ];
    assert_eq!(shown(&tables, "ts_ns op flags errno sector"), expected);
}

#[test]
fn requests_belong_to_files_and_threads() {
    let events = [
        path(F, &["data", "home"]),
        event(&BlockEvent { file: F, inode: 4242, ..request([5, 8, 10]) }),
        // Its file is known by its inode only.
        event(&BlockEvent { inode: 4242, tid: 0, ..request([11, 11, 20]) }),
        // Its file is unknown. For requests of no process, that is no issue.
        event(&BlockEvent { inode: 5, ..request([21, 21, 30]) }),
        event(&BlockEvent { inode: 5, tid: 0, ..request([31, 31, 40]) }),
        // Only a request that was queued during a call is for the file of the call.
        event(&BlockEvent { flags: BLOCK_MEMORY, ..request([70, 71, 83]) }),
        event(&BlockEvent { flags: BLOCK_MEMORY, ..request([81, 82, 84]) }),
        event(&BlockEvent { flags: BLOCK_MEMORY, tid: 8, ..request([81, 82, 85]) }),
        call(7, 80, 10, libc::SYS_pread64, 1024).fd(3).file(F).offset(0).extra(1024),
    ];
    let tables = Tables::of(&[&events]);
    let expected = ["5 0 /home/data", "11 - /home/data", "21 0 -", "31 - -", "70 0 -", "81 0 /home/data", "81 1 -"];
    assert_eq!(shown(&tables, "ts_ns task_id path"), expected);
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
}
