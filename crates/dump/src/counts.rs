//! Numbers that a kernel keeps twice, or that can be counted. If they differ, the kernel or the
//! dump is damaged, or the counted objects were being changed.

use crate::{error::Fault, kernel::Kernel, log::Log, tasks::Tasks};

/// A number, and the number that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// What was counted.
    pub name: &'static str,
    /// The counted number.
    pub found: Option<u64>,
    /// The expected number.
    pub expected: Option<u64>,
    /// The source of the expected number.
    pub against: &'static str,
    /// Why one of them is missing.
    pub fault: Option<Fault>,
}

impl Count {
    fn of(name: &'static str, against: &'static str, found: Result<u64, Fault>, expected: Result<u64, Fault>) -> Count {
        let fault = found.as_ref().err().or(expected.as_ref().err()).copied();
        Count { name, found: found.ok(), expected: expected.ok(), against, fault }
    }

    /// The value of `dump_counts.status`.
    #[must_use]
    pub fn status(&self) -> &'static str {
        match self.fault {
            Some(fault) => fault.name(),
            None if self.found == self.expected => "ok",
            None => "differs",
        }
    }
}

impl Kernel {
    /// Compare all pairs of numbers. If a kernel lacks one of them, the comparison is left out.
    #[must_use]
    pub fn counts(&self, tasks: &Tasks, log: Option<&Log>) -> Vec<Count> {
        let list_ended = tasks.broken.first().map_or(Ok(()), |(_, fault)| Err(*fault));
        // The first task in the list is the idle task, which no count includes.
        let of_users = || tasks.tasks.iter().skip(1);
        let all = list_ended.map(|()| of_users().count() as u64);
        let leaders = list_ended.map(|()| of_users().filter(|task| task.pid == task.tgid).count() as u64);
        let mut counts = vec![
            Count::of("tasks in the list", "nr_threads", all, self.variable("nr_threads", 4)),
            Count::of("processes in the list", "process_counts", leaders, self.per_cpu_sum("process_counts")),
            Count::of("tasks in the tree of numbers", "tasks in the list", self.numbered_tasks(), all),
            Count::of(
                "tasks that are ready, by task",
                "nr_running of the run queues",
                self.ready_tasks(tasks),
                self.ready_by_queue(),
            ),
        ];
        let (partial, expected) =
            self.partial_slabs().map_or_else(|fault| (Err(fault), Err(fault)), |(one, other)| (Ok(one), Ok(other)));
        counts.push(Count::of("slabs in the lists of their caches", "nr_partial", partial, expected));
        if let Some(log) = log
            && let (Some(first), Some(last)) = (log.records.first(), log.records.last())
        {
            let numbers = last.sequence.wrapping_sub(first.sequence).wrapping_add(1);
            counts.push(Count::of("records of the log", "their numbers", Ok(log.records.len() as u64), Ok(numbers)));
        }
        counts.retain(|count| count.fault != Some(Fault::NoType));
        counts
    }

    fn variable(&self, name: &str, bytes: usize) -> Result<u64, Fault> {
        self.memory.number(self.symbol(name)?, bytes)
    }

    fn per_cpu_sum(&self, name: &str) -> Result<u64, Fault> {
        let place = self.symbol(name)?;
        (0..self.cpus()).try_fold(0_u64, |sum, cpu| Ok(sum.wrapping_add(self.memory.u64(self.per_cpu(place, cpu)?)?)))
    }

    fn ready_by_queue(&self) -> Result<u64, Fault> {
        let (queues, ready) = (self.symbol("runqueues")?, self.field("rq", "nr_running")?);
        (0..self.cpus()).try_fold(0, |sum, cpu| Ok(sum + self.number(self.per_cpu(queues, cpu)?, ready)?))
    }

    fn ready_tasks(&self, tasks: &Tasks) -> Result<u64, Fault> {
        const QUEUED: u64 = 1;
        let queued = self.field("task_struct", "on_rq")?;
        // Since 6.12 a sleeping task may stay in its queue for a while, and is not counted there.
        let stays = self.field("task_struct", "se.sched_delayed").ok();
        tasks.tasks.iter().skip(1).try_fold(0, |sum, task| {
            let stays = stays.map_or(Ok(0), |stays| self.number(task.address, stays))?;
            Ok(sum + u64::from(self.number(task.address, queued)? == QUEUED && stays == 0))
        })
    }

    /// Number of tasks in the tree of process numbers.
    fn numbered_tasks(&self) -> Result<u64, Fault> {
        let tree = self.symbol("init_pid_ns")?.wrapping_add(self.field("pid_namespace", "idr.idr_rt")?.offset);
        let tasks = self.field("pid", "tasks")?;
        let (entries, fault) = self.xarray(tree)?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        // A number may belong to a group or session whose first process has ended.
        entries.iter().try_fold(0, |sum, (_, pid)| Ok(sum + u64::from(self.memory.u64(pid.wrapping_add(tasks.offset))? != 0)))
    }

    /// Number of slabs in the lists of caches, and number by the caches' own counts.
    fn partial_slabs(&self) -> Result<(u64, u64), Fault> {
        const MOST_NODES: usize = 1024;
        let caches = self.list(self.symbol("slab_caches")?, self.field("kmem_cache", "list")?.offset);
        let nodes = self.field("kmem_cache", "node")?;
        let (count, list) = (self.field("kmem_cache_node", "nr_partial")?, self.field("kmem_cache_node", "partial")?);
        let (mut found, mut expected) = (0, 0_u64);
        for cache in caches.entries {
            for node in 0..(nodes.size / 8).min(MOST_NODES) {
                let node = self.memory.u64(cache.wrapping_add(nodes.offset + 8 * node as u64))?;
                if node == 0 {
                    break;
                }
                let walk = self.list(node.wrapping_add(list.offset), 0);
                if let Some(fault) = walk.fault {
                    return Err(fault);
                }
                found += walk.entries.len() as u64;
                expected = expected.wrapping_add(self.number(node, count)?);
            }
        }
        caches.fault.map_or(Ok((found, expected)), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_not_said_to_differ() {
        let status = |found, expected| Count::of("a", "b", found, expected).status();
        assert_eq!(status(Ok(3), Ok(3)), "ok");
        assert_eq!(status(Ok(3), Ok(4)), "differs");
        assert_eq!(status(Err(Fault::Cycle), Ok(4)), "cycle");
        assert_eq!(status(Ok(3), Err(Fault::NotInDump)), "not in the dump");
    }
}
