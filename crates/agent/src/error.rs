//! Errors of agents and collectors.

use std::{io, path::PathBuf, time::Duration};

use sysdock_bpf::accounting::AccountingError;
use sysdock_table::TableError;

use crate::settings::SettingsError;

/// An error of an agent or a collector.
#[derive(Debug)]
pub enum AgentError {
    /// A file or folder cannot be accessed.
    Io(PathBuf, io::Error),
    /// A folder of the spool or the lake, or a part in it, cannot be used.
    Table(TableError),
    /// The kernel does not load the programs, or another agent has its programs in it.
    Accounting(AccountingError),
    /// The settings cannot be used.
    Settings(SettingsError),
    /// Another agent uses this spool.
    InUse(PathBuf),
    /// The kernel's sums cannot be read.
    Kernel(io::Error),
    /// The address to push to is invalid.
    Address(String),
    /// The collector cannot be reached, or does not accept batches.
    Collector(String),
    /// The receiver of OTLP cannot be reached, or asks for a later attempt, after this time if it
    /// states one.
    Otlp(String, Option<Duration>),
    /// A certificate or key cannot be used.
    Certificate(PathBuf, String),
    /// The lake has a format that this version does not know.
    NewerLake(PathBuf),
    /// A batch took too long to land.
    TooLate,
    /// No agent answers at this socket.
    NoAgent(PathBuf, io::Error),
}

impl From<TableError> for AgentError {
    fn from(error: TableError) -> Self {
        AgentError::Table(error)
    }
}

impl From<AccountingError> for AgentError {
    fn from(error: AccountingError) -> Self {
        AgentError::Accounting(error)
    }
}

impl From<SettingsError> for AgentError {
    fn from(error: SettingsError) -> Self {
        AgentError::Settings(error)
    }
}
