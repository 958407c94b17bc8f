//! Load on a web server, by a client that does not wait for it.
//!
//! *Open loop*: requests are due at random times of a given rate, independent of earlier requests,
//! and latency counts from the time at which a request was due: if a server stalls for a second,
//! all requests of that second are late, including those that could not even be sent. *Closed
//! loop*: each connection sends the next request when the last one was answered, which finds the
//! highest rate.
//!
//! Modules: `url`, `arrivals` (when requests are due), `response` (parses answers), `connection`
//! (one socket), `client` (one thread with many connections), `answered` (the results).

#[expect(clippy::indexing_slicing, reason = "targets and connections are numbered here, not by a server")]
mod answered;
mod arrivals;
#[expect(clippy::indexing_slicing, reason = "targets and connections are numbered here, not by a server")]
mod client;
mod connection;
mod response;
mod url;

use std::{io, sync::Arc, thread, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sysdock_table::Cancel;

use crate::{
    clock,
    error::{LoadError, WrongRequest},
};

use answered::Counts;
pub use answered::{Answered, Errors, HttpLatency, OfUrl, Sum};
use client::Client;
pub use response::Wanted;
pub use url::Request;
use url::Target;

/// What to request, and how often.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// Requests, one of which is drawn each time.
    pub requests: Vec<Request>,
    /// What is kept of answers.
    pub wanted: Arc<Wanted>,
    /// Requests per second. `None`: closed loop.
    pub rate: Option<f64>,
    /// Largest number of connections at a time.
    pub connections: usize,
    /// How long requests are made.
    pub time: Duration,
    /// An answer that takes longer is given up; counts from when the request was due.
    pub timeout: Duration,
    /// Whether to reuse connections.
    pub keep_alive: bool,
    /// The same seed draws the same times and addresses.
    pub seed: u64,
    /// Number of threads that share rate and connections.
    pub threads: usize,
}

impl HttpLoad {
    fn check(&self) -> Result<(), LoadError> {
        let wrong = |why| Err(LoadError::Request(why));
        match self {
            HttpLoad { rate: Some(rate), .. } if !(rate.is_finite() && *rate > 0.0 && *rate <= 1e7) => wrong(WrongRequest::Rate),
            HttpLoad { threads, connections, .. } if *threads == 0 || threads > connections => wrong(WrongRequest::Connections),
            HttpLoad { time, timeout, .. } if time.is_zero() || timeout.is_zero() => wrong(WrongRequest::Time),
            HttpLoad { requests, .. } if requests.is_empty() => wrong(WrongRequest::Empty),
            _ => Ok(()),
        }
    }
}

/// Make the load.
///
/// # Errors
///
/// It is invalid, a name has no address, or this process may not open so many connections. Errors
/// of the server are results.
pub fn http(load: &HttpLoad, cancel: &Cancel) -> Result<Answered, LoadError> {
    load.check()?;
    let parse = |request| Target::parse(request, load.keep_alive);
    let targets: Vec<Target> = load.requests.iter().map(parse).collect::<Result<_, _>>()?;
    allow_connections(load.connections + load.threads * 4)?;
    let (started_ns, to_epoch_ns) = (clock::now_ns(), clock::to_epoch_ns());
    let threads = load.threads;
    let clients = (0..threads).map(|number| {
        // The first threads get the remainder of the division.
        let connections = load.connections / threads + usize::from(number < load.connections % threads);
        Client::new(load, &targets, number, connections, started_ns).map_err(LoadError::Http)
    });
    let clients: Vec<Client> = clients.collect::<Result<_, _>>()?;
    let counts = thread::scope(|scope| {
        let running: Vec<_> = clients.into_iter().map(|client| scope.spawn(|| client.run(cancel))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))).collect::<Vec<_>>()
    });
    let mut all = Counts::new(targets.len(), load.wanted.sums.len());
    for counts in counts {
        all.add(&counts.map_err(LoadError::Http)?);
    }
    Ok(all.answered(load, started_ns as i64 + to_epoch_ns, clock::now_ns() - started_ns))
}

/// Raise the limit of descriptors for this many sockets.
fn allow_connections(wanted: usize) -> Result<(), LoadError> {
    // Standard streams, and what libraries may open.
    let wanted = wanted as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|maximum| maximum.max(wanted)) };
    setrlimit(Resource::Nofile, raised).map_err(|_| {
        let maximum = limit.maximum.unwrap_or(u64::MAX);
        LoadError::Request(WrongRequest::OpenFiles(maximum))
    })
}
