//! Tests the files of a recording at each moment of its creation.

use std::{fs, path::Path};

use sysdock_table::{Access, Batch, Capture, Ending, Folder, Manifest, Recording, TableError, rows};

fn commands(count: i32) -> impl Iterator<Item = rows::Commands<'static>> {
    (0..count).map(|comm_id| rows::Commands { comm_id, comm: format!("program {comm_id}").into() })
}

fn open(path: &Path) -> Folder {
    Folder::open(path, Access::default()).unwrap()
}

fn stated(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("recording.json")).unwrap()).unwrap()
}

#[test]
fn a_recording_says_that_it_is_running_until_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    assert_eq!(stated(&path)["captures"][0]["ended_by"], "running");
    recording.write_rows(commands(3)).unwrap();
    assert_eq!(stated(&path)["tables"], serde_json::json!({}), "an open part is not listed");
    recording.finish(Ending::EndOfInput).unwrap();
    let stated = stated(&path);
    assert_eq!((&stated["complete"], &stated["captures"][0]["ended_by"]), (&true.into(), &"end of input".into()));
    let part = &stated["tables"]["commands"]["parts"][0];
    let bytes = fs::read(path.join(part["file"].as_str().unwrap())).unwrap();
    assert_eq!(part["rows"], 3);
    assert_eq!(part["bytes"], bytes.len());
    assert_eq!(part["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(&bytes[..4], b"PAR1");
}

#[test]
fn a_writer_that_is_dropped_leaves_recording_json_readable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows(commands(3)).unwrap();
    drop(recording);
    assert_eq!(stated(&path)["complete"], false);
}

#[test]
fn folders_in_use_are_refused_and_empty_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    Recording::create(folder.path(), Manifest::new("test", "events", "calls")).unwrap();
    assert!(matches!(Recording::create(folder.path(), Manifest::new("test", "events", "calls")), Err(TableError::Exists(_))));
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(Recording::create(&file, Manifest::new("test", "events", "calls")), Err(TableError::Exists(_))));
}

#[test]
fn no_rows_are_a_statement_and_an_empty_batch_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows(commands(0)).unwrap();
    recording.write_batch(&mut Batch::<rows::PathsColumns>::default()).unwrap();
    let tables = recording.finish(Ending::EndOfInput).unwrap().tables;
    assert_eq!((tables["commands"].rows, tables["commands"].parts.len(), tables.len()), (0, 1, 1));
}

#[test]
fn an_abandoned_recording_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows(commands(1)).unwrap();
    recording.abandon();
    assert!(!path.exists());
}

#[test]
fn what_a_dead_writer_left_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows(commands(3)).unwrap();
    recording.checkpoint().unwrap();
    recording.write_rows([rows::Paths { path_id: 0, path: "/a".into(), kind: "file".into() }]).unwrap();
    recording.checkpoint().unwrap();
    recording.write_rows(commands(4)).unwrap();
    drop(recording);
    fs::write(path.join("spool"), "events").unwrap();

    let mut recording = Recording::reopen(open(&path), Manifest::new("again", "events", "calls"), &["commands"]).unwrap();
    assert_eq!(stated(&path)["captures"][0]["recorder"], "again");
    let left: Vec<_> = stated(&path)["tables"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(left, ["commands"]);
    assert!(path.join("spool").exists() && path.join("commands/part-0000.parquet").exists());
    assert!(!path.join("paths/part-0000.parquet").exists() && !path.join("commands/part-0001.parquet").exists());
    recording.write_rows(commands(5)).unwrap();
    recording.finish(Ending::EndOfInput).unwrap();
    let stated = stated(&path);
    assert_eq!(stated["tables"]["commands"]["rows"], 8);
    assert_eq!(stated["tables"]["commands"]["parts"][1]["file"], "commands/part-0001.parquet");
}

#[test]
fn only_unfinished_recordings_are_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let reopened = |keep: &[&str]| Recording::reopen(open(&path), Manifest::new("again", "events", "calls"), keep);
    fs::create_dir(&path).unwrap();
    assert!(matches!(reopened(&[]), Err(TableError::Exists(_))), "nothing in it");
    let recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    recording.finish(Ending::EndOfInput).unwrap();
    assert!(matches!(reopened(&[]), Err(TableError::Exists(_))), "complete");

    let mut text = stated(&path);
    text["complete"] = false.into();
    let part = serde_json::json!({"file": "paths/../../x", "rows": 1, "bytes": 1, "sha256": ""});
    text["tables"]["paths"] = serde_json::json!({"rows": 1, "lost": 0, "parts": [part]});
    fs::write(path.join("recording.json"), text.to_string()).unwrap();
    assert!(matches!(reopened(&["paths"]), Err(TableError::Exists(_))), "a part elsewhere");
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("part-0000.parquet"), "mine").unwrap();
    std::os::unix::fs::symlink(&other, path.join("calls")).unwrap();
    assert!(matches!(reopened(&[]), Err(TableError::Io(..))), "a link in place of a table");
    assert!(other.join("part-0000.parquet").exists());
    fs::remove_file(path.join("calls")).unwrap();
    reopened(&[]).unwrap();
}

#[test]
fn a_capture_is_added_to_a_complete_recording_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let added = || Capture::new("scanner", "files", "scan");
    let mut recording = Recording::create(&path, Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows(commands(3)).unwrap();
    recording.checkpoint().unwrap();
    assert!(matches!(Recording::extend(open(&path), added()), Err(TableError::NotComplete(_))), "it is still running");
    recording.manifest.cover(100, 200);
    recording.finish(Ending::EndOfInput).unwrap();
    let before = stated(&path);

    let mut recording = Recording::extend(open(&path), added()).unwrap();
    assert_eq!((&stated(&path)["complete"], recording.rows("commands")), (&false.into(), 3));
    recording.write_rows(commands(1)).unwrap();
    recording.abandon();
    assert_eq!(stated(&path), before);

    let mut recording = Recording::extend(open(&path), added()).unwrap();
    recording.write_rows(commands(2)).unwrap();
    assert_eq!(recording.rows("commands"), 5);
    recording.manifest.cover(150, 400);
    let manifest = recording.finish(Ending::EndOfInput).unwrap();
    assert_eq!((manifest.started_ns, manifest.duration_ns, manifest.complete), (100, 300, true));
    assert_eq!((manifest.captures.len(), manifest.capture().recorder.as_str()), (2, "scanner"));
    assert_eq!((manifest.tables["commands"].rows, manifest.tables["commands"].parts.len()), (5, 2));

    let recording = Recording::extend(open(&path), added()).unwrap();
    let manifest = recording.finish(Ending::Interrupted).unwrap();
    assert!(!manifest.complete && manifest.captures[1].complete);
}
