//! Questions that the epilogue of a job asks the agent: what the job has used so far, and that it
//! is over. They come over a socket in the spool, which only its owner can open, as one line of
//! JSON each way.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::mpsc::Sender,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sysdock_table::rows::{JobFiles, JobTotals};

use crate::{error::AgentError, spool::Spool};

const TIMEOUT: Duration = Duration::from_secs(20);
const LONGEST: u64 = 4096;
const LONGEST_ANSWER: u64 = 16 << 20;

/// A question about one job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Query {
    pub(crate) job: String,
    /// The job is over: its totals are final.
    pub(crate) over: bool,
}

/// The answer to a question.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobAnswer {
    /// What the job used on this node; `None`: the job is not known here.
    pub total: Option<JobTotals<'static>>,
    /// The files that took the most time.
    pub files: Vec<JobFiles<'static>>,
}

pub(crate) struct Question {
    pub(crate) query: Query,
    pub(crate) answer: Box<dyn FnOnce(&JobAnswer) + Send>,
}

/// Accept questions and pass them to the loop, until the process ends.
pub(crate) fn listen(spool: &Path, questions: &Sender<Question>) -> Result<(), AgentError> {
    let path = Spool::socket(spool);
    // A socket that a killed agent left. The lock of the spool ensures that no other agent runs.
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).map_err(|error| AgentError::Io(path, error))?;
    let questions = questions.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let _ = stream.set_write_timeout(Some(Duration::from_secs(2)));
            let mut line = String::new();
            let read = BufReader::new((&stream).take(LONGEST)).read_line(&mut line);
            let Some(query) = read.ok().and_then(|_| serde_json::from_str::<Query>(&line).ok()) else { continue };
            let answer = Box::new(move |answer: &JobAnswer| {
                let mut line = serde_json::to_vec(answer).expect("keys are text");
                line.push(b'\n');
                let _ = (&stream).write_all(&line);
            });
            if questions.send(Question { query, answer }).is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Ask the agent of this spool about a job; `over`: the job has ended.
///
/// # Errors
/// [`AgentError::NoAgent`]: no agent answers.
pub fn query_job(spool: &Path, job: &str, over: bool) -> Result<JobAnswer, AgentError> {
    let path = Spool::socket(spool);
    let no_agent = |error| AgentError::NoAgent(path.clone(), error);
    let mut stream = UnixStream::connect(&path).map_err(no_agent)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(no_agent)?;
    let mut line = serde_json::to_vec(&Query { job: job.into(), over }).expect("keys are text");
    line.push(b'\n');
    stream.write_all(&line).map_err(no_agent)?;
    let mut text = String::new();
    BufReader::new(stream.take(LONGEST_ANSWER)).read_line(&mut text).map_err(no_agent)?;
    serde_json::from_str(&text).map_err(|error| no_agent(std::io::Error::other(error)))
}
