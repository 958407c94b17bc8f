//! Writes the results of a method: rows of `inodes`, `extents`, `paths`, `free_extents` and
//! `layout`, encoded a block at a time.

use std::marker::PhantomData;

use sysdock_table::{
    Batch as RowBatch, BlockEncoder, EncodedGroup, EncoderThread, GroupEncoder, LateColumn, ROWS_PER_BLOCK, ROWS_PER_GROUP,
    Recording, TableError, readable,
    rows::{
        self, BlockColumns, BlockTexts, ColumnNumber, ExtentsColumns, ExtentsRow, ExtentsTexts, FreeExtentsColumns,
        FreeExtentsRow, InodesColumns, InodesRow, InodesTexts, LayoutColumns, LayoutRow, LayoutTexts, PathsColumns,
    },
};

use crate::{
    batch::{Batch, File, KIND_WORDS, Kind},
    extent::{Extent, flag},
};

/// A range of the device that the file system keeps for itself [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) part: &'static str,
    pub(crate) number: Option<i32>,
    pub(crate) inode: Option<u64>,
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
}

/// A range of free space [B].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Free {
    pub(crate) physical: u64,
    pub(crate) length: u64,
    pub(crate) device: u32,
}

/// A file that will become a row of `inodes`.
struct FileRow {
    file: File,
    path_id: Option<i32>,
}

/// An extent that will become a row of `extents`.
struct ExtentRow {
    inode: u64,
    extent: Extent,
    address: Option<u64>,
}

/// A part that will become a row of `layout`, with the number of its text.
struct PartRow {
    part: Part,
    word: usize,
}

/// The texts of a table, which has at most one column of them.
#[derive(Clone)]
struct Texts(Vec<String>);

/// A table whose rows are of type `T`.
trait TableOf<T>: BlockColumns<T> + BlockTexts<Texts> + 'static {}

impl<T, C: BlockColumns<T> + BlockTexts<Texts> + 'static> TableOf<T> for C {}

/// Encodes rows of a table of numbers and texts.
struct Encoder<C, T> {
    groups: GroupEncoder<C>,
    rows: PhantomData<fn(T)>,
}

impl<C: TableOf<T>, T: Send + 'static> BlockEncoder for Encoder<C, T> {
    type Row = T;
    type End = Texts;
    type Done = EncodedGroup;

    fn block(&mut self, rows: &[T]) {
        self.groups.block(&rows.iter());
    }

    fn finish(&mut self, words: Texts) -> EncodedGroup {
        self.groups.finish(&words)
    }
}

/// Rows of a table that an encoder processes in parallel.
struct Rows<C: TableOf<T>, T: Send + 'static> {
    encoder: EncoderThread<Encoder<C, T>>,
    rows: Vec<T>,
    /// Number of rows of the group that were passed to the encoder.
    sent: usize,
    words: Texts,
    /// Groups that lack this column until [`Rows::complete`].
    late: Option<(ColumnNumber, Vec<EncodedGroup>)>,
}

impl<C: TableOf<T>, T: Send + 'static> Rows<C, T> {
    /// Rows usually differ in the columns `varying`. Values of the column `late`, if there is one,
    /// become known after the last row: until then the rows wait in memory, encoded.
    fn new(varying: &'static [ColumnNumber], words: Vec<String>, late: Option<ColumnNumber>) -> Self {
        /// Number of blocks that may wait for the encoder.
        const WAITING: usize = 4;
        let make = move || Encoder {
            groups: late.map_or_else(GroupEncoder::default, GroupEncoder::without).varying(varying),
            rows: PhantomData,
        };
        let late = late.map(|column| (column, Vec::new()));
        let rows = Vec::with_capacity(ROWS_PER_BLOCK);
        Rows { encoder: EncoderThread::new(WAITING, make), rows, sent: 0, words: Texts(words), late }
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

    /// End the group, without waiting for the encoder.
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
            None => recording.append(C::TABLE, group)?,
        }
        Ok(())
    }

    /// Write the remaining rows; all columns are known.
    fn finish(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        self.end_group();
        let rest: Vec<EncodedGroup> = self.encoder.rest().collect();
        rest.into_iter().try_for_each(|group| self.keep(group, recording))
    }

    /// Write the remaining rows, with the values of the late column, of which there are as many as
    /// rows.
    fn complete(&mut self, values: &mut impl Iterator<Item = Option<i32>>, recording: &mut Recording) -> Result<(), TableError> {
        self.finish(recording)?;
        let Some((column, groups)) = self.late.take() else { return Ok(()) };
        let mut encoder = LateColumn::<C>::new(column);
        for group in groups {
            for block in (0..group.rows()).step_by(ROWS_PER_BLOCK) {
                encoder.block(values.by_ref().take(ROWS_PER_BLOCK.min(group.rows() - block)));
            }
            recording.append(C::TABLE, group.with(encoder.finish()))?;
        }
        Ok(())
    }
}

/// The rows of `paths`, numbered in order of arrival.
#[derive(Default)]
pub(crate) struct PathRows {
    rows: RowBatch<PathsColumns>,
    text_bytes: usize,
    next: i32,
}

impl PathRows {
    /// Rows that are numbered from `first` on.
    pub(crate) fn numbered_from(first: i32) -> Self {
        PathRows { next: first, ..PathRows::default() }
    }

    /// Add a path. Returns its number.
    pub(crate) fn add(&mut self, path: &[u8], kind: Kind) -> i32 {
        let path = readable(path);
        let path_id = self.next;
        self.next = path_id.saturating_add(1);
        self.text_bytes += path.len();
        self.rows.push(&rows::Paths { path_id, path, kind: path_kind(kind).into() });
        path_id
    }

    /// Whether it is time to write them.
    pub(crate) fn is_full(&self) -> bool {
        // More bytes than a column of text may have.
        const MOST: usize = 1 << 28;
        // Fewer rows than for numbers: while some are written, the next can be made.
        self.rows.len() >= ROWS_PER_GROUP / 8 || self.text_bytes >= MOST
    }

    /// Take all rows; later ones are numbered after them.
    pub(crate) fn take(&mut self) -> RowBatch<PathsColumns> {
        self.text_bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

/// Rows that are being written to the recording.
pub(crate) struct Tables<'a> {
    recording: &'a mut Recording,
    files: Rows<InodesColumns, FileRow>,
    extents: Rows<ExtentsColumns, ExtentRow>,
    free: Rows<FreeExtentsColumns, Free>,
    parts: Rows<LayoutColumns, PartRow>,
    paths: PathRows,
    /// Lower numbers of paths belong to another capture.
    first_path: i32,
    /// Which files have a path, of those that were passed before their paths.
    named: Vec<bool>,
    /// The number of the next of these paths.
    pub(crate) next_late_path: i32,
    /// Number of files so far.
    pub(crate) taken: u64,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(recording: &'a mut Recording) -> Self {
        Self::with(recording, None)
    }

    /// For files that are passed without their paths, which follow by [`Tables::late_paths`].
    pub(crate) fn with_late_paths(recording: &'a mut Recording) -> Self {
        Self::with(recording, Some(InodesColumns::PATH_ID))
    }

    fn with(recording: &'a mut Recording, late: Option<ColumnNumber>) -> Self {
        let first_path = i32::try_from(recording.rows("paths")).unwrap_or(i32::MAX);
        Tables {
            recording,
            files: Rows::new(&VARYING_IN_INODES, KIND_WORDS.map(String::from).to_vec(), late),
            extents: Rows::new(&[ExtentsColumns::PHYSICAL_BYTES], (0..=u8::MAX).map(flag_words).collect(), None),
            free: Rows::new(&[], Vec::new(), None),
            parts: Rows::new(&[LayoutColumns::NUMBER, LayoutColumns::INODE], Vec::new(), None),
            paths: PathRows::numbered_from(first_path),
            first_path,
            named: Vec::new(),
            next_late_path: first_path,
            taken: 0,
        }
    }

    /// Add all files of a batch.
    pub(crate) fn batch(&mut self, batch: &Batch) -> Result<(), TableError> {
        self.batch_by(batch, |tables, inode, extent| tables.extent(inode, extent))
    }

    /// Add all files of a batch; `write` makes rows of their extents.
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
            // If a method passes extents separately, the batch does not contain them.
            for extent in extents.by_ref().take(file.extents as usize) {
                write(self, file.inode.number, extent)?;
            }
        }
        Ok(())
    }

    /// Add a file; its extents are passed by [`Tables::extent`].
    pub(crate) fn file(&mut self, file: &File, path: Option<&[u8]>) -> Result<(), TableError> {
        self.taken += 1;
        let path_id = path.map(|path| self.paths.add(path, file.inode.kind));
        if self.paths.is_full() {
            self.write_paths()?;
        }
        self.files.add(FileRow { file: *file, path_id }, self.recording)
    }

    /// Add paths of the next of the files that were passed without; `named` says for each file
    /// whether it has one.
    pub(crate) fn late_paths(&mut self, named: &[bool], paths: &mut RowBatch<PathsColumns>) -> Result<(), TableError> {
        self.named.extend_from_slice(named);
        let count = named.iter().filter(|has_path| **has_path).count();
        self.next_late_path = self.next_late_path.saturating_add(i32::try_from(count).unwrap_or(i32::MAX));
        self.recording.write_batch(paths)
    }

    pub(crate) fn extent(&mut self, inode: u64, extent: &Extent) -> Result<(), TableError> {
        self.placed_extent(inode, extent, None)
    }

    /// Add an extent that has an address of its own in addition to its location on a device.
    pub(crate) fn placed_extent(&mut self, inode: u64, extent: &Extent, address: Option<u64>) -> Result<(), TableError> {
        self.extents.add(ExtentRow { inode, extent: *extent, address }, self.recording)
    }

    pub(crate) fn free(&mut self, free: Free) -> Result<(), TableError> {
        self.free.add(free, self.recording)
    }

    pub(crate) fn part(&mut self, part: Part) -> Result<(), TableError> {
        let Texts(words) = &mut self.parts.words;
        let word = words.iter().position(|word| word == part.part).unwrap_or_else(|| {
            words.push(part.part.into());
            words.len() - 1
        });
        self.parts.add(PartRow { part, word }, self.recording)
    }

    /// Write the remaining rows.
    pub(crate) fn finish(mut self) -> Result<(), TableError> {
        // The last groups of all tables are encoded at the same time.
        self.files.end_group();
        self.extents.end_group();
        self.write_paths()?;
        let mut next = self.first_path..;
        // A file that was not reached has no path.
        let named = self.named.into_iter().chain(std::iter::repeat(false));
        let mut path_ids = named.map(|has_path| if has_path { next.next() } else { None });
        self.files.complete(&mut path_ids, self.recording)?;
        self.extents.finish(self.recording)?;
        self.free.finish(self.recording)?;
        self.parts.finish(self.recording)
    }

    fn write_paths(&mut self) -> Result<(), TableError> {
        self.recording.write_batch(&mut self.paths.take())
    }
}

/// A count; larger values than the column can contain become its maximum.
fn count(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Columns in which most blocks have rows with and without a value.
const VARYING_IN_INODES: [ColumnNumber; 3] =
    [InodesColumns::PATH_ID, InodesColumns::FORGIVING_FRAGMENTS, InodesColumns::MODIFIED_TS_NS];

impl InodesRow for FileRow {
    fn inode(&self) -> i64 {
        self.file.inode.number.cast_signed()
    }

    fn path_id(&self) -> Option<i32> {
        self.path_id
    }

    fn kind(&self) -> usize {
        self.file.inode.kind as usize
    }

    fn size_bytes(&self) -> i64 {
        self.file.inode.size.cast_signed()
    }

    fn allocated_bytes(&self) -> i64 {
        self.file.allocated.cast_signed()
    }

    fn extents(&self) -> i32 {
        count(self.file.extents)
    }

    fn fragments(&self) -> i32 {
        count(self.file.fragments)
    }

    fn forgiving_fragments(&self) -> Option<i32> {
        self.file.forgiving_fragments.map(count)
    }

    fn links(&self) -> i32 {
        count(self.file.inode.links)
    }

    fn modified_ts_ns(&self) -> Option<i64> {
        self.file.inode.modified_ns
    }
}

impl InodesTexts for Texts {
    fn kind(&self, number: usize) -> &str {
        &self.0[number]
    }
}

impl ExtentsRow for ExtentRow {
    fn inode(&self) -> i64 {
        self.inode.cast_signed()
    }

    fn logical_bytes(&self) -> i64 {
        self.extent.logical.cast_signed()
    }

    fn physical_bytes(&self) -> Option<i64> {
        (self.extent.flags & flag::NOWHERE == 0).then_some(self.extent.physical.cast_signed())
    }

    fn length_bytes(&self) -> i64 {
        self.extent.length.cast_signed()
    }

    fn stored_bytes(&self) -> Option<i64> {
        self.extent.stored.map(u64::cast_signed)
    }

    fn flags(&self) -> usize {
        usize::from(self.extent.flags)
    }

    fn device(&self) -> i32 {
        self.extent.device.cast_signed()
    }

    fn address_bytes(&self) -> Option<i64> {
        self.address.map(u64::cast_signed)
    }
}

impl ExtentsTexts for Texts {
    fn flags(&self, number: usize) -> &str {
        &self.0[number]
    }
}

impl FreeExtentsRow for Free {
    fn physical_bytes(&self) -> i64 {
        self.physical.cast_signed()
    }

    fn length_bytes(&self) -> i64 {
        self.length.cast_signed()
    }

    fn device(&self) -> i32 {
        self.device.cast_signed()
    }
}

impl LayoutRow for PartRow {
    fn part(&self) -> usize {
        self.word
    }

    fn number(&self) -> Option<i32> {
        self.part.number
    }

    fn inode(&self) -> Option<i64> {
        self.part.inode.map(u64::cast_signed)
    }

    fn physical_bytes(&self) -> i64 {
        self.part.physical.cast_signed()
    }

    fn length_bytes(&self) -> i64 {
        self.part.length.cast_signed()
    }

    fn device(&self) -> i32 {
        self.part.device.cast_signed()
    }
}

impl LayoutTexts for Texts {
    fn part(&self, number: usize) -> &str {
        &self.0[number]
    }
}

/// The value of `paths.kind`.
fn path_kind(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        _ => "unknown",
    }
}

fn flag_words(flags: u8) -> String {
    let words: Vec<&str> = (0..flag::WORDS.len()).filter(|bit| flags >> bit & 1 != 0).map(|bit| flag::WORDS[bit]).collect();
    words.join("+")
}
