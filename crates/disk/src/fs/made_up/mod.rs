//! A file system that exists in this test only, added as docs/howto/add-a-file-system.md describes:
//! a folder, and a line in a list.
//!
//! Block 0 contains `MADEUPFS` and the number of files; then the number, the first block and the
//! length in blocks of each. All numbers have 8 bytes, least significant first.

use std::{fs::File, io, os::unix::fs::FileExt};

use sysdock_table::facts::disk as facts;

use crate::{
    DiskError, Outcome, Target,
    batch::{Batch, Inode},
    extent::Extent,
    method::{Method, Unable, Work, ending},
    small_tables::{DeviceRow, FileSystemRow},
    tables::{Free, Tables},
    target::TargetKind,
};

const MAGIC: &[u8; 8] = b"MADEUPFS";
const BLOCK_BYTES: u64 = 4096;

struct MadeUp;

impl Method for MadeUp {
    fn name(&self) -> &'static str {
        "made up"
    }

    fn begins_in(&self, image: &File) -> bool {
        let mut magic = [0; 8];
        image.read_exact_at(&mut magic, 0).is_ok() && magic == *MAGIC
    }

    fn takes(&self, target: &Target) -> bool {
        matches!(target.place, TargetKind::Image(_)) && File::open(&target.path).is_ok_and(|image| self.begins_in(&image))
    }

    fn scan(&self, target: &Target, work: &mut Work<'_>) -> Result<Outcome, Unable> {
        let failed = |error| DiskError::Io(target.path.clone(), error);
        let image = File::open(&target.path).map_err(failed)?;
        let files = files(&image).map_err(failed)?;
        let size_bytes = image.metadata().map_err(failed)?.len();
        let mut tables = Tables::new(work.recording);
        let (mut batch, mut end) = (Batch::default(), BLOCK_BYTES);
        for [number, first, blocks] in &files {
            let (physical, length) = (first * BLOCK_BYTES, blocks * BLOCK_BYTES);
            end = end.max(physical + length);
            let inode = Inode { number: *number, size: length, links: 1, ..Inode::default() };
            let extent = Extent { physical, length, ..Extent::default() };
            batch.add(inode, Some(format!("/{number}").as_bytes()), &[extent]);
        }
        tables.batch(&batch)?;
        tables.free(Free { physical: end, length: size_bytes - end, device: 0 })?;
        tables.finish()?;
        let reason = facts::own_structures("madeupfs");
        let row = FileSystemRow {
            fs_type: "madeupfs".into(),
            source: target.path.to_string_lossy().into_owned(),
            mount_point: None,
            label: None,
            uuid: None,
            block_bytes: BLOCK_BYTES,
            size_bytes,
            free_bytes: Some(size_bytes - end),
            method: self.name(),
            reason: reason.clone().into(),
            files: files.len() as u64,
            unread_files: 0,
            is_whole: true,
            moment: "unknown",
        };
        row.write(work.recording)?;
        DeviceRow::write(&[DeviceRow::only(&row)], work.recording)?;
        Ok(Outcome {
            ending: ending(work.cancel, false),
            method: self.name(),
            reason: reason.into(),
            files: files.len() as u64,
            unread: 0,
            example: None,
            facts: Vec::new(),
            issues: Vec::new(),
        })
    }
}

/// Number, first block and length in blocks of each file.
fn files(image: &File) -> io::Result<Vec<[u64; 3]>> {
    let number = |at: u64| {
        let mut bytes = [0; 8];
        image.read_exact_at(&mut bytes, at * 8).map(|()| u64::from_le_bytes(bytes))
    };
    (0..number(1)?).map(|file| Ok([number(2 + 3 * file)?, number(3 + 3 * file)?, number(4 + 3 * file)?])).collect()
}

mod tests {
    use std::{fs, path::Path};

    use sysdock_table::{Cancel, Ending, Manifest, Recording};

    use super::{super::METHODS, *};
    use crate::{
        Settings, map,
        scan::{scan_by, target},
    };

    /// A scan that tries these methods first.
    fn scan(methods: &[&dyn Method], path: &Path, folder: &Path) -> Outcome {
        let methods = [methods, &METHODS].concat();
        let target = target(&methods, path).unwrap();
        let mut recording = Recording::create(folder, Manifest::new("disk", "events", "calls")).unwrap();
        let work = Work {
            recording: &mut recording,
            settings: Settings::default(),
            cancel: &Cancel::default(),
            report: &mut |_| {},
            why_not: None,
        };
        let outcome = scan_by(&methods, &target, work).unwrap();
        recording.finish(Ending::EndOfInput).unwrap();
        outcome
    }

    #[test]
    fn a_method_is_a_folder_and_a_line_in_a_list() {
        let folder = tempfile::tempdir().unwrap();
        let (image, recording) = (folder.path().join("image"), folder.path().join("rec"));
        let numbers = [2, 11, 1, 2, 12, 3, 1];
        let mut bytes = MAGIC.to_vec();
        bytes.extend(numbers.iter().flat_map(|number: &u64| number.to_le_bytes()));
        bytes.resize(8 * BLOCK_BYTES as usize, 0);
        fs::write(&image, bytes).unwrap();
        let outcome = scan(&[&MadeUp], &image, &recording);
        assert_eq!((outcome.method, outcome.files), ("made up", 2));
        let recorded = map::read(&recording, None).unwrap();
        let pieces: Vec<_> = recorded
            .space
            .pieces()
            .iter()
            .map(|piece| (piece.start / BLOCK_BYTES, piece.length / BLOCK_BYTES, piece.class))
            .collect();
        let expected = [(1, 2, map::Class::Unfragmented), (3, 1, map::Class::Unfragmented), (4, 4, map::Class::Free)];
        assert_eq!(pieces, expected);
    }

    /// A method that accepts everything, and can read nothing.
    struct Unfit;

    impl Method for Unfit {
        fn name(&self) -> &'static str {
            "unfit"
        }

        fn takes(&self, _target: &Target) -> bool {
            true
        }

        fn scan(&self, _target: &Target, _work: &mut Work<'_>) -> Result<Outcome, Unable> {
            Err(Unable::Because(facts::unfit()))
        }
    }

    #[test]
    fn a_method_that_is_not_able_to_hands_over_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        fs::create_dir(&files).unwrap();
        fs::write(files.join("file"), [1; 5000]).unwrap();
        let outcome = scan(&[&Unfit], &files, &folder.path().join("rec"));
        assert_eq!(outcome.method, "fiemap");
        assert_eq!(outcome.reason.codes(), ["disk/file_by_file", "disk/instead_of"]);
    }
}
