use crate::{
    events::{EVENT_INTERRUPT, EVENT_TIMER, INTERRUPT_HARD, INTERRUPT_SOFT, INTERRUPT_VECTOR, InterruptEvent, TimerEvent},
    testing::{Bytes, Tables, exec, relative},
};

fn soft(begin_ns: u64, at_ns: u64, delay_ns: i64) -> InterruptEvent {
    InterruptEvent { begin_ns, at_ns, inner_ns: 0, delay_ns, tid: 7, woken_tid: 0, number: 3, cpu: 1 }
}

fn interrupt(flag: u32, fixed: &InterruptEvent) -> Bytes {
    Bytes::of(EVENT_INTERRUPT, fixed).flag(flag)
}

#[test]
fn interrupts_have_rows_with_their_own_time_and_delay() {
    let hard = InterruptEvent { inner_ns: 3, delay_ns: -1, tid: 0, woken_tid: 7, number: 36, ..soft(40, 50, 0) };
    let vector = InterruptEvent { delay_ns: -1, number: 1, ..soft(60, 61, 0) };
    // Numbers that no kernel reports: times that run backwards, more inner time than total time, an
    // unknown thread.
    let wrong = InterruptEvent { inner_ns: u64::MAX, tid: 9, number: 77, ..soft(80, 70, -5) };
    let timer = TimerEvent {
        at_ns: 90,
        begin_ns: 85,
        inner_ns: 0,
        delay_ns: 52_000,
        slack_ns: 50_000,
        function: 12,
        tid: 0,
        woken_tid: 7,
        cpu: 0,
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        interrupt(INTERRUPT_SOFT, &soft(10, 30, 4)),
        interrupt(INTERRUPT_HARD, &hard).text(b"virtio1-req.0\0garbage..."),
        interrupt(INTERRUPT_VECTOR, &vector),
        interrupt(INTERRUPT_SOFT, &wrong),
        Bytes::of(EVENT_TIMER, &timer),
    ];
    let tables = Tables::of(&[&events]);
    let rows = tables.show("interrupts", "ts_ns dur_ns self_ns cpu kind name line delay_ns slack_ns task_id woken_task_id");
    let rows: Vec<_> = rows.iter().map(|row| relative(row)).collect();
    assert_eq!(
        rows,
        [
            "10 20 20 1 soft NET_RX - 4 - 0 -",
            "40 10 7 1 hard virtio1-req.0 36 - - - 0",
            "60 1 1 1 vector reschedule - - - 0 -",
            "70 0 0 1 soft 77 - - - - -",
            "85 5 5 0 timer - - 52000 50000 - 0",
        ]
    );
}
