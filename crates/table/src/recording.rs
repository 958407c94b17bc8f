//! A recording that is being written.
//!
//! States of a table: *closed* (no open part) -> *open* (rows go to a part that readers cannot see
//! yet) -> *closed* again, at the next checkpoint or the end. Invariant: recording.json lists
//! closed parts only, so whatever kills the writer, the listed parts can be read.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    errors::Result as ParquetResult,
    file::{
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::types::ColumnPath,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::{
    Access, Batch, Capture, EncodedGroup, Ending, FORMAT_VERSION, Folder, Manifest, Part, TableDef, TableEntry, TableError,
    manifest::NAME,
    rows::{Columns, Row},
    schema::{self, ColumnType},
};

/// Number of rows of a row group, which writers should collect before they write: enough for good
/// compression, few enough for memory.
pub const ROWS_PER_GROUP: usize = 262_144;

/// Number of rows after which writers should make a checkpoint: an import that is killed loses at
/// most these.
pub const ROWS_PER_PART: u64 = 2_097_152;

/// A recording folder, and the tables that are being written to it.
#[derive(Debug)]
pub struct Recording {
    folder: Folder,
    /// Folders of the tables that this process has written to.
    tables: BTreeMap<String, Folder>,
    /// The content of recording.json. Callers fill in everything but `tables`.
    pub manifest: Manifest,
    open: BTreeMap<String, OpenPart>,
    /// Number of the next part of each table. A number is never used twice, so that a part is never
    /// overwritten while it is listed.
    part_numbers: BTreeMap<String, usize>,
    /// Parts that the next recording.json does not list, by table.
    outdated: Vec<(String, String)>,
    /// Content of recording.json before a capture was added.
    before: Option<Box<Manifest>>,
}

/// The fields that are read from the recording.json of an earlier writer.
#[derive(Deserialize)]
struct Left {
    format_version: u32,
    complete: bool,
    tables: BTreeMap<String, TableEntry>,
}

impl Left {
    fn read(folder: &Folder) -> Result<Self, TableError> {
        let refused = || TableError::Exists(folder.path().into());
        let text = read(folder, NAME).map_err(|error| match error {
            TableError::Io(_, error) if error.kind() == io::ErrorKind::NotFound => refused(),
            error => error,
        })?;
        let left: Left = serde_json::from_slice(&text).map_err(|_| refused())?;
        if left.complete || left.format_version != FORMAT_VERSION { Err(refused()) } else { Ok(left) }
    }
}

/// Read a file.
fn read(folder: &Folder, name: &str) -> Result<Vec<u8>, TableError> {
    let mut content = Vec::new();
    let read = folder.open_file(name).and_then(|mut file| file.read_to_end(&mut content));
    read.map_err(|error| TableError::Io(folder.path().join(name), error))?;
    Ok(content)
}

/// The number after those of the parts; `None` if one of them is not a part of this table.
fn next_number(table: &str, parts: &[Part]) -> Option<usize> {
    parts.iter().try_fold(0, |next, part| {
        let number = part.file.strip_prefix(table)?.strip_prefix("/part-")?.strip_suffix(".parquet")?;
        let number: usize = number.parse().ok().filter(|_| number.bytes().all(|byte| byte.is_ascii_digit()))?;
        Some(next.max(number.checked_add(1)?))
    })
}

/// Remove the unlisted parts in the folder of a table.
fn remove_parts(folder: &Folder, table: &str, listed: impl Fn(&str) -> bool) -> Result<(), TableError> {
    let failed = |error| TableError::Io(folder.path().into(), error);
    for name in folder.names().map_err(failed)? {
        let Some(name) = name.to_str() else { continue };
        if name.starts_with("part-") && name.ends_with(".parquet") && !listed(&format!("{table}/{name}")) {
            folder.remove(name).map_err(failed)?;
        }
    }
    Ok(())
}

#[derive(Debug)]
struct OpenPart {
    path: PathBuf,
    /// Name in the folder of the table.
    name: String,
    rows: u64,
    writer: PartWriter,
}

pub(crate) type PartWriter = SerializedFileWriter<Sink>;

pub(crate) type Sink = BufWriter<HashingFile>;

impl Recording {
    /// Create the folder and a first recording.json, so that even a full disk leaves a file that
    /// says what the folder is. Only the owner, who is the user of this process, may read it.
    ///
    /// # Errors
    /// As for [`Folder::create`].
    pub fn create(folder: &Path, manifest: Manifest) -> Result<Self, TableError> {
        Recording::create_in(Folder::create(folder, Access::default())?, manifest)
    }

    /// Create a first recording.json in an empty folder.
    ///
    /// # Errors
    /// [`TableError::Io`]; a folder that this process created is removed then.
    pub fn create_in(folder: Folder, manifest: Manifest) -> Result<Self, TableError> {
        match manifest.save(&folder) {
            Ok(()) => Ok(Recording::of(folder, manifest)),
            Err(error) => {
                folder.remove_made();
                Err(error)
            }
        }
    }

    fn of(folder: Folder, manifest: Manifest) -> Self {
        Recording {
            folder,
            tables: BTreeMap::new(),
            manifest,
            open: BTreeMap::new(),
            part_numbers: BTreeMap::new(),
            outdated: Vec::new(),
            before: None,
        }
    }

    /// Start over in the folder of an unfinished recording, whose recorder or importer died. Its
    /// parts of tables are removed, except for listed parts of the tables `keep`; all other files
    /// stay.
    ///
    /// # Errors
    /// [`TableError::Exists`] if the folder contains no unfinished recording of this format; an
    /// error of [`Folder::open`] if the folder of a table is none, or is not safe to write to.
    /// Nothing was changed then. [`TableError::Io`] if a file cannot be read, written or removed.
    pub fn reopen(folder: Folder, mut manifest: Manifest, keep: &[&str]) -> Result<Self, TableError> {
        let mut left = Left::read(&folder)?;
        let mut part_numbers = BTreeMap::new();
        for table in keep {
            let Some(entry) = left.tables.remove(*table) else { continue };
            let number = next_number(table, &entry.parts).ok_or_else(|| TableError::Exists(folder.path().into()))?;
            part_numbers.insert((*table).to_string(), number);
            manifest.tables.insert((*table).into(), entry);
        }
        // All folders are checked before the first file is removed.
        let there = folder.names().map_err(|error| TableError::Io(folder.path().into(), error))?;
        let known = schema::names().filter(|table| there.iter().any(|name| name == table));
        let tables =
            known.map(|table| Ok((table.to_string(), folder.subfolder(table)?))).collect::<Result<BTreeMap<_, _>, _>>()?;
        // After this, recording.json no longer lists what is removed below.
        manifest.save(&folder)?;
        let listed = |path: &str| manifest.tables.values().flat_map(|entry| &entry.parts).any(|part| part.file == path);
        for (table, folder) in &tables {
            remove_parts(folder, table, listed)?;
        }
        Ok(Recording { tables, part_numbers, ..Recording::of(folder, manifest) })
    }

    /// Open a complete recording to add a capture. Its tables grow, and nothing that it lists is
    /// changed or removed.
    ///
    /// # Errors
    /// [`TableError::NotComplete`] if the folder contains no complete recording of this format;
    /// [`TableError::Io`] if it cannot be read.
    pub fn extend(folder: Folder, capture: Capture) -> Result<Self, TableError> {
        let refused = || TableError::NotComplete(folder.path().into());
        let mut manifest: Manifest = serde_json::from_slice(&read(&folder, NAME)?).map_err(|_| refused())?;
        if !manifest.complete || manifest.format_version != FORMAT_VERSION {
            return Err(refused());
        }
        let mut part_numbers = BTreeMap::new();
        for (table, entry) in &manifest.tables {
            part_numbers.insert(table.clone(), next_number(table, &entry.parts).ok_or_else(refused)?);
        }
        let before = Some(Box::new(manifest.clone()));
        manifest.complete = false;
        manifest.captures.push(capture);
        manifest.save(&folder)?;
        Ok(Recording { part_numbers, before, ..Recording::of(folder, manifest) })
    }

    /// Number of rows of a table so far, in closed and open parts.
    #[must_use]
    pub fn rows(&self, table: &str) -> u64 {
        let closed = self.manifest.tables.get(table).map_or(0, |entry| entry.rows);
        closed + self.open.get(table).map_or(0, |part| part.rows)
    }

    /// The folder of the recording.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Append rows to their table as one row group. Without rows, an empty part is written, which
    /// states that there are none.
    ///
    /// # Errors
    /// [`TableError`] if writing fails; parts that were closed before stay readable.
    pub fn write_rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TableError> {
        self.write_group(&mut rows.into_iter().collect())
    }

    /// Append the rows of a batch as one row group; the batch is empty afterwards. An empty batch
    /// writes nothing.
    ///
    /// # Errors
    /// As [`Recording::write_rows`].
    pub fn write_batch<C: Columns>(&mut self, batch: &mut Batch<C>) -> Result<(), TableError> {
        if batch.is_empty() { Ok(()) } else { self.write_group(batch) }
    }

    fn write_group<C: Columns>(&mut self, batch: &mut Batch<C>) -> Result<(), TableError> {
        self.add_to_part(schema::table(C::TABLE), |part| part.write(batch))
    }

    /// Append a row group that [`crate::GroupEncoder`] encoded.
    ///
    /// # Errors
    /// [`TableError`] if writing fails; parts that were closed before stay readable.
    pub fn append(&mut self, table: &str, group: EncodedGroup) -> Result<(), TableError> {
        if group.rows == 0 {
            return Ok(());
        }
        self.add_to_part(schema::table(table), |part| part.append(group))
    }

    fn add_to_part(
        &mut self,
        def: &TableDef,
        add: impl FnOnce(&mut OpenPart) -> Result<(), TableError>,
    ) -> Result<(), TableError> {
        if !self.open.contains_key(def.name) {
            let part = self.open_part(def)?;
            self.open.insert(def.name.into(), part);
        }
        let part = self.open.get_mut(def.name).expect("just opened");
        if let Err(error) = add(part) {
            self.discard(def.name);
            return Err(error);
        }
        Ok(())
    }

    /// Write a table again that changes as a whole (`paths`, `processes`). Its older parts are
    /// removed at the next checkpoint.
    ///
    /// # Errors
    /// [`TableError`] if writing fails; the older parts stay listed.
    pub fn replace_rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TableError> {
        let table = R::Columns::TABLE;
        let entry = self.manifest.tables.entry(table.into()).or_default();
        let older = std::mem::take(&mut entry.parts);
        let older_rows = std::mem::take(&mut entry.rows);
        let written = self.write_groups(rows.into_iter()).and_then(|()| self.close_part(table));
        if written.is_err() {
            let entry = self.manifest.tables.entry(table.into()).or_default();
            (entry.parts, entry.rows) = (older, older_rows);
            return written;
        }
        let name = |part: Part| Some((table.to_string(), part.file.strip_prefix(table)?.strip_prefix('/')?.to_string()));
        self.outdated.extend(older.into_iter().filter_map(name));
        Ok(())
    }

    /// Write rows that may be too many for one row group.
    fn write_groups<R: Row>(&mut self, mut rows: impl Iterator<Item = R>) -> Result<(), TableError> {
        loop {
            let mut batch: Batch<R::Columns> = rows.by_ref().take(ROWS_PER_GROUP).collect();
            if batch.is_empty() {
                return Ok(());
            }
            self.write_batch(&mut batch)?;
        }
    }

    /// Close and list all open parts, so that a reader, or a salvage after a crash, finds
    /// everything so far.
    ///
    /// # Errors
    /// [`TableError`] if writing fails; parts that were listed before stay listed.
    pub fn checkpoint(&mut self) -> Result<(), TableError> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        for name in names {
            self.close_part(&name)?;
        }
        self.save()
    }

    /// List the closed parts, once they are durable, and remove those that are no longer listed.
    fn save(&mut self) -> Result<(), TableError> {
        // The folders of new tables are names in the recording's folder, which nothing orders
        // before the new recording.json.
        for folder in self.tables.values().chain([&self.folder]) {
            folder.sync().map_err(|error| TableError::Io(folder.path().into(), error))?;
        }
        self.manifest.save(&self.folder)?;
        // A file that cannot be removed does no harm.
        for (table, name) in std::mem::take(&mut self.outdated) {
            let _ = self.table_folder(&table).map(|folder| folder.remove(&name));
        }
        Ok(())
    }

    /// Close all parts and record how the capture ended.
    ///
    /// # Errors
    /// [`TableError`] if writing fails; recording.json then still lists the parts that were closed
    /// before.
    pub fn finish(self, ending: Ending) -> Result<Manifest, TableError> {
        self.finish_and(ending, |_| {})
    }

    /// As [`Recording::finish`]; calls `then` with the folder only after the whole recording is
    /// durable.
    ///
    /// # Errors
    /// As for [`Recording::finish`].
    pub fn finish_and(mut self, ending: Ending, then: impl FnOnce(&Folder)) -> Result<Manifest, TableError> {
        let names: Vec<String> = self.open.keys().cloned().collect();
        let mut failed = None;
        for name in names {
            if let Err(error) = self.close_part(&name) {
                failed.get_or_insert(error);
            }
        }
        self.manifest.end(if failed.is_some() { Ending::WriteError } else { ending });
        self.save()?;
        if let Some(error) = failed {
            return Err(error);
        }
        then(&self.folder);
        Ok(self.manifest)
    }

    /// Remove a recording, or the capture that was to be added, because there was nothing to
    /// record.
    pub fn abandon(self) {
        let before = self.before.iter().flat_map(|before| before.tables.values()).flat_map(|entry| &entry.parts);
        let before: Vec<&str> = before.map(|part| part.file.as_str()).collect();
        for (table, folder) in &self.tables {
            let _ = remove_parts(folder, table, |path| before.contains(&path));
        }
        self.tables.into_values().for_each(Folder::remove_made);
        match self.before {
            // If this fails, recording.json still states that the capture is not complete, which is
            // true.
            Some(manifest) => drop(manifest.save(&self.folder)),
            None => {
                let _ = self.folder.remove(NAME);
                self.folder.remove_made();
            }
        }
    }

    /// The folder of a table, which is created when it is needed.
    fn table_folder(&mut self, table: &str) -> Result<&Folder, TableError> {
        if !self.tables.contains_key(table) {
            self.tables.insert(table.into(), self.folder.subfolder(table)?);
        }
        Ok(&self.tables[table])
    }

    fn open_part(&mut self, def: &TableDef) -> Result<OpenPart, TableError> {
        let next = self.part_numbers.entry(def.name.into()).or_insert(0);
        let number = *next;
        *next += 1;
        let name = format!("part-{number:04}.parquet");
        let folder = self.table_folder(def.name)?;
        let path = folder.path().join(&name);
        let file = folder.create_file(&name).map_err(|error| TableError::Io(path.clone(), error))?;
        let sink = BufWriter::with_capacity(1 << 20, HashingFile::new(file));
        let writer = part_writer(def, sink).map_err(|error| TableError::Parquet(path.clone(), error))?;
        Ok(OpenPart { path, name, rows: 0, writer })
    }

    fn close_part(&mut self, table: &str) -> Result<(), TableError> {
        let Some(part) = self.open.remove(table) else { return Ok(()) };
        let name = part.name.clone();
        match part.close(table) {
            Ok(part) => {
                let entry = self.manifest.tables.entry(table.into()).or_default();
                entry.rows += part.rows;
                entry.parts.push(part);
                Ok(())
            }
            Err(error) => {
                let _ = self.tables[table].remove(&name);
                Err(error)
            }
        }
    }

    /// Drop a part that could not be written: half a Parquet file has no footer and cannot be read.
    fn discard(&mut self, table: &str) {
        if let Some(part) = self.open.remove(table) {
            let _ = self.tables[table].remove(&part.name);
            self.manifest.tables.entry(table.into()).or_default().lost += part.rows;
        }
    }
}

impl OpenPart {
    fn write<C: Columns>(&mut self, batch: &mut Batch<C>) -> Result<(), TableError> {
        self.rows += append_batch(&mut self.writer, batch).map_err(|error| TableError::Parquet(self.path.clone(), error))?;
        Ok(())
    }

    fn append(&mut self, group: EncodedGroup) -> Result<(), TableError> {
        let rows = group.rows as u64;
        append_group(&mut self.writer, group).map_err(|error| TableError::Parquet(self.path.clone(), error))?;
        self.rows += rows;
        Ok(())
    }

    fn close(self, table: &str) -> Result<Part, TableError> {
        let OpenPart { path, name, rows, writer } = self;
        let sink = writer.into_inner().map_err(|error| TableError::Parquet(path.clone(), error))?;
        let file_hash = sink.into_inner().map_err(|error| TableError::Io(path.clone(), error.into_error()))?;
        let (bytes, sha256) = file_hash.finish().map_err(|error| TableError::Io(path, error))?;
        Ok(Part { file: format!("{table}/{name}"), rows, bytes, sha256 })
    }
}

pub(crate) fn part_writer(def: &TableDef, sink: Sink) -> ParquetResult<PartWriter> {
    SerializedFileWriter::new(sink, def.parquet_schema().root_schema_ptr(), properties(def).into())
}

/// Append the rows of a batch, which is empty afterwards. Returns their number.
pub(crate) fn append_batch<C: Columns>(writer: &mut PartWriter, batch: &mut Batch<C>) -> ParquetResult<u64> {
    let rows = batch.len() as u64;
    if rows > 0 {
        let group = batch.encode(writer.schema_descr(), writer.properties())?;
        append_group(writer, group)?;
    }
    Ok(rows)
}

fn append_group(writer: &mut PartWriter, group: EncodedGroup) -> ParquetResult<()> {
    let mut row_group = writer.next_row_group()?;
    for (_, (bytes, close)) in group.columns {
        row_group.append_column(&bytes, close)?;
    }
    row_group.close()?;
    Ok(())
}

fn properties(def: &TableDef) -> WriterProperties {
    // Creating the contexts for compression, two per column, takes a third of the time of a small
    // import.
    let compression = if cfg!(fuzzing) { Compression::UNCOMPRESSED } else { Compression::ZSTD(ZstdLevel::default()) };
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROWS_PER_GROUP * 4));
    for column in def.columns {
        let path = ColumnPath::from(column.name);
        if column.delta {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else if column.kind == ColumnType::String && column.dictionary {
            // Minimum and maximum text of a row group let readers skip nothing, and cost a
            // comparison for each row.
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        } else if column.kind == ColumnType::String {
            builder = builder.set_column_dictionary_enabled(path, false);
        }
    }
    builder.build()
}

/// A file that hashes what is written to it.
#[derive(Debug)]
pub(crate) struct HashingFile {
    file: File,
    hash: Sha256,
    bytes: u64,
}

impl HashingFile {
    pub(crate) fn new(file: File) -> Self {
        HashingFile { file, hash: Sha256::new(), bytes: 0 }
    }

    pub(crate) fn finish(self) -> io::Result<(u64, String)> {
        // Some file systems report a full disk only here (NFS, delayed allocation).
        self.file.sync_data()?;
        let digest = self.hash.finalize();
        Ok((self.bytes, digest.iter().map(|byte| format!("{byte:02x}")).collect()))
    }
}

impl Write for HashingFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        self.hash.update(&data[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
