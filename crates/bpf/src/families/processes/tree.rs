//! The tree of processes, from /proc: descendants of a recorded process are recorded when recording
//! begins.

use std::{
    collections::{HashMap, HashSet},
    fs,
};

use super::tasks::all_processes;

/// All descendants of these processes, ordered by number, without `recorder`, its ancestors and its
/// descendants.
#[must_use]
pub fn descendants(pids: &[u32], recorder: u32) -> Vec<u32> {
    let all = all_processes().unwrap_or_default();
    let parents: HashMap<u32, u32> = all.into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let line = |pid| line(pid, |pid| parents.get(&pid).copied());
    // Recording one's own shell must not record the recorder, nor its ancestors.
    let above: HashSet<u32> = line(recorder).collect();
    let is_below = |pid: u32| line(pid).skip(1).any(|above| pids.contains(&above));
    let is_ours = |pid: u32| above.contains(&pid) || line(pid).any(|above| above == recorder);
    let is_new = |pid: &u32| !pids.contains(pid) && is_below(*pid) && !is_ours(*pid);
    let mut found: Vec<u32> = parents.keys().copied().filter(is_new).collect();
    found.sort_unstable();
    found
}

/// The ancestors of a process, its parent first.
#[must_use]
pub fn ancestors(pid: u32) -> Vec<u32> {
    line(pid, |pid| parent(pid).filter(|parent| *parent != 0)).collect()
}

/// A process, its parent, and so on. Numbers that are reused while /proc is read could form a
/// cycle, so the length is limited.
fn line(pid: u32, parent: impl Fn(u32) -> Option<u32>) -> impl Iterator<Item = u32> {
    const DEEPEST: usize = 1000;
    std::iter::successors(Some(pid), move |pid| parent(*pid)).take(DEEPEST)
}

/// Number of the parent, from proc(5), /proc/pid/stat: after the name, which ends at the last
/// bracket, the parent is field 2.
fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::{io::Read, process::Command};

    use super::*;

    #[test]
    fn children_and_what_they_started_are_below_a_process() {
        let mut shell = Command::new("sh");
        // The shell has a child, which has a child of its own.
        let mut shell = shell
            .args(["-c", "sh -c 'sleep 60 & echo $!; wait' & wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut printed = [0; 16];
        let length = shell.stdout.as_mut().expect("a pipe").read(&mut printed).expect("a number");
        let sleeper: u32 = std::str::from_utf8(&printed[..length]).expect("a number").trim().parse().expect("a number");
        let no_process = u32::MAX;
        let found = descendants(&[shell.id()], no_process);
        assert!(found.contains(&sleeper) && found.len() == 2 && !found.contains(&shell.id()), "{found:?}");
        // What the recorder starts is not recorded.
        assert!(descendants(&[shell.id()], std::process::id()).is_empty());
        for pid in found.into_iter().chain([shell.id()]) {
            // SAFETY: takes numbers only; the processes are our own.
            unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
        }
        shell.wait().expect("it ended");
    }
}
