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
        counter_group: group.into(),
        ..JobSamples::default()
    }
}

fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Fill in the counters of calls.
pub(crate) fn file_counters(sample: &mut JobSamples<'static>, counts: &Calls) {
    fill(counts.counters(), |column, value| sample.set(column, value));
}

pub(crate) fn sample_of_use(sample: &mut JobSamples<'static>, used: &Use) {
    fill(used.counters(), |column, value| sample.set(column, value));
    sample.memory_bytes = Some(whole(used.resident_bytes));
    sample.largest_process_bytes = Some(whole(used.largest_bytes));
    sample.processes = Some(whole(used.processes));
    sample.threads = Some(whole(used.threads));
    sample.ended_processes = Some(whole(used.ended));
}

/// Set the column of each counter. A test shows that there is one for each.
fn fill(counters: impl Iterator<Item = (&'static str, u64)>, mut set: impl FnMut(&str, i64) -> bool) {
    for (name, value) in counters {
        let is_column = set(name, whole(value));
        debug_assert!(is_column, "{name}");
    }
}

/// The totals of a job. The caller fills in times, command and memory.
pub(crate) fn total_of(origin: &Origin, job: &Job, calls: &Calls, used: &Use) -> JobTotals<'static> {
    let mut total = JobTotals {
        cluster: origin.cluster.clone().into(),
        node: origin.node.clone().into(),
        agent: origin.agent.clone().into(),
        sequence: origin.sequence,
        job_id: Some(job.id.clone().into()),
        user: Some(job.user.clone().into()),
        name: job.name.clone().map(Into::into),
        largest_process_bytes: Some(whole(used.largest_bytes)),
        ended_processes: whole(used.ended),
        ..JobTotals::default()
    };
    fill(calls.counters().chain(used.counters()), |column, value| total.set(column, value));
    total
}

#[cfg(test)]
mod tests {
    use super::{Calls, JobSamples, JobTotals, Use};

    #[test]
    fn each_counter_has_a_column_in_samples_and_totals() {
        for name in Calls::COUNTERS.iter().chain(Use::COUNTERS) {
            assert!(JobSamples::default().set(name, 1) && JobTotals::default().set(name, 1), "{name}");
        }
        assert!(!JobSamples::default().set("user", 1));
    }
}
