//! Results: counted by each client, combined, and reported.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{HttpLoad, response::Response};
use crate::{
    LatencyClass,
    histogram::{CLASSES, class_of, classes},
};

/// Requests without an answer, by cause; and answers with an error status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Errors {
    /// No process listens there.
    pub refused: u64,
    /// The connection was reset.
    pub reset: u64,
    /// No answer came within the timeout.
    pub timeout: u64,
    /// The server closed the connection before the answer was complete.
    pub closed: u64,
    /// The answer was not HTTP, or was longer than announced.
    pub malformed: u64,
    /// This machine had no port, no socket or no memory for it.
    pub local: u64,
    /// Any other error of the network.
    pub network: u64,
    /// Answers whose status is 400 or more; these count as answers.
    pub status: u64,
}

impl Errors {
    /// Number of requests that failed, and have no answer.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.refused + self.reset + self.timeout + self.closed + self.malformed + self.local + self.network
    }

    pub(super) fn count(&mut self, errno: i32) {
        *match errno {
            libc::ECONNREFUSED => &mut self.refused,
            libc::ECONNRESET | libc::EPIPE => &mut self.reset,
            libc::ETIMEDOUT => &mut self.timeout,
            libc::EADDRNOTAVAIL | libc::EADDRINUSE | libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                &mut self.local
            }
            _ => &mut self.network,
        } += 1;
    }

    fn add(&mut self, other: &Errors) {
        self.refused += other.refused;
        self.reset += other.reset;
        self.timeout += other.timeout;
        self.closed += other.closed;
        self.malformed += other.malformed;
        self.local += other.local;
        self.network += other.network;
        self.status += other.status;
    }
}

/// Sum of a numeric header field of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sum {
    /// Number of complete answers that had the field, with a number.
    pub answers: u64,
    /// Sum of these numbers.
    pub sum: u64,
}

/// Answers of one address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OfUrl {
    /// GET or POST.
    pub method: String,
    pub url: String,
    /// Number of complete answers.
    pub answered: u64,
    /// Total size of their contents [B].
    pub content_bytes: u64,
    /// Size of the shortest content [B]. `None`: there is no answer.
    pub least_bytes: Option<u64>,
    /// Size of the longest content [B].
    pub most_bytes: Option<u64>,
    /// CRC-32 of the content. `None`: it was not requested, there is no answer, or contents differ.
    pub crc32: Option<u32>,
}

/// Counts of one client.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub(super) due: u64,
    pub(super) sent: u64,
    pub(super) answered: u64,
    pub(super) in_time: u64,
    pub(super) unfinished: u64,
    pub(super) unsent: u64,
    pub(super) queued: u64,
    pub(super) queue_ns: u64,
    pub(super) received_bytes: u64,
    pub(super) errors: Errors,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) latencies: Vec<u64>,
    pub(super) latency_sum_ns: u128,
    pub(super) latency_max_ns: u64,
    pub(super) of_urls: Vec<OfUrl>,
    pub(super) sums: Vec<Sum>,
    /// Number of answers in each second from the start on.
    pub(super) by_second: Vec<u64>,
    pub(super) opened: u64,
    pub(super) reopened: u64,
    pub(super) lag_max_ns: u64,
    pub(super) lags: u64,
    pub(super) interrupted: bool,
}

impl Counts {
    pub(super) fn new(urls: usize, sums: usize) -> Self {
        Counts {
            due: 0,
            sent: 0,
            answered: 0,
            in_time: 0,
            unfinished: 0,
            unsent: 0,
            queued: 0,
            queue_ns: 0,
            received_bytes: 0,
            errors: Errors::default(),
            statuses: BTreeMap::new(),
            latencies: vec![0; CLASSES],
            latency_sum_ns: 0,
            latency_max_ns: 0,
            of_urls: vec![OfUrl::default(); urls],
            sums: vec![Sum::default(); sums],
            by_second: Vec::new(),
            opened: 0,
            reopened: 0,
            lag_max_ns: 0,
            lags: 0,
            interrupted: false,
        }
    }

    /// Count an answer with this latency, `since_start_ns` after the start.
    pub(super) fn answer(&mut self, target: usize, response: &Response, latency_ns: u64, since_start_ns: u64) {
        let (status, bytes) = (response.status, response.content_bytes);
        self.answered += 1;
        self.errors.status += u64::from(status >= 400);
        *self.statuses.entry(status).or_default() += 1;
        self.latencies[class_of(latency_ns)] += 1;
        self.latency_sum_ns += u128::from(latency_ns);
        self.latency_max_ns = self.latency_max_ns.max(latency_ns);
        for (sum, number) in self.sums.iter_mut().zip(&response.numbers) {
            sum.answers += u64::from(number.is_some());
            sum.sum = sum.sum.saturating_add(number.unwrap_or_default());
        }
        let of_url = &mut self.of_urls[target];
        of_url.crc32 = response.crc32().filter(|crc| of_url.answered == 0 || of_url.crc32 == Some(*crc));
        of_url.answered += 1;
        of_url.content_bytes += bytes;
        of_url.least_bytes = Some(of_url.least_bytes.map_or(bytes, |least| least.min(bytes)));
        of_url.most_bytes = Some(of_url.most_bytes.map_or(bytes, |most| most.max(bytes)));
        let second = (since_start_ns / 1_000_000_000) as usize;
        if self.by_second.len() <= second {
            self.by_second.resize(second + 1, 0);
        }
        self.by_second[second] += 1;
    }

    pub(super) fn add(&mut self, other: &Counts) {
        self.due += other.due;
        self.sent += other.sent;
        self.answered += other.answered;
        self.in_time += other.in_time;
        self.unfinished += other.unfinished;
        self.unsent += other.unsent;
        self.queued += other.queued;
        self.queue_ns += other.queue_ns;
        self.received_bytes += other.received_bytes;
        self.errors.add(&other.errors);
        other.statuses.iter().for_each(|(status, count)| *self.statuses.entry(*status).or_default() += count);
        self.latencies.iter_mut().zip(&other.latencies).for_each(|(sum, count)| *sum += count);
        self.latency_sum_ns += other.latency_sum_ns;
        self.latency_max_ns = self.latency_max_ns.max(other.latency_max_ns);
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            sum.answers += more.answers;
            sum.sum = sum.sum.saturating_add(more.sum);
        }
        for (sum, of_url) in self.of_urls.iter_mut().zip(&other.of_urls) {
            sum.crc32 = match (sum.answered, of_url.answered) {
                (0, _) => of_url.crc32,
                (_, 0) => sum.crc32,
                _ => sum.crc32.filter(|_| sum.crc32 == of_url.crc32),
            };
            sum.answered += of_url.answered;
            sum.content_bytes += of_url.content_bytes;
            sum.least_bytes = sum.least_bytes.into_iter().chain(of_url.least_bytes).min();
            sum.most_bytes = sum.most_bytes.max(of_url.most_bytes);
        }
        self.by_second.resize(self.by_second.len().max(other.by_second.len()), 0);
        self.by_second.iter_mut().zip(&other.by_second).for_each(|(sum, count)| *sum += count);
        self.opened += other.opened;
        self.reopened += other.reopened;
        self.lag_max_ns = self.lag_max_ns.max(other.lag_max_ns);
        self.lags += other.lags;
        self.interrupted |= other.interrupted;
    }

    /// The result, with its rates and quantiles.
    pub(super) fn answered(mut self, load: &HttpLoad, started_ns: i64, elapsed_ns: u64) -> Answered {
        for (of_url, request) in self.of_urls.iter_mut().zip(&load.requests) {
            of_url.method.clone_from(&request.method);
            of_url.url.clone_from(&request.url);
        }
        // If it was interrupted, the elapsed time is the whole time.
        let time_ns = if self.interrupted { elapsed_ns } else { load.time.as_nanos() as u64 };
        let seconds = time_ns as f64 / 1e9;
        let classes = classes(&self.latencies);
        let latency = HttpLatency {
            p50_ns: self.quantile(&classes, 0.5),
            p90_ns: self.quantile(&classes, 0.9),
            p99_ns: self.quantile(&classes, 0.99),
            p999_ns: self.quantile(&classes, 0.999),
            max_ns: (self.answered > 0 && self.answered == self.due).then_some(self.latency_max_ns),
            answered_mean_ns: self.latency_sum_ns.checked_div(self.answered.into()).map(|mean| mean as u64),
            answered_max_ns: (self.answered > 0).then_some(self.latency_max_ns),
            classes: classes.iter().map(|class| [class.low_ns, class.high_ns, class.operations]).collect(),
        };
        Answered {
            mode: if load.rate.is_some() { "open" } else { "closed" },
            rate_per_s: load.rate,
            connections: load.connections,
            threads: load.threads,
            keep_alive: load.keep_alive,
            seed: load.seed,
            interrupted: self.interrupted,
            started_ns,
            time_ns,
            elapsed_ns,
            due: self.due,
            sent: self.sent,
            answered: self.answered,
            late: self.answered - self.in_time,
            unfinished: self.unfinished,
            unsent: self.unsent,
            queued: self.queued,
            queue_ns: self.queue_ns,
            offered_per_s: self.due as f64 / seconds,
            achieved_per_s: self.in_time as f64 / seconds,
            content_bytes: self.of_urls.iter().map(|of_url| of_url.content_bytes).sum(),
            received_bytes: self.received_bytes,
            errors: self.errors,
            statuses: self.statuses,
            sums: load.wanted.sums.iter().cloned().zip(self.sums).collect(),
            latency,
            urls: self.of_urls,
            answered_by_second: self.by_second,
            opened: self.opened,
            reopened: self.reopened,
            client_late: self.lags,
            client_late_max_ns: self.lag_max_ns,
        }
    }

    /// The latency that this fraction of the due requests did not exceed. Those without an answer
    /// count as longer than all others.
    fn quantile(&self, classes: &[LatencyClass], part: f64) -> Option<u64> {
        let wanted = ((self.due as f64 * part).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = classes.iter().find(|class| {
            seen += class.operations as u64;
            seen >= wanted
        });
        // The class of the longest latency is wider than what occurred.
        reached.map(|class| (class.high_ns as u64).min(self.latency_max_ns))
    }
}

/// Latencies: from the time at which a request was due to the end of its answer. Quantiles are of
/// all due requests; one that falls among those without an answer is unknown.
#[derive(Clone, Debug, Serialize)]
pub struct HttpLatency {
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// Mean of the answers only.
    pub answered_mean_ns: Option<u64>,
    pub answered_max_ns: Option<u64>,
    /// Shortest and longest latency of a class, and number of answers in it; none is wider than 1.6
    /// %.
    pub classes: Vec<[i64; 3]>,
}

/// Result of a load. `due` is the sum of `answered`, `unfinished`, `unsent` and all errors except
/// `status`.
#[derive(Clone, Debug, Serialize)]
pub struct Answered {
    /// open or closed.
    pub mode: &'static str,
    /// The requested rate.
    pub rate_per_s: Option<f64>,
    /// Largest number of connections at a time.
    pub connections: usize,
    /// Number of threads of the client.
    pub threads: usize,
    /// Whether connections were reused.
    pub keep_alive: bool,
    /// Seed of the random times.
    pub seed: u64,
    /// Whether the load was interrupted.
    pub interrupted: bool,
    /// Start, since the Unix epoch [ns].
    pub started_ns: i64,
    /// How long requests were made [ns].
    pub time_ns: u64,
    /// Time until the last answer came, or was given up [ns].
    pub elapsed_ns: u64,
    /// Number of due requests.
    pub due: u64,
    /// Number of requests that got a connection; one that is sent again counts once.
    pub sent: u64,
    /// Number of complete answers of any status.
    pub answered: u64,
    /// Number of answers after the last request was due.
    pub late: u64,
    /// Number of requests that were sent, and given up when the load was interrupted.
    pub unfinished: u64,
    /// Number of requests that were never sent: no connection was free before their timeout, or
    /// before the load was interrupted.
    pub unsent: u64,
    /// Number of requests that had to wait for a connection.
    pub queued: u64,
    /// Total wait of requests for a connection [ns]; it is part of their latency.
    pub queue_ns: u64,
    /// Due requests per second.
    pub offered_per_s: f64,
    /// Answers in time per second.
    pub achieved_per_s: f64,
    /// Total size of the contents of complete answers [B].
    pub content_bytes: u64,
    /// Number of bytes received.
    pub received_bytes: u64,
    pub errors: Errors,
    /// Number of answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// Sums of the requested header fields.
    pub sums: BTreeMap<String, Sum>,
    /// Latencies of answers.
    pub latency: HttpLatency,
    /// Answers by address.
    pub urls: Vec<OfUrl>,
    /// Number of answers in each second from the start on.
    pub answered_by_second: Vec<u64>,
    /// Number of connections that were opened.
    pub opened: u64,
    /// Number of requests that were sent again, because the server had closed a connection that was
    /// to be reused.
    pub reopened: u64,
    /// Number of requests that this client started more than 1 ms after they were due, because it
    /// had no CPU.
    pub client_late: u64,
    /// Largest delay of those [ns].
    pub client_late_max_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_without_an_answer_are_slower_than_all_others() {
        let mut counts = Counts::new(1, 0);
        counts.due = 100;
        (1..=95).for_each(|ms| counts.answer(0, &Response::default(), ms * 1_000_000, 0));
        let classes = classes(&counts.latencies);
        let ms = |part| counts.quantile(&classes, part).map(|ns| ns / 1_000_000);
        assert_eq!((ms(0.5), ms(0.9), ms(0.99)), (Some(50), Some(90), None));
    }
}
