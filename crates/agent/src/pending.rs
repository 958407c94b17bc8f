//! Batches of which it is unknown whether they have landed: files of lines in `_pending` of the
//! lake, each with a name of its own. After twice the time that a landing may take, no collector can
//! still be writing them. Then whoever holds the lock, a collector or an agent that writes to the lake
//! itself, reads the footers of the parts, and writes the batches that they do not name. A batch is
//! known by its cluster, agent and number.
//!
//! Each collector states the time that its landings may take by an empty file `limit-MILLISECONDS`.
//! The longest one counts for all; without any, nobody but the sender of a batch can have written it.
//!
//! A line that cannot be read any more is set aside, in `refused` with its reason; a batch whose
//! folder cannot be written is tried again later. Neither keeps another one from landing.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use hyper::body::Bytes;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::Serialize;
use sysdock_table::Folder;

use crate::{
    batch::{DAY_NS, Refusal},
    error::AgentError,
    json,
    lake::{Lake, Partition, by_partition},
    landing::{MOST_PARTITIONS, distinct},
    line::Line,
};

const PENDING: &str = "_pending";
const REFUSED: &str = "refused";
/// Beginning of the names of files that state how long a landing may take.
const LIMIT: &str = "limit-";
/// What may be pending, in all [B]. Agents keep what is beyond.
const MOST_BYTES: u64 = 1 << 30;
/// Size of a file [B]: it is read as a whole.
const LONGEST_FILE: usize = 1 << 20;

/// A line that was set aside.
#[derive(Serialize)]
struct Aside<'a> {
    why: &'a Refusal,
    line: &'a str,
}

/// Batches in `_pending`.
pub(crate) struct Pending {
    number: u64,
    /// What is there, as far as it is known [B].
    bytes: u64,
    set_aside: Arc<AtomicU64>,
}

impl Pending {
    pub(crate) fn new(set_aside: Arc<AtomicU64>) -> Pending {
        Pending { number: 0, bytes: 0, set_aside }
    }

    /// State how long a landing of this process may take from the arrival of a batch.
    pub(crate) fn state_limit(lake: &Lake, limit: Duration) -> Result<(), AgentError> {
        let folder = lake.folder()?.subfolder(PENDING)?;
        let name = format!("{LIMIT}{}", limit.as_millis());
        folder.replace(&name, b"").map_err(|error| AgentError::Io(folder.path().join(name), error))
    }

    /// Make batches durable.
    pub(crate) fn add(&mut self, lake: &Lake, lines: &[&Line]) -> Result<(), AgentError> {
        let folder = lake.folder()?.subfolder(PENDING)?;
        let mut text = Vec::new();
        for (place, line) in lines.iter().enumerate() {
            text.extend_from_slice(line.text());
            text.push(b'\n');
            let is_last = place + 1 == lines.len();
            if is_last || text.len() >= LONGEST_FILE {
                self.write(lake, &folder, &std::mem::take(&mut text))?;
            }
        }
        Ok(())
    }

    fn write(&mut self, lake: &Lake, folder: &Folder, text: &[u8]) -> Result<(), AgentError> {
        if self.bytes + text.len() as u64 > MOST_BYTES {
            return Err(AgentError::PendingFull(folder.path().into()));
        }
        self.number += 1;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let name = format!("{}-{}-{}.json", since.as_millis(), lake.writer(), self.number);
        folder.replace(&name, text).map_err(|error| AgentError::Io(folder.path().join(name), error))?;
        self.bytes += text.len() as u64;
        Ok(())
    }

    /// Write pending batches that are old enough and not in the lake, as long as there is time. A
    /// lock ensures that one collector does it at a time.
    pub(crate) fn settle(&mut self, lake: &mut Lake, until: Instant, report: &dyn Fn(AgentError)) {
        if let Err(error) = self.try_settle(lake, until, report) {
            report(error);
        }
    }

    fn try_settle(&mut self, lake: &mut Lake, until: Instant, report: &dyn Fn(AgentError)) -> Result<(), AgentError> {
        let folder = lake.folder()?.subfolder(PENDING)?;
        let names = names(&folder)?;
        let (age, files) = (longest_limit(&names) * 2, files(&folder, names));
        self.bytes = files.iter().map(|(_, _, bytes)| bytes).sum();
        if files.is_empty() {
            return Ok(());
        }
        let Some(_lock) = lock(folder.path())? else { return Ok(()) };
        for (name, written, bytes) in files {
            let is_due = SystemTime::now().duration_since(written).unwrap_or_default() >= age;
            if Instant::now() >= until {
                break;
            }
            if is_due {
                self.settle_file(lake, &folder, &name, report).unwrap_or_else(report);
                self.bytes = self.bytes.saturating_sub(bytes);
            }
        }
        Ok(())
    }

    /// Land what is in a file. What is left of it is tried again when it is old enough again.
    fn settle_file(&self, lake: &mut Lake, folder: &Folder, name: &str, report: &dyn Fn(AgentError)) -> Result<(), AgentError> {
        let failed = |error| AgentError::Io(folder.path().join(name), error);
        let mut text = Vec::new();
        match folder.open_file(name).and_then(|mut file| file.read_to_end(&mut text)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()), // another one was faster
            read => read.map_err(failed)?,
        };
        let lines = self.lines(folder, name, &Bytes::from(text))?;
        let all = by_partition(distinct(&lines));
        let mut left = Vec::new();
        for (place, (partition, lines)) in all.iter().enumerate() {
            if place >= MOST_PARTITIONS || !land(lake, partition, lines, report) {
                left.extend(lines.iter().flat_map(|line| [&line.text()[..], b"\n"]));
            }
        }
        let left = left.concat();
        if left.is_empty() { folder.remove(name) } else { folder.replace(name, &left) }.map_err(failed)
    }

    /// The lines of a file, without those that cannot be read: they were whole when they were
    /// written, so the disk is to blame and should be checked.
    fn lines(&self, folder: &Folder, name: &str, text: &Bytes) -> Result<Vec<Line>, AgentError> {
        let mut lines = Vec::new();
        for (place, line) in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
            match Line::parse(text.slice_ref(line), i64::MAX - DAY_NS) {
                Ok(line) => lines.push(line),
                Err(why) => self.set_aside(folder, &format!("{name}-{place}"), line, &why)?,
            }
        }
        Ok(lines)
    }

    fn set_aside(&self, folder: &Folder, name: &str, line: &[u8], why: &Refusal) -> Result<(), AgentError> {
        let refused = folder.subfolder(REFUSED)?;
        let aside = Aside { why, line: &String::from_utf8_lossy(line) };
        let kept = refused.replace(name, json::text(&aside).as_bytes());
        kept.map_err(|error| AgentError::Io(refused.path().join(name), error))?;
        self.set_aside.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Whether the batches of a partition are in the lake now.
fn land(lake: &mut Lake, partition: &Partition, lines: &[&Line], report: &dyn Fn(AgentError)) -> bool {
    let landed = lake.land_once(partition, lines);
    let is_there = landed.is_ok();
    landed.unwrap_or_else(report);
    is_there
}

fn names(folder: &Folder) -> Result<Vec<String>, AgentError> {
    let names = folder.names().map_err(|error| AgentError::Io(folder.path().into(), error))?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

/// The longest time that a landing of any collector of the lake may take.
fn longest_limit(names: &[String]) -> Duration {
    let limits = names.iter().filter_map(|name| name.strip_prefix(LIMIT)?.parse().ok());
    // An age of centuries is as good as never, and cannot overflow.
    Duration::from_millis(limits.max().unwrap_or(0).min(u64::from(u32::MAX) * 1000))
}

/// Files of batches with the time at which they were written and their size, the oldest first.
fn files(folder: &Folder, names: Vec<String>) -> Vec<(String, SystemTime, u64)> {
    let found = |name: String| {
        let found = fs::symlink_metadata(folder.path().join(&name)).ok()?;
        Some((name, found.modified().ok()?, found.len()))
    };
    let mut files: Vec<_> = names.into_iter().filter(|name| name.ends_with(".json")).filter_map(found).collect();
    files.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
    files
}

/// The lock, unless another collector holds it.
fn lock(folder: &Path) -> Result<Option<File>, AgentError> {
    let path = folder.join("lock");
    let options =
        File::options().create(true).truncate(false).write(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(&path);
    let file = options.map_err(|error| AgentError::Io(path, error))?;
    Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, path::PathBuf};

    use super::*;
    use crate::{
        batch::Batch,
        line::tests::{NOW, parse},
        rows::{Origin, empty_sample},
    };

    struct Scene {
        _folder: tempfile::TempDir,
        path: PathBuf,
        lake: Lake,
        pending: Pending,
        reported: RefCell<Vec<AgentError>>,
    }

    impl Scene {
        fn new() -> Scene {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("lake");
            let lake = Lake::open(&path, "00000001").expect("it is made");
            let pending = Pending::new(Arc::default());
            Scene { _folder: folder, path, lake, pending, reported: RefCell::default() }
        }

        fn add(&mut self, lines: &[&Line]) {
            self.pending.add(&self.lake, lines).expect("there is room");
        }

        fn settle(&mut self) {
            let until = Instant::now() + Duration::from_secs(600);
            let Scene { pending, lake, reported, .. } = self;
            pending.settle(lake, until, &|error| reported.borrow_mut().push(error));
        }

        fn waiting(&self) -> usize {
            let folder = self.lake.folder().expect("a lake").subfolder(PENDING).expect("a folder");
            files(&folder, names(&folder).expect("it can be read")).len()
        }

        /// Rows of a cluster in the lake, by the names of its parts.
        fn rows(&self, cluster: &str) -> u64 {
            let folder = self.path.join("job_samples/date=2027-01-15").join(format!("cluster={cluster}"));
            let names = fs::read_dir(folder).into_iter().flatten().flatten();
            let rows = |name: String| name.split('-').nth(4).and_then(|rows| rows.parse::<u64>().ok());
            names.filter_map(|entry| rows(entry.file_name().to_string_lossy().into_owned())).sum()
        }
    }

    fn line(cluster: &str, sequence: i64) -> Line {
        of_time(cluster, sequence, NOW)
    }

    fn of_time(cluster: &str, sequence: i64, ns: i64) -> Line {
        let agent = "0123456789abcdef".to_string();
        let origin = Origin { cluster: cluster.into(), node: "n".into(), agent, sequence };
        let mut batch = Batch::new(&origin, ns);
        batch.job_samples.push(empty_sample(&origin, ns, 10, "files"));
        parse(batch.to_line()).expect("it is fine")
    }

    #[test]
    fn clusters_do_not_replace_each_others_batches() {
        let mut scene = Scene::new();
        scene.add(&[&line("c", 1)]);
        scene.add(&[&line("d", 1)]);
        scene.add(&[&line("c", 1), &line("d", 1)]);
        scene.settle();
        assert_eq!((scene.rows("c"), scene.rows("d"), scene.waiting()), (1, 1, 0));
    }

    #[test]
    fn the_longest_limit_counts_for_all() {
        let mut scene = Scene::new();
        for limit in [2, 3600, 60] {
            Pending::state_limit(&scene.lake, Duration::from_secs(limit)).expect("it can be written");
        }
        fs::write(scene.path.join(PENDING).join("limit-soon"), "").expect("written");
        scene.add(&[&line("c", 1)]);
        scene.settle();
        assert_eq!((scene.rows("c"), scene.waiting()), (0, 1), "a collector may still be writing it");
        fs::remove_file(scene.path.join(PENDING).join("limit-3600000")).expect("it is there");
        fs::remove_file(scene.path.join(PENDING).join("limit-60000")).expect("it is there");
        fs::remove_file(scene.path.join(PENDING).join("limit-2000")).expect("it is there");
        scene.settle();
        assert_eq!((scene.rows("c"), scene.waiting()), (1, 0));
    }

    #[test]
    fn thousands_of_batches_are_one_file() {
        let mut scene = Scene::new();
        let lines: Vec<Line> = (1..=2000).map(|sequence| line("c", sequence)).collect();
        scene.add(&lines.iter().collect::<Vec<_>>());
        assert_eq!(scene.waiting(), 1);
        scene.settle();
        assert_eq!((scene.rows("c"), scene.waiting()), (2000, 0));
    }

    #[test]
    fn one_that_cannot_land_stops_nobody() {
        let mut scene = Scene::new();
        // Files in place of the folders that a cluster needs.
        for table in ["job_samples", "job_totals", "job_files", "agent_batches"] {
            let date = scene.path.join(table).join("date=2027-01-15");
            fs::create_dir_all(&date).expect("a folder");
            fs::write(date.join("cluster=bad"), "").expect("a file");
        }
        scene.add(&[&line("bad", 1), &line("c", 1)]);
        scene.add(&[&line("c", 2)]);
        scene.settle();
        assert_eq!((scene.rows("c"), scene.waiting(), scene.reported.borrow().len()), (2, 1, 1));
        for table in ["job_samples", "job_totals", "job_files", "agent_batches"] {
            fs::remove_file(scene.path.join(table).join("date=2027-01-15/cluster=bad")).expect("it is there");
        }
        scene.settle();
        assert_eq!((scene.rows("bad"), scene.rows("c"), scene.waiting()), (1, 2, 0));
    }

    #[test]
    fn a_line_that_cannot_be_read_is_set_aside() {
        let mut scene = Scene::new();
        let name = "x".repeat(250);
        let long = String::from_utf8_lossy(line("c", 1).text()).replace("\"cluster\":\"c\"", &format!("\"cluster\":\"{name}\""));
        scene.add(&[&line("c", 2)]);
        let folder = scene.path.join(PENDING);
        // As earlier versions left them: a name that is too long for its folder, and a damaged file.
        fs::write(folder.join("0123456789abcdef-0000000000000001.json"), long).expect("written");
        fs::write(folder.join("0123456789abcdef-0000000000000003.json"), "{\"format\"").expect("written");
        scene.settle();
        assert_eq!((scene.rows("c"), scene.waiting(), scene.pending.set_aside.load(Ordering::Relaxed)), (1, 0, 2));
        let first = folder.join(REFUSED).join("0123456789abcdef-0000000000000001.json-0");
        let aside: serde_json::Value = serde_json::from_slice(&fs::read(first).expect("it is kept")).expect("JSON");
        assert_eq!(aside["why"], serde_json::json!({"code": "name", "of": "cluster"}));
    }

    #[test]
    fn a_file_for_many_days_takes_several_rounds() {
        const DAYS: i64 = 40;
        let mut scene = Scene::new();
        let lines: Vec<Line> = (1..=DAYS).map(|day| of_time("c", day, NOW - day * DAY_NS)).collect();
        scene.add(&lines.iter().collect::<Vec<_>>());
        let days = |scene: &Scene| fs::read_dir(scene.path.join("job_samples")).expect("it is there").count();
        scene.settle();
        assert_eq!((days(&scene), scene.waiting()), (MOST_PARTITIONS, 1));
        scene.settle();
        scene.settle();
        assert_eq!((days(&scene), scene.waiting()), (DAYS as usize, 0));
    }

    #[test]
    fn agents_keep_what_finds_no_room() {
        let mut scene = Scene::new();
        scene.pending.bytes = MOST_BYTES;
        assert!(matches!(scene.pending.add(&scene.lake, &[&line("c", 1)]), Err(AgentError::PendingFull(_))));
    }
}
