//! The kernel's record of each task that ends, and which of them belong to the run.
//!
//! Records come from all CPUs and of all processes into one socket (`netlink`), each a structure
//! that has grown over the years (`record`); a process belongs to the run if it is a descendant of
//! the command (`processes`). The socket is emptied when the run has ended, and before it could be
//! full.

mod netlink;
mod processes;
mod record;

use std::time::{Duration, Instant};

use netlink::{Received, Socket};
use processes::Processes;
pub(crate) use processes::Totals;
use sysdock_table::{Fact, facts::measure as facts};

use crate::tree;

/// Smallest number of records that fit into the socket: a message takes up to 2.3 kB there, and the
/// kernel provides twice the requested size.
const ROOM: usize = netlink::BUFFER * 2 / 2304;
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(10);

/// Listens until the run has ended.
pub(crate) struct TaskStats {
    socket: Socket,
    processes: Processes,
    /// When to empty it next, and how long after the last time that is.
    next: Instant,
    period: Duration,
    /// Why records could not be understood, or were lost.
    trouble: Option<Fact>,
}

impl TaskStats {
    /// Begin to listen. `Err`: why the kernel refuses.
    pub(crate) fn listen() -> Result<Self, Fact> {
        Self::with_buffer(netlink::BUFFER)
    }

    fn with_buffer(bytes: usize) -> Result<Self, Fact> {
        let socket = Socket::open(bytes)?;
        let period = Duration::from_secs(1);
        let processes = Processes::new(std::process::id());
        Ok(TaskStats { socket, processes, next: Instant::now() + period, period, trouble: None })
    }

    /// How long the socket may be left alone.
    pub(crate) fn rest(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Empty the socket if it is time to.
    pub(crate) fn tend(&mut self) {
        if self.rest() > Duration::ZERO {
            return;
        }
        let received = self.drain();
        self.processes.resolve(parent_of, false);
        // At most a quarter of the room should be used at the current rate of ends.
        let wanted = self.period.mul_f64((ROOM / 4) as f64 / received.max(1) as f64);
        self.period = wanted.clamp(SHORTEST, LONGEST);
        self.next = Instant::now() + self.period;
    }

    fn drain(&mut self) -> usize {
        let mut taken = 0;
        loop {
            match self.socket.next() {
                Received::Record(record) => {
                    taken += 1;
                    self.processes.add(&record);
                }
                Received::Nothing => return taken,
                Received::Lost => self.trouble = Some(facts::records_lost()),
                Received::Unknown(why) => self.trouble = Some(why),
            }
        }
    }

    /// The sums of all ended tasks of the run, and of the command's first task.
    pub(crate) fn finish(mut self, command: u32) -> Result<Totals, Fact> {
        self.drain();
        self.processes.resolve(parent_of, true);
        match self.trouble {
            Some(why) => Err(why),
            None => Ok(self.processes.totals(command)),
        }
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    tree::process(pid).map(|process| process.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Runs some programs while a socket of this size listens. `Err`: why it may not listen.
    fn with_programs(bytes: usize, programs: usize) -> Result<Totals, Fact> {
        let records = TaskStats::with_buffer(bytes)?;
        for _ in 0..programs {
            Command::new("true").status().expect("true runs");
        }
        records.finish(0)
    }

    fn may_not_listen(why: &Fact) -> bool {
        [facts::records_not_permitted(), facts::no_records_in_containers(), facts::no_records_kept()].contains(why)
    }

    #[test]
    fn records_of_our_children_come_or_the_reason() {
        match with_programs(netlink::BUFFER, 20) {
            // Other tests in this process have children, too.
            Ok(totals) => assert!(totals.processes >= Some(20) && totals.tasks >= 20, "{totals:?}"),
            Err(why) => assert!(may_not_listen(&why), "{why:?}"),
        }
    }

    #[test]
    fn a_socket_that_was_full_says_that_records_are_lost() {
        match with_programs(1, 200) {
            Ok(totals) => panic!("nothing was lost: {totals:?}"),
            Err(why) => assert!(why == facts::records_lost() || may_not_listen(&why), "{why:?}"),
        }
    }
}
