//! Which batches the parts of a lake contain. The footer of each part lists them; what was read of
//! the footers of a folder is kept as ranges of numbers, however many parts they come from.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    panic::{self, AssertUnwindSafe},
    path::PathBuf,
};

use serde::{Deserialize, Serialize};
use sysdock_table::{Folder, footer_value};

use crate::{answers::Id, error::AgentError};

/// Key under which footers list batches.
pub(crate) const BATCHES: &str = "sysdock.batches";
/// Folders whose footers are kept in memory.
const MOST_FOLDERS: usize = 64;

/// Numbers of landed batches by agent, as ranges from the first to the last. A day of an agent is
/// usually one range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Landed(BTreeMap<String, Vec<(i64, i64)>>);

impl Landed {
    /// Add a range of numbers.
    fn add_range(&mut self, agent: &str, range: (i64, i64)) {
        let ranges = self.0.entry(agent.into()).or_default();
        ranges.push(range);
        ranges.sort_unstable();
        let mut joined: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges.drain(..) {
            match joined.last_mut().filter(|(_, end)| first <= end.saturating_add(1)) {
                Some((_, end)) => *end = last.max(*end),
                None => joined.push((first, last)),
            }
        }
        *ranges = joined;
    }

    pub(crate) fn add(&mut self, id: &Id) {
        self.add_range(&id.agent, (id.sequence, id.sequence));
    }

    fn add_all(&mut self, other: &Landed) {
        for (agent, ranges) in &other.0 {
            ranges.iter().for_each(|range| self.add_range(agent, *range));
        }
    }

    /// Whether a batch is among them. A list belongs to one cluster.
    pub(crate) fn has(&self, id: &Id) -> bool {
        let ranges = self.0.get(&id.agent);
        ranges.is_some_and(|ranges| ranges.iter().any(|(first, last)| (*first..=*last).contains(&id.sequence)))
    }
}

/// What the footers in a folder list.
#[derive(Debug, Default)]
struct Known {
    parts: BTreeSet<String>,
    landed: Landed,
    used: u64,
}

/// Footers that were read.
#[derive(Debug, Default)]
pub(crate) struct Footers {
    folders: BTreeMap<PathBuf, Known>,
    uses: u64,
}

impl Footers {
    /// Batches in the parts of a folder.
    ///
    /// # Errors
    /// A footer cannot be read: whether its batches have landed is unknown.
    pub(crate) fn of(&mut self, folder: &Folder) -> Result<&Landed, AgentError> {
        self.uses += 1;
        self.forget_oldest(folder);
        let known = self.folders.entry(folder.path().into()).or_default();
        known.used = self.uses;
        // Merging removes parts. Then the folder is listed again: the merged part names the batches
        // of the removed ones.
        while !known.read(folder)? {}
        Ok(&known.landed)
    }

    fn forget_oldest(&mut self, wanted: &Folder) {
        if self.folders.len() < MOST_FOLDERS || self.folders.contains_key(wanted.path()) {
            return;
        }
        let oldest = self.folders.iter().min_by_key(|(_, known)| known.used).map(|(path, _)| path.clone());
        oldest.and_then(|path| self.folders.remove(&path));
    }
}

impl Known {
    /// Whether all parts were there until they were read.
    fn read(&mut self, folder: &Folder) -> Result<bool, AgentError> {
        let failed = |name: &str, error: io::Error| AgentError::Io(folder.path().join(name), error);
        let names = folder.names().map_err(|error| failed("", error))?;
        let names: BTreeSet<String> =
            names.into_iter().filter_map(|name| name.into_string().ok()).filter(|name| is_part(name)).collect();
        // What merged parts replace stays known.
        self.parts.retain(|name| names.contains(name));
        for name in names {
            if self.parts.contains(&name) {
                continue;
            }
            match folder.open_file(&name) {
                Ok(file) => self.landed.add_all(&listed(file, folder, &name)?),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(failed(&name, error)),
            }
            self.parts.insert(name);
        }
        Ok(true)
    }
}

/// The list in a footer. A damaged part contains nothing that could be read twice.
fn listed(file: std::fs::File, folder: &Folder, name: &str) -> Result<Landed, AgentError> {
    let path = folder.path().join(name);
    // The Parquet library panics on some footers that no program writes.
    let read = panic::catch_unwind(AssertUnwindSafe(|| footer_value(file, &path, BATCHES)));
    match read.unwrap_or(Ok(None)) {
        Ok(value) => Ok(value.and_then(|value| serde_json::from_str(&value).ok()).unwrap_or_default()),
        Err(error) if error.io_kind().is_none_or(|kind| kind == io::ErrorKind::UnexpectedEof) => Ok(Landed::default()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is a part of the lake.
pub(crate) fn is_part(name: &str) -> bool {
    name.starts_with("part-") && name.ends_with(".parquet")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(agent: &str, sequence: i64) -> Id {
        Id { cluster: "c".into(), agent: agent.into(), sequence }
    }

    #[test]
    fn numbers_are_kept_as_ranges() {
        let mut landed = Landed::default();
        [7, 3, 1, 9, 2, 10, 3].iter().for_each(|number| landed.add(&id("a", *number)));
        assert_eq!(serde_json::to_string(&landed).expect("JSON"), "{\"a\":[[1,3],[7,7],[9,10]]}");
        let has: Vec<i64> = (0..12).filter(|number| landed.has(&id("a", *number))).collect();
        assert_eq!((has, landed.has(&id("b", 1))), (vec![1, 2, 3, 7, 9, 10], false));
        landed.add_range("a", (i64::MIN, i64::MAX));
        assert!(landed.has(&id("a", i64::MAX)), "a list that lies is no overflow");
    }
}
