//! Tests of whole conversions from synthetic spools to tables.

use std::fs;

use sysdock_table::{Access, Cancel, Ending, Folder, Recording, TableError};

use crate::{
    BpfError, End, Note, SPOOL, Start, convert,
    families::{
        calls::tests::{aio_done, aio_submit},
        faults::tests::fault,
    },
    salvage,
    testing::{self, Bytes, Tables, call, exec, exit, fork, path, signal, task},
};

const F: u64 = 11;
const D: u64 = 13;

#[test]
fn lost_events_are_counted_by_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SPOOL);
    let mut spool = testing::spool_in(folder.path());
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
fn a_command_without_a_call_was_not_recorded() {
    for (command, ended_by) in [(Some("ls"), Ending::InputError), (None, Ending::EndOfInput)] {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = testing::spool_in(folder.path());
        spool.note(&Note::Start(Box::new(Start { command: command.map(String::from), ..Start::default() }))).unwrap();
        spool.note(&Note::End(End { exit_code: Some(0), ..End::default() })).unwrap();
        drop(spool);
        let tables = Tables::converted(folder.path(), &folder.path().join(SPOOL));
        assert_eq!(tables.manifest.capture().ended_by, ended_by);
    }
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

/// One event of every kind, with all optional parts.
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
    testing::write_spool(folder.path(), &[&one_of_each(), &[call(9, 35, 1, libc::SYS_getpid, 9)]]);
    let bytes = fs::read(&whole).unwrap();
    let mut most = 0;
    // Reading frames is tested for every byte; here a sample is enough.
    let step = bytes.len() / sysdock_seeds::sampled(bytes.len() / 5);
    for end in (0..bytes.len()).step_by(step).chain([bytes.len()]) {
        let folder = tempfile::tempdir().unwrap();
        let cut = folder.path().join(SPOOL);
        fs::write(&cut, &bytes[..end]).unwrap();
        let mut recording = Recording::create(&folder.path().join("rec"), crate::manifest()).unwrap();
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
    for _ in 0..sysdock_seeds::sampled(300) {
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
    let recording = Recording::create(&rec, crate::manifest()).unwrap();
    let mut spool = testing::spool_in(&rec);
    spool.append(0, &exec(5, (7, 7), 7, "/bin/x", "x\0").bytes()).unwrap();
    spool.append(0, &call(7, 10, 5, libc::SYS_getpid, 7).bytes()).unwrap();
    spool.flush().unwrap();
    drop(recording);
    let open = || Folder::open(&rec, Access::default()).unwrap();
    let again = || salvage(open(), &Cancel::default(), &mut |_| {});
    assert!(matches!(again(), Err(BpfError::InUse(_))), "the recorder lives");
    drop(spool);
    let stopped = Cancel::default();
    stopped.request();
    salvage(open(), &stopped, &mut |_| {}).unwrap();
    assert!(rec.join(SPOOL).exists(), "it is still needed");
    let manifest = again().unwrap();
    assert_eq!((manifest.complete, manifest.capture().ended_by), (false, Ending::Interrupted));
    assert_eq!(Tables::read(&rec, manifest).show("calls", "call comm"), ["getpid x"]);
    assert!(!rec.join(SPOOL).exists(), "all of it is in the tables");

    fs::write(rec.join(SPOOL), "no spool").unwrap();
    assert!(matches!(again(), Err(BpfError::NotASpool(_))));
}

#[test]
fn a_finished_recording_is_not_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let rec = folder.path().join("rec");
    Recording::create(&rec, crate::manifest()).unwrap().finish(Ending::EndOfInput).unwrap();
    let mut spool = testing::spool_in(&rec);
    spool.note(&Note::End(End::default())).unwrap();
    drop(spool);
    let outcome = salvage(Folder::open(&rec, Access::default()).unwrap(), &Cancel::default(), &mut |_| {});
    assert!(matches!(outcome, Err(BpfError::Table(TableError::Exists(_)))));
}
