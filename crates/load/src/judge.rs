//! Rows of `load_results` for a phase, and whether they are valid.

use std::io;

use sysdock_table::{Fact, facts::load as facts};

use crate::{
    Item, Measured, Operation, Status, Step,
    device::{Below, FileSystem},
    histogram::{classes, quantile},
    items::MIX_RECORD_BYTES,
    workers::{LaneSum, PhaseOutcome},
};

/// Fraction of the read bytes that the device must have read.
const FROM_DEVICE: f64 = 0.9;
/// Fraction of the time in which all workers must have run together, for any generator.
pub(crate) const LEAST_OVERLAP: f64 = 0.5;
/// A shorter phase says more about the scheduler than about a file system [ns].
const SHORTEST_NS: i64 = 10_000_000;

/// A row for each operation of the phase.
pub(crate) fn rows(step: &Step, phase: &PhaseOutcome, file_system: &FileSystem, host: &str) -> Vec<Measured> {
    let of_lane = |(operation, lane): (&Operation, &LaneSum)| row(step, phase, *operation, lane, file_system, host);
    let mut rows: Vec<_> = phase.operations.iter().zip(&phase.lanes).map(of_lane).collect();
    if let Some(first) = rows.first_mut() {
        // Progress is that of a worker, whatever the operation.
        first.progress.clone_from(&phase.progress);
    }
    rows
}

/// Rows of a step whose workers could not be started, or that was not begun.
pub(crate) fn rows_without(step: &Step, status: Status, note: &Fact, host: &str) -> Vec<Measured> {
    step.wanted().into_iter().map(|operation| row_without(step, operation, status, note, host)).collect()
}

/// Rows of the operations of a step that were not begun.
pub(crate) fn rows_of_others(step: &Step, begun: &[Operation], note: &Fact, host: &str) -> Vec<Measured> {
    let others = step.wanted().into_iter().filter(|operation| !begun.contains(operation));
    others.map(|operation| row_without(step, operation, Status::Skipped, note, host)).collect()
}

fn row_without(step: &Step, operation: Operation, status: Status, note: &Fact, host: &str) -> Measured {
    Measured { status, note: note.clone().into(), ..frame(step, operation, host) }
}

/// A row with what was requested.
fn frame(step: &Step, operation: Operation, host: &str) -> Measured {
    let mut row = Measured::new(step.item.name(), operation.name(), step.processes as i32);
    row.hosts = Some(host.to_string());
    row.layout = (step.item != Item::Control).then(|| step.layout.name());
    row.depth = Some(step.depth as i32);
    if operation.moves_data() {
        row.length_bytes = Some(step.length_bytes as i64);
        row.direct = Some(step.direct);
        row.sync = (operation != Operation::Read).then(|| step.sync_of(operation).name());
    }
    if step.item == Item::RandomMix && operation == Operation::Append {
        (row.length_bytes, row.direct) = (Some(MIX_RECORD_BYTES as i64), Some(false));
    }
    row
}

fn row(
    step: &Step,
    phase: &PhaseOutcome,
    operation: Operation,
    lane: &LaneSum,
    file_system: &FileSystem,
    host: &str,
) -> Measured {
    let mut row = frame(step, operation, host);
    row.bytes = lane.bytes as i64;
    row.operations = lane.operations as i64;
    row.errors = (lane.errors + if operation == Operation::Read { phase.damaged } else { 0 }) as i64;
    let starts = phase.spans.iter().map(|span| span.0);
    let ends = phase.spans.iter().map(|span| span.1);
    row.started_ns = starts.clone().min();
    row.first_end_ns = ends.clone().min();
    row.ended_ns = ends.max();
    row.overlap = overlap(&row, starts.max());
    row.device_read_bytes = phase.devices.map(|counters| counters.read as i64);
    row.device_write_bytes = phase.devices.map(|counters| counters.written as i64);
    row.latencies = classes(&lane.latencies);
    // A class has a width: no quantile is longer than the longest latency.
    row.p50_ns = quantile(&row.latencies, 0.5).map(|ns| ns.min(lane.max_ns as i64));
    row.p99_ns = quantile(&row.latencies, 0.99).map(|ns| ns.min(lane.max_ns as i64));
    row.max_ns = (lane.operations > 0).then_some(lane.max_ns as i64);
    row.rates();
    let found = findings(step, phase, &row, file_system);
    row.status = found.first().map_or(Status::Measured, |(status, _)| *status);
    row.note = found.into_iter().map(|(_, note)| note).collect();
    row
}

/// The fraction of the time in which all workers ran.
fn overlap(row: &Measured, last_start: Option<i64>) -> Option<f64> {
    let (start, first_end, end) = (row.started_ns?, row.first_end_ns?, row.ended_ns?);
    (end > start).then(|| (first_end - last_start.unwrap_or(start)).max(0) as f64 / (end - start) as f64)
}

/// Reasons to doubt the numbers, the most serious first. The last ones do not change the status.
fn findings(step: &Step, phase: &PhaseOutcome, row: &Measured, file_system: &FileSystem) -> Vec<(Status, Fact)> {
    let mut found = Vec::new();
    if phase.interrupted {
        found.push((Status::Interrupted, facts::interrupted()));
    }
    if phase.damaged > 0 && row.operation == "read" {
        found.push((Status::Damaged, facts::wrong_content(phase.damaged)));
    }
    if phase.hung {
        found.push((Status::Failed, facts::given_up()));
    }
    for (how, count) in &phase.deaths {
        found.push((Status::Failed, facts::workers_ended(*count, step.processes, how.fact())));
    }
    found.extend(errors(phase, row));
    if row.operations > 0 {
        // Memory is no file system, however long it was read.
        if row.operation == "read" {
            found.extend(origin(phase, row, file_system));
        }
        found.extend(timing(row));
    }
    if let Some(remark) = &phase.remark {
        found.push((Status::NotKnown, remark.clone()));
    }
    if phase.cpu_throttled {
        found.push((Status::Throttled, facts::cpu_limit_reached()));
    }
    if row.bytes > 0 {
        found.extend(file_system.limits().into_iter().map(|limit| (Status::Throttled, facts::group_limit(limit))));
    }
    found
}

fn errors(phase: &PhaseOutcome, row: &Measured) -> Option<(Status, Fact)> {
    let why = || io::Error::from_raw_os_error(phase.errno).to_string().to_lowercase();
    let full = matches!(phase.errno, libc::ENOSPC | libc::EDQUOT);
    match (row.errors > 0 && phase.errno != 0, row.operations) {
        (true, _) if full => Some((Status::Full, facts::error(why()))),
        (true, 0) => Some((Status::Failed, facts::error(why()))),
        (true, _) if phase.idle > 0 => Some((Status::Failed, facts::workers_not_begun(phase.idle, why()))),
        (true, _) => Some((Status::Measured, facts::operations_failed(row.errors, why()))),
        (false, 0) if phase.operations.len() == 1 && !phase.interrupted => Some((Status::Failed, facts::nothing_done())),
        _ => None,
    }
}

fn timing(row: &Measured) -> Vec<(Status, Fact)> {
    let mut found = Vec::new();
    let window = row.ended_ns.zip(row.started_ns).map_or(0, |(end, start)| end - start);
    if window < SHORTEST_NS {
        found.push((Status::TooShort, facts::too_short(window)));
    }
    if let Some(overlap) = row.overlap.filter(|overlap| *overlap < LEAST_OVERLAP) {
        found.push((Status::NoOverlap, facts::little_overlap(overlap)));
    }
    found
}

/// Determine where the read bytes came from.
fn origin(phase: &PhaseOutcome, row: &Measured, file_system: &FileSystem) -> Option<(Status, Fact)> {
    let part = |bytes: u64| bytes as f64 / row.bytes as f64;
    match (&file_system.below, phase.devices) {
        (Below::Memory, _) => Some((Status::FromMemory, facts::in_memory(file_system.kind()))),
        (_, None) => Some((Status::NotKnown, facts::origin_unknown(file_system.kind()))),
        (_, Some(devices)) => {
            // Others may use the device, too: so the bytes read for the workers count as well.
            let read = devices.read.min(phase.read_for_workers);
            let from_memory = (read as f64) < FROM_DEVICE * row.bytes as f64;
            from_memory.then(|| (Status::FromMemory, facts::from_memory(part(read))))
        }
    }
}

#[cfg(test)]
mod tests {
    use sysdock_table::Facts;

    use super::*;
    use crate::{device::Counters, histogram::CLASSES, workers::Death};

    const MS: i64 = 1_000_000;

    /// A read of 100 requests by two workers, 100 ms each, from the device.
    fn phase() -> PhaseOutcome {
        PhaseOutcome {
            operations: vec![Operation::Read],
            lanes: vec![LaneSum { bytes: 409_600, operations: 100, errors: 0, max_ns: 9, latencies: vec![0; CLASSES] }],
            spans: vec![(0, 100 * MS), (MS, 101 * MS)],
            idle: 0,
            damaged: 0,
            errno: 0,
            read_for_workers: 409_600,
            devices: Some(Counters { read: 500_000, written: 0 }),
            cpu_throttled: false,
            progress: Vec::new(),
            deaths: std::collections::BTreeMap::new(),
            interrupted: false,
            hung: false,
            remark: None,
        }
    }

    fn judged(change: impl FnOnce(&mut PhaseOutcome)) -> Measured {
        let mut phase = phase();
        change(&mut phase);
        let step: Step = serde_json::from_str(r#"{"item": "transfer", "processes": 2}"#).unwrap();
        let file_system = FileSystem { mount: None, below: Below::Devices(std::collections::BTreeSet::new()) };
        rows(&step, &phase, &file_system, "node").remove(0)
    }

    #[test]
    fn rates_count_from_the_first_start_to_the_last_end() {
        let row = judged(|_| {});
        assert_eq!((row.status, &row.note), (Status::Measured, &Facts::default()));
        assert_eq!((row.started_ns, row.first_end_ns, row.ended_ns), (Some(0), Some(100 * MS), Some(101 * MS)));
        assert!((row.bytes_per_s.unwrap() - 409_600.0 / 0.101).abs() < 1.0);
        assert!((row.overlap.unwrap() - 99.0 / 101.0).abs() < 1e-9);
    }

    #[test]
    fn each_doubt_has_its_status() {
        let status = |change: &dyn Fn(&mut PhaseOutcome)| judged(|phase| change(phase)).status;
        assert_eq!(status(&|phase| phase.read_for_workers = 0), Status::FromMemory);
        // Others read as much from the device meanwhile.
        assert_eq!(status(&|phase| phase.devices = Some(Counters { read: 40_960, written: 0 })), Status::FromMemory);
        assert_eq!(status(&|phase| phase.devices = None), Status::NotKnown);
        assert_eq!(status(&|phase| phase.spans = vec![(0, 60 * MS), (50 * MS, 100 * MS)]), Status::NoOverlap);
        assert_eq!(status(&|phase| phase.spans = vec![(0, 5 * MS), (0, 5 * MS)]), Status::TooShort);
        assert_eq!(status(&|phase| phase.damaged = 1), Status::Damaged);
        assert_eq!(status(&|phase| phase.interrupted = true), Status::Interrupted);
        assert_eq!(status(&|phase| phase.hung = true), Status::Failed);
        assert_eq!(status(&|phase| phase.cpu_throttled = true), Status::Throttled);
        let killed = |phase: &mut PhaseOutcome| phase.deaths = [(Death::Signal(9), 1)].into();
        assert_eq!(status(&killed), Status::Failed);
        let full = judged(|phase| (phase.lanes[0].errors, phase.errno) = (1, libc::ENOSPC));
        assert_eq!(full.status, Status::Full);
        let some_failed = judged(|phase| (phase.lanes[0].errors, phase.errno) = (3, libc::EIO));
        assert_eq!(some_failed.status, Status::Measured);
        assert!(some_failed.note.codes() == ["load/operations_failed"]);
    }

    #[test]
    fn the_gravest_doubt_is_the_status_and_all_are_in_the_note() {
        let row = judged(|phase| (phase.damaged, phase.read_for_workers, phase.cpu_throttled) = (2, 0, true));
        assert_eq!(row.status, Status::Damaged);
        assert_eq!(row.note.codes(), ["load/wrong_content", "load/from_memory", "load/cpu_limit_reached"]);
    }
}
