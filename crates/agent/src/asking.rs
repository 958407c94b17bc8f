//! Questions to the agent: what a job has used so far, and that it is over, which the epilogue of a
//! job asks; and how the agent itself is. They come over a socket in the spool, which only its owner
//! can open, as one line of JSON each way.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::MetadataExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
    sync::mpsc::Sender,
    time::Duration,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, chmodat},
    net::sockopt::socket_peercred,
    process::geteuid,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sysdock_table::{
    Fact,
    rows::{JobFiles, JobTotals},
};

use crate::{aside::Aside, error::AgentError, json, spool::Spool};

const TIMEOUT: Duration = Duration::from_secs(20);
const LONGEST: u64 = 4096;
const LONGEST_ANSWER: u64 = 16 << 20;

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Query {
    /// What a job used. `over`: the job has ended, and its totals are final.
    Job { job: String, over: bool },
    /// How the agent is.
    Status,
}

/// How an agent is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AgentStatus {
    pub version: String,
    pub cluster: String,
    pub node: String,
    /// The agent's id.
    pub agent: String,
    /// Number of its last batch.
    pub sequence: i64,
    /// End of the last interval [ns, Unix time].
    pub last_interval_ns: i64,
    /// Number of intervals that could not be read or kept, of this process.
    pub missed_intervals: u64,
    pub destinations: Vec<DestinationStatus>,
}

/// How it is with sending to one destination.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DestinationStatus {
    /// `lake`, `collector` or `otlp`.
    pub name: String,
    /// When batches were last accepted there [ns, Unix time]; 0: not by this process.
    pub sent_ns: i64,
    /// Number of batches that wait, and their size [B].
    pub waiting_batches: u64,
    pub waiting_bytes: u64,
    /// Number of batches that were removed unsent for lack of room.
    pub dropped_batches: u64,
    /// Batches that are not taken there.
    pub set_aside: Aside,
    /// Number of data points of OTLP that were refused.
    pub refused_points: u64,
    /// Number of attempts of this process that failed.
    pub failed_attempts: u64,
    /// Number of answers that did not count, by the code of the reason.
    pub uncounted_answers: std::collections::BTreeMap<String, u64>,
    /// Since when all attempts have failed [ns, Unix time], and why the last one did.
    pub failing: Option<(i64, Fact)>,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobAnswer {
    /// What the job used on this node; `None`: the job is not known here.
    pub total: Option<JobTotals<'static>>,
    /// The files that took the most time.
    pub files: Vec<JobFiles<'static>>,
}

/// What is answered.
pub(crate) enum Reply {
    Job(Box<JobAnswer>),
    Status(AgentStatus),
}

pub(crate) struct Question {
    pub(crate) query: Query,
    pub(crate) answer: Box<dyn FnOnce(&Reply) + Send>,
}

impl Reply {
    fn line(&self) -> String {
        let text = match self {
            Reply::Job(answer) => json::text(answer),
            Reply::Status(status) => json::text(status),
        };
        text + "\n"
    }
}

/// Accept questions and pass them to the loop, until the process ends.
pub(crate) fn listen(spool: &Path, questions: &Sender<Question>) -> Result<(), AgentError> {
    let path = Spool::socket(spool);
    // A socket that a killed agent left. The lock of the spool ensures that no other agent runs.
    let _ = std::fs::remove_file(&path);
    let failed = |error| AgentError::Io(path.clone(), error);
    let listener = UnixListener::bind(&path).map_err(failed)?;
    // The folder is its owner's; the socket is so as well, whatever the umask is.
    chmodat(CWD, &path, Mode::RUSR | Mode::WUSR, AtFlags::empty()).map_err(|error| failed(error.into()))?;
    let questions = questions.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if receive(stream, &questions).is_none() {
                return;
            }
        }
    });
    Ok(())
}

/// Pass a question on; `None`: nobody answers any more.
fn receive(stream: UnixStream, questions: &Sender<Question>) -> Option<()> {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
    let mut line = String::new();
    let read = BufReader::new((&stream).take(LONGEST)).read_line(&mut line);
    let Some(query) = read.ok().and_then(|_| serde_json::from_str::<Query>(&line).ok()) else { return Some(()) };
    let answer = Box::new(move |reply: &Reply| {
        let _ = (&stream).write_all(reply.line().as_bytes());
    });
    questions.send(Question { query, answer }).ok()
}

/// Ask the agent of this spool about a job; `over`: the job has ended.
///
/// # Errors
/// [`AgentError::NoAgent`]: no agent answers.
pub fn query_job(spool: &Path, job: &str, over: bool) -> Result<JobAnswer, AgentError> {
    ask(spool, &Query::Job { job: job.into(), over })
}

/// Ask the agent of this spool how it is.
///
/// # Errors
/// [`AgentError::NoAgent`]: no agent answers.
pub fn query_status(spool: &Path) -> Result<AgentStatus, AgentError> {
    ask(spool, &Query::Status)
}

fn ask<T: DeserializeOwned>(spool: &Path, query: &Query) -> Result<T, AgentError> {
    let path = Spool::socket(spool);
    let no_agent = |error| AgentError::NoAgent(path.clone(), error);
    let mut stream = connect(&path, spool).map_err(no_agent)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(no_agent)?;
    stream.write_all((json::text(query) + "\n").as_bytes()).map_err(no_agent)?;
    let mut text = String::new();
    BufReader::new(stream.take(LONGEST_ANSWER)).read_line(&mut text).map_err(no_agent)?;
    serde_json::from_str(&text).map_err(|error| no_agent(std::io::Error::other(error)))
}

/// Connect to an agent of this user, of root, or of the owner of the spool: nobody else answers for
/// it.
fn connect(path: &Path, spool: &Path) -> std::io::Result<UnixStream> {
    let owner = std::fs::symlink_metadata(spool)?.uid();
    let stream = UnixStream::connect(path)?;
    let peer = socket_peercred(&stream)?.uid.as_raw();
    let own = geteuid().as_raw();
    let is_trusted = [own, 0].contains(&owner) && [own, 0].contains(&peer);
    if is_trusted { Ok(stream) } else { Err(std::io::ErrorKind::PermissionDenied.into()) }
}
