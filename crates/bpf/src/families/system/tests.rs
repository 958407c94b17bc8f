use crate::{
    events::{EVENT_SYSTEM, SYSTEM_DISKS, SYSTEM_GROUP_IO, SYSTEM_NETWORK, SYSTEM_PRESSURE_IO, SYSTEM_STAT, SystemEvent},
    testing::{Bytes, Tables, relative},
};

fn reading(at_ns: u64, source: u32, text: &str) -> Bytes {
    let source = u16::try_from(source).unwrap();
    let fixed = SystemEvent { at_ns, source, is_missing: 0, length: u32::try_from(text.len()).unwrap() };
    Bytes::of(EVENT_SYSTEM, &fixed).text(text.as_bytes())
}

#[test]
fn lines_of_the_kernel_are_rows() {
    let missing = SystemEvent { at_ns: 60, source: SYSTEM_GROUP_IO as u16, is_missing: 1, length: 0 };
    let events = [
        reading(10, SYSTEM_STAT, "cpu0 1 0 2 300 x\nctxt 77\nprocs_running 3\n"),
        reading(20, SYSTEM_DISKS, " 254 0 vda 5 1 16 2\n 7 0\n"),
        reading(30, SYSTEM_NETWORK, "Inter-| Receive\n    lo: 100 2 0 0 0 0 0 0 101 3 0 0\n"),
        reading(40, SYSTEM_PRESSURE_IO, "some avg10=0.00 avg60=1.00 avg300=0.00 total=12\n"),
        reading(50, SYSTEM_GROUP_IO, "254:0 rbytes=4096 wios=nan\n\n"),
        Bytes::of(EVENT_SYSTEM, &missing),
        // A file of a newer recorder.
        reading(70, 999, "1 2 3"),
    ];
    let tables = Tables::of(&[&events]);
    let rows = tables.show("system_metrics", "ts_ns source object metric unit is_counter");
    assert_eq!(
        rows.iter().map(|row| relative(row)).collect::<Vec<_>>(),
        [
            "10 cpu cpu0 user ns true",
            "10 cpu cpu0 nice ns true",
            "10 cpu cpu0 system ns true",
            "10 cpu cpu0 idle ns true",
            "10 cpu - ctxt count true",
            "10 cpu - procs_running count false",
            "20 disk vda reads count true",
            "20 disk vda read_bytes B true",
            "20 disk vda read_time ns true",
            "30 network lo received_bytes B true",
            "30 network lo received_packets count true",
            "30 network lo receive_errors count true",
            "30 network lo receive_drops count true",
            "30 network lo sent_bytes B true",
            "30 network lo sent_packets count true",
            "30 network lo send_errors count true",
            "30 network lo send_drops count true",
            "40 pressure io some ns true",
            "50 cgroup 254:0 rbytes B true",
            "60 cgroup io missing count false",
        ]
    );
}
