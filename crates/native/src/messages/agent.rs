//! Errors of `sysdock-agent` as text, and how an agent is.

use std::{collections::BTreeMap, io};

use chrono::DateTime;
use sysdock_agent::{AgentError, AgentStatus, DestinationStatus, Refusal, Rejection, SettingsError};
use sysdock_bpf::accounting::AccountingError;
use sysdock_table::facts;

use super::{Message, harmless, step};
use crate::{agent::bytes, sentences};

pub(crate) const AGENT_RUNS: &str = "an agent is running on this node";

impl From<AgentError> for Message {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Table(error) => error.into(),
            AgentError::Io(path, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Message::new(format!("{}: {error}", path.display()), "run as root")
            }
            AgentError::Io(path, error) => Message::bare(format!("{}: {error}", path.display())),
            AgentError::Accounting(AccountingError::AgentRuns) => Message::new(
                AGENT_RUNS,
                "one agent counts for the whole node; a second one for a trial needs --no-pin and its own --spool",
            ),
            AgentError::Accounting(AccountingError::Io(error)) => Message::bare(error.to_string()),
            AgentError::Accounting(AccountingError::Probe(error)) => Message::new(
                format!("cannot {}: {}", step(error.step), sentences::sentence(&error.reason)),
                "programs in the kernel need root, or CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE; see docs/explain/kernel-recorder.md",
            ),
            AgentError::Settings(error) => settings(error),
            AgentError::InUse(path) => Message::new(
                format!("{}: another agent runs with this spool", path.display()),
                "one agent counts for the whole node; give --spool to try a second one",
            ),
            AgentError::Kernel(error) => Message::bare(format!("the kernel's counters cannot be read: {error}")),
            AgentError::Address(url) => Message::new(format!("{url}: not a valid destination"), "write https://HOST:PORT"),
            AgentError::Collector(_) | AgentError::TooLate | AgentError::PendingFull(_) => {
                Message::bare(sentences::sentence(&error.fact()))
            }
            AgentError::Otlp(_, after) => {
                let wait = after.map(|after| format!("; it requests a wait of {} s", after.as_secs()));
                Message::bare(sentences::sentence(&error.fact()) + &wait.unwrap_or_default())
            }
            AgentError::OthersRead(path) => Message::new(
                format!("{}: others may read or change this file of tokens", path.display()),
                "it must belong to the user who runs this, or to root: chmod 600",
            ),
            AgentError::NoToken(path) => Message::bare(format!("{}: there is no token in this file", path.display())),
            AgentError::Certificate(path, why) => {
                Message::new(format!("{}: {why}", path.display()), "certificates and keys are read in PEM")
            }
            AgentError::NewerLake(path) => {
                Message::new(format!("{}: this lake was made by a newer version of sysdock", path.display()), "update sysdock")
            }
            AgentError::NoAgent(path, error) => Message::new(
                format!("{}: {error}", path.display()),
                "no agent runs with this spool: start it by `systemctl start sysdock-agent`, or give --spool",
            ),
        }
    }
}

fn settings(error: SettingsError) -> Message {
    match error {
        SettingsError::Io(error) => Message::bare(error.to_string()),
        SettingsError::Toml(error) => Message::bare(error.to_string()),
        SettingsError::NoPlace(segment) => Message::new(
            format!("group `{segment}` does not contain the place of the job"),
            "write it as in segment = \"job_{job}\"",
        ),
        SettingsError::Name(why) => Message::bare(refused(&why)),
        SettingsError::NoSecret => Message::new(
            "`hide` needs `secret`",
            "names are hashed with it: write a text that only this site knows, the same on all nodes",
        ),
    }
}

/// Why a batch was refused.
pub(crate) fn refused(why: &Refusal) -> String {
    sentences::sentence(&why.fact())
}

/// Points that a receiver of OTLP refused, and why.
pub(crate) fn rejected(points: u64, why: &Rejection) -> String {
    sentences::sentence(&facts::agent::points_refused(points as i64, why.fact()))
}

/// How an agent is, as text.
pub(crate) fn agent_status(status: &AgentStatus) -> String {
    let AgentStatus { version, cluster, node, agent, sequence, .. } = status;
    let mut text = format!("sysdock: agent {agent} on {node}, cluster {cluster}, version {version}\n");
    let mut line = |name: &str, value: String| text.push_str(&format!("  {:<24}{}\n", harmless(name), harmless(&value)));
    line("last interval", format!("{}, batch {sequence}", time(status.last_interval_ns)));
    line("missed intervals", status.missed_intervals.to_string());
    for one in &status.destinations {
        destination(one, &mut line);
    }
    text
}

fn destination(one: &DestinationStatus, line: &mut dyn FnMut(&str, String)) {
    line(&one.name, String::new());
    line("  last accepted", time(one.sent_ns));
    line("  waiting batches", format!("{}, {}", one.waiting_batches, bytes(one.waiting_bytes as i64)));
    line("  dropped batches", one.dropped_batches.to_string());
    line("  set aside", numbers(one.set_aside.batches, &one.set_aside.reasons));
    if let Some(why) = &one.set_aside.last {
        line("    last reason", refused(why));
    }
    if one.refused_points > 0 {
        line("  refused points", one.refused_points.to_string());
    }
    line("  failed attempts", one.failed_attempts.to_string());
    line("  uncounted answers", numbers(one.uncounted_answers.values().sum(), &one.uncounted_answers));
    if let Some((since_ns, why)) = &one.failing {
        line("  failing since", time(*since_ns));
        line("    last reason", sentences::sentence(why));
    }
}

/// A number, and how it is made up by code.
fn numbers(all: u64, parts: &BTreeMap<String, u64>) -> String {
    let parts: Vec<String> = parts.iter().map(|(code, number)| format!("{number} {code}")).collect();
    if parts.is_empty() { all.to_string() } else { format!("{all} ({})", parts.join(", ")) }
}

fn time(ns: i64) -> String {
    if ns == 0 { "never".into() } else { DateTime::from_timestamp_nanos(ns).format("%Y-%m-%d %H:%M:%S UTC").to_string() }
}
