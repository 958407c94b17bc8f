//! Activity of the whole machine during a run, as far as it disturbs the run.

use std::{fs, path::PathBuf};

use serde::Serialize;
use sysdock_table::{Fact, facts::measure as facts};

use crate::missing::{Missing, unreadable};

/// Activity of the machine during a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MachineUse {
    /// Time in which CPUs of this virtual machine were needed but not available, of all CPUs
    /// together [ns], in ticks of the kernel (10 ms).
    pub steal_ns: Option<u64>,
    /// CPU time of the whole machine, minus that of the run [ns]. /proc/stat counts in ticks of 10
    /// ms for each CPU, so a difference of some ticks means nothing; 0 if the run has more than the
    /// ticks.
    pub foreign_cpu_ns: Option<u64>,
    /// Number of pages that were swapped in or out.
    pub swapped_pages: Option<u64>,
    /// Time in which at least one thread of the machine waited for a CPU [ns].
    pub pressure_cpu_ns: Option<u64>,
    /// Time in which at least one thread waited for I/O [ns].
    pub pressure_io_ns: Option<u64>,
    /// Time in which at least one thread waited for memory [ns].
    pub pressure_memory_ns: Option<u64>,
    /// Time in which the CPU limit of a control group throttled threads [ns]: the sum of our group
    /// and its ancestors.
    pub throttled_ns: Option<u64>,
}

/// Counters at one moment: each value, or why it is missing.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    steal_ns: Result<u64, Fact>,
    cpu_ns: Result<u64, Fact>,
    swapped_pages: Result<u64, Fact>,
    pressure_ns: [Result<u64, Fact>; 3],
    throttled_ns: Result<u64, Fact>,
}

const RESOURCES: [&str; 3] = ["cpu", "io", "memory"];

impl Reading {
    pub(crate) fn now() -> Self {
        let ticks = cpu_ticks();
        let column = |number: usize| match &ticks {
            Ok(ticks) => ticks.get(number).copied().ok_or_else(|| facts::no_column("/proc/stat")),
            Err(error) => Err(error.clone()),
        };
        // user, nice, system, irq, softirq; user includes the time of guests.
        let busy = [0, 1, 2, 5, 6].into_iter().map(column).sum::<Result<u64, Fact>>();
        Reading {
            steal_ns: column(7).map(|ticks| ticks * ns_per_tick()),
            cpu_ns: busy.map(|ticks| ticks * ns_per_tick()),
            swapped_pages: swapped_pages(),
            pressure_ns: RESOURCES.map(pressure_ns),
            throttled_ns: throttled_ns(),
        }
    }

    /// Activity from `self` to `after`, while the run used this much CPU time.
    pub(crate) fn until(&self, after: &Reading, run_cpu_ns: Option<u64>, missing: &mut Missing) -> MachineUse {
        let between = |before: &Result<u64, Fact>, after: &Result<u64, Fact>| match (before, after) {
            (Ok(before), Ok(after)) => Ok(after.saturating_sub(*before)),
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
        };
        let mut field = |name: &str, value: Result<u64, Fact>| missing.known(format!("machine.{name}"), value);
        let foreign = between(&self.cpu_ns, &after.cpu_ns).and_then(|all| match run_cpu_ns {
            Some(run) => Ok(all.saturating_sub(run)),
            None => Err(facts::run_cpu_unknown()),
        });
        let [cpu, io, memory] = std::array::from_fn(|n| between(&self.pressure_ns[n], &after.pressure_ns[n]));
        MachineUse {
            steal_ns: field("steal_ns", between(&self.steal_ns, &after.steal_ns)),
            foreign_cpu_ns: field("foreign_cpu_ns", foreign),
            swapped_pages: field("swapped_pages", between(&self.swapped_pages, &after.swapped_pages)),
            pressure_cpu_ns: field("pressure_cpu_ns", cpu),
            pressure_io_ns: field("pressure_io_ns", io),
            pressure_memory_ns: field("pressure_memory_ns", memory),
            throttled_ns: field("throttled_ns", between(&self.throttled_ns, &after.throttled_ns)),
        }
    }
}

fn read(path: &str) -> Result<String, Fact> {
    fs::read_to_string(path).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => facts::pressure_off(path),
        _ => unreadable(path, error),
    })
}

/// Columns of the first line of /proc/stat, for all CPUs together.
fn cpu_ticks() -> Result<Vec<u64>, Fact> {
    let text = read("/proc/stat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).ok_or_else(facts::no_sum_of_cpus)?;
    Ok(line.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect())
}

fn ns_per_tick() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

fn swapped_pages() -> Result<u64, Fact> {
    let text = read("/proc/vmstat")?;
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    match (number("pswpin "), number("pswpout ")) {
        (Some(pages_in), Some(pages_out)) => Ok(pages_in + pages_out),
        _ => Err(facts::no_swap()),
    }
}

fn pressure_ns(resource: &str) -> Result<u64, Fact> {
    let path = format!("/proc/pressure/{resource}");
    let text = read(&path)?;
    let some = text.lines().find(|line| line.starts_with("some "));
    let total = some.and_then(|line| line.rsplit_once("total=")?.1.trim().parse::<u64>().ok());
    total.map(|us| us * 1000).ok_or_else(|| facts::no_total(path))
}

/// Throttled time of our control group and its ancestors, of both versions. A group without a limit
/// has a zero, or no line.
fn throttled_ns() -> Result<u64, Fact> {
    let text = read("/proc/self/cgroup")?;
    let mut sum = None;
    for folder in groups_with_cpu(&text) {
        let Ok(text) = fs::read_to_string(folder.join("cpu.stat")) else { continue };
        let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let held = number("throttled_time ").or_else(|| number("throttled_usec ").map(|us| us * 1000));
        *sum.get_or_insert(0) += held.unwrap_or(0);
    }
    sum.ok_or_else(facts::no_group_counters)
}

/// Folders of our groups that may have a CPU limit, from /proc/self/cgroup.
fn groups_with_cpu(text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { continue };
        let roots: &[&str] = match controllers {
            "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
            _ if controllers.split(',').any(|name| name == "cpu") => &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"],
            _ => continue,
        };
        // Some systems have both names for one hierarchy; the folder is the same.
        let Some(root) = roots.iter().map(PathBuf::from).find(|root| root.join("cgroup.procs").exists()) else { continue };
        let ours = root.join(group.trim_start_matches('/'));
        found.extend(ours.ancestors().take_while(|above| above.starts_with(&root)).map(PathBuf::from));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_happens_between_a_reading_and_itself() {
        let (reading, mut missing) = (Reading::now(), Missing::default());
        let used = reading.until(&reading, Some(0), &mut missing);
        assert_eq!((used.foreign_cpu_ns, used.steal_ns, used.swapped_pages), (Some(0), Some(0), Some(0)));
        let unknown = reading.until(&reading, None, &mut missing);
        assert_eq!(unknown.foreign_cpu_ns, None);
        assert_eq!(missing.0["machine.foreign_cpu_ns"], facts::run_cpu_unknown());
    }

    #[test]
    fn cpu_time_of_the_machine_contains_what_we_use() {
        let before = Reading::now();
        let began = crate::clock::own_cpu_ns();
        while crate::clock::own_cpu_ns() - began < 200_000_000 {}
        let used = before.until(&Reading::now(), Some(0), &mut Missing::default());
        // Ticks of 10 ms, in user and system.
        assert!(used.foreign_cpu_ns.expect("/proc/stat is there") >= 150_000_000, "{used:?}");
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let dark = Reading { pressure_ns: RESOURCES.map(|_| Err(facts::pressure_off("/proc/pressure"))), ..Reading::now() };
        let mut missing = Missing::default();
        assert_eq!(dark.until(&Reading::now(), Some(0), &mut missing).pressure_io_ns, None);
        assert_eq!(missing.0["machine.pressure_io_ns"], facts::pressure_off("/proc/pressure"));
    }
}
