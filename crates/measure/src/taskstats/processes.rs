//! Determines which processes belong to the run.
//!
//! A record names the parent that a process had when it ended. That parent still runs, or ended
//! later, because a process whose parent ends gets another one: us, as we adopt orphans, and have
//! no children but those of the run. So a process belongs to the run if its chain of parents leads
//! to us: through records that came after its own, then through /proc. Only if a parent ended at
//! the same moment, its record may have come before.

use std::collections::{HashMap, HashSet};

use super::record::{Record, Sums};
use crate::tree;

/// Usage of all ended tasks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) sums: Sums,
    pub(crate) tasks: u64,
    /// `None`: the kernel does not distinguish processes from threads.
    pub(crate) processes: Option<u64>,
    /// The first task of the command.
    pub(crate) command: Option<Sums>,
}

/// A process with at least one record.
#[derive(Clone, Copy, Debug, Default)]
struct Process {
    parent: u32,
    sums: Sums,
    /// Sums of its first task.
    first: Sums,
    tasks: u64,
}

/// Ended processes, and those of them that belong to the run.
#[derive(Debug)]
pub(crate) struct Processes {
    ours: u32,
    /// Running processes of which threads have ended.
    open: HashMap<u32, Process>,
    /// Ended processes, in that order, that are not decided yet.
    ended: Vec<(u32, Process)>,
    /// Ended processes of the run.
    members: HashSet<u32>,
    /// First tasks of our children: the command is one of them.
    children: HashMap<u32, Sums>,
    totals: Totals,
    knows_process: bool,
}

impl Processes {
    /// Processes below this one belong to the run.
    pub(crate) fn new(ours: u32) -> Self {
        Processes {
            ours,
            open: HashMap::new(),
            ended: Vec::new(),
            members: HashSet::new(),
            children: HashMap::new(),
            totals: Totals { processes: Some(0), ..Totals::default() },
            knows_process: true,
        }
    }

    pub(crate) fn add(&mut self, record: &Record) {
        self.knows_process &= record.knows_process;
        let process = self.open.entry(record.process).or_default();
        process.parent = record.parent;
        process.sums.add(&record.sums);
        process.tasks += 1;
        if record.task == record.process {
            process.first = record.sums;
        }
        if record.is_last
            && let Some(process) = self.open.remove(&record.process)
        {
            self.ended.push((record.process, process));
        }
    }

    /// Decide which processes belong to the run, while /proc contains the parents of running ones.
    /// At the end, undecided processes do not belong to it.
    pub(crate) fn resolve(&mut self, parent_of: impl Fn(u32) -> Option<u32>, at_the_end: bool) {
        let ended = std::mem::take(&mut self.ended);
        let mut place_of: HashMap<u32, usize> = HashMap::new();
        let mut decided: Vec<Option<bool>> = vec![None; ended.len()];
        // From the last: parents come after their children.
        for (place, (pid, process)) in ended.iter().enumerate().rev() {
            let of_parent = match place_of.get(&process.parent) {
                _ if process.parent == self.ours => Some(true),
                Some(place) => decided[*place],
                None => self.is_of_living(process.parent, &parent_of),
            };
            decided[place] = of_parent;
            place_of.insert(*pid, place);
        }
        for (place, (pid, process)) in ended.into_iter().enumerate() {
            let before = || self.members.contains(&process.parent).then_some(true);
            match decided[place].or_else(before) {
                Some(true) => {
                    self.members.insert(pid);
                    if process.parent == self.ours {
                        self.children.insert(pid, process.first);
                    }
                    self.count(&process, true);
                }
                None if !at_the_end => self.ended.push((pid, process)),
                _ => {}
            }
        }
        if at_the_end {
            for (pid, process) in std::mem::take(&mut self.open) {
                if self.is_of_living(pid, &parent_of) == Some(true) {
                    self.count(&process, false);
                }
            }
        }
    }

    /// Whether a running process is below us.
    fn is_of_living(&self, pid: u32, parent_of: &impl Fn(u32) -> Option<u32>) -> Option<bool> {
        match pid {
            0 => Some(false),
            _ => tree::is_below(pid, self.ours, parent_of),
        }
    }

    fn count(&mut self, process: &Process, has_ended: bool) {
        self.totals.sums.add(&process.sums);
        self.totals.tasks += process.tasks;
        self.totals.processes = self.totals.processes.map(|count| count + u64::from(has_ended));
    }

    pub(crate) fn totals(&self, command: u32) -> Totals {
        let processes = self.totals.processes.filter(|_| self.knows_process);
        Totals { processes, command: self.children.get(&command).copied(), ..self.totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: u32 = 10;

    fn end(task: u32, process: u32, parent: u32, is_last: bool) -> Record {
        let sums = Sums { cpu_ns: 1, max_rss_bytes: u64::from(task), ..Sums::default() };
        Record { task, process, parent, is_last, knows_process: true, sums }
    }

    /// Number of processes and tasks of the run; `living` has parents of running processes.
    fn counted(records: &[Record], living: &[(u32, u32)]) -> (u64, u64) {
        let mut processes = Processes::new(OURS);
        records.iter().for_each(|record| processes.add(record));
        let living: HashMap<u32, u32> = living.iter().copied().collect();
        processes.resolve(|pid| living.get(&pid).copied(), true);
        let totals = processes.totals(20);
        assert_eq!(totals.sums.cpu_ns, totals.tasks);
        (totals.processes.unwrap(), totals.tasks)
    }

    #[test]
    fn a_tree_is_counted_and_strangers_are_not() {
        let records =
            [end(21, 21, 20, true), end(30, 30, 1, true), end(22, 22, 20, true), end(31, 31, 30, true), end(20, 20, OURS, true)];
        assert_eq!(counted(&records, &[(1, 0)]), (3, 3));
    }

    #[test]
    fn threads_are_tasks_of_one_process() {
        let records = [end(21, 20, OURS, false), end(20, 20, OURS, false), end(22, 20, OURS, true)];
        assert_eq!(counted(&records, &[]), (1, 3));
    }

    #[test]
    fn orphans_are_children_of_ours() {
        assert_eq!(counted(&[end(20, 20, OURS, true), end(25, 25, OURS, true)], &[]), (2, 2));
    }

    #[test]
    fn an_id_that_is_used_again_is_another_process() {
        // 21 ends below 20 of the run; later an unrelated process gets the id 20.
        let records = [end(21, 21, 20, true), end(20, 20, OURS, true), end(40, 40, 20, true), end(20, 20, 1, true)];
        assert_eq!(counted(&records, &[(1, 0)]), (2, 2));
    }

    #[test]
    fn a_parent_that_ended_at_the_same_moment_may_come_first() {
        assert_eq!(counted(&[end(20, 20, OURS, true), end(21, 21, 20, true)], &[]), (2, 2));
    }

    #[test]
    fn what_lives_on_leads_to_us_by_proc() {
        let living = [(20, OURS), (30, 1), (1, 0)];
        assert_eq!(counted(&[end(21, 21, 20, true), end(31, 31, 30, true), end(29, 20, OURS, false)], &living), (1, 2));
    }

    #[test]
    fn what_cannot_be_decided_waits_for_the_next_time() {
        let mut processes = Processes::new(OURS);
        processes.add(&end(21, 21, 20, true));
        processes.resolve(|_| None, false);
        assert_eq!(processes.totals(20).tasks, 0);
        processes.add(&end(20, 20, OURS, true));
        processes.resolve(|_| None, true);
        assert_eq!(processes.totals(20).tasks, 2);
    }

    #[test]
    fn a_kernel_that_does_not_tell_processes_gives_no_number_of_them() {
        let mut processes = Processes::new(OURS);
        processes.add(&Record { knows_process: false, ..end(20, 20, OURS, true) });
        processes.resolve(|_| None, true);
        assert_eq!((processes.totals(20).tasks, processes.totals(20).processes), (1, None));
    }
}
