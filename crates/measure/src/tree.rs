//! Running processes and their parents, from /proc.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// A process in `/proc/PID/stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) parent: u32,
    /// Whether it has ended, and was not waited for yet.
    pub(crate) ended: bool,
}

/// The state of a process. `None`: it does not exist.
pub(crate) fn process(pid: u32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before them, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let ended = matches!(fields.next()?, "Z" | "X");
    Some(Process { parent: fields.next()?.parse().ok()?, ended })
}

/// Descendants of this process that have not ended.
pub(crate) fn living_below(ancestor: u32) -> Vec<u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let all: HashMap<u32, Process> = pids.filter_map(|pid: u32| Some((pid, process(pid)?))).collect();
    let of_whom = |pid: &u32| all.get(pid).map(|process| process.parent);
    let below = all.keys().filter(|pid| is_below(**pid, ancestor, |pid| of_whom(&pid)) == Some(true));
    below.filter(|pid| !all[pid].ended).copied().collect()
}

/// Whether `pid` is below `ancestor`, going up by `parent_of`. `None`: a process on the way has
/// ended.
pub(crate) fn is_below(pid: u32, ancestor: u32, parent_of: impl Fn(u32) -> Option<u32>) -> Option<bool> {
    let mut seen = HashSet::new();
    let mut at = pid;
    loop {
        let parent = parent_of(at)?;
        if parent == ancestor {
            return Some(true);
        }
        // 0 is above the first process. Parents are read one after another, so ids may be reused,
        // and the way may be a circle.
        if parent == 0 || !seen.insert(parent) {
            return Some(false);
        }
        at = parent;
    }
}

/// Send a signal to a descendant, or to a group of them if the number is negative.
pub(crate) fn send(pid: libc::pid_t, signal: libc::c_int) {
    if let Ok(signal) = Signal::try_from(signal) {
        // It fails where the process has ended meanwhile.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_below_its_parent_and_not_the_other_way_round() {
        let parent_of = |pid| process(pid).map(|process| process.parent);
        let (ours, above) = (std::process::id(), std::os::unix::process::parent_id());
        assert_eq!(is_below(ours, above, parent_of), Some(true));
        assert_eq!(is_below(above, ours, parent_of), Some(false));
        assert_eq!(is_below(u32::MAX, ours, parent_of), None);
    }

    #[test]
    fn a_child_lives_below_us_until_it_has_ended() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep runs");
        assert!(living_below(std::process::id()).contains(&child.id()));
        child.kill().expect("it is ours");
        child.wait().expect("it ended");
        assert!(!living_below(std::process::id()).contains(&child.id()));
    }
}
