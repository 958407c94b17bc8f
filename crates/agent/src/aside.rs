//! Batches that were set aside: in `refused` of the spool, each with the reason next to it, and
//! `summary.json` with their number by reason. They wait for inspection, within limits, and keep no
//! other batch from being sent.

use std::{collections::BTreeMap, io, path::Path};

use rustix::fs::renameat;
use serde::{Deserialize, Serialize};
use sysdock_table::Folder;

use crate::{batch::Refusal, error::AgentError, json};

const REFUSED: &str = "refused";
const SUMMARY: &str = "summary.json";
/// Ending of the name of a reason, after that of the batch.
const WHY: &str = ".why";
/// Batches that are kept, the latest.
const MOST: usize = 256;
/// Share of the spool that they may take.
const SHARE: u64 = 8;
/// Longest summary that is read [B].
const LONGEST: u64 = 1 << 20;

/// Batches that were set aside since the spool was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside {
    /// Number of all.
    pub batches: u64,
    /// Number by the code of the reason.
    pub reasons: BTreeMap<String, u64>,
    /// The reason of the last one.
    pub last: Option<Refusal>,
}

impl Aside {
    /// What was set aside in a spool.
    pub(crate) fn read(spool: &Folder) -> Aside {
        let path = spool.path().join(REFUSED);
        if path.symlink_metadata().is_err() {
            return Aside::default();
        }
        let read = spool.subfolder(REFUSED).map(|folder| Aside::of(&folder));
        read.unwrap_or_default()
    }

    fn of(folder: &Folder) -> Aside {
        let text = folder.open_file(SUMMARY).and_then(|file| io::read_to_string(io::Read::take(file, LONGEST)));
        let summary = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        // Versions before 0.4 kept the batches alone.
        summary.unwrap_or_else(|| Aside { batches: batches(folder).len() as u64, ..Aside::default() })
    }

    fn add(&mut self, why: &Refusal) {
        self.batches += 1;
        *self.reasons.entry(why.code().into()).or_default() += 1;
        self.last = Some(why.clone());
    }
}

/// Set a batch aside by renaming its file, so that one that cannot be read is no obstacle.
/// `limit_bytes`: of the spool.
pub(crate) fn set_aside(spool: &Folder, file: &str, why: &Refusal, limit_bytes: u64) -> Result<(), AgentError> {
    let folder = spool.subfolder(REFUSED)?;
    let failed = |name: &str, error: io::Error| AgentError::Io(folder.path().join(name), error);
    let mut aside = Aside::of(&folder);
    aside.add(why);
    let reason = format!("{file}{WHY}");
    // Without room for the reason, the batch is set aside all the same.
    let _ = folder.replace(&reason, json::text(why).as_bytes());
    let _ = folder.replace(SUMMARY, json::text(&aside).as_bytes());
    renameat(spool, file, &folder, file).map_err(|error| failed(file, error.into()))?;
    folder.sync().and_then(|()| spool.sync()).map_err(|error| failed(file, error))?;
    remove_oldest(&folder, limit_bytes / SHARE);
    Ok(())
}

/// Batches that are kept, by name and size, the oldest first.
fn batches(folder: &Folder) -> Vec<(String, u64)> {
    let names = folder.names().unwrap_or_default().into_iter().filter_map(|name| name.into_string().ok());
    let mut all: Vec<(String, u64)> = names
        .filter(|name| name.starts_with("batch-") && !name.ends_with(WHY))
        .map(|name| (name.clone(), size(&folder.path().join(name))))
        .collect();
    all.sort();
    all
}

fn size(path: &Path) -> u64 {
    path.symlink_metadata().map_or(0, |found| found.len())
}

fn remove_oldest(folder: &Folder, limit_bytes: u64) {
    let all = batches(folder);
    let mut bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    for (place, (name, length)) in all.iter().enumerate() {
        // The latest stays, whatever its size.
        let is_last = place + 1 == all.len();
        if is_last || (bytes <= limit_bytes && all.len() - place <= MOST) {
            return;
        }
        let _ = folder.remove(name);
        let _ = folder.remove(&format!("{name}{WHY}"));
        bytes -= length;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sysdock_table::Access;

    use super::*;

    #[test]
    fn each_has_its_reason_and_they_are_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Folder::create(&folder.path().join("spool"), Access::default()).expect("it is made");
        assert_eq!(Aside::read(&spool), Aside::default());
        for number in 0..10 {
            let name = format!("batch-{number}.json");
            fs::write(spool.path().join(&name), vec![b'x'; 100]).expect("written");
            let why = if number == 0 { Refusal::Time { ns: 5 } } else { Refusal::TooLong { bytes: 100 } };
            set_aside(&spool, &name, &why, 300 * SHARE).expect("it is set aside");
        }
        let aside = Aside::read(&spool);
        let reasons = BTreeMap::from([("time".to_string(), 1), ("too_long".to_string(), 9)]);
        assert_eq!((aside.batches, aside.reasons, aside.last), (10, reasons, Some(Refusal::TooLong { bytes: 100 })));
        let kept: Vec<String> =
            batches(&spool.subfolder(REFUSED).expect("it is there")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["batch-7.json", "batch-8.json", "batch-9.json"]);
        let why = fs::read_to_string(spool.path().join("refused/batch-9.json.why")).expect("it is there");
        assert_eq!(why, r#"{"code":"too_long","bytes":100}"#);
        assert!(!spool.path().join("refused/batch-6.json.why").exists());
    }

    #[test]
    fn those_of_earlier_versions_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let spool = Folder::create(&folder.path().join("spool"), Access::default()).expect("it is made");
        let refused = spool.subfolder(REFUSED).expect("it is made");
        fs::write(refused.path().join("batch-1.sent.json"), "x").expect("written");
        assert_eq!(Aside::read(&spool).batches, 1);
    }
}
