//! Writes what a method finds: blocks of rows for `inodes`, `extents`, `paths`, `free_extents` and `layout`.

use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError, readable};

use crate::batch::{Batch, Extent, File, KIND_WORDS, flag};

/// A piece of the device that the file system keeps for itself [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) part: &'static str,
    pub(crate) number: Option<i32>,
    pub(crate) inode: Option<u64>,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
}

/// A piece of free space [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
}

/// Rows on their way to the recording.
pub(crate) struct Tables<'a> {
    recording: &'a mut Recording,
    files: Vec<File>,
    path_ids: Vec<Option<i32>>,
    extents: Vec<(u64, Extent)>,
    paths: Vec<(String, &'static str)>,
    free: Vec<Free>,
    parts: Vec<Part>,
    next_path: i32,
    /// Files taken so far.
    pub(crate) taken: u64,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(recording: &'a mut Recording) -> Self {
        let (files, path_ids, extents, paths, free, parts) = Default::default();
        Tables { recording, files, path_ids, extents, paths, free, parts, next_path: 0, taken: 0 }
    }

    /// All files of a batch.
    pub(crate) fn batch(&mut self, batch: &Batch) -> Result<(), TableError> {
        let mut names = batch.names();
        let mut extents = batch.extents.iter();
        for file in &batch.files {
            let path = if file.has_name { names.next() } else { None };
            self.path_ids.push(path.map(|_| self.next_path));
            if let Some(path) = path {
                self.next_path = self.next_path.saturating_add(1);
                self.paths.push((readable(path).into_owned(), path_kind(file)));
            }
            self.files.push(*file);
            self.extents.extend(extents.by_ref().take(file.extents as usize).map(|extent| (file.inode.number, *extent)));
        }
        self.taken += batch.files.len() as u64;
        self.write_full_groups()
    }

    pub(crate) fn free(&mut self, free: Free) -> Result<(), TableError> {
        self.free.push(free);
        if self.free.len() >= ROWS_PER_GROUP { self.write_free() } else { Ok(()) }
    }

    pub(crate) fn part(&mut self, part: Part) -> Result<(), TableError> {
        self.parts.push(part);
        if self.parts.len() >= ROWS_PER_GROUP { self.write_parts() } else { Ok(()) }
    }

    /// Write what is left.
    pub(crate) fn finish(mut self) -> Result<(), TableError> {
        self.write_files()?;
        self.write_extents()?;
        self.write_free()?;
        self.write_parts()
    }

    fn write_full_groups(&mut self) -> Result<(), TableError> {
        if self.files.len() >= ROWS_PER_GROUP {
            self.write_files()?;
        }
        if self.extents.len() >= ROWS_PER_GROUP { self.write_extents() } else { Ok(()) }
    }

    fn write_files(&mut self) -> Result<(), TableError> {
        let paths = std::mem::take(&mut self.paths);
        let first = i64::from(self.next_path) - paths.len() as i64;
        if !paths.is_empty() {
            let kinds = Column::words(paths.iter().map(|(_, kind)| Some(*kind)));
            let columns = vec![
                Column::Int32((first..).take(paths.len()).map(|id| i32::try_from(id).ok()).collect()),
                Column::String(paths.into_iter().map(|(path, _)| Some(path)).collect()),
                kinds,
            ];
            self.recording.write("paths", columns)?;
        }
        let (files, path_ids) = (std::mem::take(&mut self.files), std::mem::take(&mut self.path_ids));
        if files.is_empty() {
            return Ok(());
        }
        let each = |value: fn(&File) -> i64| Column::Int64(files.iter().map(|file| Some(value(file))).collect());
        let count = |value: fn(&File) -> Option<u32>| {
            Column::Int32(files.iter().map(|file| value(file).map(|count| count.try_into().unwrap_or(i32::MAX))).collect())
        };
        let columns = vec![
            each(|file| file.inode.number.cast_signed()),
            Column::Int32(path_ids),
            Column::words(files.iter().map(|file| Some(KIND_WORDS[file.inode.kind as usize]))),
            each(|file| file.inode.size.cast_signed()),
            each(|file| file.allocated.cast_signed()),
            count(|file| Some(file.extents)),
            count(|file| Some(file.fragments)),
            count(|file| file.forgiving_fragments),
            count(|file| Some(file.inode.links)),
            Column::Int64(files.iter().map(|file| file.inode.modified_ns).collect()),
        ];
        self.recording.write("inodes", columns)
    }

    fn write_extents(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.extents);
        if rows.is_empty() {
            return Ok(());
        }
        let has_place = |extent: &Extent| extent.flags & flag::NOWHERE == 0;
        let words: Vec<String> = (0..=u8::MAX).map(flag_words).collect();
        let columns = vec![
            Column::Int64(rows.iter().map(|(inode, _)| Some(inode.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|(_, extent)| Some(extent.logical.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|(_, extent)| has_place(extent).then_some(extent.physical.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|(_, extent)| Some(extent.length.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|(_, extent)| extent.stored.map(u64::cast_signed)).collect()),
            Column::words(rows.iter().map(|(_, extent)| Some(words[extent.flags as usize].as_str()))),
            Column::Int32(rows.iter().map(|(_, extent)| Some(extent.device.cast_signed())).collect()),
        ];
        self.recording.write("extents", columns)
    }

    fn write_free(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.free);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::Int64(rows.iter().map(|free| Some(free.physical.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|free| Some(free.length.cast_signed())).collect()),
            Column::Int32(rows.iter().map(|free| Some(free.device.cast_signed())).collect()),
        ];
        self.recording.write("free_extents", columns)
    }

    fn write_parts(&mut self) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.parts);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::words(rows.iter().map(|part| Some(part.part))),
            Column::Int32(rows.iter().map(|part| part.number).collect()),
            Column::Int64(rows.iter().map(|part| part.inode.map(u64::cast_signed)).collect()),
            Column::Int64(rows.iter().map(|part| Some(part.physical.cast_signed())).collect()),
            Column::Int64(rows.iter().map(|part| Some(part.length.cast_signed())).collect()),
            Column::Int32(rows.iter().map(|part| Some(part.device.cast_signed())).collect()),
        ];
        self.recording.write("layout", columns)
    }
}

/// The word of `paths.kind`.
fn path_kind(file: &File) -> &'static str {
    match KIND_WORDS[file.inode.kind as usize] {
        "directory" => "directory",
        "file" => "file",
        _ => "unknown",
    }
}

fn flag_words(flags: u8) -> String {
    let words: Vec<&str> = (0..flag::WORDS.len()).filter(|bit| flags >> bit & 1 != 0).map(|bit| flag::WORDS[bit]).collect();
    words.join("+")
}
