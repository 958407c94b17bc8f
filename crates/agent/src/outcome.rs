//! What became of an attempt to send batches, whichever way they take.

use sysdock_table::{Fact, facts};

use crate::batch::Refusal;

/// Outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No batch waits.
    Idle,
    /// Batches are in the lake.
    Landed,
    /// Batches were refused, and set aside.
    Refused(Refusal),
    /// OTLP points were refused, and are lost.
    Rejected(u64, Rejection),
}

/// Why a receiver of OTLP refused points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The status of its answer; `None`: it accepted other points of the request.
    pub status: Option<u16>,
    /// What it says.
    pub text: String,
}

impl Rejection {
    /// As a fact.
    #[must_use]
    pub fn fact(&self) -> Fact {
        let why = facts::agent::stated(self.text.as_str());
        self.status.map_or_else(|| why.clone(), |status| facts::agent::answers(i64::from(status), why.clone()))
    }
}
