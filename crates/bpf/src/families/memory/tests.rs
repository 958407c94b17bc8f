use crate::{
    events::{
        ALLOCATION_CACHE, ALLOCATION_FREE, ALLOCATION_KMALLOC, ALLOCATION_PAGES, AllocationCount, AllocationEvent,
        AllocationSite, EVENT_ALLOCATIONS, EVENT_MEMORY_STALL, MemoryStallEvent, STALL_DIRECT, STALL_GROUP, STALL_OOM_KILL,
    },
    testing::{Bytes, Tables, exec, exit, relative},
};

fn sum(what: u32, number: u64, given_bytes: u32, first_ns: u64) -> AllocationEvent {
    let site = AllocationSite { call_site: 0xffff_ffff_8100_0010, cache: 0, started_ns: 4, pid: 7, what, given_bytes };
    let count = AllocationCount { number, first_ns, ..AllocationCount::default() };
    AllocationEvent { at_ns: 1000, count, site }
}

fn of_cache(what: u32, name: &str) -> AllocationEvent {
    let plain = sum(ALLOCATION_CACHE | what, 3, 0, 30);
    let mut cache = [0; 32];
    cache[..name.len()].copy_from_slice(name.as_bytes());
    let site = AllocationSite { cache: 77, ..plain.site };
    AllocationEvent { count: AllocationCount { cache, object_bytes: 184, slot_bytes: 192, ..plain.count }, site, ..plain }
}

fn written(sum: &AllocationEvent) -> Bytes {
    Bytes::of(EVENT_ALLOCATIONS, sum)
}

#[test]
fn the_last_of_a_sum_is_its_row() {
    let kmalloc = |number, asked_bytes| {
        let sum = sum(ALLOCATION_KMALLOC, number, 64, 20);
        written(&AllocationEvent { count: AllocationCount { asked_bytes, ..sum.count }, ..sum })
    };
    let pages = |last_frame| {
        let sum = sum(ALLOCATION_PAGES, 5, 16384, 40);
        // Both have one call site, because the names of functions are unknown here.
        let frames = [9, last_frame, 0, 0, 0, 0, 0, 0];
        let site = AllocationSite { call_site: last_frame, ..sum.site };
        written(&AllocationEvent { count: AllocationCount { frames, ..sum.count }, site, ..sum })
    };
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        kmalloc(1, 40),
        kmalloc(10, 400),
        written(&sum(ALLOCATION_KMALLOC | ALLOCATION_FREE, 9, 0, 25)),
        written(&of_cache(0, "filp")),
        written(&of_cache(ALLOCATION_FREE, "filp")),
        pages(1),
        pages(2),
        // A sum of an unknown thread, with a larger number than is possible.
        written(&AllocationEvent { site: AllocationSite { pid: 99, ..sum(9, 1, 1, 50).site }, ..sum(9, u64::MAX, 1, 50) }),
    ];
    let tables = Tables::of(&[&events]);
    let rows =
        tables.show("allocations", "first_ts_ns task_id kind freed cache size_bytes page_order number asked_bytes given_bytes");
    let rows: Vec<_> = rows.iter().map(|row| relative(row)).collect();
    assert_eq!(
        rows,
        [
            "20 0 kmalloc false - 64 - 10 400 640",
            "25 0 kmalloc true - - - 9 - -",
            "30 0 cache false filp 192 - 3 552 576",
            "30 0 cache true filp 192 - 3 - 576",
            "40 0 pages false - 16384 2 10 163840 163840",
            "50 - ? false - 1 - 9223372036854775807 9223372036854775807 9223372036854775807",
        ]
    );
}

#[test]
fn a_number_belongs_to_who_had_it_at_the_time() {
    let at = |started_ns, first_ns| {
        let sum = sum(ALLOCATION_KMALLOC, 1, 8, first_ns);
        written(&AllocationEvent { site: AllocationSite { started_ns, ..sum.site }, ..sum })
    };
    let task = |at_ns| [exec(at_ns, (7, 7), 7, "/bin/x", "x\0"), exit(at_ns + 50, (7, 7), 0, true)];
    let events = [&task(100)[..], &task(200), &[at(190, 210), at(90, 110), at(90, 80)]].concat();
    let tables = Tables::of(&[&events]);
    let rows: Vec<_> = tables.show("allocations", "first_ts_ns task_id").iter().map(|row| relative(row)).collect();
    assert_eq!(rows, ["80 0", "210 1"]);
}

#[test]
fn stalls_have_rows() {
    let stall = |kind, begin_ns, at_ns, pages| {
        let fixed = MemoryStallEvent { at_ns, begin_ns, pages, tid: 7, order: 2, call: libc::SYS_read as i16 };
        Bytes::of(EVENT_MEMORY_STALL, &fixed).flag(kind)
    };
    let killed = MemoryStallEvent { at_ns: 60, begin_ns: 60, pages: -1, tid: 7, order: 0, call: -1 };
    let events = [
        exec(5, (7, 7), 7, "/bin/x", "x\0"),
        stall(STALL_DIRECT, 10, 30, 32),
        // Times that run backwards.
        stall(STALL_GROUP, 50, 40, 0),
        Bytes::of(EVENT_MEMORY_STALL, &killed).flag(STALL_OOM_KILL),
    ];
    let tables = Tables::of(&[&events]);
    let rows = tables.show("memory_stalls", "ts_ns dur_ns task_id kind page_order pages call class");
    assert_eq!(
        rows.iter().map(|row| relative(row)).collect::<Vec<_>>(),
        ["10 20 0 direct reclaim 2 32 read read", "40 0 0 group reclaim 2 0 read read", "60 0 0 oom kill - - - -",]
    );
}
