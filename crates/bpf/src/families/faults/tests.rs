//! Tests of rows from events of page faults.

use crate::{
    events::{EVENT_FAULT, FaultEvent},
    testing::{Bytes, Tables, path, relative},
};

const F: u64 = 11;

/// A page fault; `around` is a range of pages, all of which it brought in if the flags are set.
pub(crate) fn fault(
    tid: u32,
    (start_ns, duration_ns): (u64, u64),
    file: u64,
    offset: u64,
    flags: u32,
    (around_page, around_pages): (u64, u32),
) -> Bytes {
    let address = 0x7f00_0000_0000 + offset;
    let brought_in_pages = around_pages;
    let fixed = FaultEvent { start_ns, duration_ns, tid, around_pages, address, file, offset, around_page, brought_in_pages };
    Bytes::of(EVENT_FAULT, &fixed).flag(flags)
}

#[test]
fn faults_tell_what_was_touched_and_how() {
    let events = [
        path(F, &["data", "home"]),
        fault(7, (10, 5), F, 8192, 8 | 64, (0, 16)),
        fault(7, (20, 5), F, 4096, 1 | 2, (0, 0)),
        fault(7, (30, 5), F, 0, 2 | 8 | 16, (0, 0)),
        fault(8, (40, 5), 99, 0, 1 | 4 | 32, (5, 3)),
    ];
    let tables = Tables::of(&[&events]);
    let columns = "ts_ns dur_ns task_id path offset_bytes access major shared was_mapped in_call \
                   fault_around_offset_bytes fault_around_bytes mapped_bytes";
    let expected = [
        "10 5 0 /home/data 8192 read false true false false 0 65536 65536",
        "20 5 0 /home/data 4096 write true false false false - - -",
        "30 5 0 /home/data 0 write false true true false - - -",
        "40 5 1 - 0 execute true false false true 20480 12288 -",
    ];
    assert_eq!(tables.show("file_faults", columns).iter().map(|row| relative(row)).collect::<Vec<_>>(), expected);
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
}
