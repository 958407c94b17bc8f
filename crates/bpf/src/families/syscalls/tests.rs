use super::times::bounds;
use crate::{
    events::{CallTimes, CallTimesEvent, CallTimesKey, EVENT_CALL_TIMES, SUMS_BEFORE},
    testing::{Bytes, Tables, exec, exit},
};

fn sum(pid: u32, number: u16, duration_class: u16, calls: u64, time_ns: u64) -> CallTimesEvent {
    let key = CallTimesKey { started_ns: 4, pid, number, duration_class };
    CallTimesEvent { at_ns: 1000, times: CallTimes { number: calls, failed: 1, time_ns, first_ns: 20 }, key }
}

fn written(sum: &CallTimesEvent) -> Bytes {
    Bytes::of(EVENT_CALL_TIMES, sum)
}

fn written_before(sum: &CallTimesEvent) -> Bytes {
    let mut bytes = written(sum);
    bytes.flags = SUMS_BEFORE as u8;
    bytes
}

#[test]
fn the_last_of_a_sum_is_its_row() {
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        written(&sum(7, 0, 24, 1, 35)),
        written(&sum(7, 0, 24, 3, 100)),
        written(&sum(7, 1, 0, 2, 0)),
        // An unknown thread, a call without a name, and larger numbers than are possible.
        written(&sum(99, 500, u16::MAX, u64::MAX, u64::MAX)),
        exit(60, (7, 7), 0, true),
    ];
    let rows = Tables::of(&[&events]).show("syscall_times", "task_id call class lower_ns upper_ns number failed time_ns");
    assert_eq!(
        rows,
        [
            "0 read read 32 36 3 1 100".to_string(),
            "0 write write 0 1 2 1 0".to_string(),
            format!("- syscall_0x1f4 other {0} {0} {0} 1 {0}", i64::MAX),
        ]
    );
}

#[test]
fn what_was_counted_before_is_taken_off() {
    let before = written_before(&sum(7, 0, 24, 5, 200));
    let only_before = written_before(&sum(7, 2, 24, 5, 200));
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        before,
        only_before,
        written(&sum(7, 0, 24, 8, 300)),
        written(&sum(7, 2, 24, 5, 200)),
    ];
    let rows = Tables::of(&[&events]).show("syscall_times", "call number failed time_ns");
    assert_eq!(rows, ["read 3 0 100"]);
}

#[test]
fn classes_follow_each_other_without_gaps() {
    let mut until = 0;
    for class in 0..=u16::try_from(61 * 8 + 7).unwrap() {
        let (from, next) = bounds(class);
        assert_eq!(from, until, "{class}");
        assert!(next > from && (next - from) * 8 <= from.max(8), "{class}");
        until = next;
    }
    bounds(u16::MAX);
}
