//! From synthetic spools to tables.

use std::{collections::HashMap, fs, path::Path};

use arrow_array::{Array, BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray, types::Int32Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use sysdock_table::{Cancel, Ending, Manifest, Recording, TableError};

use crate::{
    BpfError, End, Note, SPOOL, Spool, convert, salvage,
    testing::{self, Bytes, EPOCH, aio_done, aio_submit, call, exec, exit, fault, fork, page_io, path, place, signal, task},
};

/// The tables of a recording, read back.
struct Tables {
    manifest: Manifest,
    rows: HashMap<&'static str, Vec<HashMap<String, String>>>,
}

impl Tables {
    fn of(cpus: &[&[Bytes]]) -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join(SPOOL);
        testing::spool(&spool, cpus);
        Tables::converted(folder.path(), &spool)
    }

    fn converted(folder: &Path, spool: &Path) -> Tables {
        let rec = folder.join("rec");
        let mut recording = Recording::create(&rec, Manifest::new("test", "events", "calls")).unwrap();
        let ending = convert(spool, &mut recording, &Cancel::default(), &mut |_| {}).unwrap();
        Tables::read(&rec, recording.finish(ending).unwrap())
    }

    fn read(folder: &Path, manifest: Manifest) -> Tables {
        let mut rows = HashMap::new();
        for table in
            ["calls", "paths", "processes", "commands", "signals", "mappings", "file_faults", "file_cache", "import_issues"]
        {
            // Tables of families that were not recorded are not there.
            let parts = manifest.tables.get(table).map_or(&[][..], |entry| &entry.parts);
            rows.insert(table, parts.iter().flat_map(|part| read_part(&folder.join(&part.file))).collect());
        }
        Tables { manifest, rows }
    }

    /// Rows as text, `-` for NULL; `path`, `to_path` and `comm` in the place of their ids.
    fn show(&self, table: &str, columns: &str) -> Vec<String> {
        let value = |row: &HashMap<String, String>, column: &str| {
            let (id, of, name) = match column {
                "path" if table != "paths" => ("path_id", "paths", "path"),
                "to_path" => ("to_path_id", "paths", "path"),
                "comm" if table != "commands" => ("comm_id", "commands", "comm"),
                _ => return row[column].clone(),
            };
            row[id].parse::<usize>().map_or("-".into(), |id| self.rows[of][id][name].clone())
        };
        let columns: Vec<&str> = columns.split(' ').collect();
        let show = |row| columns.iter().map(|column| value(row, column)).collect::<Vec<_>>().join(" ");
        self.rows[table].iter().map(show).collect()
    }
}

fn read_part(part: &Path) -> Vec<HashMap<String, String>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(part).unwrap()).unwrap().build().unwrap();
    let mut rows = Vec::new();
    for batch in reader.map(Result::unwrap) {
        for row in 0..batch.num_rows() {
            let schema = batch.schema();
            let cells = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
                let text = if column.is_null(row) { "-".into() } else { cell(column.as_ref(), row) };
                (field.name().clone(), text)
            });
            rows.push(cells.collect());
        }
    }
    rows
}

fn cell(column: &dyn Array, row: usize) -> String {
    let any = column.as_any();
    if let Some(words) = any.downcast_ref::<DictionaryArray<Int32Type>>() {
        return cell(words.values().as_ref(), words.keys().value(row) as usize);
    }
    let number = any.downcast_ref::<Int64Array>().map(|column| column.value(row).to_string());
    let number = number.or_else(|| any.downcast_ref::<Int32Array>().map(|column| column.value(row).to_string()));
    let text = number.or_else(|| any.downcast_ref::<StringArray>().map(|column| column.value(row).to_string()));
    text.unwrap_or_else(|| any.downcast_ref::<BooleanArray>().unwrap().value(row).to_string())
}

const F: u64 = 11;
const D: u64 = 13;

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
    let found = tables.show("calls", "ts_ns dur_ns call class fd path offset_bytes asked_bytes moved_bytes value errno open_flags to_path to_offset_bytes comm");
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
    let life = tables.show("processes", "pid tid ppid start_ts_ns end_ts_ns comm command execs calls exit_code exit_signal");
    assert_eq!(life, [format!("7 7 - {} {} prog prog -v 1 17 3 -", EPOCH + 5, EPOCH + 176)]);
    // 2 ms were measured; sampled were 3 and 1.
    let usage = "user_ns system_ns minor_faults major_faults rchar_bytes wchar_bytes device_read_bytes device_write_bytes";
    assert_eq!(tables.show("processes", usage), ["1500000 500000 11 12 13 14 17 18"]);
    let manifest = &tables.manifest;
    assert_eq!((manifest.started_ns, manifest.duration_ns), (EPOCH + 5, 171));
    assert_eq!((manifest.complete, manifest.exit_code, manifest.command.as_deref()), (true, Some(0), Some("make all")));
    assert_eq!((manifest.capture().recorder.as_str(), manifest.capture().clock.kind.as_str()), ("kernel", "epoch"));
}

/// The time in the first column from the start on.
fn relative(row: &str) -> String {
    let (time, rest) = row.split_once(' ').unwrap();
    format!("{} {rest}", time.parse::<i64>().unwrap() - EPOCH)
}

#[test]
fn lives_follow_births_execs_and_ends() {
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
    let lives =
        tables.show("processes", "start_ts_ns pid tid ppid process_id depth comm command execs calls exit_code exit_signal");
    let lives: Vec<String> = lives.iter().map(|row| relative(row)).collect();
    assert_eq!(
        lives,
        [
            "0 1 1 - 0 0 init init --x 0 0 - -",
            "100 10 10 - 1 0 make make 1 3 0 -",
            "200 11 11 10 2 1 cc1plus-long-na cc1 a b 1 2 - SIGKILL",
            "216 10 12 - 1 1 make make 0 1 0 -",
            "500 11 11 10 4 1 make make 0 0 2 -",
            "650 77 77 - 5 0 - - 0 1 - -",
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
    let lives = tables.show("processes", "tid end_ts_ns comm execs calls exit_code");
    assert_eq!(lives, [format!("20 {} b 2 1 5", EPOCH + 60), format!("21 {} a 0 1 -", EPOCH + 40)]);
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
        tables.show("calls", "ts_ns dur_ns call moved_bytes value errno").iter().map(|row| relative(row)).collect();
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
fn operations_of_libaio_are_joined_with_their_results() {
    let events = [
        // Its result was taken before io_submit had returned.
        aio_done(100, 6, 0xb1, 512),
        aio_submit(110, 5, 0xb1, 0, 4096, 512),
        aio_submit(120, 5, 0xb2, 8, 0, 8192),
        aio_done(150, 5, 0xb2, -28),
        aio_submit(160, 5, 0xb3, 3, -1, -1),
        aio_done(170, 5, 0xb3, 0),
        // Taken by the program itself, and used again; the second one was still under way at the end.
        aio_submit(200, 5, 0xb4, 0, 1, 2),
        aio_submit(210, 5, 0xb4, 0, 3, 4),
        aio_done(300, 5, 0xb9, 1),
    ];
    let tables = Tables::of(&[&[task(1, (5, 5), 1, "x", "x\0"), task(1, (5, 6), 1, "x", ""), path(7, &["f"])], &events]);
    let mut rows: Vec<String> = tables
        .show("calls", "ts_ns dur_ns call class offset_bytes asked_bytes moved_bytes errno via")
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
fn signals_have_their_senders() {
    let events = [signal(10, 3, 17, 1, 99), signal(11, 3, 11, 1, 4096), signal(12, 3, 2, 128, 0)];
    let tables = Tables::of(&[&events]);
    assert_eq!(
        tables.show("signals", "signal code sender_pid"),
        ["SIGCHLD CLD_EXITED 99", "SIGSEGV SEGV_MAPERR -", "SIGINT SI_KERNEL -"]
    );
}

#[test]
fn lost_events_are_counted_by_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SPOOL);
    let mut spool = Spool::create(&path).unwrap();
    let drops = |cpu, kind, count| Note::Drops { cpu, kind, count, first_ns: 1, last_ns: 2 };
    for note in [drops(0, 1, 5), drops(0, 1, 9), drops(1, 1, 1), drops(0, 5, 2), drops(3, 99, 1)] {
        spool.note(&note).unwrap();
    }
    drop(spool);
    let tables = Tables::converted(folder.path(), &path);
    let lost = |table: &str| tables.manifest.tables[table].lost;
    assert_eq!((lost("calls"), lost("processes"), lost("paths"), tables.manifest.capture().lost), (10, 2, 0, 13));
    assert_eq!((tables.manifest.capture().ended_by, tables.manifest.complete), (Ending::Interrupted, false));
    assert_eq!(tables.manifest.capture().clock.kind, "relative");
}

#[test]
fn what_cannot_be_read_is_counted() {
    let mut short = call(1, 10, 1, libc::SYS_getpid, 1);
    short.body.truncate(32);
    let good = call(1, 5, 1, libc::SYS_getpid, 1);
    let events = [good.clone(), Bytes::new(200).u64(1), good.clone(), short, good];
    let tables = Tables::of(&[&events]);
    assert_eq!(tables.rows["calls"].len(), 2);
    assert_eq!((tables.manifest.capture().issues["broken_event"], tables.manifest.capture().issues["unknown_event"]), (1, 1));
    assert_eq!((tables.manifest.capture().total, tables.manifest.capture().understood), (4, 2));
}

/// One event of every kind, with all that may hang on it.
fn one_of_each() -> Vec<Bytes> {
    vec![
        path(F, &["data", "home"]),
        task(1, (1, 1), 0, "init", "init\0"),
        fork(10, (1, 1), (2, 2)),
        exec(20, (2, 2), 2, "/bin/cp", "cp\0a\0"),
        call(2, 30, 5, libc::SYS_openat, 3).fd(3).file(F).extra(0).path(D, "x"),
        call(2, 40, 5, libc::SYS_rename, 0).path(D, "a").path(D, "b"),
        call(2, 50, 5, libc::SYS_mmap, 4096).fd(3).file(F).mapping(1, 2, 3, 4),
        call(2, 60, 5, libc::SYS_sendfile, 5).fd(3).file(F).second(F, 5),
        signal(70, 2, 15, 0, 1),
        aio_submit(72, 2, 0xb1, 0, 0, 512),
        aio_done(74, 2, 0xb1, 512),
        fault(2, (75, 3), F, 4096, 1, (0, 16)),
        exit(80, (2, 2), 15, true),
    ]
}

#[test]
fn a_spool_cut_anywhere_gives_what_stands_before() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join(SPOOL);
    testing::spool(&whole, &[&one_of_each(), &[call(9, 35, 1, libc::SYS_getpid, 9)]]);
    let bytes = fs::read(&whole).unwrap();
    let mut most = 0;
    // Reading frames is tested for every byte; here a step that meets all parts of a frame will do.
    for end in (0..bytes.len()).step_by(5).chain([bytes.len()]) {
        let folder = tempfile::tempdir().unwrap();
        let cut = folder.path().join(SPOOL);
        fs::write(&cut, &bytes[..end]).unwrap();
        let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("test", "events", "calls")).unwrap();
        match convert(&cut, &mut recording, &Cancel::default(), &mut |_| {}) {
            Ok(ending) => assert_eq!(ending == Ending::EndOfInput, end == bytes.len()),
            Err(error) => assert!(matches!(error, BpfError::NotASpool(_))),
        }
        let rows = recording.finish(Ending::Interrupted).unwrap().tables.get("calls").map_or(0, |calls| calls.rows);
        assert!(rows >= most, "{end}");
        most = rows;
    }
    assert_eq!(most, 6);
}

#[test]
fn events_of_garbage_are_no_danger() {
    let mut random = testing::Random(99);
    for _ in 0..150 {
        let mut events = one_of_each();
        for _ in 0..3 {
            let event = random.below(events.len() as u64) as usize;
            let event = &mut events[event];
            let at = random.below(event.body.len() as u64) as usize;
            match random.below(4) {
                0 => event.flags = random.below(256) as u8,
                1 => event.body.truncate(at),
                2 => event.body[at] = random.below(256) as u8,
                _ => event.body[at..].iter_mut().for_each(|byte| *byte = 0xff),
            }
        }
        Tables::of(&[&events]);
    }
}

#[test]
fn what_a_dead_recorder_left_is_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let rec = folder.path().join("rec");
    let recording = Recording::create(&rec, Manifest::new("kernel", "events", "calls")).unwrap();
    let mut spool = Spool::create(&rec.join(SPOOL)).unwrap();
    spool.append(0, &exec(5, (7, 7), 7, "/bin/x", "x\0").bytes()).unwrap();
    spool.append(0, &call(7, 10, 5, libc::SYS_getpid, 7).bytes()).unwrap();
    spool.flush().unwrap();
    drop(recording);
    let again = || salvage(&rec, &Cancel::default(), &mut |_| {});
    assert!(matches!(again(), Err(BpfError::InUse(_))), "the recorder lives");
    drop(spool);
    let stopped = Cancel::default();
    stopped.request();
    salvage(&rec, &stopped, &mut |_| {}).unwrap();
    let manifest = again().unwrap();
    assert_eq!((manifest.complete, manifest.capture().ended_by), (false, Ending::Interrupted));
    assert_eq!(Tables::read(&rec, manifest).show("calls", "call comm"), ["getpid x"]);
    assert!(rec.join(SPOOL).exists(), "removing it is the caller's");

    fs::write(rec.join(SPOOL), "no spool").unwrap();
    assert!(matches!(again(), Err(BpfError::NotASpool(_))));
}

#[test]
fn a_finished_recording_is_not_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let rec = folder.path().join("rec");
    Recording::create(&rec, Manifest::new("kernel", "events", "calls")).unwrap().finish(Ending::EndOfInput).unwrap();
    let mut spool = Spool::create(&rec.join(SPOOL)).unwrap();
    spool.note(&Note::End(End::default())).unwrap();
    drop(spool);
    let outcome = salvage(&rec, &Cancel::default(), &mut |_| {});
    assert!(matches!(outcome, Err(BpfError::Table(TableError::Exists(_)))));
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
fn faults_tell_what_was_touched_and_how() {
    let events = [
        path(F, &["data", "home"]),
        fault(7, (10, 5), F, 8192, 8 | 64, (0, 16)),
        fault(7, (20, 5), F, 4096, 1 | 2, (0, 0)),
        fault(7, (30, 5), F, 0, 2 | 8 | 16, (0, 0)),
        fault(8, (40, 5), 99, 0, 1 | 4 | 32, (5, 3)),
    ];
    let tables = Tables::of(&[&events]);
    let columns = "ts_ns dur_ns life_id path offset_bytes access major shared was_mapped in_call \
                   around_offset_bytes around_bytes brought_in_bytes";
    let expected = [
        "10 5 0 /home/data 8192 read false true false false 0 65536 65536",
        "20 5 0 /home/data 4096 write true false false false - - -",
        "30 5 0 /home/data 0 write false true true false - - -",
        "40 5 1 - 0 execute true false false true 20480 12288 -",
    ];
    assert_eq!(tables.show("file_faults", columns).iter().map(|row| relative(row)).collect::<Vec<_>>(), expected);
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
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
        // Only what lies in the time of a call is for its file.
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
    let rows = tables.show("file_cache", "ts_ns life_id path kind pages offset_bytes length_bytes");
    assert_eq!(rows.iter().map(|row| relative(row)).collect::<Vec<_>>(), expected);
    assert_eq!(tables.manifest.capture().issues["unknown_path"], 1);
}
