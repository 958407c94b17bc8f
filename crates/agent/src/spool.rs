//! Batches on disk until they have landed, and the state with which the next reading is compared.
//!
//! `state.json` contains the state *after* a batch together with that batch, and is replaced in one
//! step. So whenever the agent is killed, the batch is there with its state, or neither is: nothing
//! that was counted is lost or counted twice. Then each batch gets a file:
//!
//! - `batch-N-AGENT.json`: was never sent;
//! - `batch-N-AGENT.sent.json`: was sent at least once, and not confirmed as landed: the lake must be
//!   checked.
//!
//! The name contains the agent's id, as an agent whose state was damaged begins anew with another one
//! and counts from 1 again. Files of earlier versions have no id in their names.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sysdock_table::{Access, Folder};

use crate::{
    aside::{self, Aside},
    batch::{Batch, Refusal},
    error::AgentError,
    names,
    sampling::State,
    tokens::hex,
};

const STATE: &str = "state.json";
/// Longest batch that is read [B].
const LONGEST_LINE: u64 = 256 << 20;
/// Largest state that is read [B].
const MOST_STATE: u64 = 256 << 20;

/// The folder of batches.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: Folder,
    limit_bytes: u64,
    /// Held by the first one to open the folder; shared copies have none.
    _lock: Option<File>,
}

/// What is kept from one batch to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The agent's id.
    pub(crate) agent: String,
    /// Number of the last batch; 0: there was none.
    pub(crate) sequence: i64,
    /// Number of batches that were removed unsent.
    pub(crate) dropped: i64,
    /// Number of batches that were removed unsent, of the second destination.
    #[serde(default)]
    pub(crate) second_dropped: i64,
    pub(crate) state: Option<State>,
    /// The last batch, as a line.
    pub(crate) batch: Option<String>,
    /// The last batch has no file of its own yet, because it could not be written.
    #[serde(skip)]
    needs_file: bool,
}

impl Kept {
    /// Whether it can be what an agent wrote: its id becomes part of names of files.
    fn is_whole(&self) -> bool {
        names::is_agent(&self.agent) && (0..i64::MAX / 2).contains(&self.sequence)
    }
}

/// A batch in the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) sequence: i64,
    /// Id of the agent that made it; empty: an earlier version did.
    agent: String,
    pub(crate) was_sent: bool,
    pub(crate) bytes: u64,
}

impl Waiting {
    fn new(sequence: i64, agent: &str, was_sent: bool) -> Waiting {
        Waiting { sequence, agent: agent.into(), was_sent, bytes: 0 }
    }

    fn name(&self) -> String {
        let Waiting { sequence, agent, was_sent, .. } = self;
        let dash = if agent.is_empty() { "" } else { "-" };
        format!("batch-{sequence:016}{dash}{agent}{}.json", if *was_sent { ".sent" } else { "" })
    }

    fn parse(name: &str, bytes: u64) -> Option<Waiting> {
        let number = name.strip_prefix("batch-")?.strip_suffix(".json")?;
        let (number, was_sent) = number.strip_suffix(".sent").map_or((number, false), |number| (number, true));
        let (number, agent) = number.split_once('-').unwrap_or((number, ""));
        let waiting = Waiting { sequence: number.parse().ok()?, agent: agent.into(), was_sent, bytes };
        let is_agent = agent.is_empty() || names::is_agent(agent);
        (is_agent && waiting.name() == name).then_some(waiting)
    }

    /// The same batch, as one that was sent or was not.
    fn with(&self, was_sent: bool) -> Waiting {
        Waiting { was_sent, ..self.clone() }
    }

    /// Whether it is the batch that an agent made last.
    fn is_last_of(&self, kept: &Kept) -> bool {
        self.sequence == kept.sequence && (self.agent.is_empty() || self.agent == kept.agent)
    }
}

impl Spool {
    /// Open a spool, or create one.
    ///
    /// # Errors
    /// [`AgentError`]: another agent uses it, it belongs to another user, or it cannot be written.
    pub(crate) fn open(path: &Path, limit_bytes: u64) -> Result<Spool, AgentError> {
        let folder =
            if path.exists() { Folder::open(path, Access::default())? } else { Folder::create(path, Access::default())? };
        let lock_path = path.join("lock");
        let mut options = File::options();
        options.create(true).truncate(false).write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let lock = options.open(&lock_path).map_err(|error| AgentError::Io(lock_path, error))?;
        if rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(AgentError::InUse(path.into()));
        }
        Ok(Spool { folder, limit_bytes, _lock: Some(lock) })
    }

    /// Open the same folder for another thread.
    pub(crate) fn share(&self) -> Result<Spool, AgentError> {
        Ok(Spool { folder: Folder::open(self.folder.path(), Access::default())?, limit_bytes: self.limit_bytes, _lock: None })
    }

    /// The folder of batches for a second destination, inside this one.
    pub(crate) fn second(&self, name: &str) -> Result<Spool, AgentError> {
        Ok(Spool { folder: self.folder.subfolder(name)?, limit_bytes: self.limit_bytes, _lock: None })
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn failed(&self, name: &str, error: io::Error) -> AgentError {
        AgentError::Io(self.folder.path().join(name), error)
    }

    /// Read what was kept. The batch in it gets a file again, as one that may have been sent. A
    /// damaged state is set aside.
    pub(crate) fn begin(&self) -> Result<Kept, AgentError> {
        self.remove_unfinished()?;
        let mut text = Vec::new();
        match self.folder.open_file(STATE) {
            Ok(file) => drop(file.take(MOST_STATE).read_to_end(&mut text).map_err(|error| self.failed(STATE, error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Kept { agent: new_number()?, ..Kept::default() }),
            Err(error) => return Err(self.failed(STATE, error)),
        }
        let kept = serde_json::from_slice::<Kept>(&text).ok().filter(Kept::is_whole);
        let Some(kept) = kept else {
            self.folder.rename(STATE, "state.damaged.json").map_err(|error| self.failed(STATE, error))?;
            return Ok(Kept { agent: new_number()?, ..Kept::default() });
        };
        let is_there = self.waiting()?.iter().any(|waiting| waiting.is_last_of(&kept));
        if let Some(batch) = kept.batch.as_deref().filter(|_| !is_there) {
            let name = Waiting::new(kept.sequence, &kept.agent, true).name();
            self.folder.replace(&name, batch.as_bytes()).map_err(|error| self.failed(&name, error))?;
        }
        Ok(kept)
    }

    /// Remove files that were being written when the agent was killed: the files that they were to
    /// replace are whole.
    fn remove_unfinished(&self) -> Result<(), AgentError> {
        for name in self.folder.names().map_err(|error| self.failed("", error))? {
            if let Some(name) = name.to_str().filter(|name| name.ends_with(".new")) {
                self.folder.remove(name).map_err(|error| self.failed(name, error))?;
            }
        }
        Ok(())
    }

    /// Keep a batch with the state after it. If the disk is full, the oldest batches are dropped.
    /// If writing fails, `kept` does not change, and the next batch contains what this one would
    /// have.
    pub(crate) fn keep(&self, kept: &mut Kept, state: State, batch: &Batch) -> Result<(), AgentError> {
        self.write_batch(kept)?;
        self.make_room(&mut kept.dropped)?;
        let line = String::from_utf8_lossy(&batch.to_line()).into_owned();
        let agent = kept.agent.clone();
        let (sequence, state, batch) = (batch.sequence, Some(state), Some(line));
        let (dropped, second_dropped) = (kept.dropped, kept.second_dropped);
        let mut next = Kept { agent, sequence, dropped, second_dropped, state, batch, needs_file: true };
        loop {
            let text = serde_json::to_vec(&next).map_err(|error| self.failed(STATE, error.into()))?;
            match self.folder.replace(STATE, &text) {
                Ok(()) => break,
                Err(error) if is_full(&error) && self.drop_oldest(&mut next.dropped)? => kept.dropped = next.dropped,
                Err(error) => return Err(self.failed(STATE, error)),
            }
        }
        // From here on the batch is part of the state, whatever becomes of its file.
        *kept = next;
        self.write_batch(kept)
    }

    /// Give the last batch a file of its own, if it has none.
    fn write_batch(&self, kept: &mut Kept) -> Result<(), AgentError> {
        let Some(line) = kept.batch.as_ref().filter(|_| kept.needs_file) else { return Ok(()) };
        self.write_line(&Waiting::new(kept.sequence, &kept.agent, false), line.as_bytes(), &mut kept.dropped)?;
        kept.needs_file = false;
        Ok(())
    }

    fn write_line(&self, waiting: &Waiting, line: &[u8], dropped: &mut i64) -> Result<(), AgentError> {
        let name = waiting.name();
        loop {
            match self.folder.replace(&name, line) {
                Ok(()) => return Ok(()),
                Err(error) if is_full(&error) && self.drop_oldest(dropped)? => {}
                Err(error) => return Err(self.failed(&name, error)),
            }
        }
    }

    /// Keep the last batch in this folder of a second destination, too. What does not fit is
    /// dropped and counted.
    pub(crate) fn keep_second(&self, kept: &mut Kept) -> Result<(), AgentError> {
        let Some(line) = &kept.batch else { return Ok(()) };
        self.make_room(&mut kept.second_dropped)?;
        let waiting = Waiting::new(kept.sequence, &kept.agent, false);
        let written = self.write_line(&waiting, line.as_bytes(), &mut kept.second_dropped);
        if written.is_err() {
            kept.second_dropped += 1;
        }
        written
    }

    /// Called after a start. The agent may have been killed before the last batch was kept here,
    /// unless `was_answered`.
    pub(crate) fn begin_second(&self, kept: &mut Kept, was_answered: bool) -> Result<(), AgentError> {
        self.remove_unfinished()?;
        let is_there = self.waiting()?.iter().any(|waiting| waiting.is_last_of(kept));
        if was_answered || is_there { Ok(()) } else { self.keep_second(kept) }
    }

    /// Drop batches until the rest is within the limit.
    fn make_room(&self, dropped: &mut i64) -> Result<(), AgentError> {
        while self.waiting()?.iter().map(|waiting| waiting.bytes).sum::<u64>() > self.limit_bytes && self.drop_oldest(dropped)? {}
        Ok(())
    }

    fn drop_oldest(&self, dropped: &mut i64) -> Result<bool, AgentError> {
        let Some(oldest) = self.waiting()?.into_iter().next() else { return Ok(false) };
        self.landed(&oldest)?;
        *dropped += 1;
        Ok(true)
    }

    /// The waiting batches, the oldest first.
    pub(crate) fn waiting(&self) -> Result<Vec<Waiting>, AgentError> {
        let mut all = Vec::new();
        for name in self.folder.names().map_err(|error| self.failed("", error))? {
            let bytes = fs::symlink_metadata(self.folder.path().join(&name)).map_or(0, |found| found.len());
            all.extend(name.to_str().and_then(|name| Waiting::parse(name, bytes)));
        }
        all.sort_by(|one, other| (one.sequence, one.was_sent, &one.agent).cmp(&(other.sequence, other.was_sent, &other.agent)));
        Ok(all)
    }

    /// The line of a batch.
    pub(crate) fn line(&self, waiting: &Waiting) -> Result<Vec<u8>, AgentError> {
        let name = waiting.name();
        let mut line = Vec::new();
        let read = self.folder.open_file(&name).and_then(|file| file.take(LONGEST_LINE).read_to_end(&mut line));
        read.map(|_| line).map_err(|error| self.failed(&name, error))
    }

    /// Record that a batch is about to be sent: from now on it may have landed.
    pub(crate) fn about_to_send(&self, waiting: &Waiting) -> Result<Waiting, AgentError> {
        let sent = waiting.with(true);
        if !waiting.was_sent {
            let renamed = self.folder.rename(&waiting.name(), &sent.name()).and_then(|()| self.folder.sync());
            renamed.map_err(|error| self.failed(&waiting.name(), error))?;
        }
        Ok(sent)
    }

    /// Remove a batch that is in the lake.
    pub(crate) fn landed(&self, waiting: &Waiting) -> Result<(), AgentError> {
        for was_sent in [false, true] {
            let name = waiting.with(was_sent).name();
            self.folder.remove(&name).map_err(|error| self.failed(&name, error))?;
        }
        Ok(())
    }

    /// Set a batch aside that is refused, or cannot be read.
    pub(crate) fn set_aside(&self, waiting: &Waiting, why: &Refusal) -> Result<(), AgentError> {
        aside::set_aside(&self.folder, &waiting.name(), why, self.limit_bytes)
    }

    /// Batches that were set aside.
    pub(crate) fn aside(&self) -> Aside {
        Aside::read(&self.folder)
    }

    /// Path of the socket for questions.
    #[must_use]
    pub(crate) fn socket(path: &Path) -> PathBuf {
        path.join("agent.sock")
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A random id for a new agent.
fn new_number() -> Result<String, AgentError> {
    let mut bytes = [0; 8];
    SystemRandom::new().fill(&mut bytes).map_err(|_| AgentError::Io("/dev/urandom".into(), io::ErrorKind::Other.into()))?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Origin;

    fn batch(sequence: i64) -> Batch {
        let origin = Origin { cluster: "c".into(), node: "n".into(), agent: "0123456789abcdef".into(), sequence };
        Batch::new(&origin, 1_800_000_000_000_000_000)
    }

    fn numbers(spool: &Spool) -> Vec<(i64, bool)> {
        spool.waiting().expect("it can be read").iter().map(|waiting| (waiting.sequence, waiting.was_sent)).collect()
    }

    #[test]
    fn a_batch_is_kept_until_it_has_landed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let spool = Spool::open(&path, 1 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        assert_eq!(kept.agent.len(), 16);
        for sequence in 1..=3 {
            spool.keep(&mut kept, State::default(), &batch(sequence)).expect("there is room");
        }
        assert!(matches!(Spool::open(&path, 1), Err(AgentError::InUse(_))));
        let waiting = spool.waiting().expect("it can be read");
        spool.about_to_send(&waiting[0]).expect("it is renamed");
        assert_eq!(numbers(&spool), [(1, true), (2, false), (3, false)]);
        spool.landed(&spool.waiting().expect("read")[0]).expect("it goes");
        let agent = kept.agent.clone();
        drop(spool);
        // The next process.
        fs::write(path.join("batch-0000000000000009.json.new"), "half").expect("written");
        let spool = Spool::open(&path, 1 << 20).expect("it is there");
        let kept = spool.begin().expect("as it was");
        assert_eq!((kept.agent, kept.sequence, numbers(&spool)), (agent, 3, vec![(2, false), (3, false)]));
        assert!(!path.join("batch-0000000000000009.json.new").exists());
        // The agent was killed after the state was written, before the batch had its file, or after
        // the batch had landed, which is unknown.
        spool.landed(&spool.waiting().expect("read")[1]).expect("it goes");
        spool.begin().expect("as it was");
        assert_eq!(numbers(&spool), [(2, false), (3, true)]);
    }

    #[test]
    fn what_the_disk_refuses_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let spool = Spool::open(&path, 1 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        spool.keep(&mut kept, State::default(), &batch(1)).expect("there is room");
        // A folder cannot be replaced by a file.
        fs::remove_file(path.join(STATE)).expect("it is there");
        fs::create_dir(path.join(STATE)).expect("a folder");
        assert!(spool.keep(&mut kept, State::default(), &batch(2)).is_err());
        assert_eq!((kept.sequence, numbers(&spool)), (1, vec![(1, false)]));
        fs::remove_dir(path.join(STATE)).expect("it is empty");
        // The state is written, the file of the batch is not: it is written before the next one.
        let taken = path.join(Waiting::new(2, &kept.agent, false).name());
        fs::create_dir(&taken).expect("a folder");
        assert!(spool.keep(&mut kept, State::default(), &batch(2)).is_err());
        assert_eq!(kept.sequence, 2);
        fs::remove_dir(&taken).expect("it is empty");
        spool.keep(&mut kept, State::default(), &batch(3)).expect("there is room");
        assert_eq!(numbers(&spool), [(1, false), (2, false), (3, false)]);
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = batch(1).to_line().len() as u64;
        let spool = Spool::open(&folder.path().join("spool"), line * 3).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        for sequence in 1..=9 {
            spool.keep(&mut kept, State::default(), &batch(sequence)).expect("there is room");
        }
        assert_eq!((numbers(&spool).len(), kept.dropped), (4, 5));
        assert_eq!(numbers(&spool)[0], (6, false));
    }

    #[test]
    fn a_damaged_state_begins_a_new_agent() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let spool = Spool::open(&path, 1 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        spool.keep(&mut kept, State::default(), &batch(1)).expect("there is room");
        let other = fs::read_to_string(path.join(STATE)).expect("it is there").replace(&kept.agent, "0123456789abcde/");
        for text in ["{\"agent\":", &other] {
            fs::write(path.join(STATE), text).expect("damaged");
            assert_ne!(spool.begin().expect("it begins").agent, "0123456789abcde/");
        }
        fs::write(path.join(STATE), "{\"agent\":").expect("damaged");
        let anew = spool.begin().expect("it begins");
        assert!(anew.agent != kept.agent && anew.sequence == 0);
        assert!(path.join("state.damaged.json").exists());
        assert_eq!(numbers(&spool), [(1, false)]);
        // The batch of the new agent with the same number does not replace it.
        let mut anew = anew;
        spool.keep(&mut anew, State::default(), &batch(1)).expect("there is room");
        assert_eq!(numbers(&spool), [(1, false), (1, false)]);
        let [first, second] = &spool.waiting().expect("read")[..] else { panic!("two batches") };
        spool.landed(first).expect("it goes");
        assert_eq!(spool.waiting().expect("read"), std::slice::from_ref(second));
    }

    #[test]
    fn batches_of_earlier_versions_have_no_agent_in_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("spool");
        let spool = Spool::open(&path, 1 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        spool.keep(&mut kept, State::default(), &batch(1)).expect("there is room");
        let old = path.join("batch-0000000000000001.sent.json");
        fs::rename(path.join(Waiting::new(1, &kept.agent, false).name()), &old).expect("renamed");
        spool.begin().expect("as it was");
        assert_eq!(numbers(&spool), [(1, true)], "it is there");
        spool.landed(&spool.waiting().expect("read")[0]).expect("it goes");
        assert!(!old.exists());
        for name in ["batch-1.json", "batch-0000000000000001-x/../y.json", "batch-00000000000000-1.json", "batch-x-y.json"] {
            assert_eq!(Waiting::parse(name, 1), None, "{name}");
        }
    }
}
