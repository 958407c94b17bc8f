//! How batches that a collector received come into the lake exactly once.
//!
//! - A batch that was *never sent before* waits in memory until the next landing, and is answered
//!   when it is in the lake. If that takes longer than [`Landing::limit`], it is not written any
//!   more.
//! - A batch that *was sent before* may be on its way into the lake through another collector, or
//!   through this one. It is made durable in `_pending` (`pending`), and answered. An agent that
//!   writes to the lake itself treats such batches of its own in the same way.
//!
//! A collector that is killed leaves a batch either in the lake or not. The agent sends it again,
//! and it takes the second way.
//!
//! What it costs to be durable does not depend on what clients send: all that has arrived is
//! written to `_pending` in one file, and a landing writes to a limited number of folders; batches
//! for others take the second way, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::{Duration, Instant},
};

use crate::{
    error::AgentError,
    lake::{Lake, Partition, by_partition},
    line::Line,
    pending::Pending,
    room::{Place, Room},
};

/// Number of waiting rows at which batches land before their time.
const MOST_ROWS: u64 = 500_000;
/// Days and clusters that one landing writes to. Batches are of today, few of yesterday.
pub(crate) const MOST_PARTITIONS: usize = 16;
/// How long batches are collected before they are written to `_pending` in one file.
const GATHERING: Duration = Duration::from_millis(50);

/// Batches whose sender waits for an answer.
pub(crate) struct Received {
    pub(crate) lines: Vec<Line>,
    pub(crate) was_sent: bool,
    /// The memory that they take.
    pub(crate) place: Option<Place>,
    /// Receives, for each of them, whether it is durable.
    pub(crate) answer: Box<dyn FnOnce(Vec<bool>) + Send>,
}

/// Landing intervals.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    /// Interval between landings.
    pub every: Duration,
    /// How long a batch may take from its arrival into the lake.
    pub limit: Duration,
}

/// Batches that wait for the same step.
#[derive(Default)]
struct Waiting {
    all: Vec<Received>,
    since: Option<Instant>,
    rows: u64,
}

impl Waiting {
    fn push(&mut self, one: Received) {
        self.rows += one.lines.iter().map(|line| line.rows).sum::<u64>();
        self.since.get_or_insert_with(Instant::now);
        self.all.push(one);
    }

    fn take(&mut self) -> Vec<Received> {
        (self.since, self.rows) = (None, 0);
        std::mem::take(&mut self.all)
    }

    /// How long the first of them has to wait yet, if there is one.
    fn left(&self, time: Duration) -> Option<Duration> {
        self.since.map(|since| time.saturating_sub(since.elapsed()))
    }
}

/// Brings batches into the lake until no more are sent.
pub(crate) struct Lander {
    lake: Lake,
    times: Landing,
    /// Memory that waiting batches take.
    room: Room,
    fresh: Waiting,
    sent_before: Waiting,
    pending: Pending,
}

impl Lander {
    /// `set_aside`: counts what is pending and cannot be read.
    ///
    /// # Errors
    /// [`AgentError`]: the lake cannot be written.
    pub(crate) fn new(lake: Lake, times: Landing, room: Room, set_aside: Arc<AtomicU64>) -> Result<Lander, AgentError> {
        Pending::state_limit(&lake, times.limit)?;
        let pending = Pending::new(set_aside);
        Ok(Lander { lake, times, room, fresh: Waiting::default(), sent_before: Waiting::default(), pending })
    }

    /// Run until all senders are gone, then land what still waits.
    pub(crate) fn run(mut self, received: &Receiver<Received>, report: &dyn Fn(AgentError)) {
        let mut settled = Instant::now();
        self.lake.remove_unfinished(self.times.limit.max(Duration::from_secs(3600)));
        loop {
            match received.recv_timeout(self.wait(settled)) {
                Ok(one) => self.receive(one),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // All that has arrived meanwhile shares the next step.
            while !self.is_due() {
                let Ok(one) = received.try_recv() else { break };
                self.receive(one);
            }
            self.step(report);
            if settled.elapsed() >= self.times.every {
                self.settle(report);
                settled = Instant::now();
            }
        }
        self.pend(report);
        self.land(report);
    }

    fn wait(&self, settled: Instant) -> Duration {
        let until = [self.sent_before.left(GATHERING), self.fresh.left(self.times.every)];
        let settling = self.times.every.saturating_sub(settled.elapsed());
        until.into_iter().flatten().fold(settling, Duration::min)
    }

    fn receive(&mut self, one: Received) {
        if one.was_sent { self.sent_before.push(one) } else { self.fresh.push(one) }
    }

    fn is_due(&self) -> bool {
        let is_full = self.fresh.rows >= MOST_ROWS || (self.fresh.since.is_some() && self.room.is_tight());
        is_full || self.fresh.left(self.times.every).is_some_and(|left| left.is_zero())
    }

    fn step(&mut self, report: &dyn Fn(AgentError)) {
        if self.sent_before.left(GATHERING).is_some_and(|left| left.is_zero()) {
            self.pend(report);
        }
        if self.is_due() {
            self.land(report);
        }
    }

    /// Make batches durable, in one file.
    fn pend(&mut self, report: &dyn Fn(AgentError)) {
        let waiting = self.sent_before.take();
        if waiting.is_empty() {
            return;
        }
        let lines: Vec<&Line> = waiting.iter().flat_map(|one| &one.lines).collect();
        let kept = self.pending.add(&self.lake, &lines);
        for one in waiting {
            let is_durable = vec![kept.is_ok(); one.lines.len()];
            (one.answer)(is_durable);
        }
        kept.unwrap_or_else(report);
    }

    /// Write what was never sent before. Each batch is answered for itself: one whose folder cannot
    /// be written keeps no other from landing.
    fn land(&mut self, report: &dyn Fn(AgentError)) {
        let since = self.fresh.since.unwrap_or_else(Instant::now);
        let limit = self.times.limit;
        let waiting = self.fresh.take();
        let all = by_partition(waiting.iter().flat_map(|one| &one.lines));
        let later = self.pend_rest(&all, report);
        let mut landed: BTreeMap<Partition, bool> = BTreeMap::new();
        for (partition, lines) in &all {
            let is_durable = later.get(partition).copied().unwrap_or_else(|| {
                let written = self.lake.land(partition, lines, &|| since.elapsed() < limit);
                let is_durable = written.is_ok();
                written.unwrap_or_else(report);
                is_durable
            });
            landed.insert(partition.clone(), is_durable);
        }
        drop(all);
        for Received { lines, answer, place, .. } in waiting {
            let is_durable = |line: &Line| landed.get(&Partition::of(line)).copied().unwrap_or(false);
            answer(lines.iter().map(is_durable).collect());
            drop((lines, place));
        }
    }

    /// Makes those durable that are for more folders than one landing writes to: the ones with the
    /// fewest batches. Returns whether they are.
    fn pend_rest(&mut self, all: &BTreeMap<Partition, Vec<&Line>>, report: &dyn Fn(AgentError)) -> BTreeMap<Partition, bool> {
        if all.len() <= MOST_PARTITIONS {
            return BTreeMap::new();
        }
        let mut by_size: Vec<(&Partition, &Vec<&Line>)> = all.iter().collect();
        by_size.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.len()));
        let rest: Vec<_> = by_size.into_iter().skip(MOST_PARTITIONS).collect();
        let lines: Vec<&Line> = rest.iter().flat_map(|(_, lines)| lines.iter().copied()).collect();
        let kept = self.pending.add(&self.lake, &lines);
        let later = rest.into_iter().map(|(partition, _)| (partition.clone(), kept.is_ok())).collect();
        kept.unwrap_or_else(report);
        later
    }

    /// Write what is pending for long enough, for at most half of the time.
    fn settle(&mut self, report: &dyn Fn(AgentError)) {
        let until = Instant::now() + self.times.every / 2;
        self.pending.settle(&mut self.lake, until, report);
    }
}

/// Batches of which no two are the same.
pub(crate) fn distinct<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Vec<&'l Line> {
    let mut seen = BTreeSet::new();
    lines.into_iter().filter(|line| seen.insert(&line.id)).collect()
}

/// Count what a landing could not do.
pub(crate) fn counting(failed: &AtomicU64, report: impl Fn(AgentError)) -> impl Fn(AgentError) {
    move |error| {
        failed.fetch_add(1, Ordering::Relaxed);
        report(error);
    }
}
