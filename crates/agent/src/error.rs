//! Errors of agents and collectors.

use std::{io, path::PathBuf, time::Duration};

use sysdock_bpf::accounting::AccountingError;
use sysdock_table::{TableError, codes};
use ureq::http::StatusCode;

use crate::{http::RequestRefusal, settings::SettingsError};

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
    Collector(Unsent),
    /// The receiver of OTLP cannot be reached, or asks for a later attempt, after this time if it
    /// states one.
    Otlp(Unsent, Option<Duration>),
    /// A certificate or key cannot be used: why, as the library for TLS states it.
    Certificate(PathBuf, String),
    /// Others may read this file of tokens.
    OthersRead(PathBuf),
    /// This file of tokens has none.
    NoToken(PathBuf),
    /// The lake has a format that this version does not know.
    NewerLake(PathBuf),
    /// A batch took too long to land.
    TooLate,
    /// No agent answers at this socket.
    NoAgent(PathBuf, io::Error),
}

/// Why batches were not sent.
#[derive(Debug)]
pub enum Unsent {
    Unreachable(ureq::Error),
    /// The status with which it says that it is not ready.
    NotReady(StatusCode),
    /// The status of its answer, and the reason in it.
    Answers(StatusCode, RequestRefusal),
    /// The batches cannot be compressed.
    Pack(io::Error),
}

codes!(AgentError {
    Io: "io",
    Table: "table",
    Accounting: "accounting",
    Settings: "settings",
    InUse: "in-use",
    Kernel: "kernel",
    Address: "address",
    Collector: "collector",
    Otlp: "otlp",
    Certificate: "certificate",
    OthersRead: "others-read",
    NoToken: "no-token",
    NewerLake: "newer-lake",
    TooLate: "too-late",
    NoAgent: "no-agent",
});

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
