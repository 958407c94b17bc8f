//! What jobs, units and containers use, added up in the kernel (`accounts.bpf.c`) for `sysdock
//! agent`.
//!
//! Sums only grow: reading does not change them, and the reader takes differences. (Only the lists
//! of files are emptied.) The maps may be pinned: then the programs continue to count after an
//! agent was killed, and the next agent resumes their sums.

mod pins;
mod settings;

use std::{collections::BTreeMap, io, io::Read, os::unix::ffi::OsStrExt, path::Path};

use libbpf_rs::{Iter, Link, MapCore, MapFlags, MapHandle, RingBuffer, RingBufferBuilder};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::{
    events::{
        self, AccountKey, CallCounts, CallKey, EndedCounts, JobFileCounts, JobFileKey, JobFileName, Layout, LiveCounts,
        ThreadCounters, until_nul,
    },
    live::path_of,
    probes::{ProbeError, Step, failed},
};

pub use pins::{AccountingError, remove as remove_pins};
pub use settings::{Variable, VariableKind};

pub(crate) const OBJECT: &[u8] = programs!("accounts");

const BATCH: u32 = 2048;
const MOUNT_BYTES: usize = 120;
const JOB_TEXT_BYTES: usize = 64;
/// First id of accounts of processes that ran before the programs were loaded. The kernel numbers
/// its own from 1 on.
const FIRST_SEEDED: u32 = 1 << 31;

/// An account: processes with the same job, control group and user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Account {
    /// Id, which is never reused while the programs are loaded.
    pub id: u32,
    /// Number of the job, from the environment; any bytes. Empty: the environment names none.
    pub job: Vec<u8>,
    /// Name of the job, from the environment; any bytes.
    pub name: Vec<u8>,
    /// Id of the control group (version 2).
    pub cgroup: u64,
    /// Id of the user.
    pub uid: u32,
    /// [`Variable::scheduler`] of the variable that named the job.
    pub scheduler: u8,
    /// When its first process was seen [ns since boot].
    pub begun_ns: u64,
    /// Name of that process; any bytes.
    pub command: Vec<u8>,
}

/// Number of kinds of calls in [`Calls::calls`].
const KINDS: usize = 12;

/// Calls of an account on one file system, since the account began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; 17]", from = "[u64; 17]")]
pub struct Calls {
    /// Number of calls of each kind, in the order of [`Calls::COUNTERS`].
    pub calls: [u64; KINDS],
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Number of failed calls.
    pub errors: u64,
    /// Total duration of the calls [ns].
    pub time_ns: u64,
    /// The part of `time_ns` in which the threads neither ran nor could have run [ns].
    pub wait_ns: u64,
}

/// What the threads of an account used, since the account began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "[u64; WORDS]", from = "[u64; WORDS]")]
pub struct Use {
    /// What threads count, in the order of [`Use::COUNTERS`].
    pub counters: [u64; COUNTERS],
    /// Number of ended processes.
    pub ended: u64,
    /// Number of running processes.
    pub processes: u64,
    /// Number of running threads.
    pub threads: u64,
    /// Resident memory of the processes now [B]. The kernel keeps it per CPU, so it may be off by
    /// some MiB.
    pub resident_bytes: u64,
    /// Peak resident memory of the process that had the highest peak [B].
    pub largest_bytes: u64,
    /// When the last thread ended [ns since boot]; 0: none has ended.
    pub last_ns: u64,
}

const COUNTERS: usize = ThreadCounters::NAMES.len();
/// Number of values of [`Use`]: its counters, and six others.
const WORDS: usize = COUNTERS + 6;

/// The form on disk: without names, as that of [`Calls`].
impl From<Use> for [u64; WORDS] {
    fn from(used: Use) -> Self {
        let Use { counters, ended, processes, threads, resident_bytes, largest_bytes, last_ns } = used;
        let mut all = [0; WORDS];
        all[..COUNTERS].copy_from_slice(&counters);
        all[COUNTERS..].copy_from_slice(&[ended, processes, threads, resident_bytes, largest_bytes, last_ns]);
        all
    }
}

impl From<[u64; WORDS]> for Use {
    fn from(all: [u64; WORDS]) -> Self {
        let (counters, rest) = all.split_first_chunk().expect("all but six");
        let [ended, processes, threads, resident_bytes, largest_bytes, last_ns] = *rest.first_chunk().expect("six");
        Use { counters: *counters, ended, processes, threads, resident_bytes, largest_bytes, last_ns }
    }
}

/// The form on disk: without names, because there are many.
impl From<Calls> for [u64; 17] {
    fn from(calls: Calls) -> Self {
        let mut all = [0; 17];
        all[..KINDS].copy_from_slice(&calls.calls);
        all[KINDS..].copy_from_slice(&[calls.read_bytes, calls.written_bytes, calls.errors, calls.time_ns, calls.wait_ns]);
        all
    }
}

impl From<[u64; 17]> for Calls {
    fn from(all: [u64; 17]) -> Self {
        let (calls, rest) = all.split_first_chunk().expect("12 of 17");
        let [read_bytes, written_bytes, errors, time_ns, wait_ns] = *rest.first_chunk().expect("5 of 5");
        Calls { calls: *calls, read_bytes, written_bytes, errors, time_ns, wait_ns }
    }
}

impl Calls {
    /// Names of the counters: columns of `job_samples` and `job_totals`.
    pub const COUNTERS: [&'static str; 17] = [
        "reads",
        "writes",
        "opens",
        "creates",
        "closes",
        "stats",
        "readdirs",
        "removes",
        "renames",
        "makes",
        "attributes",
        "syncs",
        "read_bytes",
        "written_bytes",
        "errors",
        "io_time_ns",
        "io_wait_ns",
    ];

    /// The counters with their names.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Calls::COUNTERS.into_iter().zip(<[u64; 17]>::from(*self))
    }

    /// Combine two sums, number by number.
    #[must_use]
    pub fn with(self, other: Calls, join: impl Fn(u64, u64) -> u64) -> Calls {
        let (all, others) = (<[u64; 17]>::from(self), <[u64; 17]>::from(other));
        Calls::from(std::array::from_fn(|place| join(all[place], others[place])))
    }
}

impl Use {
    /// Names of the counters of threads: columns of `job_samples` and `job_totals`.
    pub const COUNTERS: &[&'static str] = &ThreadCounters::NAMES;
    /// Number of values that only grow; they come first in the form on disk.
    const GROWING: usize = COUNTERS + 1;

    fn of_ended(ended: &EndedCounts) -> Use {
        Use {
            counters: ended.used.values(),
            ended: ended.processes,
            largest_bytes: ended.largest_bytes,
            last_ns: ended.last_ns,
            ..Use::default()
        }
    }

    fn add_live(&mut self, live: &LiveCounts) {
        for (sum, more) in self.counters.iter_mut().zip(live.used.values()) {
            *sum += more;
        }
        self.threads += 1;
        self.processes += u64::from(live.is_first);
        self.resident_bytes += live.resident_bytes;
        self.largest_bytes = self.largest_bytes.max(live.largest_bytes);
    }

    /// The counters of threads with their names.
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Use::COUNTERS.iter().copied().zip(self.counters)
    }

    /// Combine the values that only grow; gauges are taken from `self`.
    #[must_use]
    pub fn with(self, other: Use, join: impl Fn(u64, u64) -> u64) -> Use {
        let (all, others) = (<[u64; WORDS]>::from(self), <[u64; WORDS]>::from(other));
        let one = |place| if place < Use::GROWING { join(all[place], others[place]) } else { all[place] };
        Use::from(std::array::from_fn(one))
    }
}

/// All sums at one time.
#[derive(Debug, Default)]
pub struct Reading {
    /// By id.
    pub accounts: BTreeMap<u32, Account>,
    /// By id of the account and device (`st_dev`).
    pub calls: BTreeMap<(u32, u64), Calls>,
    /// By id of the account.
    pub uses: BTreeMap<u32, Use>,
}

/// What an account did with a file since the last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFile {
    /// Id of the account.
    pub account: u32,
    /// The file system (`st_dev`).
    pub device: u64,
    /// Number of the file's inode.
    pub inode: u64,
    /// Path of the file; any bytes. Empty: unknown.
    pub path: Vec<u8>,
    /// Number of calls on its descriptors, with opens.
    pub calls: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Total duration of the calls [ns].
    pub time_ns: u64,
}

/// The loaded programs, and their maps.
pub struct Accounting {
    maps: FxHashMap<&'static str, MapHandle>,
    iterator: Link,
    _links: Vec<Link>,
    _lock: Option<std::fs::File>,
    /// Identifies this loading of the programs: sums of another one cannot be compared.
    generation: String,
    /// Whether the programs were loaded before this process began.
    is_resumed: bool,
    names: RingBuffer<'static>,
    sent: Names,
    last_seeded: u32,
}

/// Paths that the programs sent.
type Names = std::rc::Rc<std::cell::RefCell<FxHashMap<(u32, u32, u64), Vec<u8>>>>;

/// Names of variables that did not fit.
pub type LeftOut = Vec<String>;

impl Accounting {
    /// Load and attach the programs, or resume those that are pinned in this folder of a BPF file
    /// system.
    ///
    /// # Errors
    /// [`AccountingError`]: no permission, the kernel lacks a feature, or an agent is running.
    pub fn begin(variables: &[Variable], pins: Option<&Path>) -> Result<(Accounting, LeftOut), AccountingError> {
        let (settings, left_out) = settings::bytes(variables).map_err(|error| no_proc(&error))?;
        let loaded = pins::load_or_find(&settings, pins)?;
        let sent = Names::default();
        let mut builder = RingBufferBuilder::new();
        let kept = std::rc::Rc::clone(&sent);
        let keep = move |bytes: &[u8]| {
            keep_name(&mut kept.borrow_mut(), bytes);
            0
        };
        builder.add(&loaded.maps["names"], keep).map_err(failed(Step::ReadNames))?;
        let names = builder.build().map_err(failed(Step::ReadNames))?;
        let accounting = Accounting {
            maps: loaded.maps,
            iterator: loaded.iterator,
            _links: loaded.links,
            _lock: loaded.lock,
            generation: loaded.generation,
            is_resumed: loaded.is_found,
            names,
            sent,
            last_seeded: FIRST_SEEDED,
        };
        Ok((accounting, left_out))
    }

    /// Identifies this loading of the programs.
    #[must_use]
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// Whether programs of an earlier process were resumed.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Read all sums.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&mut self) -> io::Result<Reading> {
        let mut reading = Reading::default();
        // Ended threads are read before running ones: a thread that ends in between is missing in
        // this reading, and is in the next one once.
        for (account, ended) in self.all::<u32, EndedCounts>("ended")? {
            *reading.uses.entry(account).or_default() = Use::of_ended(&ended);
        }
        let mut bytes = Vec::new();
        Iter::new(&self.iterator).map_err(io::Error::other)?.read_to_end(&mut bytes)?;
        for live in bytes.chunks_exact(LiveCounts::BYTES).filter_map(LiveCounts::read) {
            reading.uses.entry(live.account).or_default().add_live(&live);
        }
        for (key, counts) in self.all::<CallKey, CallCounts>("sums")? {
            reading.calls.insert((key.account, device_number(key.device)), calls_of(&counts));
        }
        for (key, account) in self.all::<AccountKey, events::Account>("accounts")? {
            reading.accounts.insert(account.id, account_of(&key, &account));
        }
        Ok(reading)
    }

    /// Take the files since the last call, and the number of calls whose file found no room since
    /// the programs were loaded.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take_files(&mut self) -> io::Result<(Vec<JobFile>, u64)> {
        let taken = self.map("files").lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        let files: Vec<(JobFileKey, JobFileCounts)> =
            taken.filter_map(|(key, value)| Some((JobFileKey::read(&key)?, JobFileCounts::read(&value)?))).collect();
        // The programs send a name before its sum can be taken.
        self.names.consume().map_err(io::Error::other)?;
        let sent = self.sent.take();
        let files = files.iter().map(|(key, counts)| file_of(key, counts, &sent)).collect();
        Ok((files, self.number("files_left_out")))
    }

    /// Number of entries that found no room in a map, since the programs were loaded.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.number("lost")
    }

    /// The path of a control group that was created while the programs were loaded.
    #[must_use]
    pub fn group(&self, id: u64) -> Option<Vec<u8>> {
        let path = self.map("groups").lookup(&id.to_ne_bytes(), MapFlags::ANY).ok()??;
        Some(until_nul(&path).to_vec())
    }

    /// Replace the table of mount points: paths and devices (`st_dev`).
    ///
    /// # Errors
    /// The kernel refuses. Paths that are too long are left out.
    pub fn set_mounts(&self, mounts: &[(Vec<u8>, u64)]) -> io::Result<()> {
        let map = self.map("mounts");
        let mut outdated: std::collections::BTreeSet<Vec<u8>> = map.keys().collect();
        for (path, device) in mounts {
            for key in mount_keys(path) {
                map.update(&key, &kernel_device(*device).to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
                outdated.remove(&key);
            }
        }
        outdated.iter().try_for_each(|key| map.delete(key).map_err(io::Error::other))
    }

    /// Assign a process that ran before the programs were loaded to a job. The account is created
    /// if there is none.
    ///
    /// # Errors
    /// The kernel refuses, for example for lack of room.
    pub fn seed(&mut self, pid: u32, account: &Account) -> io::Result<()> {
        let processes = self.map("processes");
        let known = processes.lookup(&pid.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        if known.and_then(|bytes| ProcessAccount::read(&bytes)).is_some_and(|known| known.has_job != 0) {
            return Ok(()); // It has called `execve` since its environment was read.
        }
        let key = key_of(account);
        let accounts = self.map("accounts");
        let known = accounts.lookup(&key, MapFlags::ANY).map_err(io::Error::other)?;
        let id = if let Some(known) = known.and_then(|bytes| events::Account::read(&bytes)) {
            known.id
        } else {
            self.last_seeded += 1;
            let mut bytes = vec![0; events::Account::BYTES];
            let (name, comm) = (text::<64>(&account.name), text::<16>(&account.command));
            let id = self.last_seeded;
            events::Account { name, begun_ns: account.begun_ns, id, pid, comm }.write(&mut bytes);
            self.map("accounts").update(&key, &bytes, MapFlags::ANY).map_err(io::Error::other)?;
            id
        };
        let mut process = [0; ProcessAccount::BYTES];
        ProcessAccount { account: id, has_job: u32::from(!account.job.is_empty()) }.write(&mut process);
        self.map("processes").update(&pid.to_ne_bytes(), &process, MapFlags::ANY).map_err(io::Error::other)
    }

    /// Drop the sums of accounts without processes, for these devices. An account that got a
    /// process since it was read, as stated by the given sums, is kept, whether the process still
    /// runs or not.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn forget(&self, accounts: &[(&Account, &[u64], Use)]) -> io::Result<()> {
        if accounts.is_empty() {
            return Ok(());
        }
        for (account, _, _) in accounts {
            self.remove("accounts", &key_of(account))?;
        }
        // A program may have found an account, and not have recorded yet that a process uses it:
        // that takes microseconds.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let used: std::collections::BTreeSet<u32> =
            self.all::<u32, ProcessAccount>("processes")?.into_iter().map(|(_, one)| one.account).collect();
        for (account, devices, read) in accounts {
            if used.contains(&account.id) || self.ended(account.id)? != (read.ended, read.last_ns) {
                self.restore(account)?;
                continue;
            }
            self.remove("ended", &account.id.to_ne_bytes())?;
            for device in *devices {
                let mut key = vec![0; CallKey::BYTES];
                CallKey { account: account.id, device: kernel_device(*device) }.write(&mut key);
                self.remove("sums", &key)?;
            }
        }
        Ok(())
    }

    /// Number of ended processes of an account, and when its last thread ended.
    fn ended(&self, account: u32) -> io::Result<(u64, u64)> {
        let bytes = self.map("ended").lookup(&account.to_ne_bytes(), MapFlags::ANY).map_err(io::Error::other)?;
        let ended = bytes.and_then(|bytes| EndedCounts::read(&bytes));
        Ok(ended.map_or((0, 0), |ended| (ended.processes, ended.last_ns)))
    }

    /// Give an account its key again. If another account has taken the key, both remain, and a
    /// reader sees two accounts of one job.
    fn restore(&self, account: &Account) -> io::Result<()> {
        let mut bytes = vec![0; events::Account::BYTES];
        let (name, comm) = (text::<64>(&account.name), text::<16>(&account.command));
        events::Account { name, begun_ns: account.begun_ns, id: account.id, pid: 0, comm }.write(&mut bytes);
        let mut key = key_of(account);
        for spare in 0..u8::MAX {
            match self.map("accounts").update(&key, &bytes, MapFlags::NO_EXIST) {
                Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => {
                    // No job has bytes after the end of its text, so programs never find this key,
                    // but readers do.
                    key[JOB_TEXT_BYTES - 1] = spare + 1;
                }
                done => return done.map_err(io::Error::other),
            }
        }
        Ok(())
    }

    fn remove(&self, map: &str, key: &[u8]) -> io::Result<()> {
        match self.map(map).delete(key) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => Err(io::Error::other(error)),
            _ => Ok(()),
        }
    }

    fn map(&self, name: &str) -> &MapHandle {
        &self.maps[name]
    }

    fn all<K: Layout, V: Layout>(&self, name: &str) -> io::Result<Vec<(K, V)>> {
        let all = self.map(name).lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        Ok(all.filter_map(|(key, value)| Some((K::read(&key)?, V::read(&value)?))).collect())
    }

    fn number(&self, name: &str) -> u64 {
        let value = self.map(name).lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        value.ok().flatten().and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))).unwrap_or(0)
    }
}

/// Value of the map of processes: an account, and whether the environment named it.
struct ProcessAccount {
    account: u32,
    has_job: u32,
}

impl Layout for ProcessAccount {
    const BYTES: usize = 8;

    fn read(bytes: &[u8]) -> Option<Self> {
        let (account, has_job) = (u32::from_ne_bytes(*bytes.first_chunk()?), u32::from_ne_bytes(*bytes.get(4..)?.first_chunk()?));
        Some(ProcessAccount { account, has_job })
    }

    fn write(&self, out: &mut [u8]) {
        out[..4].copy_from_slice(&self.account.to_ne_bytes());
        out[4..8].copy_from_slice(&self.has_job.to_ne_bytes());
    }
}

fn no_proc(error: &io::Error) -> ProbeError {
    ProbeError::new(Step::FindMountNamespace, error)
}

/// Convert a device number of the kernel, in which the minor number has 20 bits.
fn device_number(device: u32) -> u64 {
    libc::makedev(device >> 20, device & 0xf_ffff)
}

fn kernel_device(device: u64) -> u32 {
    libc::major(device) << 20 | libc::minor(device) & 0xf_ffff
}

/// A text as the kernel keeps it, with NUL at the end.
fn text<const BYTES: usize>(text: &[u8]) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    let length = text.len().min(BYTES - 1);
    out[..length].copy_from_slice(&text[..length]);
    out
}

fn key_of(account: &Account) -> Vec<u8> {
    let mut key = vec![0; AccountKey::BYTES];
    let scheduler = if account.job.is_empty() { 0 } else { 1 << (account.scheduler & 31) };
    AccountKey { job: text(&account.job), cgroup: account.cgroup, uid: account.uid, scheduler }.write(&mut key);
    key
}

fn account_of(key: &AccountKey, account: &events::Account) -> Account {
    Account {
        id: account.id,
        job: until_nul(&key.job).to_vec(),
        name: until_nul(&account.name).to_vec(),
        cgroup: key.cgroup,
        uid: key.uid,
        scheduler: key.scheduler.checked_ilog2().unwrap_or(0) as u8,
        begun_ns: account.begun_ns,
        command: until_nul(&account.comm).to_vec(),
    }
}

fn calls_of(counts: &CallCounts) -> Calls {
    let CallCounts { calls, read_bytes, written_bytes, errors, time_ns, wait_ns } = *counts;
    Calls { calls, read_bytes, written_bytes, errors, time_ns, wait_ns }
}

fn file_of(key: &JobFileKey, counts: &JobFileCounts, sent: &FxHashMap<(u32, u32, u64), Vec<u8>>) -> JobFile {
    JobFile {
        account: key.account,
        device: device_number(key.device),
        inode: key.inode,
        path: sent.get(&(key.account, key.device, key.inode)).cloned().unwrap_or_default(),
        calls: counts.calls,
        read_bytes: counts.read_bytes,
        written_bytes: counts.written_bytes,
        time_ns: counts.time_ns,
    }
}

fn keep_name(names: &mut FxHashMap<(u32, u32, u64), Vec<u8>>, bytes: &[u8]) {
    let Some(event) = JobFileName::read(bytes) else { return };
    let Some(path) = bytes.get(JobFileName::BYTES..).and_then(|all| all.get(..event.length as usize)) else { return };
    names.insert((event.key.account, event.key.device, event.key.inode), path_of(path, u32::from(event.flags)));
}

/// Keys of a mount point: a path below it continues with a slash, the mount point itself ends.
fn mount_keys(path: &[u8]) -> Vec<Vec<u8>> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let key = |end: u8| {
        let whole = [path, &[end]].concat();
        let mut padded = whole.clone();
        padded.resize(MOUNT_BYTES, 0);
        [&(whole.len() as u32 * 8).to_ne_bytes()[..], &padded].concat()
    };
    if path.len() >= MOUNT_BYTES { Vec::new() } else { vec![key(b'/'), key(0)] }
}

/// The path of a mount in the form that [`Accounting::set_mounts`] takes.
#[must_use]
pub fn mount_path(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests;
