//! Rows of `signals` and `mappings`, collected and written group by group.

use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{Mappings, MappingsColumns, Signals, SignalsColumns},
};

/// Signals not yet written.
#[derive(Debug, Default)]
pub struct SignalRows(Batch<SignalsColumns>);

impl SignalRows {
    /// Add a row; true when it is time to [`SignalRows::flush`].
    pub fn push(&mut self, row: &Signals<'_>) -> bool {
        self.0.push(row);
        self.0.len() >= ROWS_PER_GROUP
    }

    /// Write what was collected.
    pub fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.0)
    }
}

/// Mappings not yet written.
#[derive(Debug, Default)]
pub struct MappingRows(Batch<MappingsColumns>);

impl MappingRows {
    /// Add a row.
    pub fn push(&mut self, row: &Mappings<'_>) {
        self.0.push(row);
    }

    /// Write what was collected; with `all`, also less than a row group.
    pub fn flush(&mut self, recording: &mut Recording, all: bool) -> Result<(), TableError> {
        const ROWS_IN_MEMORY: usize = 16_384;
        if !all && self.0.len() < ROWS_IN_MEMORY {
            return Ok(());
        }
        recording.write_batch(&mut self.0)
    }
}
