//! Load on a web server, by a client that does not wait for it.
//!
//! *Open loop*: requests are due at random times of a given rate, whatever became of those before, and latency counts from the time at which a
//! request was due: a server that stands still for a second makes all requests late that were due in it, also those that could not even be
//! sent. *Closed loop*: each connection sends the next request when the last one was answered, which finds the highest rate.
//!
//! Modules: `url`, `arrivals` (when requests are due), `response` (reads answers), `connection` (one socket), `client` (one thread with many
//! connections), `answered` (what is reported).

mod answered;
mod arrivals;
mod client;
mod connection;
mod response;
mod url;

use std::{io, sync::Arc, thread, time::Duration};

use sysdock_table::Cancel;

use crate::{LoadError, clock};

use answered::Counts;
pub use answered::{Answered, Errors, HttpLatency, OfUrl, Sum};
use client::Client;
pub use response::Wanted;
pub use url::Request;
use url::Target;

/// What is to be asked, and how often.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// What is requested: each time one of them, which is drawn.
    pub requests: Vec<Request>,
    /// What is kept of answers.
    pub wanted: Arc<Wanted>,
    /// Requests a second. `None`: closed loop.
    pub rate: Option<f64>,
    /// Connections at a time, at most.
    pub connections: usize,
    /// How long requests are made.
    pub time: Duration,
    /// An answer that takes longer does not come any more; counts from when the request was due.
    pub timeout: Duration,
    /// Use connections again.
    pub keep_alive: bool,
    /// The same seed draws the same times and addresses.
    pub seed: u64,
    /// Threads that share rate and connections.
    pub threads: usize,
}

impl HttpLoad {
    fn check(&self) -> Result<(), LoadError> {
        let wrong = |why: &str| Err(LoadError::Address(why.into()));
        match self {
            HttpLoad { rate: Some(rate), .. } if !(rate.is_finite() && *rate > 0.0 && *rate <= 1e7) => {
                wrong("the rate is a number of requests a second, above 0 and up to 10 million")
            }
            HttpLoad { threads, connections, .. } if *threads == 0 || threads > connections => {
                wrong("there are as many connections as threads, at least")
            }
            HttpLoad { time, timeout, .. } if time.is_zero() || timeout.is_zero() => wrong("times are longer than 0"),
            HttpLoad { requests, .. } if requests.is_empty() => wrong("no request is given"),
            _ => Ok(()),
        }
    }
}

/// Make the load.
///
/// # Errors
///
/// Where it makes no sense, a name has no address, or this process may not open so many connections. What the server does is no error.
pub fn http(load: &HttpLoad, cancel: &Cancel) -> Result<Answered, LoadError> {
    load.check()?;
    let parse = |request| Target::parse(request, load.keep_alive);
    let targets: Vec<Target> = load.requests.iter().map(parse).collect::<Result<_, _>>()?;
    allow_connections(load.connections + load.threads * 4)?;
    let (started_ns, to_epoch_ns) = (clock::now_ns(), clock::to_epoch_ns());
    let threads = load.threads;
    let clients = (0..threads).map(|number| {
        // The first ones get what is left of the division.
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

/// Descriptors for so many sockets.
fn allow_connections(wanted: usize) -> Result<(), LoadError> {
    // Standard streams, and what libraries may open.
    let wanted = wanted as u64 + 64;
    // SAFETY: the struct lives through the calls.
    unsafe {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        if limit.rlim_cur < wanted {
            let raised = libc::rlimit { rlim_cur: wanted, rlim_max: limit.rlim_max.max(wanted) };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) != 0 {
                return Err(LoadError::Address(format!("this process may open {} files only (ulimit -n)", limit.rlim_max)));
            }
        }
    }
    Ok(())
}
