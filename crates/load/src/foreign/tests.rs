//! Tests of odd input, which no tool writes on purpose, and some by mistake. Whole logs are read in
//! `python/tests/native/test_import_load.py`.

use std::{fs, path::PathBuf};

use super::{Log, Reader, Tool, numbers, read, read_by, recognize, reported};
use crate::{Measured, Status};

fn samples() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/load");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_log = |path: &PathBuf| path.extension().is_none_or(|suffix| suffix != "md");
    files.into_iter().filter(is_log).map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
}

/// Checks what holds for any log: all numbers can be summed in SQL, and each row has a rate or a
/// reason.
fn hold(log: &Log, name: &str) {
    for row in &log.measured {
        let rates = [row.bytes_per_s, row.operations_per_s];
        assert!(rates.iter().flatten().all(|rate| rate.is_finite() && *rate >= 0.0), "{name}: {row:?}");
        assert!(row.bytes >= 0 && row.operations >= 0 && row.errors >= 0 && row.processes >= 0, "{name}: {row:?}");
        assert!(row.overlap.is_none_or(|overlap| (0.0..=1.0).contains(&overlap)), "{name}: {row:?}");
        assert!(row.latencies.iter().all(|class| class.low_ns <= class.high_ns && class.operations > 0), "{name}: {row:?}");
        let reason = row.status == Status::Reported || !row.note.is_empty();
        assert!(reason, "{name}: {row:?}");
    }
}

#[test]
fn each_sample_is_recognized_by_its_contents_and_gives_rows() {
    let samples = samples();
    assert!(samples.len() >= 19);
    for (name, text) in samples {
        let tool = recognize(&text[..text.len().min(super::BEGINNING)]).unwrap_or_else(|| panic!("{name}: not recognized"));
        assert!(name.contains(&format!("/{}-", tool.name)), "{name}: taken for {tool:?}");
        let log = read(&text);
        assert!(!log.measured.is_empty(), "{name}: no rows");
        assert!(log.broken.is_empty(), "{name}: {:?}", log.broken);
        hold(&log, &name);
    }
}

/// Pseudo-random numbers, the same on every run.
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize
}

#[test]
fn mutated_samples_give_rows_that_can_be_summed_or_none() {
    const WORDS: [&str; 14] =
        ["nan", "-inf", "1e400", "-1", "99999999999999999999999999", "{", "}", "[", "\"", "\n", "\0", "0", ",", "\u{fffd}"];
    let (mut state, mut rows) = (1, 0);
    for (name, text) in samples() {
        for _ in 0..300 {
            let mut text = text.clone();
            for _ in 0..=random(&mut state) % 4 {
                let place = random(&mut state) % text.len();
                let end = (place + random(&mut state) % 40).min(text.len());
                match random(&mut state) % 4 {
                    0 => drop(text.splice(place..end, WORDS[random(&mut state) % WORDS.len()].bytes())),
                    1 => text.truncate(place.max(1)),
                    2 => text[place] = random(&mut state) as u8,
                    _ => {
                        let copy = text[place..end].to_vec();
                        drop(text.splice(place..place, copy));
                    }
                }
            }
            let _ = recognize(&text);
            let log = read(&text);
            rows += log.measured.len();
            hold(&log, &name);
        }
    }
    assert!(rows > 5000, "{rows} rows: mutations that leave nothing test nothing");
}

#[test]
fn one_log_may_hold_the_output_of_several_tools() {
    let text: Vec<u8> = samples().into_iter().flat_map(|(_, text)| [b"srun: job 1\n".to_vec(), text].concat()).collect();
    let log = read(&text);
    assert_eq!(log.tools.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["elbencho", "fio", "ior", "mdtest"]);
    let apart: usize = samples().iter().map(|(_, text)| read(text).measured.len()).sum();
    assert_eq!(log.measured.len(), apart);
}

/// Reads `dd` lines, each of which is a section.
struct MadeUp;

impl Reader for MadeUp {
    fn tool(&self) -> Tool {
        Tool { name: "dd", shown: "dd", hint: "" }
    }

    fn begins(&self, line: &str) -> bool {
        line.contains(" bytes (")
    }

    fn read_section(&mut self, section: &str, log: &mut Log) {
        let bytes = section.split(' ').next().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        log.take(log.line, Measured { bytes, ..reported(self.tool(), "transfer", "write", 1) });
    }
}

#[test]
fn a_reader_needs_no_more_than_its_trait_and_a_place_in_the_list() {
    let mut readers = super::readers();
    readers.push(Box::new(MadeUp));
    let log = read_by(b"1+0 records out\n512 bytes (512 B) copied\n1024 bytes (1 kB) copied\n", &mut readers);
    assert_eq!(log.measured.iter().map(|row| (row.engine, row.bytes)).collect::<Vec<_>>(), [("dd", 512), ("dd", 1024)]);
    assert_eq!(log.tools.iter().map(|tool| tool.name).collect::<Vec<_>>(), ["dd"]);
}

#[test]
fn a_trace_of_a_tool_is_no_log_of_it() {
    let text = b"1 1.0 execve(\"/usr/bin/fio\", [\"fio\"], 0x7ffe) = 0 <0.1>\n{\n  \"fio version\" : \"fio-3.33\",\n";
    assert_eq!(recognize(text), None);
    assert_eq!(recognize(&text[text.iter().position(|c| *c == b'{').unwrap()..]).map(|tool| tool.name), Some("fio"));
    assert_eq!(recognize(b""), None);
    assert_eq!(recognize(b"\xff\xfe\n{\"a\": 1}\n"), None);
}

/// A document of fio with one job of two processes.
fn fio(write: &str, job: &str) -> Log {
    let entry = format!(
        r#"{{"jobname": "a", "groupid": 0, "error": 0, "job options": {{"rw": "write", "numjobs": "2", "bs": "4k"}}, {job} "write": {{{write}}}}}"#
    );
    read(format!("{{\n\"fio version\" : \"fio-3.36\",\n\"jobs\" : [{entry}]}}\n").as_bytes())
}

#[test]
fn bytes_of_old_versions_are_kib() {
    let old = fio(r#""io_bytes": 8, "bw": 80, "runtime": 100, "total_ios": 2, "clat": {"max": 7}"#, "");
    let new = fio(r#""io_bytes": 8192, "io_kbytes": 8, "bw": 80, "runtime": 100, "total_ios": 2, "clat_ns": {"max": 7000}"#, "");
    for log in [old, new] {
        let row = &log.measured[0];
        assert_eq!((row.bytes, row.bytes_per_s, row.max_ns), (8192, Some(81_920.0), Some(7000)));
    }
}

#[test]
fn processes_that_did_not_run_together_are_said_to() {
    // Grouped: the sum of all times is little more than the longest.
    let log = fio(r#""io_bytes": 8192, "io_kbytes": 8, "runtime": 1000, "total_ios": 2"#, r#""job_runtime": 900,"#);
    assert_eq!(log.measured[0].status, Status::NoOverlap, "{:?}", log.measured[0]);
    let log = fio(r#""io_bytes": 8192, "io_kbytes": 8, "runtime": 1000, "total_ios": 2"#, r#""job_runtime": 1990,"#);
    assert_eq!(log.measured[0].status, Status::Reported);
    // Separate, with start times: the rate counts from the first start to the last end.
    let entry = |start: u64| {
        format!(
            r#"{{"jobname": "a", "groupid": 0, "job_start": {start}, "job options": {{"rw": "write", "numjobs": "2"}},
            "write": {{"io_bytes": 1000000, "io_kbytes": 976, "runtime": 1000, "total_ios": 10}}}}"#
        )
    };
    let text =
        |second: u64| format!("{{\"fio version\": \"fio-3.36\", \"jobs\": [{}, {}]}}", entry(1_700_000_000_000), entry(second));
    let apart = read(text(1_700_000_003_000).as_bytes());
    let row = &apart.measured[0];
    assert_eq!((row.processes, row.status, row.overlap, row.bytes_per_s), (2, Status::NoOverlap, Some(0.0), Some(500_000.0)));
    assert_eq!(row.ended_ns.unwrap() - row.started_ns.unwrap(), 4_000_000_000);
    let together = read(text(1_700_000_000_000).as_bytes());
    assert_eq!((together.measured[0].status, together.measured[0].overlap), (Status::Reported, Some(1.0)));
}

#[test]
fn reads_by_fio_that_memory_may_have_served_are_marked() {
    let status = |options: &str, devices: &str| {
        let text = format!(
            r#"{{"fio version": "fio-3.36", "jobs": [{{"jobname": "a", "groupid": 0, "job options": {{"rw": "read", "size": "4k"{options}}},
            "read": {{"io_bytes": 8192000, "io_kbytes": 8000, "runtime": 1000, "total_ios": 2000}}}}]{devices}}}"#
        );
        read(text.as_bytes()).measured[0].status
    };
    let device = |sectors: u32| format!(r#", "disk_util": [{{"name": "sda", "read_sectors": {sectors}}}]"#);
    assert_eq!(status("", ""), Status::NotKnown);
    assert_eq!(status(r#", "direct": "1""#, ""), Status::Reported);
    assert_eq!(status("", &device(16_000)), Status::Reported);
    assert_eq!(status("", &device(100)), Status::FromMemory);
    assert_eq!(status(r#", "size": "1g""#, ""), Status::Reported);
    assert_eq!(status(r#", "size": "1g", "invalidate": "0""#, ""), Status::NotKnown);
    assert_eq!(status(r#", "size": "1g", "pre_read": "1""#, ""), Status::FromMemory);
}

#[test]
fn impossible_numbers_are_counted_and_nothing_else_is_lost() {
    for bytes in ["-1", "99999999999999999999999", "null", "\"x\"", "[]"] {
        let log = fio(&format!(r#""io_bytes": {bytes}, "io_kbytes": 8, "runtime": 100, "total_ios": 2"#), "");
        assert_eq!((log.measured.len(), log.broken.len()), (0, 1), "{bytes}");
    }
    let log = fio(r#""io_bytes": 8192, "io_kbytes": 8, "runtime": 100, "total_ios": 1e400"#, "");
    assert_eq!((log.measured.len(), log.broken.len()), (0, 1));
    // The output of printf for 0/0, where no number is needed.
    let log = fio(r#""io_bytes": 8192, "io_kbytes": 8, "bw_mean": -nan, "x": [nan,inf], "runtime": 100, "total_ios": 2"#, "");
    assert_eq!((log.measured.len(), log.broken.len()), (1, 0));
}

#[test]
fn deep_and_cut_documents_are_refused_in_linear_time() {
    let deep = format!("{{\"fio version\": {}", "[".repeat(1 << 20));
    let log = read(deep.as_bytes());
    assert_eq!((log.measured.len(), log.broken.len()), (0, 1));
    let many = "{\"fio version\": [\n".repeat(1 << 16);
    assert!(read(many.as_bytes()).measured.is_empty());
    let cut = fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/load/fio-3.33.write.json")).unwrap();
    let log = read(&cut[..cut.len() / 2]);
    assert_eq!((log.measured.len(), log.broken[0].detail.code()), (0, "load_logs/ends_within_document"));
}

#[test]
fn reads_by_ior_that_memory_may_have_served_are_marked() {
    let status = |options: &str, between: &str, nodes: u32| {
        let text = format!(
            "IOR-3.3.0: MPI Coordinated Test of Parallel I/O\nCommand line        : ior {options}\naccess              : file-per-process\n\
            ordering inter file : {between}\nnodes               : {nodes}\ntasks               : 8\n\n\
            access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
            read      100.00     100        0.01        4096       1024.00    0.1        1.0        0.1        1.2        0   \n"
        );
        let log = read(text.as_bytes());
        assert_eq!(log.measured[0].bytes_per_s, Some(104_857_600.0));
        log.measured[0].status
    };
    assert_eq!(status("-w -r -F", "no tasks offsets", 4), Status::NotKnown);
    assert_eq!(status("-F", "no tasks offsets", 4), Status::NotKnown);
    assert_eq!(status("-w -r -F -C", "constant task offset", 4), Status::Reported);
    assert_eq!(status("-wrFC", "constant task offset", 1), Status::NotKnown);
    assert_eq!(status("-w -r -F --posix.odirect", "no tasks offsets", 1), Status::Reported);
    assert_eq!(status("-r -F -o /data/w", "no tasks offsets", 1), Status::Reported);
}

#[test]
fn elbencho_tells_when_the_first_and_the_last_thread_were_done() {
    let csv = "ISO date,label,hosts,threads,block size,direct IO,random,IO depth,operation,time ms [first],time ms [last],IOPS [last],\
        MiB/s [last],entries/s [last],MiB [last],IO lat us [max]\n\
        2024-01-01T00:00:00.000+0100,,2,4,1048576,1,0,1,WRITE,500,1000,64,64,,64,900\n\
        2024-01-01T00:00:01.000+0100,,2,4,1048576,0,0,1,READ,500,1000,64,64,,64,\n\
        2024-01-01T00:00:01.000+0100,,2,4,1048576,0\n";
    let log = read(csv.as_bytes());
    let [write, read_back] = log.measured.as_slice() else { panic!("{:?}", log.measured) };
    assert_eq!((write.processes, write.overlap, write.bytes, write.max_ns), (8, Some(0.5), 64 << 20, Some(900_000)));
    assert_eq!((write.status, read_back.status), (Status::Reported, Status::NotKnown));
    assert_eq!(log.broken.len(), 1);
    let json = r#"{"phase_type": "MKDIRS", "phase_id": "x", "iso_start_date": "2024-01-01T01:00:00.500+0100",
        "config": {"threads": "2", "hosts": "1"}, "first_done": {"elapsed_time_ms": "40"},
        "last_done": {"elapsed_time_ms": "50", "entries\/s": "2000", "entries": "100"}}"#;
    let log = read(json.as_bytes());
    let row = &log.measured[0];
    assert_eq!((row.operation.as_ref(), row.operations, row.operations_per_s), ("mkdir", 100, Some(2000.0)));
    assert_eq!(row.started_ns, Some(1_704_067_200_500_000_000));
    assert_eq!(row.ended_ns, Some(1_704_067_200_550_000_000));
}

#[test]
fn numbers_are_read_as_people_write_them() {
    for (text, bytes) in [("4k", 4096), ("1 MiB", 1 << 20), ("262144 bytes", 262_144), ("1.5g", 3 << 29), ("2KB", 2048), ("7", 7)]
    {
        assert_eq!(numbers::bytes(text), Some(bytes), "{text}");
    }
    for text in ["", "k", "-4k", "4x", "1e9e", "nan", "99999999p"] {
        assert_eq!(numbers::bytes(text), None, "{text}");
    }
    assert_eq!(numbers::milliseconds("2m5.755s"), Some(125_755.0));
    assert_eq!(numbers::milliseconds("125ms"), Some(125.0));
    assert_eq!(numbers::milliseconds("1h1m"), Some(3_660_000.0));
    assert_eq!(numbers::milliseconds("x"), None);
    assert_eq!(numbers::latency_ns("1.5ms"), Some(1_500_000));
    assert_eq!(numbers::iso_ns("1970-01-01T00:00:00Z"), Some(0));
    assert_eq!(numbers::iso_ns("2000-03-01T00:00:00.25+00:00"), Some(951_868_800_250_000_000));
    assert_eq!(numbers::iso_ns("2000-03-01T00:00:00"), None);
}
