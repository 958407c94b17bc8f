//! The kernel's sums for ended processes that were waited for.

use std::{fs, io};

use nix::sys::{
    resource::{UsageWho, getrusage},
    time::{TimeVal, TimeValLike},
};
use sysdock_table::{Fact, facts::measure as facts};

use crate::missing::unreadable;

/// Usage of the processes that were waited for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) user_ns: u64,
    pub(crate) system_ns: u64,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) voluntary_switches: u64,
    pub(crate) involuntary_switches: u64,
    /// Peak of the largest process; for one that was forked from us at least our own at that time.
    pub(crate) max_rss_bytes: u64,
}

/// Usage of our children that were waited for, and of theirs.
pub(crate) fn of_children() -> Usage {
    of(UsageWho::RUSAGE_CHILDREN)
}

/// Our own usage.
pub(crate) fn own() -> Usage {
    of(UsageWho::RUSAGE_SELF)
}

fn of(whom: UsageWho) -> Usage {
    // It cannot fail for these two.
    let Ok(usage) = getrusage(whom) else { return Usage::default() };
    let ns = |time: TimeVal| time.num_nanoseconds() as u64;
    Usage {
        user_ns: ns(usage.user_time()),
        system_ns: ns(usage.system_time()),
        minor_faults: usage.minor_page_faults() as u64,
        major_faults: usage.major_page_faults() as u64,
        voluntary_switches: usage.voluntary_context_switches() as u64,
        involuntary_switches: usage.involuntary_context_switches() as u64,
        max_rss_bytes: usage.max_rss() as u64 * 1024,
    }
}

/// Transfers of processes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Transfers {
    pub(crate) read_chars: u64,
    pub(crate) write_chars: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

/// Transfers of our children that were waited for, and of theirs: the part of /proc/self/io that is
/// not of our only thread.
pub(crate) fn transfers_of_children() -> Result<Transfers, Fact> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| unreadable(path, error));
    let thread = read(&format!("/proc/self/task/{}/io", std::process::id()))?;
    let all = read("/proc/self/io")?;
    let difference = |name: &str| {
        let number = |text: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        let missing = || facts::not_in_file("/proc/self/io", name.trim_end_matches(':'));
        Ok::<u64, Fact>(number(&all).ok_or_else(missing)?.saturating_sub(number(&thread).ok_or_else(missing)?))
    };
    Ok(Transfers {
        // Reading the first of the two files is counted in the second.
        read_chars: difference("rchar:")?.saturating_sub(thread.len() as u64),
        write_chars: difference("wchar:")?,
        read_bytes: difference("read_bytes:")?,
        write_bytes: difference("write_bytes:")?,
    })
}

/// CPU time and run delay of the first thread of a process [ns], also of a zombie.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scheduled {
    pub(crate) cpu_ns: u64,
    pub(crate) run_delay_ns: u64,
}

impl Scheduled {
    /// From /proc/PID/schedstat, which exists with CONFIG_SCHED_INFO.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(cpu_ns), Some(run_delay_ns)) => Ok(Scheduled { cpu_ns, run_delay_ns }),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}
