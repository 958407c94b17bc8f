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
};

use chrono::DateTime;
use serde::{Deserialize, Serialize};
use sysdock_table::{
    Access, Batch as Rows, Folder, LonePart, footer_value,
    rows::{AgentBatchesColumns, Columns, JobFilesColumns, JobSamplesColumns, JobTotalsColumns, Row},
};

use crate::{batch::Batch, error::AgentError};

/// File that marks a folder as a lake and states its format.
const MARK: &str = "lake.json";
const FORMAT: u32 = 1;
/// Key under which footers list batches.
pub(crate) const BATCHES: &str = "sysdock.batches";
/// Rows of a row group: readers skip whole groups by time and job.
const ROWS_PER_GROUP: usize = 122_880;

/// Numbers of landed batches by agent, as ranges from the first to the last. A day of an agent is
/// usually one range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Landed(BTreeMap<String, Vec<(i64, i64)>>);

impl Landed {
    fn of(numbers: &BTreeMap<&str, BTreeSet<i64>>) -> Landed {
        let ranges = |numbers: &BTreeSet<i64>| {
            let mut ranges: Vec<(i64, i64)> = Vec::new();
            for number in numbers {
                match ranges.last_mut().filter(|(_, last)| last + 1 == *number) {
                    Some((_, last)) => *last = *number,
                    None => ranges.push((*number, *number)),
                }
            }
            ranges
        };
        Landed(numbers.iter().map(|(agent, numbers)| ((*agent).to_string(), ranges(numbers))).collect())
    }

    fn has(&self, agent: &str, number: i64) -> bool {
        self.0.get(agent).is_some_and(|ranges| ranges.iter().any(|(first, last)| (*first..=*last).contains(&number)))
    }
}

/// Writes parts of a lake.
#[derive(Debug)]
pub struct Lake {
    path: PathBuf,
    /// Distinguishes the parts of this process from those of others.
    writer: String,
    number: u64,
    /// Lists of batches by path of the part. Parts never change.
    footers: BTreeMap<PathBuf, Landed>,
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
    pub(crate) fn of(batch: &Batch) -> Partition {
        let date = DateTime::from_timestamp_nanos(batch.ts_ns).format("%Y-%m-%d").to_string();
        Partition { date, cluster: batch.cluster.clone() }
    }

    fn names(&self, table: &str) -> [String; 3] {
        [table.into(), format!("date={}", self.date), format!("cluster={}", self.cluster)]
    }
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
        let lake = Lake { path: path.into(), writer: writer.into(), number: 0, footers: BTreeMap::new() };
        let folder = lake.folder()?;
        let failed = |error| AgentError::Io(path.join(MARK), error);
        match fs::read(path.join(MARK)) {
            Ok(text) => {
                let mark: Mark = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
                if mark.format > FORMAT { Err(AgentError::NewerLake(path.into())) } else { Ok(lake) }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mark = serde_json::to_vec(&Mark { format: FORMAT }).expect("keys are text");
                folder.replace(MARK, &mark).map_err(failed)?;
                Ok(lake)
            }
            Err(error) => Err(failed(error)),
        }
    }

    pub(crate) fn folder(&self) -> Result<Folder, AgentError> {
        Ok(Folder::open(&self.path, Access::default())?)
    }

    fn partition(&self, partition: &Partition, table: &str) -> Result<Folder, AgentError> {
        let mut folder = self.folder()?;
        for name in partition.names(table) {
            folder = folder.subfolder(&name)?;
        }
        Ok(folder)
    }

    /// Write batches that have not landed. `is_in_time` is called before each part gets its final
    /// name: a part that is late never becomes part of the lake.
    ///
    /// # Errors
    /// [`AgentError`]: some rows may have landed; a repeated attempt must state that the batches
    /// were sent before.
    pub(crate) fn land(&mut self, batches: &[Batch], is_in_time: &dyn Fn() -> bool) -> Result<(), AgentError> {
        let mut by_partition: BTreeMap<Partition, Vec<&Batch>> = BTreeMap::new();
        for batch in batches {
            by_partition.entry(Partition::of(batch)).or_default().push(batch);
        }
        for (partition, batches) in by_partition {
            let batches = &batches;
            self.land_table(&partition, batches, &rows_of(batches, |batch| &batch.job_samples), is_in_time)?;
            self.land_table(&partition, batches, &rows_of(batches, |batch| &batch.job_totals), is_in_time)?;
            self.land_table(&partition, batches, &rows_of(batches, |batch| &batch.job_files), is_in_time)?;
            self.land_table(&partition, batches, &rows_of(batches, |batch| &batch.agent_batches), is_in_time)?;
        }
        Ok(())
    }

    /// Write a batch of which it is unknown whether it has landed: rows that have are left out.
    ///
    /// # Errors
    /// As for [`Lake::land`].
    pub(crate) fn land_once(&mut self, batch: &Batch) -> Result<(), AgentError> {
        let partition = Partition::of(batch);
        let has_landed = |lake: &mut Lake, table: &str| lake.has_landed(&partition, table, batch);
        let mut rest = batch.clone();
        if has_landed(self, JobSamplesColumns::TABLE)? {
            rest.job_samples.clear();
        }
        if has_landed(self, JobTotalsColumns::TABLE)? {
            rest.job_totals.clear();
        }
        if has_landed(self, JobFilesColumns::TABLE)? {
            rest.job_files.clear();
        }
        if has_landed(self, AgentBatchesColumns::TABLE)? {
            rest.agent_batches.clear();
        }
        self.land(&[rest], &|| true)
    }

    /// Whether the part of the lake for one table contains the rows of a batch.
    fn has_landed(&mut self, partition: &Partition, table: &str, batch: &Batch) -> Result<bool, AgentError> {
        // Merging removes parts. Then the folder is listed again: the merged part names the batches
        // of the removed ones.
        loop {
            if let Some(answer) = self.find_landed(partition, table, batch)? {
                return Ok(answer);
            }
        }
    }

    /// `None`: a part was removed meanwhile.
    fn find_landed(&mut self, partition: &Partition, table: &str, batch: &Batch) -> Result<Option<bool>, AgentError> {
        let folder = self.partition(partition, table)?;
        let names = folder.names().map_err(|error| AgentError::Io(folder.path().into(), error))?;
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| is_part(name)) {
            let path = folder.path().join(name);
            if !self.footers.contains_key(&path) {
                let file = match folder.open_file(name) {
                    Ok(file) => file,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(AgentError::Io(path, error)),
                };
                // A damaged part contains nothing that could be read twice.
                let value = footer_value(file, &path, BATCHES).ok().flatten().unwrap_or_default();
                self.footers.insert(path.clone(), serde_json::from_str(&value).unwrap_or_default());
            }
            if self.footers[&path].has(&batch.agent, batch.sequence) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    fn land_table<R: Row>(
        &mut self,
        partition: &Partition,
        batches: &[&Batch],
        rows: &[(usize, &R)],
        is_in_time: &dyn Fn() -> bool,
    ) -> Result<(), AgentError> {
        if rows.is_empty() {
            return Ok(());
        }
        let folder = self.partition(partition, R::Columns::TABLE)?;
        self.number += 1;
        let unfinished = format!("_writing-{}-{}", self.writer, self.number);
        let mut part = LonePart::create::<R::Columns>(&folder, &unfinished)?;
        let mut landed: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
        for group in rows.chunks(ROWS_PER_GROUP) {
            let mut columns = Rows::<R::Columns>::default();
            for (batch, row) in group {
                columns.push(*row);
                landed.entry(&batches[*batch].agent).or_default().insert(batches[*batch].sequence);
            }
            part.write(&mut columns)?;
        }
        let value = serde_json::to_string(&Landed::of(&landed)).expect("keys are text");
        let part = part.finish(&[(BATCHES, value)])?;
        let seconds = batches.iter().map(|batch| batch.ts_ns).min().unwrap_or(0) / 1_000_000_000;
        let name = format!("part-{seconds}-{}-{}-{}-{}.parquet", self.writer, self.number, part.rows, &part.sha256[..16]);
        if !is_in_time() {
            let _ = folder.remove(&unfinished);
            return Err(AgentError::TooLate);
        }
        let renamed = folder.rename(&unfinished, &name).and_then(|()| folder.sync());
        renamed.map_err(|error| AgentError::Io(folder.path().join(name), error))
    }

    /// Remove files of killed writers, which are no longer being written.
    pub(crate) fn remove_unfinished(&self, older_than: std::time::Duration) {
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

/// Rows with the index of their batch. A batch that occurs twice counts once.
fn rows_of<'b, R>(batches: &[&'b Batch], of: impl Fn(&'b Batch) -> &'b Vec<R>) -> Vec<(usize, &'b R)> {
    let mut seen = BTreeSet::new();
    let fresh = batches.iter().enumerate().filter(|(_, batch)| seen.insert((&batch.agent, batch.sequence)));
    fresh.flat_map(|(place, batch)| of(batch).iter().map(move |row| (place, row))).collect()
}

/// Whether a file is a part of the lake.
pub(crate) fn is_part(name: &str) -> bool {
    name.starts_with("part-") && name.ends_with(".parquet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{Origin, empty_sample};
    use sha2::{Digest, Sha256};
    use std::fs::File;
    use sysdock_table::TableError;

    const NOW: i64 = 1_800_000_000_000_000_000;

    fn batch(agent: &str, sequence: i64, rows: usize) -> Batch {
        let origin = Origin { cluster: "c".into(), node: "n".into(), agent: agent.into(), sequence };
        let mut batch = Batch::new(&origin, NOW + sequence);
        batch.job_samples = vec![empty_sample(&origin, NOW, 10, "files"); rows];
        batch
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
        let (first, second) = (batch("a", 1, 3), batch("b", 1, 4));
        lake.land(&[first.clone(), second.clone(), first.clone()], &|| true).expect("it lands");
        assert_eq!(rows(&path), 7);
        // Another process, which has no footers in memory.
        let mut other = Lake::open(&path, "w2").expect("it is there");
        other.land_once(&first).expect("it is there");
        other.land_once(&batch("a", 2, 5)).expect("it lands");
        other.land_once(&batch("a", 2, 5)).expect("it is there");
        lake.land_once(&batch("a", 2, 5)).expect("it is there");
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
    fn numbers_are_kept_as_ranges() {
        let landed = Landed::of(&BTreeMap::from([("a", BTreeSet::from([1, 2, 3, 7, 9, 10]))]));
        assert_eq!(serde_json::to_string(&landed).expect("JSON"), "{\"a\":[[1,3],[7,7],[9,10]]}");
        let has: Vec<i64> = (0..12).filter(|number| landed.has("a", *number)).collect();
        assert_eq!((has, landed.has("b", 1)), (vec![1, 2, 3, 7, 9, 10], false));
    }

    #[test]
    fn what_comes_too_late_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        assert!(matches!(lake.land(&[batch("a", 1, 3)], &|| false), Err(AgentError::TooLate)));
        assert_eq!(parts(&path).len(), 0);
    }

    #[test]
    fn damage_is_found_by_the_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        lake.land(&[batch("a", 1, 3)], &|| true).expect("it lands");
        let part = parts(&path).remove(0);
        let mut bytes = fs::read(&part).expect("it is there");
        bytes[20] ^= 1;
        fs::write(&part, bytes).expect("it is written");
        assert!(damage(&part).expect("it can be read").is_some());
        // A footer that cannot be read does not prevent others from being read.
        fs::write(&part, b"PAR1").expect("it is written");
        Lake::open(&path, "w2").expect("it is there").land_once(&batch("a", 2, 1)).expect("it lands");
    }

    #[test]
    fn what_a_killed_writer_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let mut lake = Lake::open(&path, "w1").expect("it is made");
        lake.land(&[batch("a", 1, 3)], &|| true).expect("it lands");
        let left = path.join("job_samples/date=2027-01-15/cluster=c/_writing-w0-1");
        fs::write(&left, b"x").expect("it is written");
        lake.remove_unfinished(std::time::Duration::from_secs(3600));
        assert!(left.exists());
        lake.remove_unfinished(std::time::Duration::ZERO);
        assert!(!left.exists() && rows(&path) == 3);
    }
}
