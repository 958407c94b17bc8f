//! Fills the rows of a batch from counters.

use sysdock_bpf::accounting::{Calls, Use};
use sysdock_table::rows::{JobSamples, JobTotals};

use crate::binding::Job;

/// The sender and number of a batch, which all its rows repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub cluster: String,
    pub node: String,
    /// The agent's id.
    pub agent: String,
    /// Number of the batch.
    pub sequence: i64,
}

/// A row without counters.
pub(crate) fn empty_sample(origin: &Origin, ts_ns: i64, interval_ns: i64, group: &'static str) -> JobSamples<'static> {
    JobSamples {
        ts_ns,
        interval_ns,
        cluster: origin.cluster.clone().into(),
        node: origin.node.clone().into(),
        agent: origin.agent.clone().into(),
        sequence: origin.sequence,
        job_id: None,
        user: None,
        name: None,
        counter_group: group.into(),
        target: None,
        file_system: None,
        read_bytes: None,
        written_bytes: None,
        reads: None,
        writes: None,
        opens: None,
        creates: None,
        closes: None,
        stats: None,
        readdirs: None,
        removes: None,
        renames: None,
        makes: None,
        attributes: None,
        syncs: None,
        errors: None,
        io_time_ns: None,
        io_wait_ns: None,
        cpu_ns: None,
        cpu_wait_ns: None,
        minor_faults: None,
        major_faults: None,
        disk_read_bytes: None,
        disk_written_bytes: None,
        memory_bytes: None,
        largest_process_bytes: None,
        processes: None,
        threads: None,
        ended_processes: None,
    }
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Fill in the counters of calls, in the order of [`sysdock_bpf::accounting::KINDS`].
pub(crate) fn file_counters(sample: &mut JobSamples<'static>, counts: &Calls) {
    let [reads, writes, opens, creates, closes, stats, readdirs, removes, renames, makes, attributes, syncs] =
        counts.calls.map(|number| Some(whole(number)));
    sample.reads = reads;
    sample.writes = writes;
    sample.opens = opens;
    sample.creates = creates;
    sample.closes = closes;
    sample.stats = stats;
    sample.readdirs = readdirs;
    sample.removes = removes;
    sample.renames = renames;
    sample.makes = makes;
    sample.attributes = attributes;
    sample.syncs = syncs;
    sample.read_bytes = Some(whole(counts.read_bytes));
    sample.written_bytes = Some(whole(counts.written_bytes));
    sample.errors = Some(whole(counts.errors));
    sample.io_time_ns = Some(whole(counts.time_ns));
    sample.io_wait_ns = Some(whole(counts.wait_ns));
}

pub(crate) fn sample_of_use(sample: &mut JobSamples<'static>, used: &Use) {
    sample.cpu_ns = Some(whole(used.cpu_ns));
    sample.cpu_wait_ns = Some(whole(used.cpu_wait_ns));
    sample.minor_faults = Some(whole(used.minor_faults));
    sample.major_faults = Some(whole(used.major_faults));
    sample.disk_read_bytes = Some(whole(used.disk_read_bytes));
    sample.disk_written_bytes = Some(whole(used.disk_written_bytes));
    sample.memory_bytes = Some(whole(used.resident_bytes));
    sample.largest_process_bytes = Some(whole(used.largest_bytes));
    sample.processes = Some(whole(used.processes));
    sample.threads = Some(whole(used.threads));
    sample.ended_processes = Some(whole(used.ended));
}

/// The totals of a job. The caller fills in times, command and memory.
pub(crate) fn total_of(origin: &Origin, job: &Job, calls: &Calls, used: &Use) -> JobTotals<'static> {
    let [reads, writes, opens, creates, closes, stats, readdirs, removes, renames, makes, attributes, syncs] =
        calls.calls.map(whole);
    JobTotals {
        cluster: origin.cluster.clone().into(),
        node: origin.node.clone().into(),
        agent: origin.agent.clone().into(),
        sequence: origin.sequence,
        job_id: Some(job.id.clone().into()),
        user: Some(job.user.clone().into()),
        name: job.name.clone().map(Into::into),
        begun_ns: 0,
        ended_ns: 0,
        is_whole: false,
        command: None,
        read_bytes: whole(calls.read_bytes),
        written_bytes: whole(calls.written_bytes),
        reads,
        writes,
        opens,
        creates,
        closes,
        stats,
        readdirs,
        removes,
        renames,
        makes,
        attributes,
        syncs,
        errors: whole(calls.errors),
        io_time_ns: whole(calls.time_ns),
        io_wait_ns: whole(calls.wait_ns),
        cpu_ns: whole(used.cpu_ns),
        cpu_wait_ns: whole(used.cpu_wait_ns),
        minor_faults: whole(used.minor_faults),
        major_faults: whole(used.major_faults),
        disk_read_bytes: whole(used.disk_read_bytes),
        disk_written_bytes: whole(used.disk_written_bytes),
        memory_bytes: None,
        largest_process_bytes: Some(whole(used.largest_bytes)),
        ended_processes: whole(used.ended),
        left_out_calls: 0,
    }
}
