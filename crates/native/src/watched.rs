//! Recording of processes that run already: their description, and the reason if nothing was
//! recorded.

use std::fs;

use sysdock_bpf::{Group, Target, descendants};
use sysdock_table::{Watched, WatchedProcess};

use crate::{arguments, orphans};

/// The requested processes. `None`: a command.
pub(crate) fn watched(target: &arguments::Target) -> Option<Watched> {
    if target.all {
        return Some(Watched::All);
    }
    if let Some(folder) = &target.cgroup {
        return Some(Watched::Cgroup(folder.to_string_lossy().into_owned()));
    }
    let process = |pid: &u32| WatchedProcess { pid: *pid, name: name(*pid), children: below(&[*pid]).len() };
    let processes: Vec<_> = target.pid.iter().map(process).collect();
    (!processes.is_empty()).then_some(Watched::Processes(processes))
}

/// The processes below these.
pub(crate) fn below(pids: &[u32]) -> Vec<u32> {
    descendants(pids, std::process::id())
}

/// A description such as `process 4242 (nginx) and 4 child processes`.
pub(crate) fn description(watched: &Watched) -> String {
    match watched {
        Watched::All => "all processes".into(),
        Watched::Cgroup(folder) => format!("control group {folder}"),
        Watched::Processes(processes) => processes.iter().map(described).collect::<Vec<_>>().join(", "),
    }
}

fn described(process: &WatchedProcess) -> String {
    let WatchedProcess { pid, name, children } = process;
    match children {
        0 => format!("process {pid} ({name})"),
        1 => format!("process {pid} ({name}) and 1 child process"),
        several => format!("process {pid} ({name}) and {several} child processes"),
    }
}

/// The reason why a recording may have no system calls.
pub(crate) fn why_empty(target: &Target, group: Option<&Group>) -> String {
    match target {
        Target::All => "no process made one".into(),
        Target::ControlGroup(_) if group.is_some_and(|group| !group.is_populated()) => "the control group has no process".into(),
        Target::ControlGroup(_) => "its processes made none".into(),
        Target::Processes(pids) => {
            let states: Vec<char> = pids.iter().filter_map(|pid| state(*pid)).collect();
            let all = |letters: &str| states.iter().all(|state| letters.contains(*state));
            match states.len() {
                0 => "the processes have ended".into(),
                _ if all("SDI") => "its processes slept all the time".into(),
                _ if all("Tt") => "its processes are stopped".into(),
                _ => "its processes computed without one".into(),
            }
        }
    }
}

/// The state as `ps` shows it: R, S, D, T, ...; `None`: the process is gone.
fn state(pid: u32) -> Option<char> {
    orphans::stat(pid).map(|(state, _)| state).filter(|state| *state != 'Z')
}

/// The name of a process.
pub(crate) fn name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).map_or_else(|_| "?".into(), |name| name.trim_end().into())
}
