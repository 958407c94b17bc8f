//! Brings batches from the spool to a collector, or into a lake that this node can write to. It
//! runs in a thread of its own: a collector that is slow, or unavailable for a day, delays no
//! reading.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use sysdock_table::Cancel;

use crate::{
    batch::{Batch, DAY_NS, Refusal},
    error::{AgentError, Unsent},
    http::RequestRefusal,
    lake::Lake,
    otlp::{Done, Receiver},
    outcome::Outcome,
    spool::{Spool, Waiting},
};

/// Size of the batches in one request, uncompressed [B].
const MOST_BYTES: u64 = 8 << 20;
/// Longer than a collector may take to land a batch.
const TIMEOUT: Duration = Duration::from_secs(150);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Destination of batches.
#[derive(Clone, Debug)]
pub enum Target {
    /// A lake in this folder.
    Lake(PathBuf),
    /// A collector.
    Push {
        /// Address: `https://host:port`.
        url: String,
        /// File that contains the token.
        token_file: PathBuf,
        /// Trusted certificates, in place of the usual ones.
        ca: Option<PathBuf>,
    },
    /// A receiver of OTLP over HTTP.
    Otlp {
        /// Address, without `/v1/metrics`.
        url: String,
        /// File that contains the token, if the receiver requires one.
        token_file: Option<PathBuf>,
        /// Trusted certificates, in place of the usual ones.
        ca: Option<PathBuf>,
    },
}

/// Tokens of a file: one per line, optionally with the only cluster that it is valid for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tokens(Vec<(String, Option<String>)>);

impl Tokens {
    /// Read a file of tokens. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// [`AgentError`]: it cannot be read, others may read it, or it has no token.
    pub fn read(path: &Path) -> Result<Tokens, AgentError> {
        use std::os::unix::fs::PermissionsExt;
        let failed = |error| AgentError::Io(path.into(), error);
        let text = fs::read_to_string(path).map_err(failed)?;
        if fs::metadata(path).map_err(failed)?.permissions().mode() & 0o077 != 0 {
            return Err(AgentError::OthersRead(path.into()));
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let all: Vec<_> = lines
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                Some((words.next()?.to_string(), words.next().map(str::to_string)))
            })
            .collect();
        if all.is_empty() { Err(AgentError::NoToken(path.into())) } else { Ok(Tokens(all)) }
    }

    /// Whether a token allows sending for a cluster; `None`: the token is unknown.
    #[must_use]
    pub fn allows(&self, token: &str, cluster: &str) -> Option<bool> {
        use sha2::{Digest, Sha256};
        // Hashes are compared, so that the time taken does not reveal how much of a guess was
        // right.
        let digest = Sha256::digest(token);
        let known = self.0.iter().filter(|(known, _)| Sha256::digest(known) == digest);
        known.map(|(_, of)| of.as_deref().is_none_or(|of| of == cluster)).reduce(|one, other| one || other)
    }

    fn first(&self) -> &str {
        &self.0[0].0
    }
}

/// A collector's answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Refused lines, counted from 0, each with its [`Refusal`] as JSON.
    pub(crate) refused: Vec<(usize, String)>,
}

/// State of sending, readable from other threads.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    sent_ns: AtomicI64,
    failed: AtomicU64,
    refused: AtomicU64,
}

impl Progress {
    pub(crate) fn add(&self, outcome: &Result<Outcome, AgentError>) {
        match outcome {
            Ok(Outcome::Landed | Outcome::Rejected(..)) => {
                let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                self.sent_ns.store(since.as_nanos() as i64, Ordering::Relaxed);
            }
            Ok(Outcome::Idle | Outcome::Refused(_)) => {}
            Err(_) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// When batches were last accepted [ns, Unix time]; 0: never.
    pub(crate) fn sent_ns(&self) -> i64 {
        self.sent_ns.load(Ordering::Relaxed)
    }

    /// Number of OTLP points that were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn set_refused(&self, points: u64) {
        self.refused.store(points, Ordering::Relaxed);
    }

    /// Number of failed attempts.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// An open connection to a destination.
pub(crate) enum Way {
    Lake(Lake),
    Push { agent: ureq::Agent, url: String, token: String },
    Otlp(Receiver),
}

/// A client for HTTPS that trusts these certificates or the usual ones.
fn client(ca: Option<&Path>) -> Result<ureq::Agent, AgentError> {
    let mut config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
    if let Some(path) = ca {
        let pem = fs::read(path).map_err(|error| AgentError::Io(path.into(), error))?;
        let certificate =
            ureq::tls::Certificate::from_pem(&pem).map_err(|error| AgentError::Certificate(path.into(), error.to_string()))?;
        let roots = ureq::tls::RootCerts::Specific(Arc::new(vec![certificate]));
        config = config.tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build());
    }
    Ok(config.build().new_agent())
}

fn address(url: &str) -> Result<String, AgentError> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(AgentError::Address(url.into()));
    }
    Ok(url.trim_end_matches('/').into())
}

impl Target {
    /// Name of the destination in metrics.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Target::Lake(_) => "lake",
            Target::Push { .. } => "collector",
            Target::Otlp { .. } => "otlp",
        }
    }
}

impl Way {
    /// Open a destination. `spool`: where its batches come from.
    pub(crate) fn open(target: &Target, writer: &str, spool: &Spool) -> Result<Way, AgentError> {
        match target {
            Target::Lake(path) => Ok(Way::Lake(Lake::open(path, &writer[..8])?)),
            Target::Push { url, token_file, ca } => {
                let url = address(url)?;
                let token = Tokens::read(token_file)?.first().to_string();
                Ok(Way::Push { agent: client(ca.as_deref())?, url, token })
            }
            Target::Otlp { url, token_file, ca } => {
                let url = address(url)?;
                let token = token_file.as_deref().map(Tokens::read).transpose()?.map(|tokens| tokens.first().to_string());
                Ok(Way::Otlp(Receiver { client: client(ca.as_deref())?, url, token, done: Done::read(spool.folder()) }))
            }
        }
    }

    /// Send as many of the waiting batches as fit into one request.
    pub(crate) fn send(&mut self, spool: &Spool) -> Result<Outcome, AgentError> {
        let waiting = spool.waiting()?;
        let Some(first) = waiting.first() else { return Ok(Outcome::Idle) };
        let mut bytes = 0;
        let fits = |one: &&Waiting| {
            bytes += one.bytes;
            one.was_sent == first.was_sent && (bytes <= MOST_BYTES || one.sequence == first.sequence)
        };
        let chosen: Vec<Waiting> = waiting.iter().take_while(fits).cloned().collect();
        match self {
            Way::Lake(lake) => into_lake(lake, spool, &chosen),
            Way::Push { agent, url, token } => push(agent, url, token, spool, &chosen),
            Way::Otlp(receiver) => receiver.send(spool, first),
        }
    }
}

fn into_lake(lake: &mut Lake, spool: &Spool, chosen: &[Waiting]) -> Result<Outcome, AgentError> {
    let mut refused = None;
    let mut taken = Vec::new();
    for waiting in chosen {
        // The node's own clock is trusted.
        match Batch::parse(&spool.line(waiting)?, i64::MAX - DAY_NS) {
            Ok(batch) => taken.push((waiting, batch)),
            Err(why) => {
                spool.refused(waiting)?;
                refused = Some(why);
            }
        }
    }
    for (waiting, batch) in taken.iter().filter(|(waiting, _)| waiting.was_sent) {
        lake.land_once(batch)?;
        spool.landed(waiting)?;
    }
    taken.retain(|(waiting, _)| !waiting.was_sent);
    taken.iter().try_for_each(|(waiting, _)| spool.about_to_send(waiting))?;
    let (sent, batches): (Vec<&Waiting>, Vec<Batch>) = taken.into_iter().unzip();
    lake.land(&batches, &|| true)?;
    sent.iter().try_for_each(|waiting| spool.landed(waiting))?;
    Ok(refused.map_or(Outcome::Landed, Outcome::Refused))
}

fn push(agent: &ureq::Agent, url: &str, token: &str, spool: &Spool, chosen: &[Waiting]) -> Result<Outcome, AgentError> {
    let failed = AgentError::Collector;
    let unreachable = |error| failed(Unsent::Unreachable(error));
    // If nothing listens there, nothing was sent, and the batches need not be marked as sent.
    let ready = agent.get(format!("{url}/v1/ready")).call().map_err(unreachable)?;
    if ready.status() != 200 {
        return Err(failed(Unsent::NotReady(ready.status())));
    }
    let mut body = Vec::new();
    for waiting in chosen {
        body.extend(spool.line(waiting)?);
        spool.about_to_send(waiting)?;
    }
    let packed = zstd::encode_all(&body[..], 1).map_err(|error| failed(Unsent::Pack(error)))?;
    let was_sent = chosen.first().is_some_and(|one| one.was_sent);
    let sent = agent
        .post(format!("{url}/v1/batches"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-encoding", "zstd")
        .header("x-sysdock-sent-before", if was_sent { "1" } else { "0" })
        .send(&packed[..]);
    let mut answer = sent.map_err(unreachable)?;
    let status = answer.status();
    let text = answer.body_mut().read_to_string().unwrap_or_default();
    if status != 200 {
        return Err(failed(Unsent::Answers(status, RequestRefusal::from_body(&text))));
    }
    let Answer { refused } = serde_json::from_str(&text).unwrap_or_default();
    for (place, waiting) in chosen.iter().enumerate() {
        let is_refused = refused.iter().any(|(line, _)| *line == place);
        let waiting = Waiting { was_sent: true, ..waiting.clone() };
        if is_refused { spool.refused(&waiting) } else { spool.landed(&waiting) }?;
    }
    Ok(refused.into_iter().next().map_or(Outcome::Landed, |(_, why)| Outcome::Refused(Refusal::from_json(why))))
}

/// Record the outcome for other threads.
fn note(way: &Way, outcome: &Result<Outcome, AgentError>, progress: &Progress) {
    progress.add(outcome);
    if let Way::Otlp(receiver) = way {
        progress.set_refused(receiver.done.refused);
    }
}

/// Send until cancelled, then try once more to send what waits.
pub(crate) fn run(
    way: &mut Way,
    spool: &Spool,
    every: Duration,
    cancel: &Cancel,
    progress: &Progress,
    on_outcome: &dyn Fn(Result<Outcome, AgentError>),
) {
    let mut pause = offset(spool, every);
    let mut failures = 0u32;
    loop {
        let is_last = wait(pause, cancel);
        let outcome = way.send(spool);
        note(way, &outcome, progress);
        pause = match &outcome {
            Ok(Outcome::Idle) => {
                failures = 0;
                every
            }
            Ok(_) => {
                failures = 0;
                Duration::ZERO
            }
            Err(error) => {
                failures += 1;
                let usual = (Duration::from_secs(1) * 2u32.saturating_pow(failures.min(6))).min(LONGEST_PAUSE);
                if let AgentError::Otlp(_, Some(after)) = error { *after } else { usual }
            }
        };
        let is_idle = matches!(outcome, Ok(Outcome::Idle));
        let is_failed = outcome.is_err();
        if !is_idle {
            on_outcome(outcome);
        }
        if is_last && (is_idle || is_failed) {
            return;
        }
    }
}

/// Nodes read at the same moment, so each sends after an offset of its own.
fn offset(spool: &Spool, every: Duration) -> Duration {
    let seed = spool.path().as_os_str().len() as u32
        ^ std::process::id()
        ^ SystemTime::now().elapsed().unwrap_or_default().subsec_nanos();
    every.mul_f64(f64::from(seed.wrapping_mul(2_654_435_761)) / f64::from(u32::MAX))
}

/// Returns whether it was cancelled.
fn wait(pause: Duration, cancel: &Cancel) -> bool {
    const STEP: Duration = Duration::from_millis(100);
    let mut left = pause;
    while left > Duration::ZERO && !cancel.requested() {
        let step = left.min(STEP);
        std::thread::sleep(step);
        left -= step;
    }
    cancel.requested()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn tokens_are_for_their_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        fs::write(&path, "# those of the site\nsecret-a a\n\nsecret-all\n").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        assert!(matches!(Tokens::read(&path), Err(AgentError::OthersRead(_))), "others may read it");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        let tokens = Tokens::read(&path).expect("it is fine");
        assert_eq!([tokens.allows("secret-a", "a"), tokens.allows("secret-a", "b")], [Some(true), Some(false)]);
        assert_eq!([tokens.allows("secret-all", "b"), tokens.allows("forged", "a")], [Some(true), None]);
    }
}
