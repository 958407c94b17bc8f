//! Rows of `signals` and `mappings`, collected and written in groups.

use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{Mappings, MappingsColumns, Signals, SignalsColumns},
};

/// Rows of `signals` that are not written yet.
#[derive(Debug, Default)]
pub struct SignalRows(Batch<SignalsColumns>);

impl SignalRows {
    /// Add a row. Returns whether it is time to [`SignalRows::flush`].
    pub fn push(&mut self, row: &Signals<'_>) -> bool {
        self.0.push(row);
        self.0.len() >= ROWS_PER_GROUP
    }

    /// Write the collected rows.
    pub fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}

/// Rows of `mappings` that are not written yet.
#[derive(Debug, Default)]
pub struct MappingRows(Batch<MappingsColumns>);

impl MappingRows {
    pub fn push(&mut self, row: &Mappings<'_>) {
        self.0.push(row);
    }

    /// Write the collected rows; without `all`, only if they are many.
    pub fn flush(&mut self, recording: &mut Recording, all: bool) -> Result<(), TableError> {
        const ROWS_IN_MEMORY: usize = 16_384;
        if !all && self.0.len() < ROWS_IN_MEMORY {
            return Ok(());
        }
        recording.write_batch(&mut self.0)
    }
}
