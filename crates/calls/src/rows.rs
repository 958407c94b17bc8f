//! Rows of `signals` and `mappings`, collected and written group by group.

use sysdock_table::{Column, ROWS_PER_GROUP, Recording, TableError};

/// One row of `signals`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct SignalRow {
    pub ts_ns: i64,
    pub life: usize,
    pub signal: String,
    pub code: Option<String>,
    pub sender_pid: Option<i32>,
}

/// Signals not yet written.
#[derive(Debug, Default)]
pub struct SignalRows(Vec<SignalRow>);

impl SignalRows {
    /// Add a row; true when it is time to [`SignalRows::flush`].
    pub fn push(&mut self, row: SignalRow) -> bool {
        self.0.push(row);
        self.0.len() >= ROWS_PER_GROUP
    }

    /// Write what was collected.
    pub fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        let rows = std::mem::take(&mut self.0);
        if rows.is_empty() {
            return Ok(());
        }
        let columns = vec![
            Column::Int64(rows.iter().map(|row| Some(row.ts_ns)).collect()),
            Column::Int32(rows.iter().map(|row| i32::try_from(row.life).ok()).collect()),
            Column::words(rows.iter().map(|row| Some(row.signal.as_str()))),
            Column::words(rows.iter().map(|row| row.code.as_deref())),
            Column::Int32(rows.iter().map(|row| row.sender_pid).collect()),
        ];
        recording.write("signals", columns)
    }
}

/// One row of `mappings`.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct MappingRow {
    pub ts_ns: i64,
    pub life: u32,
    pub object: i32,
    pub address: i64,
    pub length: i64,
    pub offset: Option<i64>,
    pub protection: String,
    pub shared: bool,
}

/// Mappings not yet written.
#[derive(Debug, Default)]
pub struct MappingRows(Vec<MappingRow>);

impl MappingRows {
    /// Add a row.
    pub fn push(&mut self, row: MappingRow) {
        self.0.push(row);
    }

    /// Write what was collected; with `all`, also less than a row group.
    pub fn flush(&mut self, recording: &mut Recording, all: bool) -> Result<(), TableError> {
        const ROWS_IN_MEMORY: usize = 16_384;
        if self.0.is_empty() || (!all && self.0.len() < ROWS_IN_MEMORY) {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.0);
        let columns = vec![
            Column::Int64(rows.iter().map(|row| Some(row.ts_ns)).collect()),
            Column::Int32(rows.iter().map(|row| i32::try_from(row.life).ok()).collect()),
            Column::Int32(rows.iter().map(|row| Some(row.object).filter(|object| *object >= 0)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.address)).collect()),
            Column::Int64(rows.iter().map(|row| Some(row.length)).collect()),
            Column::Int64(rows.iter().map(|row| row.offset).collect()),
            Column::words(rows.iter().map(|row| Some(row.protection.as_str()))),
            Column::Bool(rows.iter().map(|row| row.shared).collect()),
        ];
        recording.write("mappings", columns)
    }
}
