//! Brings batches from the spool to a collector, or into a lake that this node can write to. It
//! runs in a thread of its own: a collector that is slow, or unavailable for a day, delays no
//! reading.

use std::{
    cell::Cell,
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use sysdock_table::{Cancel, Fact};

use crate::{
    error::{AgentError, Unsent},
    lake::{Lake, by_partition},
    otlp::{Done, Receiver},
    outcome::Outcome,
    pending::Pending,
    pushing::{Lines, Push, readable},
    spool::{Spool, Waiting},
    tokens::Tokens,
};

/// Size of the batches in one request, uncompressed [B].
const MOST_BYTES: u64 = 4 << 20;
/// Batches in one request.
const MOST_BATCHES: usize = 256;
/// Longer than a collector may take to land a batch.
const TIMEOUT: Duration = Duration::from_secs(150);
/// How long batches are written to the lake that wait there, whoever sent them.
const SETTLING: Duration = Duration::from_secs(5);
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

/// State of sending, readable from other threads.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<Sending>);

/// What became of the attempts to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sending {
    /// When batches were last accepted [ns, Unix time]; 0: never.
    pub(crate) sent_ns: i64,
    /// Number of failed attempts.
    pub(crate) failed: u64,
    /// Number of OTLP points that were refused.
    pub(crate) refused: u64,
    /// Number of answers that did not count, by the code of the reason.
    pub(crate) uncounted: BTreeMap<&'static str, u64>,
    /// Why the last attempt failed, and when the first of the failures in a row was [ns, Unix time].
    pub(crate) failing: Option<(i64, Fact)>,
}

impl Progress {
    pub(crate) fn get(&self) -> Sending {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn add(&self, outcome: &Result<Outcome, AgentError>) {
        let mut sending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Ok(Outcome::Idle) => {}
            Ok(Outcome::Landed | Outcome::Rejected(..)) => (sending.sent_ns, sending.failing) = (now_ns(), None),
            Ok(Outcome::Refused(_)) => sending.failing = None,
            Err(error) => {
                let since = sending.failing.as_ref().map_or_else(now_ns, |(since, _)| *since);
                sending.failed += 1;
                sending.failing = Some((since, error.fact()));
                if let AgentError::Collector(Unsent::Uncounted(why)) | AgentError::Otlp(Unsent::Uncounted(why), _) = error {
                    *sending.uncounted.entry(why.code()).or_default() += 1;
                }
            }
        }
    }

    pub(crate) fn set_refused(&self, points: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused = points;
    }
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as i64
}

/// An open connection to a destination.
pub(crate) enum Way {
    Lake(Lake, Pending),
    Push(Push),
    Otlp(Receiver),
}

/// A client for HTTPS that trusts these certificates or the usual ones.
fn client(ca: Option<&Path>) -> Result<ureq::Agent, AgentError> {
    let config = ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).http_status_as_error(false);
    // Where batches go is what the settings say, not what a server says.
    let mut config = config.max_redirects(0);
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
            Target::Lake(path) => {
                let lake = Lake::open(path, writer.get(..8).unwrap_or(writer))?;
                Ok(Way::Lake(lake, Pending::new(Arc::default())))
            }
            Target::Push { url, token_file, ca } => {
                let url = address(url)?;
                let tokens = Tokens::read(token_file)?;
                Ok(Way::Push(Push::new(client(ca.as_deref())?, url, tokens.first())))
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
        let Some(first) = waiting.first() else { return self.settle().map(|()| Outcome::Idle) };
        let mut bytes = 0;
        let fits = |one: &&Waiting| {
            bytes += one.bytes;
            one.was_sent == first.was_sent && (bytes <= MOST_BYTES || one.sequence == first.sequence)
        };
        let chosen: Vec<Waiting> = waiting.iter().take(MOST_BATCHES).take_while(fits).cloned().collect();
        match self {
            Way::Lake(lake, pending) => into_lake(lake, pending, spool, &chosen),
            Way::Push(push) => push.send(spool, &chosen),
            Way::Otlp(receiver) => receiver.send(spool, first),
        }
    }

    /// Write what waits in a lake for long enough.
    fn settle(&mut self) -> Result<(), AgentError> {
        let Way::Lake(lake, pending) = self else { return Ok(()) };
        let failed = Cell::new(None);
        pending.settle(lake, Instant::now() + SETTLING, &|error| failed.set(Some(error)));
        failed.into_inner().map_or(Ok(()), Err)
    }
}

/// A batch that was sent before may be on its way into this lake through a collector: it waits there
/// until that is decided.
fn into_lake(lake: &mut Lake, pending: &mut Pending, spool: &Spool, chosen: &[Waiting]) -> Result<Outcome, AgentError> {
    let (lines, refused) = readable(spool, chosen)?;
    let (again, fresh): (Lines, Lines) = lines.into_iter().partition(|(waiting, _)| waiting.was_sent);
    pending.add(lake, &again.iter().map(|(_, line)| line).collect::<Vec<_>>())?;
    again.iter().try_for_each(|(waiting, _)| spool.landed(waiting))?;
    let mut sent = Vec::new();
    for (waiting, _) in &fresh {
        sent.push(spool.about_to_send(waiting)?);
    }
    for (partition, lines) in by_partition(fresh.iter().map(|(_, line)| line)) {
        lake.land(&partition, &lines, &|| true)?;
    }
    sent.iter().try_for_each(|waiting| spool.landed(waiting))?;
    Ok(refused.map_or(Outcome::Landed, Outcome::Refused))
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
    use crate::{
        batch::Batch,
        lake::Partition,
        line::tests::{NOW, parse},
        rows::{Origin, empty_sample},
        sampling::State,
    };

    /// Rows of samples in a lake, by the names of its parts.
    fn rows(lake: &Path) -> u64 {
        let names = fs::read_dir(lake.join("job_samples/date=2027-01-15/cluster=c")).into_iter().flatten().flatten();
        let rows = |name: String| name.split('-').nth(4).and_then(|rows| rows.parse::<u64>().ok());
        names.filter_map(|entry| rows(entry.file_name().to_string_lossy().into_owned())).sum()
    }

    #[test]
    fn a_batch_that_a_collector_has_waits_until_it_cannot_land_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lake");
        let spool = Spool::open(&folder.path().join("spool"), 1 << 20).expect("it is made");
        let mut kept = spool.begin().expect("it is empty");
        let mut batches = (1..=2).map(|sequence| {
            let origin = Origin { cluster: "c".into(), node: "n".into(), agent: kept.agent.clone(), sequence };
            let mut batch = Batch::new(&origin, NOW);
            batch.job_samples.push(empty_sample(&origin, NOW, 10, "files"));
            batch
        });
        let (first, second) = (batches.next().expect("one"), batches.next().expect("two"));
        drop(batches);
        // A collector has the first batch in memory when the agent is killed.
        let mut collector = Lake::open(&path, "00000001").expect("it is made");
        Pending::state_limit(&collector, Duration::from_secs(3600)).expect("it can be written");
        spool.keep(&mut kept, State::default(), &first).expect("there is room");
        spool.about_to_send(&spool.waiting().expect("one")[0]).expect("it is renamed");
        // The next agent writes to the lake itself.
        spool.keep(&mut kept, State::default(), &second).expect("there is room");
        let mut way = Way::open(&Target::Lake(path.clone()), "0123456789abcdef", &spool).expect("it is there");
        while way.send(&spool).expect("it lands") != Outcome::Idle {}
        assert_eq!((rows(&path), spool.waiting().expect("none").len()), (1, 0));
        let line = parse(first.to_line()).expect("it is fine");
        collector.land(&Partition::of(&line), &[&line], &|| true).expect("it lands");
        fs::remove_file(path.join("_pending/limit-3600000")).expect("it is there");
        assert_eq!((way.send(&spool).expect("it has landed"), rows(&path)), (Outcome::Idle, 2));
    }
}
