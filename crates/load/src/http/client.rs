//! One thread with many connections, which never waits for a single one.
//!
//! A request is *due*, waits in the queue if no connection is free, and is then in progress on a
//! connection. In an open loop, the times at which requests are due do not depend on other
//! requests; in a closed loop, one is due on each connection when the last one was answered.

use std::{
    collections::VecDeque,
    io,
    mem::{self, MaybeUninit},
    os::fd::OwnedFd,
};

use rustix::{
    event::epoll::{self, CreateFlags, Event, EventData, EventFlags},
    io::Errno,
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime},
};
use sysdock_table::Cancel;

use super::{
    HttpLoad,
    answered::Counts,
    arrivals::{Arrivals, Random},
    connection::{Connection, Due, Outcome, State},
    url::Target,
};
use crate::clock::{now_ns, timespec};

/// Interval between scans for timed-out requests.
const SCAN_NS: u64 = 20_000_000;
/// A client that is later than this has no CPU.
const LATE_NS: u64 = 1_000_000;
/// Number of events that are fetched at a time.
const EVENTS: usize = 256;
/// Id of the timer among those of connections.
const TIMER: u64 = u64::MAX;

/// One thread of a load.
pub(super) struct Client<'a> {
    targets: &'a [Target],
    keep_alive: bool,
    timeout_ns: u64,
    started_ns: u64,
    end_ns: u64,
    random: Random,
    /// `None`: closed loop.
    arrivals: Option<Arrivals>,
    connections: Vec<Connection>,
    /// Connections that are open and idle; those that are closed follow.
    idle: Vec<usize>,
    closed: Vec<usize>,
    queue: VecDeque<Due>,
    /// In a closed loop: number of connections that had an error, and pause.
    resting: usize,
    busy: usize,
    next_scan_ns: u64,
    epoll: OwnedFd,
    timer: OwnedFd,
    buffer: Vec<u8>,
    counts: Counts,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        load: &HttpLoad,
        targets: &'a [Target],
        number: usize,
        connections: usize,
        started_ns: u64,
    ) -> io::Result<Self> {
        let mut random = Random::new(load.seed, number);
        let arrivals = load.rate.map(|rate| Arrivals::new(rate / load.threads as f64, &mut random));
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4);
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Client {
            targets,
            keep_alive: load.keep_alive,
            timeout_ns: ns(load.timeout),
            started_ns,
            end_ns: started_ns + ns(load.time),
            random,
            arrivals,
            connections: (0..connections).map(|_| Connection::new(&load.wanted)).collect(),
            idle: Vec::new(),
            closed: (0..connections).rev().collect(),
            queue: VecDeque::new(),
            resting: 0,
            busy: 0,
            next_scan_ns: started_ns + SCAN_NS,
            epoll,
            timer,
            buffer: vec![0; 1 << 16],
            counts: Counts::new(targets.len(), load.wanted.sums.len()),
        })
    }

    /// Make the load of this thread.
    pub(super) fn run(mut self, cancel: &Cancel) -> io::Result<Counts> {
        if self.arrivals.is_none() {
            (0..self.connections.len()).for_each(|_| self.due(self.started_ns));
        }
        loop {
            let now = now_ns();
            self.arrive(now);
            self.dispatch(now);
            if cancel.requested() {
                self.give_up();
                break;
            }
            if now >= self.end_ns && self.busy == 0 && self.queue.is_empty() {
                break;
            }
            if now >= self.next_scan_ns {
                self.scan(now);
                // Connections that became free take waiting requests.
                continue;
            }
            self.wait(now)?;
        }
        Ok(self.counts)
    }

    fn due(&mut self, at_ns: u64) {
        let target = if self.targets.len() > 1 { self.random.below(self.targets.len()) } else { 0 };
        self.counts.due += 1;
        self.queue.push_back(Due { at_ns, target });
    }

    /// Process all requests that are due by now.
    fn arrive(&mut self, now: u64) {
        while let Some(arrivals) = &mut self.arrivals {
            let at_ns = self.started_ns + arrivals.next_ns();
            if at_ns > now || at_ns >= self.end_ns {
                return;
            }
            arrivals.advance(&mut self.random);
            let lag = now - at_ns;
            self.counts.lags += u64::from(lag > LATE_NS);
            self.counts.lag_max_ns = self.counts.lag_max_ns.max(lag);
            self.due(at_ns);
            // A request without a connection waits; it is counted once, here.
            if self.idle.len() + self.closed.len() < self.queue.len() {
                self.counts.queued += 1;
            }
        }
    }

    /// Send waiting requests, as far as connections are free.
    fn dispatch(&mut self, now: u64) {
        while let Some(due) = self.queue.front().copied() {
            let Some(place) = self.free_for(due.target) else { return };
            self.queue.pop_front();
            self.counts.sent += 1;
            self.counts.queue_ns += now.saturating_sub(due.at_ns);
            self.begin(place, due);
        }
    }

    /// A connection that can take a request to this target: one that is open to it, or else one
    /// that is closed.
    fn free_for(&mut self, target: usize) -> Option<usize> {
        let address = self.targets[target].address;
        let fits = |place: &usize| self.connections[*place].address == Some(address);
        if let Some(found) = self.idle.iter().rposition(fits) {
            return Some(self.idle.swap_remove(found));
        }
        self.closed.pop().or_else(|| {
            // A connection to another server is closed for it.
            let place = (!self.idle.is_empty()).then(|| self.idle.swap_remove(0))?;
            self.connections[place].close();
            Some(place)
        })
    }

    /// Send a request on a free connection, which is opened if it is closed.
    fn begin(&mut self, place: usize, due: Due) {
        let target = &self.targets[due.target];
        self.busy += 1;
        if self.connections[place].state == State::Closed {
            self.counts.opened += 1;
            let connection = &mut self.connections[place];
            let opened = connection.open(target.address).and_then(|()| {
                let number = number_of(connection, place);
                epoll::add(&self.epoll, connection.descriptor()?, number, EventFlags::IN | EventFlags::OUT)
            });
            if let Err(errno) = opened {
                connection.due = Some(due);
                return self.end(place, Outcome::Failed(errno.raw_os_error()));
            }
        }
        let connection = &mut self.connections[place];
        let mut outcome = connection.begin(due, target);
        if outcome == Outcome::Pending && connection.state == State::Sending {
            // The socket accepted a part of the request.
            let number = number_of(connection, place);
            let watched = connection
                .descriptor()
                .and_then(|socket| epoll::modify(&self.epoll, socket, number, EventFlags::IN | EventFlags::OUT));
            outcome = watched.map_or_else(|errno| Outcome::Failed(errno.raw_os_error()), |()| outcome);
        }
        self.end(place, outcome);
    }

    /// Process the end of a request, if it has ended.
    fn end(&mut self, place: usize, outcome: Outcome) {
        if outcome == Outcome::Pending {
            return;
        }
        let now = now_ns();
        let connection = &mut self.connections[place];
        let Some(due) = connection.due.take() else { return };
        self.busy -= 1;
        let is_gone = matches!(outcome, Outcome::Closed | Outcome::Failed(libc::ECONNRESET | libc::EPIPE));
        let is_repeatable = self.targets[due.target].is_repeatable;
        if is_gone && is_repeatable && connection.was_used && !connection.response.began {
            // The server had closed the connection before it received the request, which goes to a
            // new connection at once.
            connection.close();
            self.counts.reopened += 1;
            return self.begin(place, due);
        }
        match outcome {
            Outcome::Complete => {
                self.counts.in_time += u64::from(now <= self.end_ns);
                let latency_ns = now.saturating_sub(due.at_ns);
                self.counts.answer(due.target, &connection.response, latency_ns, now - self.started_ns);
            }
            Outcome::Malformed => self.counts.errors.malformed += 1,
            Outcome::Closed => self.counts.errors.closed += 1,
            Outcome::Failed(errno) => self.counts.errors.count(errno),
            Outcome::Pending => {}
        }
        let is_complete = outcome == Outcome::Complete;
        if is_complete && self.keep_alive && connection.response.keeps_alive {
            connection.state = State::Idle;
            connection.was_used = true;
            self.idle.push(place);
        } else {
            connection.close();
            self.closed.push(place);
        }
        if self.arrivals.is_none() && now < self.end_ns {
            if is_complete { self.due(now) } else { self.resting += 1 }
        }
    }

    /// End requests whose time is over.
    fn scan(&mut self, now: u64) {
        self.next_scan_ns = now + SCAN_NS;
        let is_over = |due: &Due| now.saturating_sub(due.at_ns) >= self.timeout_ns;
        while self.queue.front().is_some_and(is_over) {
            self.queue.pop_front();
            self.counts.unsent += 1;
        }
        for place in 0..self.connections.len() {
            if self.connections[place].due.as_ref().is_some_and(|due| now.saturating_sub(due.at_ns) >= self.timeout_ns) {
                self.end(place, Outcome::Failed(libc::ETIMEDOUT));
            }
        }
        let rested = if now < self.end_ns { mem::take(&mut self.resting) } else { 0 };
        (0..rested).for_each(|_| self.due(now));
    }

    /// Stop waiting for the remaining requests.
    fn give_up(&mut self) {
        self.counts.interrupted = true;
        self.counts.unsent += self.queue.len() as u64;
        self.counts.unfinished += self.busy as u64;
    }

    /// Wait until something can be done, and do it.
    fn wait(&mut self, now: u64) -> io::Result<()> {
        let next = self.arrivals.as_ref().map_or(u64::MAX, |arrivals| self.started_ns + arrivals.next_ns());
        // After the end, only timeouts remain.
        let next = if now < self.end_ns { next.min(self.end_ns) } else { u64::MAX };
        set_timer(&self.timer, next.max(now + 1).min(self.next_scan_ns));
        let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS];
        let events = match epoll::wait(&self.epoll, &mut room, None) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (number, flags) = (event.data.u64(), event.flags);
            if number != TIMER {
                self.happened(number, flags)?;
            }
        }
        Ok(())
    }

    /// Process an event of a connection.
    fn happened(&mut self, number: u64, events: EventFlags) -> io::Result<()> {
        let place = (number & u64::from(u32::MAX)) as usize;
        let connection = &mut self.connections[place];
        if connection.state == State::Closed || u64::from(connection.generation) != number >> 32 {
            return Ok(());
        }
        if connection.state == State::Idle {
            // No request was sent: the server has closed it, or sends unrequested data.
            connection.close();
            self.idle.retain(|other| *other != place);
            self.closed.push(place);
            return Ok(());
        }
        let Some(due) = connection.due else { return Ok(()) };
        let was_sending = matches!(connection.state, State::Connecting | State::Sending);
        let mut outcome = Outcome::Pending;
        if was_sending && events.intersects(EventFlags::OUT | EventFlags::ERR | EventFlags::HUP) {
            outcome = connection.writable(&self.targets[due.target]);
            if connection.state == State::Waiting {
                epoll::modify(&self.epoll, connection.descriptor()?, EventData::new_u64(number), EventFlags::IN)?;
            }
        }
        let readable = events.intersects(EventFlags::IN | EventFlags::ERR | EventFlags::HUP);
        if outcome == Outcome::Pending && readable && connection.state != State::Connecting {
            outcome = connection.readable(&mut self.buffer, &mut self.counts.received_bytes);
        }
        self.end(place, outcome);
        Ok(())
    }
}

/// The id of a connection among events.
fn number_of(connection: &Connection, place: usize) -> EventData {
    EventData::new_u64(u64::from(connection.generation) << 32 | place as u64)
}

/// Wake up at this time. This replaces an earlier time.
fn set_timer(timer: &OwnedFd, at_ns: u64) {
    let value = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: timespec(at_ns) };
    // It fails only for a time that no clock has.
    let _ = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &value);
}
