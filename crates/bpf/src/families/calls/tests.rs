//! Tests of rows from events of calls.

use crate::{
    events::{AioDoneEvent, AioSubmitEvent, EVENT_AIO_DONE, EVENT_AIO_SUBMIT},
    testing::{Bytes, EPOCH, Tables, call, exec, exit, path, place, relative, task},
};

const F: u64 = 11;
const D: u64 = 13;

/// An operation of libaio begins, with this control block.
pub(crate) fn aio_submit(at_ns: u64, tid: u32, block: u64, opcode: u32, offset: i64, bytes: i64) -> Bytes {
    let (start_ns, context, file, fd) = (at_ns - 10, 0xc0, 7, 3);
    let fixed = AioSubmitEvent { at_ns, start_ns, context, block, file, offset, bytes, tid, fd, opcode };
    Bytes::of(EVENT_AIO_SUBMIT, &fixed)
}

/// The result of an operation is taken.
pub(crate) fn aio_done(at_ns: u64, tid: u32, block: u64, result: i64) -> Bytes {
    Bytes::of(EVENT_AIO_DONE, &AioDoneEvent { at_ns, context: 0xc0, block, result, tid })
}

#[test]
fn calls_tell_what_they_worked_on_and_where() {
    let events = [
        path(F, &["data", "home"]),
        place(D, &["home"], 0o040_755, 0xef53, 0),
        exec(5, (7, 7), 7, "/usr/bin/prog", "prog\0-v\0"),
        call(7, 10, 5, libc::SYS_openat, 3).fd(3).file(F).extra(0o2_000_002).path(D, "./link"),
        call(7, 20, 5, libc::SYS_read, 100).fd(3).file(F).offset(100).extra(4096),
        call(7, 30, 5, libc::SYS_pread64, 10).fd(3).file(F).offset(4096).extra(10),
        call(7, 40, 5, libc::SYS_lseek, 50).fd(3).file(F).offset(50).extra(0),
        call(7, 50, 5, libc::SYS_write, -28).fd(3).file(F).offset(50).extra(8),
        call(7, 60, 5, libc::SYS_close, 0).fd(3).file(F),
        call(7, 70, 5, libc::SYS_openat, -2).extra(0o101).path(D, "sub/../new"),
        call(7, 80, 5, libc::SYS_stat, 0).path(0, "/etc//passwd"),
        call(7, 90, 5, libc::SYS_newfstatat, 0).path(F, ""),
        call(7, 100, 5, libc::SYS_rename, 0).path(D, "a").path(0, "/b"),
        call(7, 110, 5, libc::SYS_mmap, 0x7f00_0000_0000).fd(3).file(F).mapping(8192, 4096, 5, 2),
        call(7, 120, 5, libc::SYS_mmap, -4096).mapping(4096, 0, 3, 0x22),
        call(7, 130, 5, libc::SYS_fcntl, 9).fd(3).file(F).extra(1030),
        call(7, 140, 5, libc::SYS_sendfile, 30).fd(3).file(F).offset(80).extra(30).second(D, -1),
        call(7, 150, 5, libc::SYS_copy_file_range, 10).fd(3).file(F).offset(10).extra(64).second(F, 210),
        call(7, 160, 5, libc::SYS_read, 1).fd(4).file(99).offset(-1).extra(1),
        call(7, 170, 5, libc::SYS_exit_group, 0).flag(64),
        exit(176, (7, 7), 3 << 8, true),
    ];
    let tables = Tables::of(&[&events]);
    let found = tables.show("calls", "ts_ns dur_ns call class fd path offset_bytes requested_bytes transferred_bytes value errno open_flags to_path to_offset_bytes comm");
    let expected = [
        "10 5 openat open 3 /home/data - - - 3 - O_RDWR|O_CLOEXEC - - prog",
        "20 5 read read 3 /home/data 0 4096 100 - - - - - prog",
        "30 5 pread64 read 3 /home/data 4096 10 10 - - - - - prog",
        "40 5 lseek seek 3 /home/data 50 - - 50 - - - - prog",
        "50 5 write write 3 /home/data 50 8 - - ENOSPC - - - prog",
        "60 5 close close 3 /home/data - - - 0 - - - - prog",
        "70 5 openat open - /home/new - - - - ENOENT O_WRONLY|O_CREAT - - prog",
        "80 5 stat stat - /etc/passwd - - - 0 - - - - prog",
        "90 5 newfstatat stat - /home/data - - - 0 - - - - prog",
        "100 5 rename name - /home/a - - - 0 - - - - prog",
        "110 5 mmap map 3 /home/data - - - 139637976727552 - - - - prog",
        "120 5 mmap memory - - - - - -4096 - - - - prog",
        "130 5 fcntl control 9 /home/data - - - 9 - - - - prog",
        "140 5 sendfile copy 3 /home/data 50 30 30 - - - /home - prog",
        "150 5 copy_file_range copy 3 /home/data 0 64 10 - - - /home/data 200 prog",
        "160 5 read read 4 - - 1 1 - - - - - prog",
        "170 - exit_group process - - - - - - - - - - prog",
    ];
    let found: Vec<String> = found.iter().map(|row| relative(row)).collect();
    assert_eq!(found, expected);
    assert_eq!(
        tables.show("mappings", "path address length_bytes offset_bytes protection shared"),
        ["/home/data 139637976727552 8192 4096 PROT_READ|PROT_EXEC false"]
    );
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
    let task = tables.show("processes", "pid tid ppid start_ts_ns end_ts_ns comm command execs calls exit_code exit_signal");
    assert_eq!(task, [format!("7 7 - {} {} prog prog -v 1 17 3 -", EPOCH + 5, EPOCH + 176)]);
    // 2 ms were measured; samples of 3 and 1 ms.
    let usage = "user_ns system_ns minor_faults major_faults rchar_bytes wchar_bytes device_read_bytes device_write_bytes";
    assert_eq!(tables.show("processes", usage), ["1500000 500000 11 12 13 14 17 18"]);
    let manifest = &tables.manifest;
    assert_eq!((manifest.started_ns, manifest.duration_ns), (EPOCH + 5, 171));
    assert_eq!((manifest.complete, manifest.exit_code, manifest.command.as_deref()), (true, Some(0), Some("make all")));
    assert_eq!((manifest.capture().recorder.as_str(), manifest.capture().clock.kind.as_str()), ("kernel", "epoch"));
}

#[test]
fn messages_of_unknown_size_are_counted() {
    let events = [
        call(7, 10, 5, libc::SYS_sendmmsg, 3).fd(3).file(F).extra(500),
        call(7, 20, 5, libc::SYS_recvmmsg, 0).fd(3).file(F).extra(0),
        call(7, 30, 5, libc::SYS_recvmmsg, 2).fd(3).file(F).extra(u64::MAX),
        call(7, 40, 5, libc::SYS_recvmmsg, -11).fd(3).file(F).extra(u64::MAX),
    ];
    let tables = Tables::of(&[&[path(F, &["f"])], &events]);
    let rows = tables.show("calls", "call class transferred_bytes value errno");
    assert_eq!(rows, ["sendmmsg write 500 3 -", "recvmmsg read 0 - -", "recvmmsg read - 2 -", "recvmmsg read - - EAGAIN"]);
    assert_eq!(tables.manifest.capture().issues["unknown_bytes"], 1);
}

#[test]
fn interrupted_calls_are_one_call() {
    let nap = |start, number, result| call(5, start, 10, number, result);
    let events = [
        nap(100, libc::SYS_clock_nanosleep, -516),
        nap(200, libc::SYS_restart_syscall, 0),
        call(5, 300, 10, libc::SYS_read, -512).fd(3).file(F).extra(8),
        call(5, 310, 10, libc::SYS_write, 1).fd(2).extra(1),
        nap(320, libc::SYS_rt_sigreturn, 0),
        call(5, 330, 10, libc::SYS_read, 8).fd(3).file(F).extra(8),
        nap(400, libc::SYS_pause, -514),
        nap(420, libc::SYS_rt_sigreturn, -4),
        nap(500, libc::SYS_wait4, -512),
        exit(600, (5, 5), 15, true),
    ];
    let tables = Tables::of(&[&[path(F, &["f"])], &events]);
    let calls: Vec<String> =
        tables.show("calls", "ts_ns dur_ns call transferred_bytes value errno").iter().map(|row| relative(row)).collect();
    assert_eq!(
        calls,
        [
            "100 20 clock_nanosleep - 0 -",
            "300 20 read 8 - -",
            "310 10 write 1 - -",
            "320 10 rt_sigreturn - 0 -",
            "400 10 pause - - ERESTARTNOHAND",
            "420 10 rt_sigreturn - - EINTR",
            "500 10 wait4 - - ERESTARTSYS",
        ]
    );
    assert_eq!(tables.manifest.capture().counts["restarted_calls"], 2);
    assert_eq!(tables.show("processes", "calls exit_signal"), ["7 SIGTERM"]);
}

#[test]
fn a_directory_that_was_entered_is_the_one_after_the_call() {
    let events = [
        place(D, &["sub", "home"], 0o040_755, 0xef53, 0),
        exec(5, (7, 7), 7, "./prog", "prog\0"),
        call(7, 4, 3, libc::SYS_execve, 0),
        call(7, 10, 5, libc::SYS_chdir, 0).path(D, "sub"),
        call(7, 20, 5, libc::SYS_chdir, -2).path(D, "none"),
        call(7, 30, 5, libc::SYS_chdir, 0).path(0, "/etc/"),
        exec(40, (7, 7), 7, "./other", "other\0"),
        call(7, 39, 3, libc::SYS_execve, 0),
    ];
    let tables = Tables::of(&[&events]);
    let expected = ["/srv/prog prog", "/home/sub prog", "/home/sub/none prog", "/etc prog", "./other prog"];
    assert_eq!(tables.show("calls", "path comm"), expected);
    let kinds = tables.show("paths", "path kind");
    assert_eq!(kinds, ["/srv/prog file", "/home/sub directory", "/home/sub/none file", "/etc directory", "./other file"]);
}

#[test]
fn operations_of_libaio_are_joined_with_their_results() {
    let events = [
        // The result was taken before io_submit had returned.
        aio_done(100, 6, 0xb1, 512),
        aio_submit(110, 5, 0xb1, 0, 4096, 512),
        aio_submit(120, 5, 0xb2, 8, 0, 8192),
        aio_done(150, 5, 0xb2, -28),
        aio_submit(160, 5, 0xb3, 3, -1, -1),
        aio_done(170, 5, 0xb3, 0),
        // The program took the result itself, and used the control block again; the second
        // operation was still in progress at the end.
        aio_submit(200, 5, 0xb4, 0, 1, 2),
        aio_submit(210, 5, 0xb4, 0, 3, 4),
        aio_done(300, 5, 0xb9, 1),
    ];
    let tables = Tables::of(&[&[task(1, (5, 5), 1, "x", "x\0"), task(1, (5, 6), 1, "x", ""), path(7, &["f"])], &events]);
    let mut rows: Vec<String> = tables
        .show("calls", "ts_ns dur_ns call class offset_bytes requested_bytes transferred_bytes errno via")
        .iter()
        .map(|row| relative(row))
        .collect();
    rows.sort();
    assert_eq!(
        rows,
        [
            "100 0 aio_pread read 4096 512 512 - libaio",
            "110 40 aio_pwritev write 0 8192 - ENOSPC libaio",
            "150 20 aio_fsync sync - - - - libaio",
            "190 - aio_pread read 1 2 - - libaio",
            "200 - aio_pread read 3 4 - - libaio",
        ]
    );
    assert_eq!(tables.manifest.capture().issues["invisible_io"], 1);
}

#[test]
fn calls_that_move_one_position_at_a_time_are_marked() {
    let threads = [7, 8].map(|tid| task(1, (7, tid), 1, "x", "x\0"));
    let read = |tid, at| call(tid, at, 10, libc::SYS_read, 5).fd(3).file(F).offset(50).extra(5);
    let preadv2 = |tid, at| call(tid, at, 10, libc::SYS_preadv2, 5).fd(3).file(F).offset(50).extra(5);
    let splice = |tid, at, at_position| {
        call(tid, at, 10, libc::SYS_splice, 5).fd(4).file(D).offset(50).extra(5).second_at(F, 60, 3, at_position)
    };
    let sendfile = |tid, at, from| call(tid, at, 10, libc::SYS_sendfile, 5).fd(from).file(F).second_at(D, -1, 9, 1);
    let events = [
        // In the order of their ends: the second of each pair begins within the first.
        [read(7, 100), read(8, 105)],
        [read(7, 200), preadv2(8, 205)],
        [read(7, 300), preadv2(8, 305).at_position()],
        [read(7, 400), splice(8, 405, 1)],
        [read(7, 500), splice(8, 505, 2)],
        [splice(7, 600, 1), splice(8, 605, 1)],
        [sendfile(7, 700, 3).offset(50), sendfile(8, 705, 3).offset(50)],
        [sendfile(7, 800, 3).offset(50), sendfile(8, 805, 4).offset(50)],
        [read(7, 900), call(8, 905, 10, libc::SYS_lseek, 0).fd(3).file(F).offset(0)],
    ];
    let tables = Tables::of(&[&[path(F, &["f"]), path(D, &["d"])], &threads, &events.concat()]);
    let rows = tables.show("calls", "ts_ns offset_uncertain");
    let marked: Vec<String> = rows.iter().map(|row| relative(row)).filter(|row| row.ends_with("true")).collect();
    let starts: Vec<&str> = marked.iter().map(|row| row.split(' ').next().unwrap()).collect();
    assert_eq!(starts, ["100", "105", "300", "305", "500", "505", "600", "605", "700", "705", "900"]);
}

#[test]
fn a_second_file_of_an_earlier_recorder_is_read() {
    let mut copy = call(7, 10, 5, libc::SYS_sendfile, 30).fd(3).file(F).offset(80).extra(30).second(D, 70);
    // The event has neither a second descriptor nor positions.
    copy.body.truncate(copy.body.len() - 8);
    copy.body[9] &= 0x7f;
    let tables = Tables::of(&[&[path(F, &["f"]), path(D, &["d"]), copy]]);
    assert_eq!(tables.show("calls", "call path offset_bytes to_path to_offset_bytes"), ["sendfile /f 50 /d 40"]);
}
