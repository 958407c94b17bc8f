//! Any bytes as the recording.json of a folder, and as a part that it lists: no panic when it is drawn, added to, or made anew. What is
//! refused stays as it was. The first four bytes tell how long recording.json is; size and hash of the part are put in for `BYTES` and `HASH`.

#![no_main]

use std::{
    cell::OnceCell,
    fs,
    path::{Path, PathBuf},
};

use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};
use sysdock_disk::map::{self, Curve, Recorded, Settings};
use sysdock_table::{Access, Capture, Folder, Manifest, Recording, TableError, rows::Paths};

const PART: &str = "file_systems/part-0000.parquet";

thread_local! {
    static DESK: OnceCell<(tempfile::TempDir, PathBuf)> = const { OnceCell::new() };
}

fn desk() -> (tempfile::TempDir, PathBuf) {
    map::expect_panics_of_libraries();
    let folder = sysdock_fuzz::folder();
    let recording = folder.path().join("rec");
    drop(Recording::create(&recording, Manifest::new("fuzz", "files", "scan")).expect("an empty folder"));
    (folder, recording)
}

/// The text with what it states of the part.
fn stating(text: &[u8], part: &[u8]) -> Vec<u8> {
    let hash: String = Sha256::digest(part).iter().map(|byte| format!("{byte:02x}")).collect();
    let Ok(text) = std::str::from_utf8(text) else { return text.to_vec() };
    text.replace("BYTES", &part.len().to_string()).replace("HASH", &hash).into_bytes()
}

/// As `sysdock disk map` does, only smaller.
fn draw(found: &Recorded) {
    let window = found.space.whole();
    if window.length == 0 {
        return;
    }
    let settings = Settings { side: 64, curve: Curve::Hilbert, is_worst: false, window, is_search: false };
    let picture = map::draw(&found.space, &settings);
    assert!(map::labels(&found.groups, window, Curve::Hilbert, picture.order).len() <= found.groups.len());
    let packed = map::pack(&found.space, 1000);
    assert!(packed.count <= 1000 && packed.owners.iter().all(|owner| found.inodes.get(*owner as usize).is_some()));
}

fn change(folder: &Path, json: &[u8]) {
    let open = || Folder::open(folder, Access::default()).expect("it is ours");
    let untouched = || fs::read(folder.join("recording.json")).expect("it is there") == json;
    match Recording::extend(open(), Capture::new("fuzz", "files", "scan")) {
        Ok(mut recording) => {
            let rows = recording.rows("file_systems");
            let path = Paths { path_id: 0, path: "/".into(), kind: "directory".into() };
            // There may be a folder or a link in its place.
            let _ = recording.write_rows([path]).and_then(|()| recording.checkpoint());
            recording.abandon();
            let manifest: Manifest =
                serde_json::from_slice(&fs::read(folder.join("recording.json")).unwrap()).expect("as it was");
            assert_eq!(rows, manifest.tables.get("file_systems").map_or(0, |table| table.rows));
        }
        Err(TableError::NotComplete(_)) => assert!(untouched(), "refused, and changed"),
        Err(error) => panic!("{error}"),
    }
    fs::write(folder.join("recording.json"), json).expect("room on the disk");
    match Recording::reopen(open(), Manifest::new("fuzz", "files", "scan"), &["file_systems", "paths"]) {
        Ok(recording) => drop(recording),
        Err(TableError::Exists(_)) => assert!(untouched(), "refused, and changed"),
        Err(error) => panic!("{error}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first_chunk::<4>() else { return };
    let (text, part) = rest.split_at(rest.len().min(u32::from_le_bytes(*length) as usize));
    let json = stating(text, part);
    DESK.with(|desk| {
        let (_, folder) = desk.get_or_init(self::desk);
        fs::create_dir_all(folder.join("file_systems")).expect("room on the disk");
        fs::write(folder.join(PART), part).expect("room on the disk");
        fs::write(folder.join("recording.json"), &json).expect("room on the disk");
        let _ = map::read(folder, Some("/file"));
        map::read(folder, None).iter().for_each(draw);
        change(folder, &json);
    });
});
