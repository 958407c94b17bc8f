use crate::{
    events::{EVENT_SAMPLE, EVENT_STACK, SAMPLE_CUT, SAMPLE_KERNEL, STACK_OF_SAMPLE, SampleEvent, StackEvent},
    testing::{Bytes, Tables, exec, relative},
};

fn sample(at_ns: u64, stack: u64, call: i64, frames: &[u64], flags: u32) -> Bytes {
    let call = i16::try_from(call).unwrap();
    let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.to_le_bytes()).collect();
    Bytes::of(EVENT_SAMPLE, &SampleEvent { at_ns, stack, tid: 7, cpu: 1, call }).text(&bytes).flag(flags)
}

fn copy(at_ns: u64, id: u64, flags: u32) -> Bytes {
    Bytes::of(EVENT_STACK, &StackEvent { at_ns, id, tid: 7, ..StackEvent::default() }).flag(flags)
}

#[test]
fn samples_have_rows_with_the_stacks_of_program_and_kernel() {
    let write = libc::SYS_write;
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        copy(10, 21, STACK_OF_SAMPLE),
        sample(10, 21, -1, &[], 0),
        sample(15, 21, write, &[9, 8], SAMPLE_KERNEL),
        sample(20, 0, -1, &[9, 8], SAMPLE_KERNEL),
        sample(25, 0, -1, &[9], SAMPLE_KERNEL | SAMPLE_CUT),
        // The stack of this sample was lost.
        sample(30, 22, -1, &[], 0),
    ];
    let tables = Tables::of(&[&events]);
    let rows = tables.show("samples", "ts_ns task_id cpu in_kernel call stack_id kernel_stack_id period_ns");
    assert_eq!(
        rows.iter().map(|row| relative(row)).collect::<Vec<_>>(),
        [
            "10 0 1 false - 0 - 5000000",
            "15 0 1 true write 0 1 5000000",
            "20 0 1 true - - 1 5000000",
            "25 0 1 true - - 2 5000000",
            "30 0 1 false - - - 5000000",
        ]
    );
    // Addresses in the kernel are left out.
    assert_eq!(
        tables.show("stacks", "stack_id frame object function address"),
        ["0 0 - [no file] -", "1 0 [kernel] - -", "1 1 [kernel] - -", "2 0 [kernel] - -", "2 1 - [more frames] -"]
    );
    assert_eq!(tables.manifest.capture().issues.get("stack_cut"), None);
    assert_eq!(tables.manifest.capture().issues.get("stack_lost"), Some(&1));
}

#[test]
fn a_sample_comes_in_between_the_parts_of_a_stack_of_a_call() {
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        copy(10, 30, 0),
        copy(11, 31, STACK_OF_SAMPLE),
        sample(11, 31, libc::SYS_write, &[9], SAMPLE_KERNEL),
    ];
    let tables = Tables::of(&[&events]);
    assert_eq!(tables.show("samples", "stack_id kernel_stack_id"), ["0 1"]);
    assert_eq!(tables.manifest.capture().issues.get("stack_lost"), None);
}

#[test]
fn an_unknown_thread_has_no_rows() {
    let tables = Tables::of(&[&[sample(10, 0, -1, &[], 0)]]);
    assert!(tables.rows["samples"].is_empty());
}
