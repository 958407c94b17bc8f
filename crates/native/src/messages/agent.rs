//! Errors of `sysdock-agent` as text.

use std::io;

use sysdock_agent::{AgentError, Named, Refusal, Rejection, RequestRefusal, SettingsError, Unsent};
use sysdock_bpf::accounting::AccountingError;

use super::{Message, step};
use crate::sentences;

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
            AgentError::Collector(why) => Message::bare(format!("the collector: {}", unsent(&why))),
            AgentError::Otlp(why, after) => {
                let why = match why {
                    Unsent::NotReady(status) => format!("it answers {}", status.as_u16()),
                    why => unsent(&why),
                };
                let wait = after.map(|after| format!("; it requests a wait of {} s", after.as_secs()));
                Message::bare(format!("the OTLP receiver: {why}{}", wait.unwrap_or_default()))
            }
            AgentError::OthersRead(path) => {
                Message::bare(format!("{}: others may read this file of tokens (chmod 600)", path.display()))
            }
            AgentError::NoToken(path) => Message::bare(format!("{}: there is no token in this file", path.display())),
            AgentError::Certificate(path, why) => {
                Message::new(format!("{}: {why}", path.display()), "certificates and keys are read in PEM")
            }
            AgentError::NewerLake(path) => {
                Message::new(format!("{}: this lake was made by a newer version of sysdock", path.display()), "update sysdock")
            }
            AgentError::TooLate => Message::bare("the file system of the lake took too long"),
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
        SettingsError::NoSecret => Message::new(
            "`hide` needs `secret`",
            "names are hashed with it: write a text that only this site knows, the same on all nodes",
        ),
    }
}

fn unsent(why: &Unsent) -> String {
    match why {
        Unsent::Unreachable(error) => error.to_string(),
        Unsent::NotReady(status) => format!("it is not ready: {status}"),
        Unsent::Answers(status, why) => format!("it answers {status}: {}", request_refused(why)),
        Unsent::Pack(error) => error.to_string(),
    }
}

fn request_refused(why: &RequestRefusal) -> &str {
    match why {
        RequestRefusal::UnknownPath => "nothing is at this path",
        RequestRefusal::UnknownToken => "this token is not known",
        RequestRefusal::ReadOnly => "metrics can only be read",
        RequestRefusal::TooLong => "the body is too long",
        RequestRefusal::Body => "the body is too long, too slow, or not as long as stated",
        RequestRefusal::Packing => "the body is not packed as stated, or too long",
        RequestRefusal::NotLanded => "the batches are not in the lake; send them again",
        RequestRefusal::Stated { text } => text,
    }
}

/// Why a batch was refused.
pub(crate) fn refused(why: &Refusal) -> String {
    match why {
        Refusal::Malformed { error } => format!("not a batch of an agent: {error}"),
        Refusal::Newer { format, latest } => {
            format!("format {format} of a newer agent; {latest} is the latest that can be read here")
        }
        Refusal::Name { of } => {
            let what = match of {
                Named::Cluster => "cluster",
                Named::Node => "node",
                Named::Agent => "agent",
            };
            format!("the name of the {what} is empty, too long, or has characters that no name has")
        }
        Refusal::Time { ns } => format!("its time ({ns} ns) is before 2020, or more than a day ahead of the clock here"),
        Refusal::Cluster { name } => format!("this token is not for cluster {name}"),
        Refusal::Stated { text } => text.clone(),
    }
}

/// Points that a receiver of OTLP refused, and why.
pub(crate) fn rejected(points: u64, why: &Rejection) -> String {
    match why {
        Rejection { status: Some(status), text } => format!("{points} points: it answers {status}: {text}"),
        Rejection { status: None, text } => format!("{points} points: {text}"),
    }
}
