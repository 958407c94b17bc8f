//! Tests of rows from events of requests to a block device.

use crate::{
    events::{EVENT_PAGE_IO, PageIoEvent},
    testing::{Bytes, Tables, call, path, relative},
};

const F: u64 = 11;

/// A request. `file` is an id; if it is 0, the inode determines the file, which all files of
/// [`path`] share.
fn page_io(at_ns: u64, tid: u32, (file, inode): (u64, u64), (offset, bytes): (i64, u32), flags: u32) -> Bytes {
    let fixed = PageIoEvent { at_ns, file, inode, offset, device: 8 << 20, bytes, tid };
    Bytes::of(EVENT_PAGE_IO, &fixed).flag(flags)
}

#[test]
fn requests_to_the_disk_tell_whose_pages_they_are() {
    let events = [
        path(F, &["data", "home"]),
        page_io(10, 7, (F, 4242), (8192, 4096), 2),
        page_io(20, 7, (0, 4242), (-1, 65536), 0),
        page_io(30, 0, (F, 4242), (0, 4096), 1),
        page_io(40, 7, (0, 0), (-1, 512), 8),
        page_io(50, 7, (0, 8), (1024, 1024), 4),
        page_io(60, 7, (99, 5), (0, 4096), 0),
        // Only requests during a call are for its file.
        page_io(70, 7, (0, 0), (-1, 512), 8),
        page_io(85, 7, (0, 0), (-1, 1024), 8 | 1),
        page_io(85, 8, (0, 0), (-1, 2048), 8 | 1),
        call(7, 80, 10, libc::SYS_pwrite64, 1024).fd(3).file(F).offset(0).extra(1024),
    ];
    let tables = Tables::of(&[&events]);
    let expected = [
        "10 0 /home/data readahead file 8192 4096",
        "20 0 /home/data read file - 65536",
        "30 - /home/data write file 0 4096",
        "40 0 - read memory - 512",
        "50 0 - read device 1024 1024",
        "60 0 - read file 0 4096",
        "70 0 - read memory - 512",
        "85 0 /home/data write memory - 1024",
        "85 1 - write memory - 2048",
    ];
    let rows = tables.show("page_io", "ts_ns task_id path kind pages offset_bytes length_bytes");
    assert_eq!(rows.iter().map(|row| relative(row)).collect::<Vec<_>>(), expected);
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
}
