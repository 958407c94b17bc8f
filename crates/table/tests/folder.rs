//! Tests what may obstruct a writer: links, folders of other users, modes.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
};

use sysdock_table::{Access, Ending, Folder, Manifest, Recording, TableError, rows};

const NOBODY: u32 = 65_534;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn recorded(folder: &Path, access: Access) {
    let folder = Folder::create(folder, access).unwrap();
    let mut recording = Recording::create_in(folder, Manifest::new("test", "events", "calls")).unwrap();
    recording.write_rows([rows::Commands { comm_id: 0, comm: "ls".into() }]).unwrap();
    recording.finish(Ending::EndOfInput).unwrap();
}

#[test]
fn only_its_owner_can_read_a_recording_unless_it_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    for (name, shared, of_folders, of_files) in [("private", false, 0o700, 0o600), ("shared", true, 0o755, 0o644)] {
        let path = folder.path().join(name);
        recorded(&path, Access { shared, ..Access::default() });
        assert_eq!((mode(&path), mode(&path.join("commands"))), (of_folders, of_folders));
        assert_eq!(mode(&path.join("recording.json")), of_files);
        assert_eq!(mode(&path.join("commands/part-0000.parquet")), of_files);
    }
}

#[test]
fn what_is_added_to_a_shared_recording_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    recorded(&path, Access { shared: true, ..Access::default() });
    Folder::open(&path, Access::default()).unwrap().create_file("new").unwrap();
    assert_eq!(mode(&path.join("new")), 0o644);
}

#[test]
fn links_are_not_followed_and_what_they_lead_to_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let path = folder.path().join("rec");
    let made = Folder::create(&path, Access::default()).unwrap();
    for name in ["recording.json", "recording.json.new", "part"] {
        symlink(&precious, path.join(name)).unwrap();
    }
    symlink(folder.path(), path.join("commands")).unwrap();
    made.replace("recording.json", b"{}").unwrap();
    assert!(made.create_file("part").is_err());
    assert!(made.open_file("part").is_err());
    assert!(made.subfolder("commands").is_err());
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
    assert!(fs::symlink_metadata(path.join("recording.json")).unwrap().is_file());
}

#[test]
fn a_link_to_a_folder_is_no_folder_to_write_to() {
    let folder = tempfile::tempdir().unwrap();
    let (link, elsewhere) = (folder.path().join("link"), folder.path().join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &link).unwrap();
    assert!(matches!(Folder::create(&link, Access::default()), Err(TableError::Exists(_))));
    assert!(matches!(Folder::create(&folder.path().join("link/"), Access::default()), Err(TableError::Exists(_))));
    assert!(matches!(Folder::open(&link, Access::default()), Err(TableError::Io(..))));
}

#[test]
fn an_empty_folder_is_closed_to_others_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rec");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    recorded(&path, Access::default());
    assert_eq!(mode(&path), 0o700);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(Folder::open(&path, Access::default()), Err(TableError::OthersWrite(_))));
}

#[test]
fn only_a_folder_that_was_made_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (made, there) = (folder.path().join("made"), folder.path().join("there"));
    fs::create_dir(&there).unwrap();
    for path in [&made, &there] {
        let mut recording = Recording::create(path, Manifest::new("test", "events", "calls")).unwrap();
        recording.write_rows([rows::Commands { comm_id: 0, comm: "ls".into() }]).unwrap();
        recording.checkpoint().unwrap();
        fs::write(path.join("commands/mine"), "").unwrap();
        recording.abandon();
        assert!(path.join("commands/mine").exists());
    }
    fs::remove_dir_all(&made).unwrap();
    fs::remove_dir_all(there.join("commands")).unwrap();
    for path in [&made, &there] {
        Recording::create(path, Manifest::new("test", "events", "calls")).unwrap().abandon();
    }
    assert!(!made.exists());
    assert_eq!(fs::read_dir(there).unwrap().count(), 0);
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_one_made_for_somebody_is_theirs() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (other, theirs) = (folder.path().join("other"), folder.path().join("theirs"));
    fs::create_dir(&other).unwrap();
    chown(&other, Some(NOBODY), Some(NOBODY)).unwrap();
    let stranger = |result| matches!(result, Err(TableError::Stranger(_, NOBODY)));
    assert!(stranger(Folder::create(&other, Access::default())));
    assert!(stranger(Folder::open(&other, Access::default())));

    let access = Access { owner: Some((NOBODY, NOBODY)), shared: false };
    recorded(&theirs, access);
    for path in ["", "recording.json", "commands", "commands/part-0000.parquet"] {
        let found = fs::metadata(theirs.join(path)).unwrap();
        assert_eq!((found.uid(), found.gid()), (NOBODY, NOBODY), "{path}");
    }
    assert!(Folder::create(&other, access).is_ok());
    let roots = folder.path().join("roots");
    fs::create_dir(&roots).unwrap();
    assert!(matches!(Folder::create(&roots, access), Err(TableError::Stranger(_, 0))));
}

/// The attribute that proves that a recording was made here.
fn noted(folder: &Path) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let length = rustix::fs::getxattr(folder.join("recording.json"), c"user.sysdock.identity", &mut value).ok()?;
    value.truncate(length);
    Some(value)
}

#[test]
fn a_recording_says_which_file_it_is_and_a_copy_is_never_made_to_say_it() {
    let folder = tempfile::tempdir().unwrap();
    let (made, copy) = (folder.path().join("made"), folder.path().join("copy"));
    recorded(&made, Access::default());
    // Not on a file system without user attributes or times of creation.
    let Some(first) = noted(&made) else { return };
    let inode = fs::metadata(made.join("recording.json")).unwrap().ino();
    assert!(first.starts_with(format!("{inode} ").as_bytes()));
    let added = |folder: &Path| {
        let folder = Folder::open(folder, Access::default()).unwrap();
        let capture = Manifest::new("test", "events", "calls").captures.remove(0);
        Recording::extend(folder, capture).unwrap().finish(Ending::EndOfInput).unwrap();
    };
    added(&made);
    assert_ne!(noted(&made).unwrap(), first);
    fs::create_dir(&copy).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o700)).unwrap();
    fs::copy(made.join("recording.json"), copy.join("recording.json")).unwrap();
    assert_eq!(noted(&copy), None);
    added(&copy);
    assert_eq!(noted(&copy), None);
}
