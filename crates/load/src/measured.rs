//! Results as rows of `load_results`, `load_intervals` and `load_latencies`.

use std::borrow::Cow;

use sysdock_table::{Facts, Recording, TableError, rows};

/// Validity of a measurement: the values of `status` in `load_results`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Measured,
    FromMemory,
    NotKnown,
    NoOverlap,
    TooShort,
    Throttled,
    Full,
    Failed,
    Damaged,
    Interrupted,
    Skipped,
    Reported,
}

impl Status {
    /// The name in the table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Measured => "measured",
            Status::FromMemory => "from_memory",
            Status::NotKnown => "not_known",
            Status::NoOverlap => "no_overlap",
            Status::TooShort => "too_short",
            Status::Throttled => "throttled",
            Status::Full => "full",
            Status::Failed => "failed",
            Status::Damaged => "damaged",
            Status::Interrupted => "interrupted",
            Status::Skipped => "skipped",
            Status::Reported => "reported",
        }
    }
}

/// Operations of a measurement whose latency is between two limits, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyClass {
    pub low_ns: i64,
    pub high_ns: i64,
    pub operations: i64,
}

/// Work of a worker in 100 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub worker: i32,
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub bytes: i64,
    pub operations: i64,
}

/// One operation of an item, measured with one setting. Fields are the columns of `load_results`.
#[derive(Clone, Debug)]
pub struct Measured {
    pub item: Cow<'static, str>,
    pub operation: Cow<'static, str>,
    pub layout: Option<&'static str>,
    pub sync: Option<&'static str>,
    pub length_bytes: Option<i64>,
    pub processes: i32,
    pub depth: Option<i32>,
    pub direct: Option<bool>,
    pub engine: &'static str,
    pub hosts: Option<String>,
    pub bytes: i64,
    pub operations: i64,
    pub errors: i64,
    pub started_ns: Option<i64>,
    pub first_end_ns: Option<i64>,
    pub ended_ns: Option<i64>,
    /// [`Measured::rates`] computes these two if the times are known.
    pub bytes_per_s: Option<f64>,
    pub operations_per_s: Option<f64>,
    pub overlap: Option<f64>,
    pub device_read_bytes: Option<i64>,
    pub device_write_bytes: Option<i64>,
    pub p50_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub status: Status,
    pub note: Facts,
    /// Rows of `load_latencies`.
    pub latencies: Vec<LatencyClass>,
    /// Rows of `load_intervals`.
    pub progress: Vec<Progress>,
}

impl Measured {
    /// A row with only what was requested.
    #[must_use]
    pub fn new(item: impl Into<Cow<'static, str>>, operation: impl Into<Cow<'static, str>>, processes: i32) -> Self {
        Measured {
            item: item.into(),
            operation: operation.into(),
            layout: None,
            sync: None,
            length_bytes: None,
            processes,
            depth: None,
            direct: None,
            engine: "sysdock",
            hosts: None,
            bytes: 0,
            operations: 0,
            errors: 0,
            started_ns: None,
            first_end_ns: None,
            ended_ns: None,
            bytes_per_s: None,
            operations_per_s: None,
            overlap: None,
            device_read_bytes: None,
            device_write_bytes: None,
            p50_ns: None,
            p99_ns: None,
            max_ns: None,
            status: Status::Measured,
            note: Facts::default(),
            latencies: Vec::new(),
            progress: Vec::new(),
        }
    }

    /// Compute the rates from the first start to the last end.
    pub fn rates(&mut self) {
        if let (Some(start), Some(end)) = (self.started_ns, self.ended_ns)
            && end > start
        {
            let seconds = (end - start) as f64 / 1e9;
            self.bytes_per_s = (self.bytes > 0).then_some(self.bytes as f64 / seconds);
            self.operations_per_s = Some(self.operations as f64 / seconds);
        }
    }
}

/// Write measurements after those that this program has written to the recording; `first_id` is the
/// `result_id` of the first. Returns the next one.
///
/// # Errors
///
/// The recording cannot be written.
pub fn write(recording: &mut Recording, measured: &[Measured], first_id: i32) -> Result<i32, TableError> {
    let numbered = || (first_id..).zip(measured);
    recording.write_rows(numbered().map(|(id, measured)| result_row(id, measured)))?;
    recording.write_rows(numbered().flat_map(|(id, measured)| {
        measured.progress.iter().map(move |progress| rows::LoadIntervals {
            result_id: id,
            worker: progress.worker,
            ts_ns: progress.ts_ns,
            dur_ns: progress.dur_ns,
            bytes: progress.bytes,
            operations: progress.operations,
        })
    }))?;
    recording.write_rows(numbered().flat_map(|(id, measured)| {
        measured.latencies.iter().map(move |class| rows::LoadLatencies {
            result_id: id,
            low_ns: class.low_ns,
            high_ns: class.high_ns,
            operations: class.operations,
        })
    }))?;
    Ok(first_id + i32::try_from(measured.len()).unwrap_or(i32::MAX))
}

fn result_row(result_id: i32, measured: &Measured) -> rows::LoadResults<'_> {
    rows::LoadResults {
        result_id,
        item: measured.item.as_ref().into(),
        operation: measured.operation.as_ref().into(),
        layout: measured.layout.map(Into::into),
        sync: measured.sync.map(Into::into),
        length_bytes: measured.length_bytes,
        processes: measured.processes,
        depth: measured.depth,
        direct: measured.direct,
        engine: measured.engine.into(),
        hosts: measured.hosts.as_deref().map(Into::into),
        bytes: measured.bytes,
        operations: measured.operations,
        errors: measured.errors,
        started_ns: measured.started_ns,
        first_end_ns: measured.first_end_ns,
        ended_ns: measured.ended_ns,
        bytes_per_s: measured.bytes_per_s,
        operations_per_s: measured.operations_per_s,
        overlap: measured.overlap,
        device_read_bytes: measured.device_read_bytes,
        device_write_bytes: measured.device_write_bytes,
        p50_ns: measured.p50_ns,
        p99_ns: measured.p99_ns,
        max_ns: measured.max_ns,
        status: measured.status.name().into(),
        note: measured.note.clone(),
    }
}
