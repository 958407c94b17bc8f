//! Processes that become our children when strace is killed: the command, or copies of strace.
//!
//! A stopped copy is about to become the command, or tests features of the kernel; both continue
//! after a SIGCONT. A copy that waits forever for a strace that is gone is killed.

use std::{
    fs,
    os::unix::{ffi::OsStrExt, process::ExitStatusExt},
    path::Path,
    process::ExitStatus,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, getpid, set_child_subreaper, waitid, waitpid};

use crate::{command, relay::Relay, signals};

const PAUSE: Duration = Duration::from_millis(20);
/// After this time a copy of strace is taken to wait forever.
const PATIENCE: Duration = Duration::from_secs(1);
/// Flag of a process that was forked and has not executed a program since (sched.h); it stays after
/// the process has ended.
const PF_FORKNOEXEC: u32 = 0x40;

/// Make this process the parent of orphans: if strace is killed, we can wait for the command.
pub(crate) fn adopt() {
    // If it failed, init would get the command, and its status would stay unknown.
    let _ = set_child_subreaper(Some(getpid()));
}

/// Wait for orphans that have ended, as init would, except strace and the command.
pub(crate) fn reap(strace: u32, command: u32) {
    // SAFETY: the struct is zeroed, and filled by the kernel; the rest are numbers.
    unsafe {
        loop {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            let status = libc::waitid(libc::P_ALL, 0, &raw mut found, libc::WEXITED | libc::WNOHANG | libc::WNOWAIT);
            let pid = if status == 0 { found.si_pid().cast_unsigned() } else { 0 };
            if pid == 0 || pid == strace || pid == command {
                return;
            }
            libc::waitpid(pid.cast_signed(), std::ptr::null_mut(), 0);
        }
    }
}

/// Wait until no strace that writes to this file is left, nor a copy of one; stopped ones are
/// continued.
pub(crate) fn settle(file: &Path) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let left = writers(file);
        if left.is_empty() {
            return;
        }
        for pid in left.into_iter().filter(|pid| is_copy_in(*pid, "T")) {
            signals::send(pid, libc::SIGCONT);
        }
        thread::sleep(PAUSE);
    }
    // A copy that requested to be traced after strace was gone is now traced by us or by init, and
    // stays stopped forever.
    for pid in writers(file).into_iter().filter(|pid| is_copy_in(*pid, "StT")) {
        signals::send(pid, libc::SIGKILL);
    }
}

/// Processes that have this file in their command line. The command no longer has it once it runs.
fn writers(file: &Path) -> Vec<u32> {
    let file = file.as_os_str().as_bytes();
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let names_it = |line: &[u8]| line.split(|byte| *byte == 0).any(|word| word == file);
    pids.filter(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| names_it(&line))).collect()
}

/// Whether the process is a copy of strace in one of these states.
fn is_copy_in(pid: u32, states: &str) -> bool {
    stat(pid).is_some_and(|(state, flags)| states.contains(state) && flags & PF_FORKNOEXEC != 0)
}

/// The command, which was `seen` below strace or is found among our children. `None`: it never ran,
/// or is not our child.
pub(crate) fn command(seen: Option<u32>, witness: Option<u32>) -> Option<u32> {
    // The process that was seen may have been a copy other than the one that became the command.
    let ours = seen.filter(|pid| is_our_child(*pid) && has_executed(*pid));
    ours.or_else(|| children().into_iter().find(|pid| Some(*pid) != witness && has_executed(*pid)))
}

/// Processes that the command started and left running when it ended.
pub(crate) fn left_running(strace: u32, witness: Option<u32>) -> Vec<u32> {
    let others = children().into_iter().filter(|pid| *pid != strace && Some(*pid) != witness);
    others.filter(|pid| stat(*pid).is_some_and(|(state, _)| state != 'Z')).collect()
}

/// Wait for the command and pass signals on to it. `None`: it is not our child.
pub(crate) fn wait_for(command: u32, relay: &mut Option<Relay>) -> Option<ExitStatus> {
    loop {
        if let Some((_, status)) = waitpid(Pid::from_raw(command.cast_signed()), WaitOptions::NOHANG).ok()? {
            return Some(ExitStatus::from_raw(status.as_raw()));
        }
        if let Some(relay) = relay {
            command::pass_on(&relay.received(), command);
        }
        thread::sleep(PAUSE);
    }
}

fn is_our_child(pid: u32) -> bool {
    // Waits for nothing and reaps nothing.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    Pid::from_raw(pid.cast_signed()).is_some_and(|pid| waitid(WaitId::Pid(pid), options).is_ok())
}

fn children() -> Vec<u32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// Whether the process has executed a program since it was forked; also known after it has ended.
fn has_executed(pid: u32) -> bool {
    stat(pid).is_some_and(|(_, flags)| flags & PF_FORKNOEXEC == 0)
}

/// State and flags.
pub(crate) fn stat(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before them, in parentheses, may contain anything.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.nth(5)?.parse().ok()?))
}
