//! Tests of rows from switches and wake-ups.

use crate::{
    events::{
        EVENT_LOCK_WAIT, EVENT_SWITCH, EVENT_WAKE, LOCK_MUTEX, LockWaitEvent, STATE_DEAD, STATE_SLEEPING, STATE_UNINTERRUPTIBLE,
        SWITCH_PREEMPTED, SWITCH_SHARED, SwitchEvent, WAKE_INTERRUPT, WAKE_NEW, WAKE_OTHER, WakeEvent,
    },
    testing::{Bytes, Tables, call, exec, exit, fork, path, relative, task},
};

const F: u64 = 11;
const NO_CALL: i64 = -1;

/// A thread leaves CPU 0 in a call.
fn leaves(at_ns: u64, from_tid: u32, state: u32, call: i64) -> Bytes {
    let call = i32::try_from(call).expect("a number of a call");
    let state = state as u16;
    Bytes::of(EVENT_SWITCH, &SwitchEvent { at_ns, from_tid, state, call, ..SwitchEvent::default() })
}

fn preempted(at_ns: u64, tid: u32) -> Bytes {
    leaves(at_ns, tid, 0, NO_CALL).flag(SWITCH_PREEMPTED)
}

/// A thread gets CPU 1.
fn returns(at_ns: u64, to_tid: u32) -> Bytes {
    Bytes::of(EVENT_SWITCH, &SwitchEvent { at_ns, to_tid, cpu: 1, call: -1, ..SwitchEvent::default() })
}

fn wake(at_ns: u64, tid: u32, waker_tid: u32, flags: u32) -> Bytes {
    let mut waker = [0; 16];
    if flags & WAKE_OTHER != 0 {
        waker[..7].copy_from_slice(b"kworker");
    }
    Bytes::of(EVENT_WAKE, &WakeEvent { at_ns, tid, waker_tid, waker }).flag(flags)
}

fn shown(tables: &Tables, table: &str, columns: &str) -> Vec<String> {
    tables.show(table, columns).iter().map(|row| relative(row)).collect()
}

#[test]
fn absences_have_rows() {
    let events = [
        path(F, &["data", "home"]),
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        // It waits for the disk in a read.
        leaves(20, 7, STATE_UNINTERRUPTIBLE, libc::SYS_read),
        wake(50, 7, 0, WAKE_INTERRUPT),
        // Only the first wake-up counts.
        wake(55, 7, 99, WAKE_OTHER),
        returns(60, 7),
        // It is preempted within the call.
        leaves(62, 7, 0, libc::SYS_read).flag(SWITCH_PREEMPTED),
        returns(64, 7),
        call(7, 15, 55, libc::SYS_read, 10).fd(3).file(F),
        // It is preempted after the end of the call, on the way back to the program.
        leaves(72, 7, 0, libc::SYS_read).flag(SWITCH_PREEMPTED),
        returns(75, 7),
        call(7, 77, 1, libc::SYS_getpid, 7),
        leaves(80, 7, STATE_SLEEPING, libc::SYS_nanosleep),
        // It is woken before it sleeps: this wake-up does not count.
        wake(90, 7, 99, WAKE_OTHER),
        returns(95, 7),
        wake(97, 7, 99, WAKE_OTHER),
        leaves(100, 7, STATE_SLEEPING, libc::SYS_futex),
        exit(120, (8, 8), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    let rows = shown(&tables, "run_states", "ts_ns dur_ns wait_ns task_id state cause waker cpu call class path");
    let expected = [
        "20 40 30 0 uninterruptible disk interrupt 1 read read /home/data",
        "62 2 0 0 preempted - - 1 read read /home/data",
        "72 3 0 0 preempted - - 1 - - -",
        "80 15 10 0 sleeping timer kworker 1 nanosleep wait -",
        // It is away until recording ends.
        "100 20 20 0 sleeping lock - - futex lock -",
    ];
    assert_eq!(rows, expected);
    assert_eq!(tables.manifest.tables["run_states"].lost, 0);
}

#[test]
fn a_wait_that_another_recorded_thread_ends_is_not_for_the_disk() {
    let events = [
        path(F, &["data", "home"]),
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        fork(6, (7, 7), (7, 8)),
        leaves(20, 7, STATE_UNINTERRUPTIBLE, libc::SYS_write),
        wake(50, 7, 8, 0),
        returns(60, 7),
        call(7, 15, 55, libc::SYS_write, 10).fd(3).file(F),
        exit(120, (7, 7), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    let rows = shown(&tables, "run_states", "ts_ns wait_ns state cause waker_task_id call path");
    assert!(rows.contains(&"20 30 uninterruptible kernel 1 write /home/data".to_owned()), "{rows:?}");
}

#[test]
fn a_lock_of_a_program_has_a_holder() {
    let waits = |at_ns, from_tid, holder_tid| {
        let (state, call) = (STATE_SLEEPING as u16, libc::SYS_futex as i32);
        Bytes::of(EVENT_SWITCH, &SwitchEvent { at_ns, from_tid, state, call, holder_tid, ..SwitchEvent::default() })
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        fork(6, (7, 7), (7, 8)),
        exec(7, (9, 9), 9, "/bin/y", "y\0"),
        waits(10, 7, 8),
        returns(11, 7),
        // Itself, an unknown thread, and a thread of another process: numbers that mean something
        // else.
        waits(20, 7, 7),
        returns(21, 7),
        waits(30, 7, 555),
        returns(31, 7),
        waits(40, 7, 9),
        returns(41, 7),
        waits(50, 7, 9).flag(SWITCH_SHARED),
        returns(51, 7),
        // A number is left from an earlier call: this wait is for something else.
        leaves(60, 7, STATE_SLEEPING, libc::SYS_nanosleep),
        returns(61, 7),
        exit(120, (7, 7), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    let holder =
        |tid: &str| tables.show("processes", "task_id tid").iter().position(|row| row.ends_with(tid)).expect("it is there");
    let (eight, nine) = (holder(" 8"), holder(" 9"));
    let expected = [format!("10 {eight}"), "20 -".into(), "30 -".into(), "40 -".into(), format!("50 {nine}"), "60 -".into()];
    let rows = shown(&tables, "run_states", "ts_ns holder_task_id task_id");
    let of_seven: Vec<String> =
        rows.iter().filter(|row| row.ends_with(" 0")).map(|row| row.trim_end_matches(" 0").into()).collect();
    assert_eq!(of_seven, expected);
}

#[test]
fn threads_that_were_away_at_the_start_and_lost_events() {
    let events = [
        // The command was held back until now.
        task(2, (7, 7), 1, "", ""),
        returns(4, 7),
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        task(6, (8, 8), 1, "other", "other\0"),
        // Its leaving was not seen.
        returns(20, 8),
        // It left between the two: that event was lost.
        returns(30, 8),
        // A thread that has ended, and an unknown one.
        exit(40, (8, 8), 0, true),
        leaves(45, 8, STATE_DEAD, libc::SYS_exit_group),
        leaves(46, 99, STATE_SLEEPING, NO_CALL),
    ];
    let tables = Tables::of(&[&events]);
    assert_eq!(shown(&tables, "run_states", "ts_ns dur_ns task_id state cause"), ["6 14 1 unknown unknown"]);
    assert_eq!(shown(&tables, "processes", "start_ts_ns tid"), ["4 7", "6 8"]);
}

#[test]
fn switches_without_an_event_are_counted() {
    let left = |at_ns, state, switches| {
        let event = SwitchEvent { at_ns, from_tid: 7, state: state as u16, call: -1, switches, ..SwitchEvent::default() };
        Bytes::of(EVENT_SWITCH, &event)
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        // The number of its earlier switches is unknown.
        left(10, STATE_SLEEPING, u32::MAX),
        wake(20, 7, 0, WAKE_INTERRUPT),
        returns(21, 7),
        // The number wraps; two switches are missing.
        left(30, STATE_SLEEPING, 2),
        // No thread wakes it.
        returns(40, 7),
        // Another CPU is about to wake it while it leaves.
        wake(49, 7, 99, WAKE_OTHER),
        left(50, STATE_SLEEPING, 3),
        returns(60, 7),
        left(70, STATE_SLEEPING, 4),
        wake(75, 7, 0, WAKE_INTERRUPT),
        // It must have come back.
        left(80, STATE_SLEEPING, 5),
        exit(90, (7, 7), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    let rows = shown(&tables, "run_states", "ts_ns dur_ns wait_ns waker cpu");
    assert_eq!(rows, ["10 11 10 interrupt 1", "30 10 10 - 1", "50 10 0 kworker 1", "70 5 5 interrupt -", "80 10 10 - -"]);
    let left_out = [
        r#"[{"code":"issues/left_unseen","times":2}]"#,
        r#"[{"code":"issues/wakeup_unseen","times":1}]"#,
        r#"[{"code":"issues/return_unseen","times":1}]"#,
    ];
    assert_eq!(tables.show("import_issues", "detail"), left_out);
    assert_eq!(tables.manifest.capture().issues["switch_missed"], 4);
}

#[test]
fn the_critical_path_goes_through_wakers_and_makers() {
    // 7 creates 8 and waits for it; 8 waits for a timer, and for 9, which it created and which
    // computes. 8 ends.
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        fork(20, (7, 7), (8, 8)),
        wake(21, 8, 7, WAKE_NEW),
        returns(25, 8),
        leaves(30, 7, STATE_SLEEPING, libc::SYS_wait4),
        leaves(40, 8, STATE_SLEEPING, libc::SYS_clock_nanosleep),
        wake(60, 8, 7, WAKE_INTERRUPT),
        returns(61, 8),
        fork(70, (8, 8), (8, 9)),
        wake(70, 9, 8, WAKE_NEW),
        returns(75, 9),
        leaves(80, 8, STATE_SLEEPING, libc::SYS_futex),
        preempted(85, 9),
        returns(88, 9),
        wake(100, 8, 9, 0),
        leaves(101, 9, STATE_SLEEPING, libc::SYS_futex),
        returns(104, 8),
        exit(110, (8, 8), 0, true),
        wake(111, 7, 8, 0),
        leaves(112, 8, STATE_DEAD, libc::SYS_exit_group),
        returns(115, 7),
        exit(130, (7, 7), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    let expected = [
        "5 0 16 running - -",
        "21 1 4 runnable - -",
        "25 1 15 running - -",
        "40 1 20 waiting timer clock_nanosleep",
        "60 1 1 runnable - clock_nanosleep",
        "61 1 9 running - -",
        "70 2 5 runnable - -",
        "75 2 10 running - -",
        "85 2 3 runnable - -",
        "88 2 12 running - -",
        "100 1 4 runnable - futex",
        "104 1 7 running - -",
        "111 0 4 runnable - wait4",
        "115 0 15 running - -",
    ];
    assert_eq!(shown(&tables, "critical_path", "ts_ns task_id dur_ns part cause call"), expected);
}

#[test]
fn two_that_wake_each_other_at_one_moment_are_no_endless_path() {
    let both = |tid, other| [leaves(50, tid, STATE_SLEEPING, libc::SYS_futex), wake(50, tid, other, 0), returns(50, tid)];
    let begin = [exec(5, (7, 7), 7, "/bin/x", "x\0"), fork(10, (7, 7), (8, 8))];
    let end = [exit(60, (7, 7), 0, true)];
    let events = [&begin[..], &both(7, 8), &both(8, 7), &end].concat();
    let tables = Tables::of(&[&events]);
    let rows = tables.show("critical_path", "dur_ns task_id");
    let sum: i64 = rows.iter().map(|row| row.split(' ').next().unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, 55);
}

#[test]
fn a_thread_that_has_ended_gives_back_what_it_had_before_it_is_gone() {
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        exit(100, (7, 7), 0, true),
        // It waits for a lock of its memory, and has ended then.
        leaves(110, 7, STATE_UNINTERRUPTIBLE, libc::SYS_exit_group),
        wake(120, 7, 0, WAKE_INTERRUPT),
        returns(125, 7),
        leaves(130, 7, STATE_DEAD, libc::SYS_exit_group),
    ];
    let tables = Tables::of(&[&events]);
    assert_eq!(shown(&tables, "processes", "end_ts_ns tid exit_code"), ["130 7 0"]);
    assert_eq!(
        shown(&tables, "run_states", "ts_ns dur_ns wait_ns task_id state call"),
        ["110 15 10 0 uninterruptible exit_group"]
    );
    assert_eq!(
        shown(&tables, "critical_path", "ts_ns dur_ns part"),
        ["5 105 running", "110 10 waiting", "120 5 runnable", "125 5 running"]
    );
}

#[test]
fn an_id_that_is_used_again_is_another_thread() {
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        fork(10, (7, 7), (8, 8)),
        wake(10, 8, 7, WAKE_NEW),
        returns(12, 8),
        exit(20, (8, 8), 0, true),
        leaves(22, 8, STATE_DEAD, libc::SYS_exit_group),
        fork(30, (7, 7), (8, 8)),
        wake(30, 8, 7, WAKE_NEW),
        returns(35, 8),
        exit(40, (8, 8), 0, true),
        leaves(45, 8, STATE_DEAD, libc::SYS_exit_group),
    ];
    let tables = Tables::of(&[&events]);
    let tasks = shown(&tables, "processes", "start_ts_ns end_ts_ns tid");
    assert_eq!(tasks[1..].iter().map(|row| row.split(' ').next().unwrap()).collect::<Vec<_>>(), ["10", "30"]);
    assert_eq!(shown(&tables, "run_states", "ts_ns dur_ns task_id state"), ["10 2 1 new", "30 5 2 new"]);
}

#[test]
fn who_leaves_again_had_come_back() {
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        preempted(10, 7),
        // The events of its returns are missing.
        leaves(20, 7, STATE_SLEEPING, libc::SYS_nanosleep),
        wake(25, 7, 0, WAKE_INTERRUPT),
        call(7, 18, 12, libc::SYS_nanosleep, 0),
        preempted(40, 7),
        returns(45, 7),
    ];
    let tables = Tables::of(&[&events]);
    let expected = ["10 0 preempted - -", "20 5 sleeping - timer", "40 5 preempted 1 -"];
    assert_eq!(shown(&tables, "run_states", "ts_ns dur_ns state cpu cause"), expected);
}

fn got_lock(at_ns: u64, wait_ns: u64, tid: u32) -> Bytes {
    let fixed = LockWaitEvent { at_ns, lock: 5, wait_ns, tid, call: -1, ..LockWaitEvent::default() };
    Bytes::of(EVENT_LOCK_WAIT, &fixed).flag(LOCK_MUTEX)
}

#[test]
fn the_path_goes_on_with_who_has_the_lock() {
    let read = libc::SYS_read;
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        fork(10, (7, 7), (7, 8)),
        returns(12, 8),
        // The first waits for the second, which sleeps before that and until it releases the lock.
        leaves(20, 8, STATE_SLEEPING, libc::SYS_nanosleep),
        leaves(30, 7, STATE_UNINTERRUPTIBLE, read),
        wake(60, 8, 0, WAKE_INTERRUPT),
        returns(60, 8),
        wake(70, 7, 8, 0),
        returns(75, 7),
        got_lock(76, 50, 7),
        call(7, 25, 60, read, 10),
        exit(100, (7, 7), 0, true),
    ];
    let tables = Tables::of(&[&events]);
    assert_eq!(shown(&tables, "run_states", "ts_ns lock_id wait_ns cause")[0], "30 0 40 kernel lock");
    let expected = [
        "5 0 5 running - -",
        "10 1 2 waiting unknown -",
        "12 1 8 running - -",
        "20 1 10 waiting timer -",
        "30 1 30 waiting timer 0",
        "60 1 10 running - 0",
        "70 0 5 runnable - -",
        "75 0 25 running - -",
    ];
    assert_eq!(shown(&tables, "critical_path", "ts_ns task_id dur_ns part cause lock_id"), expected);
}
