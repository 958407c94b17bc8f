//! `sysdock-native record`: by the kernel's own events where that may be, else by strace.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::ExitStatus,
};

use crate::{
    arguments::{self, Recorder},
    by_kernel, by_strace,
    messages::{self, Message},
    progress,
    signals::Counts,
};

/// Record; returns the exit status of the command (128 + N if signal N killed it), as a shell would.
pub(crate) fn run(arguments: &arguments::Record) -> Result<u8, Message> {
    progress::keep_to_ourselves(&arguments.progress);
    if let Some(program) = arguments.command.first() {
        check_command(program)?;
    } else if arguments.target.is_empty() {
        return Err(Message::new("nothing to record", "give a command behind --, or -p PID, --cgroup PATH or -a"));
    }
    let calls_only = arguments.what.iter().all(|word| word == sysdock_bpf::IO) && arguments.stacks.is_none();
    let strace_can = !arguments.command.is_empty() && arguments.target.is_empty() && !arguments.no_loss && calls_only;
    match arguments.recorder {
        Recorder::Strace if strace_can => by_strace::run(arguments, &arguments.output),
        Recorder::Strace => {
            let hint = "leave out --with strace, or give a command behind --, without --no-loss, --stacks and --what";
            Err(Message::new("strace records system calls of commands only", hint))
        }
        Recorder::Kernel => by_kernel::run(arguments).map_err(by_kernel::Refusal::into_message),
        Recorder::Auto => match by_kernel::run(arguments) {
            Err(by_kernel::Refusal::Unable(reason)) if strace_can => {
                messages::note(&format!("recording with strace, which slows programs down much more: {reason}"));
                by_strace::run(arguments, &arguments.output)
            }
            outcome => outcome.map_err(by_kernel::Refusal::into_message),
        },
    }
}

/// Where a program lies that is started by name.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    let executable = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| executable(path));
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| executable(path))
}

/// Refuse a command that cannot be started before anything is made for it.
fn check_command(program: &OsStr) -> Result<(), Message> {
    if find(program).is_some() {
        return Ok(());
    }
    let name = program.to_string_lossy();
    if Path::new(program).is_dir() {
        return Err(Message::new(format!("{name}: is a directory"), "name a program to run"));
    }
    if name.contains('/') && Path::new(program).exists() {
        return Err(Message::new(format!("{name}: not executable"), format!("chmod +x {name}, or name its interpreter first")));
    }
    Err(Message::new(format!("{name}: command not found"), "check the spelling, or give the path of the program"))
}

pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Send the command what was received since `seen`: SIGTERM and SIGHUP. SIGINT it gets from the terminal.
pub(crate) fn pass_on(seen: Counts, now: Counts, command: u32) {
    if now.terminations > seen.terminations {
        send(command, libc::SIGTERM);
    }
    if now.hangups > seen.hangups {
        send(command, libc::SIGHUP);
    }
}

/// Send a signal to a process of ours.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: kill has no memory preconditions; the process is our own descendant.
        unsafe { libc::kill(pid, signal) };
    }
}
