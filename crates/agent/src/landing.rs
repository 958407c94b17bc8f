//! How batches that a collector received come into the lake exactly once.
//!
//! - A batch that was *never sent before* waits in memory until the next landing, and is answered
//!   when it is in the lake. If that takes longer than [`Landing::limit`], it is not written any
//!   more.
//! - A batch that *was sent before* may be on its way into the lake through another collector, or
//!   through this one. It is put into `_pending` under a name of its own, and answered. After twice
//!   the limit no collector can still be writing it. Then the collector that holds the lock reads
//!   the footers of the parts, and writes the batch unless they name it.
//!
//! A collector that is killed leaves a batch either in the lake or not. The agent sends it again,
//! and it takes the second way.

use std::{
    fs::{self, File},
    path::PathBuf,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant, SystemTime},
};

use rustix::fs::{FlockOperation, flock};

use crate::{
    batch::{Batch, DAY_NS},
    error::AgentError,
    lake::Lake,
};

const PENDING: &str = "_pending";
/// Number of waiting rows at which batches land before their time.
const MOST_ROWS: usize = 500_000;

/// Batches whose sender waits for an answer.
pub(crate) struct Received {
    pub(crate) batches: Vec<Batch>,
    pub(crate) was_sent: bool,
    /// Told whether the batches are durable.
    pub(crate) answer: Box<dyn FnOnce(bool) + Send>,
}

/// Landing intervals.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// Interval between landings.
    pub every: Duration,
    /// How long a batch may take from its arrival into the lake.
    pub limit: Duration,
}

/// Brings batches into the lake until no more are sent.
pub(crate) struct Lander {
    pub(crate) lake: Lake,
    pub(crate) times: Landing,
    waiting: Vec<Received>,
    since: Option<Instant>,
    rows: usize,
}

impl Lander {
    pub(crate) fn new(lake: Lake, times: Landing) -> Lander {
        Lander { lake, times, waiting: Vec::new(), since: None, rows: 0 }
    }

    /// Run until all senders are gone, then land what still waits.
    pub(crate) fn run(mut self, received: &Receiver<Received>, report: &dyn Fn(AgentError)) {
        let mut settled = Instant::now();
        self.lake.remove_unfinished(self.times.limit.max(Duration::from_secs(3600)));
        loop {
            let wait = self.since.map_or(self.times.every, |since| self.times.every.saturating_sub(since.elapsed()));
            match received.recv_timeout(wait) {
                Ok(one) if one.was_sent => {
                    let kept = one.batches.iter().try_for_each(|batch| self.pend(batch));
                    (one.answer)(kept.is_ok());
                    kept.unwrap_or_else(report);
                }
                Ok(one) => {
                    self.rows += one.batches.iter().map(Batch::rows).sum::<usize>();
                    self.since.get_or_insert_with(Instant::now);
                    self.waiting.push(one);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.land(report);
                    return;
                }
            }
            if self.rows >= MOST_ROWS || self.since.is_some_and(|since| since.elapsed() >= self.times.every) {
                self.land(report);
            }
            if settled.elapsed() >= self.times.every {
                self.settle().unwrap_or_else(report);
                settled = Instant::now();
            }
        }
    }

    fn land(&mut self, report: &dyn Fn(AgentError)) {
        let since = self.since.take().unwrap_or_else(Instant::now);
        self.rows = 0;
        let waiting = std::mem::take(&mut self.waiting);
        let mut batches = Vec::new();
        let mut answers = Vec::new();
        for one in waiting {
            batches.extend(one.batches);
            answers.push(one.answer);
        }
        let limit = self.times.limit;
        let landed = self.lake.land(&batches, &|| since.elapsed() < limit);
        answers.into_iter().for_each(|answer| answer(landed.is_ok()));
        landed.unwrap_or_else(report);
    }

    fn pend(&self, batch: &Batch) -> Result<(), AgentError> {
        let folder = self.lake.folder()?.subfolder(PENDING)?;
        let name = format!("{}-{:016}.json", batch.agent, batch.sequence);
        folder.replace(&name, &batch.to_line()).map_err(|error| AgentError::Io(folder.path().join(name), error))
    }

    /// Write pending batches that are old enough and not in the lake. A lock ensures that one
    /// collector does it at a time.
    fn settle(&mut self) -> Result<(), AgentError> {
        let folder = self.lake.folder()?.subfolder(PENDING)?;
        let names = folder.names().map_err(|error| AgentError::Io(folder.path().into(), error))?;
        let is_batch = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".json");
        let names: Vec<_> = names.into_iter().filter(is_batch).collect();
        if names.is_empty() {
            return Ok(());
        }
        let lock_path: PathBuf = folder.path().join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&lock_path);
        let lock = lock.map_err(|error| AgentError::Io(lock_path, error))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        for name in names {
            let path = folder.path().join(&name);
            let written = fs::metadata(&path).and_then(|found| found.modified());
            let Ok(written) = written else { continue }; // another one was faster
            let age = SystemTime::now().duration_since(written).unwrap_or_default();
            if age < self.times.limit * 2 {
                continue;
            }
            let line = fs::read(&path).map_err(|error| AgentError::Io(path.clone(), error))?;
            let Ok(batch) = Batch::parse(&line, i64::MAX - DAY_NS) else {
                // The file was whole when it was written, so the disk is to blame and should be
                // checked.
                let _ = fs::rename(&path, path.with_extension("damaged"));
                continue;
            };
            self.lake.land_once(&batch)?;
            fs::remove_file(&path).map_err(|error| AgentError::Io(path, error))?;
        }
        Ok(())
    }
}
