//! Turns sums that only grow into what was done in an interval, by job, and into the totals of a
//! job that has ended.
//!
//! States of a job on this node: it is *active* while one of its processes runs. Without one it
//! *rests*; if a process appears within the time to linger, it is active again. Otherwise it has
//! *ended*: its totals are reported once, and its sums in the kernel are dropped, in this reading
//! or, if the agent was killed before that, in a later one. A job that comes back after that is a
//! new one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sysdock_bpf::accounting::{Calls, JobFile, Reading, Use};
use sysdock_table::rows::{JobFiles, JobSamples, JobTotals};

use crate::{
    binding::{Job, NO_JOB},
    node::Mounts,
    rows::{Origin, empty_sample, file_counters, sample_of_use, total_of},
    settings::{Hidden, Settings},
    sketch::Sketch,
};

/// The last reading, with which the next one is compared. It is kept on disk: an agent that was
/// killed resumes where it stopped.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// Identifies the loading of the programs to which the sums belong.
    pub(crate) generation: String,
    accounts: BTreeMap<u32, Known>,
    jobs: BTreeMap<String, OpenJob>,
    /// Time of the last reading [ns, Unix time].
    pub(crate) last_ns: i64,
}

/// An account as it was read last.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    job: Job,
    calls: Vec<(u64, Calls)>,
    used: Use,
}

/// A job that has not ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OpenJob {
    job: Job,
    command: String,
    begun_ns: i64,
    /// When a process of the job was last seen [ns, Unix time].
    alive_ns: i64,
    is_whole: bool,
    calls: Calls,
    used: Use,
    most_bytes: u64,
    files: Sketch,
}

/// Result of a reading.
#[derive(Debug, Default)]
pub(crate) struct Sampled {
    /// What was done in the interval.
    pub(crate) samples: Vec<JobSamples<'static>>,
    /// Totals of jobs that have ended.
    pub(crate) totals: Vec<JobTotals<'static>>,
    /// Files of those jobs.
    pub(crate) files: Vec<JobFiles<'static>>,
    /// Accounts of ended jobs, each with the devices that it has sums for. They are dropped from
    /// the kernel once the batch is durable.
    pub(crate) ended: Vec<(u32, Vec<u64>)>,
    /// Number of active jobs.
    pub(crate) jobs: i64,
}

/// When a reading was made, and what is known about the node.
pub(crate) struct ReadingContext<'a> {
    pub(crate) now_ns: i64,
    /// When the machine was booted [ns, Unix time].
    pub(crate) booted_ns: i64,
    pub(crate) interval_ns: i64,
    pub(crate) origin: &'a Origin,
    pub(crate) mounts: &'a Mounts,
    pub(crate) settings: &'a Settings,
    /// Number of calls that found no room in the list of files.
    pub(crate) left_out: u64,
    /// Jobs that were reported as over, even if processes of them are left.
    pub(crate) over: &'a BTreeSet<String>,
}

impl State {
    /// Take a first reading: what was used before it is attributed to no job.
    pub(crate) fn begin(generation: &str, reading: &Reading, jobs: &BTreeMap<u32, Job>, context: &ReadingContext<'_>) -> State {
        let mut state = State { generation: generation.into(), last_ns: context.now_ns, ..State::default() };
        for (id, job) in jobs {
            let used = reading.uses.get(id).copied().unwrap_or_default();
            let known = Known { job: job.clone(), calls: Vec::new(), used: Use { largest_bytes: 0, ..used } };
            state.accounts.insert(*id, known);
            let open_job = state.open_job(reading, *id, job, context);
            open_job.is_whole = false;
        }
        state
    }

    fn open_job(&mut self, reading: &Reading, id: u32, job: &Job, context: &ReadingContext<'_>) -> &mut OpenJob {
        let account = reading.accounts.get(&id);
        self.jobs.entry(job.id.clone()).or_insert_with(|| OpenJob {
            job: job.clone(),
            command: account.map(|one| String::from_utf8_lossy(&one.command).into_owned()).unwrap_or_default(),
            begun_ns: account.map_or(context.now_ns, |one| context.booted_ns + one.begun_ns as i64),
            alive_ns: account.map_or(context.now_ns, |one| context.booted_ns + one.begun_ns as i64),
            is_whole: job.id != NO_JOB,
            calls: Calls::default(),
            used: Use::default(),
            most_bytes: 0,
            files: Sketch::new(context.settings.files_of_job),
        })
    }

    /// Compare a reading with the last one. `jobs`: the job of each account.
    pub(crate) fn sample(
        &mut self,
        reading: &Reading,
        files: &[JobFile],
        jobs: &BTreeMap<u32, Job>,
        context: &ReadingContext<'_>,
    ) -> Sampled {
        let mut done = Done::default();
        // Accounts that are missing were dropped on request.
        self.accounts.retain(|id, _| reading.accounts.contains_key(id));
        for (id, job) in jobs {
            self.add_account(reading, *id, job, context, &mut done);
        }
        for file in files {
            let Some(known) = self.accounts.get(&file.account) else { continue };
            if let Some(open_job) = self.jobs.get_mut(&known.job.id) {
                open_job.files.add(file);
            }
        }
        self.last_ns = context.now_ns;
        let mut sampled = Sampled { samples: done.samples(context), jobs: done.active.len() as i64, ..Sampled::default() };
        self.end_jobs(&done, context, &mut sampled);
        // An account that was created during the reading has sums that this reading does not
        // contain.
        let is_over = |id: &u32, known: &Known| !self.jobs.contains_key(&known.job.id) && !done.alive.contains(id);
        let over = self.accounts.iter().filter(|(id, known)| is_over(id, known) && !done.fresh.contains(id));
        sampled.ended = over.map(|(id, known)| (*id, known.calls.iter().map(|(device, _)| *device).collect())).collect();
        sampled
    }

    fn add_account(&mut self, reading: &Reading, id: u32, job: &Job, context: &ReadingContext<'_>, done: &mut Done) {
        let used = reading.uses.get(&id).copied().unwrap_or_default();
        let before = self.accounts.remove(&id);
        if before.is_none() {
            done.fresh.insert(id);
        }
        let last = before.as_ref().map(|known| known.used).unwrap_or_default();
        let change = used.with(last, u64::saturating_sub);
        let mut calls = Vec::new();
        for ((_, device), counts) in reading.calls.range((id, 0)..=(id, u64::MAX)) {
            let then = before.iter().flat_map(|known| &known.calls).find(|(known, _)| known == device);
            let change = counts.with(then.map(|(_, counts)| *counts).unwrap_or_default(), u64::saturating_sub);
            calls.push((*device, *counts));
            if change != Calls::default() {
                done.add_calls(job, context.mounts.of(*device), &change);
                add_calls(&mut self.open_job(reading, id, job, context).calls, &change);
            }
        }
        // A thread that ends is missing in one reading: sums that decreased increase again, which
        // must not be counted twice.
        let known = Known { job: job.clone(), calls, used: used.with(last, u64::max) };
        self.accounts.insert(id, known);
        if used.processes > 0 {
            done.alive.insert(id);
        }
        // A job that has ended, with sums that are not dropped yet.
        if used.processes == 0 && !did_something(&change) && !self.jobs.contains_key(&job.id) {
            return;
        }
        let open_job = self.open_job(reading, id, job, context);
        add_use(&mut open_job.used, &change);
        if used.processes > 0 {
            open_job.alive_ns = context.now_ns;
            done.active.insert(job.id.clone());
        } else if used.last_ns > 0 {
            open_job.alive_ns = open_job.alive_ns.max(context.booted_ns + used.last_ns as i64);
        }
        done.add_use(job, &change);
    }

    /// End jobs that had no process for long enough, and those that were reported as over.
    fn end_jobs(&mut self, done: &Done, context: &ReadingContext<'_>, sampled: &mut Sampled) {
        let linger_ns = context.settings.linger.as_nanos() as i64;
        for (job, used) in &done.uses {
            if let Some(open_job) = self.jobs.get_mut(&job.id) {
                open_job.most_bytes = open_job.most_bytes.max(used.resident_bytes);
            }
        }
        let is_over = |(id, open_job): &(&String, &OpenJob)| {
            let rests = !done.active.contains(*id) && context.now_ns - open_job.alive_ns >= linger_ns;
            **id != NO_JOB && (rests || context.over.contains(*id))
        };
        let over: Vec<String> = self.jobs.iter().filter(is_over).map(|(id, _)| id.clone()).collect();
        for id in over {
            let Some(open_job) = self.jobs.remove(&id) else { continue };
            open_job.end(context, sampled);
        }
    }

    /// What a job that has not ended has used so far.
    pub(crate) fn so_far(&self, id: &str, context: &ReadingContext<'_>) -> Sampled {
        let mut sampled = Sampled::default();
        if let Some(open_job) = self.jobs.get(id) {
            open_job.clone().end(context, &mut sampled);
        }
        sampled
    }

    /// End the jobs of programs that are no longer loaded: they ended while no agent was running.
    pub(crate) fn end_all(&mut self, context: &ReadingContext<'_>) -> Sampled {
        let mut sampled = Sampled::default();
        for (id, mut open_job) in std::mem::take(&mut self.jobs) {
            if id != NO_JOB {
                open_job.is_whole = false;
                open_job.end(context, &mut sampled);
            }
        }
        sampled
    }
}

impl OpenJob {
    fn end(self, context: &ReadingContext<'_>, sampled: &mut Sampled) {
        let ReadingContext { origin, settings, mounts, left_out, .. } = context;
        let mut total = total_of(origin, &self.job, &self.calls, &self.used);
        (total.begun_ns, total.ended_ns) = (self.begun_ns, self.alive_ns);
        total.is_whole = self.is_whole;
        total.command = Some(settings.hidden(Hidden::Jobs, self.command).into());
        // A job may be over before its sums are read.
        total.memory_bytes = Some(self.most_bytes.max(self.used.largest_bytes) as i64);
        total.left_out_calls = *left_out as i64;
        sampled.totals.push(total);
        for file in self.files.into_most() {
            sampled.files.push(JobFiles {
                cluster: origin.cluster.clone().into(),
                node: origin.node.clone().into(),
                agent: origin.agent.clone().into(),
                sequence: origin.sequence,
                job_id: Some(self.job.id.clone().into()),
                user: Some(self.job.user.clone().into()),
                name: self.job.name.clone().map(Into::into),
                ended_ns: self.alive_ns,
                file_path: settings.hidden(Hidden::Paths, file.path).into(),
                target: mounts.of(file.device).map(|mount| mount.0.clone().into()),
                calls: file.calls as i64,
                read_bytes: file.read_bytes as i64,
                written_bytes: file.written_bytes as i64,
                io_time_ns: file.time_ns as i64,
                error_ns: file.error_ns as i64,
            });
        }
    }
}

/// What was done in an interval.
#[derive(Default)]
struct Done {
    /// By job, and by mount point and type of the file system.
    calls: BTreeMap<(Job, Option<(String, String)>), Calls>,
    uses: BTreeMap<Job, Use>,
    /// Jobs with processes.
    active: BTreeSet<String>,
    /// Accounts with processes.
    alive: BTreeSet<u32>,
    /// Accounts that no earlier reading contained.
    fresh: BTreeSet<u32>,
}

impl Done {
    fn add_calls(&mut self, job: &Job, mount: Option<&(String, String)>, change: &Calls) {
        add_calls(self.calls.entry((job.clone(), mount.cloned())).or_default(), change);
    }

    fn add_use(&mut self, job: &Job, change: &Use) {
        add_use(self.uses.entry(job.clone()).or_default(), change);
    }

    fn samples(&self, context: &ReadingContext<'_>) -> Vec<JobSamples<'static>> {
        let mut samples = Vec::new();
        for ((job, mount), calls) in &self.calls {
            let mut sample = empty_sample(context.origin, context.now_ns, context.interval_ns, "files");
            set_job(&mut sample, job);
            let (target, file_system) = mount.clone().unzip();
            sample.target = Some(target.map_or_else(|| "(not mounted)".into(), Into::into));
            sample.file_system = file_system.map(Into::into);
            file_counters(&mut sample, calls);
            samples.push(sample);
        }
        for (job, used) in self.uses.iter().filter(|(_, used)| did_something(used)) {
            let mut sample = empty_sample(context.origin, context.now_ns, context.interval_ns, "tasks");
            set_job(&mut sample, job);
            sample_of_use(&mut sample, used);
            samples.push(sample);
        }
        samples
    }
}

fn set_job(sample: &mut JobSamples<'static>, job: &Job) {
    sample.job_id = Some(job.id.clone().into());
    sample.user = Some(job.user.clone().into());
    sample.name = job.name.clone().map(Into::into);
}

fn add_calls(sum: &mut Calls, more: &Calls) {
    *sum = sum.with(*more, |sum, more| sum + more);
}

/// Add counters. Gauges: processes and memory are added too, and the largest process is the
/// maximum.
fn add_use(sum: &mut Use, more: &Use) {
    *sum = sum.with(*more, |sum, more| sum + more);
    sum.processes += more.processes;
    sum.threads += more.threads;
    sum.resident_bytes += more.resident_bytes;
    sum.largest_bytes = sum.largest_bytes.max(more.largest_bytes);
}

fn did_something(used: &Use) -> bool {
    used.ended > 0 || used.counters.iter().any(|number| *number > 0)
}
