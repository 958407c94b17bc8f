//! What became of an attempt to send batches, whichever way they take.

/// Outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No batch waits.
    Idle,
    /// Batches are in the lake.
    Landed,
    /// Batches were refused, and set aside.
    Refused(String),
    /// OTLP points were refused, and are lost.
    Rejected(String),
}
