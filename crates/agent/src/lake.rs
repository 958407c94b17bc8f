//! The lake: Parquet parts in folders by table, date and cluster. Any program may read it, and
//! several may write at a time.
//!
//! `job_samples/date=2026-11-27/cluster=c/part-SECONDS-WRITER-NUMBER-ROWS-HASH.parquet`: the name
//! contains the number of rows and the beginning of the SHA-256 of the content. Names that begin
//! with `_` are not part of the lake: they are files that are being written, and batches of which
//! it is unknown whether they have landed. The footer of a part lists the batches that it contains
//! (`sysdock.batches`), so that a batch that arrives twice is found.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use sysdock_table::{
    Access, Batch as Columns, Folder, LonePart, TableError,
    rows::{
        AgentBatches, AgentBatchesColumns, Columns as Table, JobFiles, JobFilesColumns, JobSamples, JobSamplesColumns, JobTotals,
        JobTotalsColumns, Row,
    },
};

use crate::{
    answers::Id,
    error::AgentError,
    json,
    landed::{BATCHES, Footers, Landed},
    line::{Line, Rows},
    names,
};

/// File that marks a folder as a lake and states its format.
const MARK: &str = "lake.json";
const FORMAT: u32 = 1;
/// Longest mark that is read [B].
const MOST_MARK: u64 = 4096;
/// Rows of a row group, which are in memory at a time. Merging makes larger ones of a day.
const ROWS_PER_GROUP: usize = 8_192;
/// Tables that a batch has rows of.
const TABLES: [&str; 4] = [JobSamplesColumns::TABLE, JobTotalsColumns::TABLE, JobFilesColumns::TABLE, AgentBatchesColumns::TABLE];

/// Writes parts of a lake.
#[derive(Debug)]
pub struct Lake {
    path: PathBuf,
    /// Distinguishes the parts of this process from those of others.
    writer: String,
    number: u64,
    footers: Footers,
}

/// Content of [`MARK`].
#[derive(Serialize, Deserialize)]
struct Mark {
    format: u32,
}

/// The part of the lake that rows belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Partition {
    pub(crate) date: String,
    pub(crate) cluster: String,
}

impl Partition {
    pub(crate) fn of(line: &Line) -> Partition {
        let date = DateTime::from_timestamp_nanos(line.ts_ns).format("%Y-%m-%d").to_string();
        Partition { date, cluster: line.id.cluster.clone() }
    }

    fn names(&self, table: &str) -> [String; 3] {
        [table.into(), format!("date={}", self.date), names::cluster_folder(&self.cluster)]
    }

    fn path(&self, lake: &Path, table: &str) -> PathBuf {
        lake.join(self.names(table).iter().collect::<PathBuf>())
    }

    fn open(&self, lake: &Path, table: &str) -> Result<Folder, TableError> {
        let mut folder = Folder::open(lake, Access::default())?;
        for name in self.names(table) {
            folder = folder.subfolder(&name)?;
        }
        Ok(folder)
    }
}

/// Batches by the part of the lake that they belong to.
pub(crate) fn by_partition<'l>(lines: impl IntoIterator<Item = &'l Line>) -> BTreeMap<Partition, Vec<&'l Line>> {
    let mut all: BTreeMap<Partition, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        all.entry(Partition::of(line)).or_default().push(line);
    }
    all
}

impl Lake {
    /// Open a lake, or create one.
    ///
    /// # Errors
    /// [`AgentError`]: it belongs to another user, has a newer format, or cannot be written.
    pub fn open(path: &Path, writer: &str) -> Result<Lake, AgentError> {
        if !path.exists() {
            drop(Folder::create(path, Access::default())?);
        }
        let lake = Lake { path: path.into(), writer: writer.into(), number: 0, footers: Footers::default() };
        let folder = lake.folder()?;
        let failed = |error| AgentError::Io(path.join(MARK), error);
        match folder.open_file(MARK).and_then(|file| std::io::read_to_string(std::io::Read::take(file, MOST_MARK))) {
            Ok(text) => {
                let mark: Mark = serde_json::from_str(&text).map_err(|error| failed(error.into()))?;
                if mark.format > FORMAT { Err(AgentError::NewerLake(path.into())) } else { Ok(lake) }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                folder.replace(MARK, json::text(&Mark { format: FORMAT }).as_bytes()).map_err(failed)?;
                Ok(lake)
            }
            Err(error) => Err(failed(error)),
        }
    }

    pub(crate) fn folder(&self) -> Result<Folder, AgentError> {
        Ok(Folder::open(&self.path, Access::default())?)
    }

    pub(crate) fn writer(&self) -> &str {
        &self.writer
    }

    /// Write batches of a partition that have not landed. `is_in_time` is called before each part
    /// gets its final name: a part that is late never becomes part of the lake.
    ///
    /// # Errors
    /// [`AgentError`]: some rows may have landed; a repeated attempt must state that the batches
    /// were sent before.
    pub(crate) fn land(
        &mut self,
        partition: &Partition,
        lines: &[&Line],
        is_in_time: &dyn Fn() -> bool,
    ) -> Result<(), AgentError> {
        self.write(partition, lines, &[const { Vec::new() }; TABLES.len()], is_in_time)
    }

    /// Write batches of a partition of which it is unknown whether they have landed: rows that have
    /// are left out.
    ///
    /// # Errors
    /// As for [`Lake::land`].
    pub(crate) fn land_once(&mut self, partition: &Partition, lines: &[&Line]) -> Result<(), AgentError> {
        let mut has_landed = [const { Vec::new() }; TABLES.len()];
        for (table, has_landed) in TABLES.iter().zip(&mut has_landed) {
            // A folder that does not exist has no parts, and is not made for that.
            if partition.path(&self.path, table).symlink_metadata().is_ok() {
                let landed = self.footers.of(&partition.open(&self.path, table)?)?;
                *has_landed = lines.iter().map(|line| landed.has(&line.id)).collect();
            }
        }
        self.write(partition, lines, &has_landed, &|| true)
    }

    /// `has_landed`: for each table, which of the lines have rows in it.
    fn write(
        &mut self,
        partition: &Partition,
        lines: &[&Line],
        has_landed: &[Vec<bool>; TABLES.len()],
        is_in_time: &dyn Fn() -> bool,
    ) -> Result<(), AgentError> {
        let seconds = lines.iter().map(|line| line.ts_ns).min().unwrap_or(0) / 1_000_000_000;
        let [samples, totals, files, batches] = TABLES.map(|_| self.place(partition));
        let mut parts = Parts {
            samples: Part::new(samples),
            totals: Part::new(totals),
            files: Part::new(files),
            batches: Part::new(batches),
            failed: None,
        };
        let mut seen = BTreeSet::new();
        // A batch that occurs twice counts once.
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| seen.insert(&line.id)) {
            parts.begin(line, &has_landed.each_ref().map(|landed| landed.get(place).copied().unwrap_or(false)));
            line.read(&mut parts).map_err(|error| AgentError::Io(self.path.clone(), error.into()))?;
        }
        parts.finish(&self.writer, seconds, is_in_time)
    }

    fn place(&mut self, partition: &Partition) -> Place {
        self.number += 1;
        let unfinished = format!("_writing-{}-{}", self.writer, self.number);
        Place { lake: self.path.clone(), partition: partition.clone(), unfinished, number: self.number }
    }

    /// Remove files of killed writers, which are no longer being written.
    pub(crate) fn remove_unfinished(&self, older_than: Duration) {
        let below = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_table = |path: &PathBuf| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('_'));
        for file in below(self.path.clone()).filter(is_table).flat_map(below).flat_map(below).flat_map(below) {
            let is_unfinished = file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("_writing-"));
            let age = fs::metadata(&file).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
            if is_unfinished && age.is_some_and(|age| age > older_than) {
                let _ = fs::remove_file(file);
            }
        }
    }
}

/// Where a part is written.
struct Place {
    lake: PathBuf,
    partition: Partition,
    unfinished: String,
    number: u64,
}

/// A part of one table that is being written. It has no file until it has rows.
struct Part<R: Row> {
    place: Place,
    file: Option<(Folder, LonePart)>,
    columns: Columns<R::Columns>,
    rows: usize,
    landed: Landed,
    /// The batch whose rows come, unless they have landed; and whether the footer lists it.
    current: Option<(Id, bool)>,
}

impl<R: Row> Part<R> {
    fn new(place: Place) -> Part<R> {
        Part { place, file: None, columns: Columns::default(), rows: 0, landed: Landed::default(), current: None }
    }

    fn add(&mut self, row: &R) -> Result<(), TableError> {
        let Some((id, is_listed)) = &mut self.current else { return Ok(()) };
        if !std::mem::replace(is_listed, true) {
            self.landed.add(id);
        }
        self.columns.push(row);
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_GROUP) { self.write_group() } else { Ok(()) }
    }

    fn write_group(&mut self) -> Result<(), TableError> {
        let (folder, file) = match self.file.take() {
            Some(open) => open,
            None => self.place.create::<R::Columns>()?,
        };
        let (_, file) = self.file.insert((folder, file));
        file.write(&mut self.columns)
    }

    fn finish(mut self, writer: &str, seconds: i64, is_in_time: &dyn Fn() -> bool) -> Result<(), AgentError> {
        if !self.rows.is_multiple_of(ROWS_PER_GROUP) {
            self.write_group()?;
        }
        let Some((folder, file)) = self.file.take() else { return Ok(()) };
        let named = file.finish(&[(BATCHES, json::text(&self.landed))]).map_err(AgentError::from).and_then(|part| {
            let hash: String = part.sha256.chars().take(16).collect();
            let name = format!("part-{seconds}-{writer}-{}-{}-{hash}.parquet", self.place.number, part.rows);
            if is_in_time() { Ok(name) } else { Err(AgentError::TooLate) }
        });
        let name = named.inspect_err(|_| drop(folder.remove(&self.place.unfinished)))?;
        let renamed = folder.rename(&self.place.unfinished, &name).and_then(|()| folder.sync());
        renamed.map_err(|error| AgentError::Io(folder.path().join(name), error))
    }
}

impl<R: Row> Drop for Part<R> {
    /// What was begun and does not become a part goes.
    fn drop(&mut self) {
        if let Some((folder, _)) = &self.file {
            let _ = folder.remove(&self.place.unfinished);
        }
    }
}

impl Place {
    fn create<C: Table>(&self) -> Result<(Folder, LonePart), TableError> {
        let folder = self.partition.open(&self.lake, C::TABLE)?;
        // Each process counts from 1, so a file with this name was left by one that was killed.
        let left = folder.remove(&self.unfinished);
        left.map_err(|error| TableError::Io(folder.path().join(&self.unfinished), error))?;
        let file = LonePart::create::<C>(&folder, &self.unfinished)?;
        Ok((folder, file))
    }
}

/// Parts of all tables, which the rows of batches are written to.
struct Parts {
    samples: Part<JobSamples<'static>>,
    totals: Part<JobTotals<'static>>,
    files: Part<JobFiles<'static>>,
    batches: Part<AgentBatches<'static>>,
    failed: Option<TableError>,
}

impl Parts {
    /// Rows of this batch come; those that are in the lake are left out.
    fn begin(&mut self, line: &Line, has_landed: &[bool; TABLES.len()]) {
        let current = |has_landed: bool| (!has_landed).then(|| (line.id.clone(), false));
        let [samples, totals, files, batches] = has_landed.map(current);
        self.samples.current = samples;
        self.totals.current = totals;
        self.files.current = files;
        self.batches.current = batches;
    }

    fn finish(self, writer: &str, seconds: i64, is_in_time: &dyn Fn() -> bool) -> Result<(), AgentError> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        self.samples.finish(writer, seconds, is_in_time)?;
        self.totals.finish(writer, seconds, is_in_time)?;
        self.files.finish(writer, seconds, is_in_time)?;
        self.batches.finish(writer, seconds, is_in_time)
    }

    fn note(&mut self, added: Result<(), TableError>) {
        if let Err(error) = added {
            self.failed.get_or_insert(error);
        }
    }
}

impl Rows for Parts {
    fn sample(&mut self, row: JobSamples<'static>) {
        let added = self.samples.add(&row);
        self.note(added);
    }

    fn total(&mut self, row: JobTotals<'static>) {
        let added = self.totals.add(&row);
        self.note(added);
    }

    fn file(&mut self, row: JobFiles<'static>) {
        let added = self.files.add(&row);
        self.note(added);
    }

    fn about(&mut self, row: AgentBatches<'static>) {
        let added = self.batches.add(&row);
        self.note(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        batch::Batch,
        line::tests::{NOW, parse},
        rows::{Origin, empty_sample},
    };
    use sha2::{Digest, Sha256};
    use std::fs::File;
    use sysdock_table::TableError;

    fn batch(agent: char, sequence: i64, rows: usize) -> Line {
        of_cluster("c", agent, sequence, rows)
    }

    fn of_cluster(cluster: &str, agent: char, sequence: i64, rows: usize) -> Line {
        let agent = agent.to_string().repeat(16);
        let origin = Origin { cluster: cluster.into(), node: "n".into(), agent, sequence };
        let mut batch = Batch::new(&origin, NOW + sequence);
        batch.job_samples = vec![empty_sample(&origin, NOW, 10, "files"); rows];
        parse(batch.to_line()).expect("it is fine")
    }

    fn land(lake: &mut Lake, lines: &[&Line]) -> Result<(), AgentError> {
        by_partition(lines.iter().copied()).iter().try_for_each(|(partition, lines)| lake.land(partition, lines, &|| true))
    }

    fn land_once(lake: &mut Lake, line: &Line) -> Result<(), AgentError> {
        lake.land_once(&Partition::of(line), &[line])
    }

    /// Checks a part against its name: `None`, or what is wrong.
    fn damage(path: &Path) -> Result<Option<&'static str>, TableError> {
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(stated) = name.rsplit('-').next() else { return Ok(Some("its name states no hash")) };
        let mut file = File::open(path).map_err(|error| TableError::Io(path.into(), error))?;
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash).map_err(|error| TableError::Io(path.into(), error))?;
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((!found.starts_with(stated)).then_some("its content is not what its name says"))
    }

    fn parts(path: &Path) -> Vec<PathBuf> {
        let folder = path.join("job_samples/date=2027-01-15/cluster=c");
        let mut all: Vec<PathBuf> = fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path()).collect();
        all.sort();
        all
    }

    fn rows_of_first(path: &Path) -> u64 {
        let name = parts(path).pop().expect("a part").file_name().expect("a name").to_string_lossy().into_owned();
        name.split('-').nth(4).and_then(|number| number.parse().ok()).expect("a number of rows")
    }

    /// Number of rows, by the names of the parts.
    fn rows(path: &Path) -> u64 {
        let rows = |part: &PathBuf| {
            let name = part.file_stem().expect("a name").to_string_lossy().into_owned();
            name.split('-').nth(4).and_then(|number| number.parse::<u64>().ok()).expect("a number of rows")
        };
        parts(path).iter().map(rows).sum()
    }

    #[test]
    fn batches_land_once_whatever_is_sent_again() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        let (first, second) = (batch('a', 1, 3), batch('b', 1, 4));
        land(&mut lake, &[&first, &second, &first]).expect("it lands");
        assert_eq!(rows(&path), 7);
        // Another process, which has no footers in memory.
        let mut other = Lake::open(&path, "w2").expect("it is there");
        land_once(&mut other, &first).expect("it is there");
        land_once(&mut other, &batch('a', 2, 5)).expect("it lands");
        land_once(&mut other, &batch('a', 2, 5)).expect("it is there");
        land_once(&mut lake, &batch('a', 2, 5)).expect("it is there");
        assert_eq!(rows(&path), 12);
        assert!(parts(&path).iter().all(|part| damage(part).expect("it can be read").is_none()));
    }

    #[test]
    fn a_lake_of_a_newer_form_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        drop(Lake::open(&path, "w1").expect("it is made"));
        assert_eq!(fs::read_to_string(path.join(MARK)).expect("it is there"), "{\"format\":1}");
        fs::write(path.join(MARK), "{\"format\":2}").expect("written");
        assert!(matches!(Lake::open(&path, "w1"), Err(AgentError::NewerLake(_))));
    }

    #[test]
    fn one_number_of_two_clusters_is_two_batches() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        let (own, other) = (of_cluster("c", 'a', 1, 3), of_cluster("d", 'a', 1, 4));
        for line in [&own, &other, &own, &other] {
            land_once(&mut lake, line).expect("it lands once");
        }
        assert_eq!(rows(&path), 3);
        assert_eq!(fs::read_dir(path.join("job_samples/date=2027-01-15/cluster=d")).expect("it is there").count(), 1);
        assert!(!path.join("job_totals").exists(), "what has no rows has no folder");
    }

    #[test]
    fn a_footer_that_may_not_be_read_stops_the_batch() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        land(&mut lake, &[&batch('a', 1, 3)]).expect("it lands");
        // A folder of the name of a part cannot be read.
        fs::create_dir(path.join("job_samples/date=2027-01-15/cluster=c/part-1-w-1-1-x.parquet")).expect("a folder");
        assert!(land_once(&mut lake, &batch('a', 1, 3)).is_err(), "whether it has landed is unknown");
        assert_eq!(rows_of_first(&path), 3);
    }

    #[test]
    fn what_comes_too_late_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        assert!(matches!(
            lake.land(&Partition::of(&batch('a', 1, 3)), &[&batch('a', 1, 3)], &|| false),
            Err(AgentError::TooLate)
        ));
        assert_eq!(parts(&path).len(), 0);
    }

    #[test]
    fn damage_is_found_by_the_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        land(&mut lake, &[&batch('a', 1, 3)]).expect("it lands");
        let part = parts(&path).remove(0);
        let mut bytes = fs::read(&part).expect("it is there");
        bytes[20] ^= 1;
        fs::write(&part, bytes).expect("it is written");
        assert!(damage(&part).expect("it can be read").is_some());
        // A footer that cannot be read does not prevent others from being read.
        fs::write(&part, b"PAR1").expect("it is written");
        land_once(&mut Lake::open(&path, "w2").expect("it is there"), &batch('a', 2, 1)).expect("it lands");
    }

    #[test]
    fn what_a_killed_writer_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        land(&mut lake, &[&batch('a', 1, 3)]).expect("it lands");
        let left = path.join("job_samples/date=2027-01-15/cluster=c/_writing-w0-1");
        fs::write(&left, b"x").expect("it is written");
        lake.remove_unfinished(Duration::from_secs(3600));
        assert!(left.exists());
        lake.remove_unfinished(Duration::ZERO);
        assert!(!left.exists() && rows(&path) == 3);
    }

    #[test]
    fn what_a_killed_writer_left_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let place = path.join("job_samples/date=2027-01-15/cluster=c");
        fs::create_dir_all(&place).expect("folders");
        fs::write(place.join("_writing-w1-1"), b"half a part").expect("it is written");
        land(&mut Lake::open(&path, "w1").expect("it is made"), &[&batch('a', 1, 3)]).expect("it lands at once");
        assert!(!place.join("_writing-w1-1").exists() && rows(&path) == 3);
    }
}
