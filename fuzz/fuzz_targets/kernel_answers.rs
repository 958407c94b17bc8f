//! Any bytes as what the kernel answers about a mounted btrfs or xfs, and about the extents of files: no panic, no endless loop.

#![no_main]

use std::{cell::OnceCell, path::Path};

use libfuzzer_sys::fuzz_target;
use sysdock_disk::fuzzing::Mounted;
use sysdock_table::{Manifest, Recording};

thread_local! {
    static DESK: OnceCell<(tempfile::TempDir, Mounted)> = const { OnceCell::new() };
}

fn desk() -> (tempfile::TempDir, Mounted) {
    let folder = sysdock_fuzz::folder();
    let mount = folder.path().join("mount");
    std::fs::create_dir_all(mount.join("folder")).expect("room on the disk");
    let mounted = Mounted::at(&mount);
    (folder, mounted)
}

fn scan(folder: &Path, mounted: &Mounted, data: &[u8]) {
    let mut recording = Recording::create(&folder.join("rec"), Manifest::new("fuzz", "files", "scan")).expect("an empty folder");
    mounted.scan(data, &mut recording);
    recording.abandon();
}

fuzz_target!(|data: &[u8]| {
    DESK.with(|desk| {
        let (folder, mounted) = desk.get_or_init(self::desk);
        scan(folder.path(), mounted, data);
    });
});
