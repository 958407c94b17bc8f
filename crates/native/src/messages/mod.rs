//! Errors as text: place, fact, and remedy. All text for people is formed here, in one file for each crate.

mod agent;
mod bpf;
mod disk;
mod dump;
mod itrace;
mod load;
mod measure;
mod strace;
mod table;

pub(crate) use agent::{AGENT_RUNS, agent_status, refused, rejected};
pub(crate) use bpf::{full, no_place, not_taken, step, wrong_probe, wrong_trigger};
pub(crate) use dump::unanswered;
pub(crate) use itrace::{incomplete, profile};
pub(crate) use load::stays;
pub(crate) use strace::clock;

use sysdock_table::without_error_numbers;

use crate::terminal;

/// Exit status of an error.
pub(crate) const EXIT_ERROR: u8 = 2;
/// Exit status after SIGINT or SIGTERM.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// An error for display.
#[derive(Debug)]
pub(crate) struct Message {
    fact: String,
    hint: Option<String>,
}

impl Message {
    pub(crate) fn new(fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Message { fact: fact.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn bare(fact: impl Into<String>) -> Self {
        Message { fact: fact.into(), hint: None }
    }

    /// The text for places other than standard error.
    pub(crate) fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n\nhint: {}", harmless(hint)));
        harmless(&self.fact) + &hint.unwrap_or_default()
    }
}

#[allow(clippy::print_stderr)]
pub(crate) fn print(message: &Message) {
    eprintln!("{}", terminal::fitted(&format!("sysdock: {}", message.text())));
}

/// Print a message that is neither an error nor data.
#[allow(clippy::print_stderr)]
pub(crate) fn note(text: &str) {
    eprintln!("{}", terminal::fitted(&format!("sysdock: {}", harmless(text))));
}

/// Escape control characters, which names may contain and a terminal would execute.
fn harmless(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    without_error_numbers(text).chars().map(escape).collect()
}
