//! What a recording looks like on disk, at every moment of its making.

use std::{fs, path::Path};

use sysdock_table::{Column, Ending, Manifest, Recording, TableError};

fn commands(count: i32) -> Vec<Column> {
    let ids = (0..count).map(Some).collect();
    let names = (0..count).map(|id| Some(format!("program {id}"))).collect();
    vec![Column::Int32(ids), Column::String(names)]
}

fn stated(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("recording.json")).unwrap()).unwrap()
}

#[test]
fn a_recording_says_that_it_is_running_until_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test")).unwrap();
    assert_eq!(stated(&path)["ended_by"], "running");
    recording.write("commands", commands(3)).unwrap();
    assert_eq!(stated(&path)["tables"], serde_json::json!({}), "an open part is not listed");
    recording.finish(Ending::EndOfInput).unwrap();
    let stated = stated(&path);
    assert_eq!((&stated["complete"], &stated["ended_by"]), (&true.into(), &"end of input".into()));
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
    let mut recording = Recording::create(&path, Manifest::new("test")).unwrap();
    recording.write("commands", commands(3)).unwrap();
    drop(recording);
    assert_eq!(stated(&path)["complete"], false);
}

#[test]
fn folders_in_use_are_refused_and_empty_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    Recording::create(folder.path(), Manifest::new("test")).unwrap();
    assert!(matches!(Recording::create(folder.path(), Manifest::new("test")), Err(TableError::Exists(_))));
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(matches!(Recording::create(&file, Manifest::new("test")), Err(TableError::Exists(_))));
}

#[test]
fn columns_that_do_not_fit_the_definition_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("test")).unwrap();
    let null = vec![Column::Int32(vec![None]), Column::String(vec![Some("x".into())])];
    assert!(matches!(recording.write("commands", null), Err(TableError::Column(_))), "NULL in a column that has none");
    let types = vec![Column::String(vec![Some("x".into())]), Column::Int32(vec![Some(1)])];
    assert!(matches!(recording.write("commands", types), Err(TableError::Column(_))));
}

#[test]
fn an_abandoned_recording_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    let mut recording = Recording::create(&path, Manifest::new("test")).unwrap();
    recording.write("commands", commands(1)).unwrap();
    recording.abandon();
    assert!(!path.exists());
}
