//! What the fuzzing targets call (feature `fuzzing`), and tests with the inputs that fuzzing has kept.

use std::{fs, path::Path};

use sysdock_table::{Cancel, Manifest, Recording};

use crate::{DiskError, Settings, Target, scan};

// Answers are those of the whole process, in which other tests ask the kernel.
#[cfg(feature = "fuzzing")]
mod mounted;
#[cfg(feature = "fuzzing")]
pub use mounted::Mounted;

/// Any bytes as an image of ext2, ext3 or ext4: no more rows than the image has room for.
///
/// # Panics
/// If there are, or if nothing is said of an image of which nothing can be read.
pub fn ext(data: &[u8], folder: &Path) {
    let (image, rec) = (folder.join("image"), folder.join("rec"));
    fs::write(&image, data).expect("room on the disk");
    // Seeds are cut after their last block in use: the rest reads as zeros.
    let length = data.get(1024..2048).map_or(0, |super_block| {
        let blocks = u32::from_le_bytes(super_block[4..8].try_into().expect("four bytes"));
        u64::from(blocks) << (10 + (super_block[24] & 7))
    });
    if length > data.len() as u64 && length <= 64 << 20 {
        fs::File::options().write(true).open(&image).and_then(|file| file.set_len(length)).expect("room on the disk");
    }
    let mut recording = Recording::create(&rec, Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    let target = Target::of(&image).expect("a file");
    if !target.is_image() {
        return recording.abandon();
    }
    match scan(&target, &mut recording, Settings { threads: 1, ..Settings::default() }, &Cancel::default(), &mut |_| {}) {
        Ok(outcome) => {
            let manifest = recording.finish(outcome.ending).expect("room on the disk");
            let rows = |table: &str| manifest.tables.get(table).map_or(0, |table| table.rows);
            assert!(rows("inodes") <= length / 128);
            assert!(rows("inodes") > 0 || rows("import_issues") > 0, "nothing, and no word of it");
            fs::remove_dir_all(&rec).expect("it is there");
        }
        Err(DiskError::NoFileSystem(_) | DiskError::Refused(..)) => recording.abandon(),
        Err(error) => panic!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_an_image() {
        sysdock_seeds::each("ext", 2_500, 1_250_000, super::ext);
    }
}
