//! Writes what a method finds: rows of `inodes`, `extents`, `paths`, `free_extents` and `layout`, encoded a block at a time.

use sysdock_table::{
    Beside, BlockEncoder, Column, EncodedGroup, GroupEncoder, NULL, ROWS_PER_BLOCK, ROWS_PER_GROUP, Recording, TableError,
    readable,
};

use crate::batch::{Batch, Extent, File, KIND_WORDS, Kind, flag};

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

/// Inode, extent, and its address, or [`NULL`].
type ExtentRow = (u64, Extent, i64);

/// Values of a column for a block of rows, or the one value that all have.
type Fill<T> = fn(&[T], usize, &mut Vec<i64>) -> Option<i64>;

/// Encodes rows of a table of numbers and words.
struct Columns<T> {
    encoder: GroupEncoder,
    fill: Fill<T>,
}

impl<T: Send + 'static> BlockEncoder for Columns<T> {
    type Row = T;
    /// Of the only column of words.
    type Words = Vec<String>;

    fn block(&mut self, rows: &[T]) {
        self.encoder.block(rows.len(), |column, values| (self.fill)(rows, column, values));
    }

    fn finish(&mut self, words: Vec<String>) -> EncodedGroup {
        self.encoder.finish(|_, word| words[word].clone())
    }
}

/// Rows of a table on their way through an encoder, which works beside.
struct Rows<T: Send + 'static> {
    table: &'static str,
    encoder: Beside<Columns<T>>,
    rows: Vec<T>,
    /// With the encoder, of the group.
    sent: usize,
    /// What values of its column of words stand for.
    words: Vec<String>,
    /// Groups that lack the column of this name until [`Rows::complete`].
    late: Option<(&'static str, Vec<EncodedGroup>)>,
}

impl<T: Send + 'static> Rows<T> {
    /// Values of the column `late`, if there is one, become known when all rows have come: they wait in memory, encoded.
    fn new(table: &'static str, fill: Fill<T>, words: Vec<String>, late: Option<&'static str>) -> Self {
        /// Blocks that may wait for the encoder.
        const WAITING: usize = 4;
        let make = move || Columns { encoder: GroupEncoder::of_columns(table, |name| Some(name) != late), fill };
        let late = late.map(|name| (name, Vec::new()));
        Rows { table, encoder: Beside::new(WAITING, make), rows: Vec::with_capacity(ROWS_PER_BLOCK), sent: 0, words, late }
    }

    fn add(&mut self, row: T, recording: &mut Recording) -> Result<(), TableError> {
        self.rows.push(row);
        if self.rows.len() < ROWS_PER_BLOCK {
            return Ok(());
        }
        self.encode();
        if self.sent < ROWS_PER_GROUP {
            return Ok(());
        }
        self.end_group();
        while let Some(group) = self.encoder.done() {
            self.keep(group, recording)?;
        }
        Ok(())
    }

    fn encode(&mut self) {
        self.sent += self.rows.len();
        self.encoder.block(std::mem::replace(&mut self.rows, Vec::with_capacity(ROWS_PER_BLOCK)));
    }

    /// Nothing is waited for.
    fn end_group(&mut self) {
        if !self.rows.is_empty() {
            self.encode();
        }
        if std::mem::take(&mut self.sent) > 0 {
            self.encoder.finish(self.words.clone());
        }
    }

    fn keep(&mut self, group: EncodedGroup, recording: &mut Recording) -> Result<(), TableError> {
        match &mut self.late {
            Some((_, groups)) => groups.push(group),
            None => recording.append(self.table, group)?,
        }
        Ok(())
    }

    /// Write what is left, with the values of the late column, of which there are as many as rows.
    fn finish(&mut self, mut late: impl FnMut() -> i64, recording: &mut Recording) -> Result<(), TableError> {
        self.end_group();
        let rest: Vec<EncodedGroup> = self.encoder.rest().collect();
        rest.into_iter().try_for_each(|group| self.keep(group, recording))?;
        let Some((column, groups)) = self.late.take() else { return Ok(()) };
        let mut encoder = GroupEncoder::of_columns(self.table, |name| name == column);
        for group in groups {
            for block in (0..group.rows()).step_by(ROWS_PER_BLOCK) {
                let rows = ROWS_PER_BLOCK.min(group.rows() - block);
                encoder.block(rows, |_, values| {
                    values.extend((0..rows).map(|_| late()));
                    None
                });
            }
            recording.append(self.table, group.with(encoder.finish(|_, _| String::new())))?;
        }
        Ok(())
    }
}

/// The rows of `paths`, whose text is no number.
#[derive(Default)]
pub(crate) struct PathRows {
    text: String,
    ends: Vec<i32>,
    kinds: Vec<Option<i32>>,
}

impl PathRows {
    pub(crate) fn add(&mut self, path: &[u8], kind: Kind) {
        self.text.push_str(&readable(path));
        self.ends.push(i32::try_from(self.text.len()).expect("written before it grows so long"));
        self.kinds.push(Some(path_kind(kind)));
    }

    /// Whether it is time to write them.
    pub(crate) fn is_full(&self) -> bool {
        // More ends than a column of text may have.
        const MOST: usize = 1 << 28;
        // Fewer than of numbers: while some are written, the next can be made.
        self.ends.len() >= ROWS_PER_GROUP / 8 || self.text.len() >= MOST
    }
}

/// Rows on their way to the recording.
pub(crate) struct Tables<'a> {
    recording: &'a mut Recording,
    files: Rows<(File, Option<i32>)>,
    extents: Rows<ExtentRow>,
    free: Rows<Free>,
    parts: Rows<(Part, usize)>,
    paths: PathRows,
    next_path: i32,
    first_path: i32,
    /// Which files have a path, of those that came before their paths.
    named: Vec<bool>,
    /// Files taken so far.
    pub(crate) taken: u64,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(recording: &'a mut Recording) -> Self {
        Self::with(recording, None)
    }

    /// For files that come without their paths, which follow by [`Tables::late_paths`].
    pub(crate) fn with_late_paths(recording: &'a mut Recording) -> Self {
        Self::with(recording, Some("path_id"))
    }

    fn with(recording: &'a mut Recording, late: Option<&'static str>) -> Self {
        // Ids of paths that another capture wrote are taken.
        let first_path = i32::try_from(recording.rows("paths")).unwrap_or(i32::MAX);
        Tables {
            recording,
            files: Rows::new("inodes", file_column, KIND_WORDS.map(String::from).to_vec(), late),
            extents: Rows::new("extents", extent_column, (0..=u8::MAX).map(flag_words).collect(), None),
            free: Rows::new("free_extents", free_column, Vec::new(), None),
            parts: Rows::new("layout", part_column, Vec::new(), None),
            paths: PathRows::default(),
            next_path: first_path,
            first_path,
            named: Vec::new(),
            taken: 0,
        }
    }

    /// All files of a batch.
    pub(crate) fn batch(&mut self, batch: &Batch) -> Result<(), TableError> {
        self.batch_by(batch, |tables, inode, extent| tables.extent(inode, extent))
    }

    /// All files of a batch, whose extents `write` makes rows of.
    pub(crate) fn batch_by(
        &mut self,
        batch: &Batch,
        mut write: impl FnMut(&mut Self, u64, &Extent) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        let mut names = batch.names();
        let mut extents = batch.extents.iter();
        for file in &batch.files {
            let path = if file.has_name { names.next() } else { None };
            self.file(file, path)?;
            // Those of a method that hands extents over by themselves are not in it.
            for extent in extents.by_ref().take(file.extents as usize) {
                write(self, file.inode.number, extent)?;
            }
        }
        Ok(())
    }

    /// A file; its extents come by [`Tables::extent`].
    pub(crate) fn file(&mut self, file: &File, path: Option<&[u8]>) -> Result<(), TableError> {
        self.taken += 1;
        let path_id = path.map(|_| self.next_path);
        if let Some(path) = path {
            self.next_path = self.next_path.saturating_add(1);
            self.paths.add(path, file.inode.kind);
            if self.paths.is_full() {
                self.write_paths()?;
            }
        }
        self.files.add((*file, path_id), self.recording)
    }

    /// Paths of the next of those files that came without; `named` says for each file whether it has one.
    pub(crate) fn late_paths(&mut self, named: &[bool], paths: PathRows) -> Result<(), TableError> {
        self.named.extend_from_slice(named);
        self.next_path = self.next_path.saturating_add(i32::try_from(paths.ends.len()).unwrap_or(i32::MAX));
        self.paths = paths;
        self.write_paths()
    }

    pub(crate) fn extent(&mut self, inode: u64, extent: &Extent) -> Result<(), TableError> {
        self.placed_extent(inode, extent, None)
    }

    /// One that has an address of its own beside its place on a device.
    pub(crate) fn placed_extent(&mut self, inode: u64, extent: &Extent, address: Option<u64>) -> Result<(), TableError> {
        self.extents.add((inode, *extent, address.map_or(NULL, u64::cast_signed)), self.recording)
    }

    pub(crate) fn free(&mut self, free: Free) -> Result<(), TableError> {
        self.free.add(free, self.recording)
    }

    pub(crate) fn part(&mut self, part: Part) -> Result<(), TableError> {
        let words = &mut self.parts.words;
        let word = words.iter().position(|word| word == part.part).unwrap_or_else(|| {
            words.push(part.part.into());
            words.len() - 1
        });
        self.parts.add((part, word), self.recording)
    }

    /// Write what is left.
    pub(crate) fn finish(mut self) -> Result<(), TableError> {
        // All of them are at their last group at the same time.
        self.files.end_group();
        self.extents.end_group();
        self.write_paths()?;
        let (mut named, mut next) = (self.named.into_iter(), i64::from(self.first_path));
        let path_id = || {
            let has_path = named.next().unwrap_or(false);
            let number = if has_path { next } else { NULL };
            next += i64::from(has_path);
            number
        };
        self.files.finish(path_id, self.recording)?;
        // The others have all their columns.
        self.extents.finish(|| NULL, self.recording)?;
        self.free.finish(|| NULL, self.recording)?;
        self.parts.finish(|| NULL, self.recording)
    }

    fn write_paths(&mut self) -> Result<(), TableError> {
        let PathRows { text, ends, kinds } = std::mem::take(&mut self.paths);
        if ends.is_empty() {
            return Ok(());
        }
        let first = self.next_path.saturating_sub(i32::try_from(ends.len()).unwrap_or(i32::MAX));
        let columns = vec![
            Column::Int32((first..self.next_path).map(Some).collect()),
            Column::Text(text, ends),
            Column::Words(kinds, PATH_KINDS.map(String::from).to_vec()),
        ];
        self.recording.write("paths", columns)
    }
}

/// Fill a column from each row.
fn each<T>(rows: &[T], values: &mut Vec<i64>, value: impl Fn(&T) -> i64) -> Option<i64> {
    values.extend(rows.iter().map(value));
    None
}

/// Fill a column that all rows mostly agree in.
fn equal<T>(rows: &[T], values: &mut Vec<i64>, value: impl Fn(&T) -> i64) -> Option<i64> {
    let first = rows.first().map_or(NULL, &value);
    if rows.iter().all(|row| value(row) == first) { Some(first) } else { each(rows, values, value) }
}

fn count(value: u32) -> i64 {
    i64::from(value.min(i32::MAX.cast_unsigned()))
}

fn file_column(rows: &[(File, Option<i32>)], column: usize, values: &mut Vec<i64>) -> Option<i64> {
    match column {
        0 => each(rows, values, |(file, _)| file.inode.number.cast_signed()),
        1 => each(rows, values, |(_, path)| path.map_or(NULL, i64::from)),
        2 => equal(rows, values, |(file, _)| file.inode.kind as i64),
        3 => each(rows, values, |(file, _)| file.inode.size.cast_signed()),
        4 => each(rows, values, |(file, _)| file.allocated.cast_signed()),
        5 => each(rows, values, |(file, _)| count(file.extents)),
        6 => each(rows, values, |(file, _)| count(file.fragments)),
        7 => each(rows, values, |(file, _)| file.forgiving_fragments.map_or(NULL, count)),
        8 => each(rows, values, |(file, _)| count(file.inode.links)),
        _ => each(rows, values, |(file, _)| file.inode.modified_ns.unwrap_or(NULL)),
    }
}

fn extent_column(rows: &[ExtentRow], column: usize, values: &mut Vec<i64>) -> Option<i64> {
    let place = |extent: &Extent| if extent.flags & flag::NOWHERE == 0 { extent.physical.cast_signed() } else { NULL };
    match column {
        0 => each(rows, values, |(inode, ..)| inode.cast_signed()),
        1 => each(rows, values, |(_, extent, _)| extent.logical.cast_signed()),
        2 => each(rows, values, |(_, extent, _)| place(extent)),
        3 => each(rows, values, |(_, extent, _)| extent.length.cast_signed()),
        4 => equal(rows, values, |(_, extent, _)| extent.stored.map_or(NULL, u64::cast_signed)),
        5 => equal(rows, values, |(_, extent, _)| i64::from(extent.flags)),
        6 => equal(rows, values, |(_, extent, _)| i64::from(extent.device.cast_signed())),
        _ => equal(rows, values, |(.., address)| *address),
    }
}

fn free_column(rows: &[Free], column: usize, values: &mut Vec<i64>) -> Option<i64> {
    match column {
        0 => each(rows, values, |free| free.physical.cast_signed()),
        1 => each(rows, values, |free| free.length.cast_signed()),
        _ => equal(rows, values, |free| i64::from(free.device.cast_signed())),
    }
}

fn part_column(rows: &[(Part, usize)], column: usize, values: &mut Vec<i64>) -> Option<i64> {
    match column {
        0 => equal(rows, values, |(_, word)| *word as i64),
        1 => each(rows, values, |(part, _)| part.number.map_or(NULL, i64::from)),
        2 => each(rows, values, |(part, _)| part.inode.map_or(NULL, u64::cast_signed)),
        3 => each(rows, values, |(part, _)| part.physical.cast_signed()),
        4 => each(rows, values, |(part, _)| part.length.cast_signed()),
        _ => equal(rows, values, |(part, _)| i64::from(part.device.cast_signed())),
    }
}

const PATH_KINDS: [&str; 3] = ["file", "directory", "unknown"];

/// The word of `paths.kind`, as an index into [`PATH_KINDS`].
fn path_kind(kind: Kind) -> i32 {
    match kind {
        Kind::File => 0,
        Kind::Directory => 1,
        _ => 2,
    }
}

fn flag_words(flags: u8) -> String {
    let words: Vec<&str> = (0..flag::WORDS.len()).filter(|bit| flags >> bit & 1 != 0).map(|bit| flag::WORDS[bit]).collect();
    words.join("+")
}
