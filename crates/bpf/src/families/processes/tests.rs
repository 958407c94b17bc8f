//! Tests of rows from creations, programs, ends and signals.

use crate::testing::{EPOCH, Tables, call, exec, exit, fork, relative, signal, task};

#[test]
fn tasks_follow_births_execs_and_ends() {
    let first = [
        task(0, (1, 1), 0, "init", "init\0--x\0"),
        exec(100, (10, 10), 10, "/bin/make", "make\0"),
        call(10, 90, 12, libc::SYS_execve, 0),
        fork(210, (10, 10), (11, 11)),
        call(10, 200, 15, libc::SYS_clone, 11),
        fork(220, (10, 10), (10, 12)),
        call(10, 216, 6, libc::SYS_clone3, 12),
        exit(400, (11, 11), 9, true),
        fork(500, (10, 10), (11, 11)),
        exit(600, (11, 11), 2 << 8, true),
        call(77, 650, 1, libc::SYS_getpid, 7),
        exit(700, (10, 10), 0, true),
    ];
    let second = [
        call(11, 230, 5, libc::SYS_getpid, 11),
        exec(300, (11, 11), 11, "./cc1plus-long-name-here", "cc1\0a b\0"),
        call(11, 290, 12, libc::SYS_execve, 0),
        call(12, 310, 2, libc::SYS_gettid, 12),
        exit(320, (10, 12), 0, false),
    ];
    let tables = Tables::of(&[&first, &second]);
    let tasks = tables.show(
        "processes",
        "start_ts_ns pid tid ppid process_id depth comm thread_name command execs calls exit_code exit_signal user_id",
    );
    let tasks: Vec<String> = tasks.iter().map(|row| relative(row)).collect();
    assert_eq!(
        tasks,
        [
            "0 1 1 - 0 0 init init init --x 0 0 - - 1003",
            "100 10 10 - 1 0 make worker make 1 3 0 - 1002",
            "200 11 11 10 2 1 cc1plus-long-na worker cc1 a b 1 2 - SIGKILL 1002",
            "216 10 12 - 1 1 make worker make 0 1 0 - 1002",
            "500 11 11 10 4 1 make worker make 0 0 2 - 1002",
            "650 77 77 - 5 0 - - - 0 1 - - -",
        ]
    );
    let calls = tables.show("calls", "call comm path");
    assert_eq!(calls[0], "execve make /bin/make", "the first exec names the program that it starts");
    assert_eq!(calls[4..6], ["execve make ./cc1plus-long-name-here", "gettid make -"]);
}

#[test]
fn an_exec_by_another_thread_goes_on_as_the_first() {
    let events = [
        exec(1, (20, 20), 20, "/bin/a", "a\0"),
        fork(10, (20, 20), (20, 21)),
        call(21, 12, 1, libc::SYS_gettid, 21),
        exit(30, (20, 20), 0, false),
        exec(40, (20, 20), 21, "/bin/b", "b\0"),
        call(20, 50, 1, libc::SYS_getpid, 20),
        exit(60, (20, 20), 5 << 8, true),
    ];
    let tables = Tables::of(&[&events]);
    let tasks = tables.show("processes", "tid end_ts_ns comm execs calls exit_code");
    assert_eq!(tasks, [format!("20 {} b 2 1 5", EPOCH + 60), format!("21 {} a 0 1 -", EPOCH + 40)]);
}

#[test]
fn signals_have_their_senders() {
    let events = [signal(10, 3, 17, 1, 99), signal(11, 3, 11, 1, 4096), signal(12, 3, 2, 128, 0)];
    let tables = Tables::of(&[&events]);
    assert_eq!(
        tables.show("signals", "signal code sender_pid"),
        ["SIGCHLD CLD_EXITED 99", "SIGSEGV SEGV_MAPERR -", "SIGINT SI_KERNEL -"]
    );
}
