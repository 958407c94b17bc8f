//! What can go wrong.

use std::{io, path::PathBuf, time::Duration};

use sysdock_bpf::ProbeError;
use sysdock_table::TableError;

use crate::settings::SettingsError;

/// Of agents and collectors.
#[derive(Debug)]
pub enum AgentError {
    /// A file or a folder.
    Io(PathBuf, io::Error),
    /// A folder of the spool or the lake, or a part there.
    Table(TableError),
    /// The kernel takes no programs.
    Probe(ProbeError),
    /// The settings.
    Settings(SettingsError),
    /// Another agent has this spool.
    InUse(PathBuf),
    /// The kernel's sums cannot be read.
    Kernel(io::Error),
    /// The address to push to.
    Address(String),
    /// The collector cannot be reached, or does not take batches.
    Collector(String),
    /// The receiver of OTLP cannot be reached, or requests a later try: after this time, if it gives one.
    Otlp(String, Option<Duration>),
    /// A certificate or a key.
    Certificate(PathBuf, String),
    /// The lake is of a form that this version does not know.
    NewerLake(PathBuf),
    /// A batch took too long into the lake.
    TooLate,
    /// No agent answers at this socket.
    NoAgent(PathBuf, io::Error),
}

impl From<TableError> for AgentError {
    fn from(error: TableError) -> Self {
        AgentError::Table(error)
    }
}

impl From<ProbeError> for AgentError {
    fn from(error: ProbeError) -> Self {
        AgentError::Probe(error)
    }
}

impl From<SettingsError> for AgentError {
    fn from(error: SettingsError) -> Self {
        AgentError::Settings(error)
    }
}
