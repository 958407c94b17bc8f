//! Errors of agents and collectors.

use std::{io, path::PathBuf, time::Duration};

use sysdock_bpf::accounting::AccountingError;
use sysdock_table::{Fact, TableError, codes, facts};
use ureq::http::StatusCode;

use crate::{answers::Uncounted, http::RequestRefusal, settings::SettingsError};

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
    /// Others may read or change this file of tokens.
    OthersRead(PathBuf),
    /// This file of tokens has none.
    NoToken(PathBuf),
    /// The lake has a format that this version does not know.
    NewerLake(PathBuf),
    /// A batch took too long to land.
    TooLate,
    /// As much as may be is waiting to be compared with the lake.
    PendingFull(PathBuf),
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
    /// An answer came that does not count.
    Uncounted(Uncounted),
    /// The system provides no random numbers, without which no answer counts.
    NoRandom,
}

impl From<Uncounted> for Unsent {
    fn from(why: Uncounted) -> Self {
        Unsent::Uncounted(why)
    }
}

impl Unsent {
    /// As a fact.
    #[must_use]
    pub fn fact(&self) -> Fact {
        match self {
            Unsent::Unreachable(error) => facts::agent::stated(error.to_string()),
            Unsent::NotReady(status) => facts::agent::not_ready(i64::from(status.as_u16())),
            Unsent::Answers(status, why) => facts::agent::answers(i64::from(status.as_u16()), why.fact()),
            Unsent::Pack(error) => facts::agent::stated(error.to_string()),
            Unsent::Uncounted(why) => why.fact(),
            Unsent::NoRandom => facts::agent::no_random(),
        }
    }
}

impl AgentError {
    /// As a fact about sending.
    #[must_use]
    pub fn fact(&self) -> Fact {
        match self {
            AgentError::Collector(why) => facts::agent::of_collector(why.fact()),
            AgentError::Otlp(why, _) => facts::agent::of_receiver(why.fact()),
            AgentError::TooLate => facts::agent::too_late(),
            AgentError::PendingFull(_) => facts::agent::pending_full(),
            AgentError::Io(path, error) => facts::agent::file(path.display().to_string(), error.to_string()),
            error => facts::agent::stated(error.to_string()),
        }
    }
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
    PendingFull: "pending-full",
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
