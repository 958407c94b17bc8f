//! The command of a recorder: where it is, how it ends, and which signals it gets.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::ExitStatus,
};

use rustix::rand::GetRandomFlags;

use crate::{messages::Message, privileges::Caller, relay::Received, signals};

/// How the recorder ends: like the command, so that a process that waits for it sees no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Code(u8),
    Signal(libc::c_int),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        let code = || status.code().and_then(|code| u8::try_from(code).ok());
        status.signal().map_or_else(|| Exit::Code(code().unwrap_or(u8::MAX)), Exit::Signal)
    }
}

/// The path of the command, searched along the PATH that it will have.
pub(crate) fn find_command(words: &[OsString], caller: Option<&Caller>) -> Option<PathBuf> {
    let path = caller.and_then(Caller::path).map(OsStr::to_os_string).or_else(|| env::var_os("PATH"));
    find_along(words.first()?, path)
}

/// The path of a program that is started by name.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    find_along(program, env::var_os("PATH"))
}

fn find_along(program: &OsStr, folders: Option<OsString>) -> Option<PathBuf> {
    let executable = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(|path| executable(path));
    }
    env::split_paths(&folders?).map(|folder| folder.join(program)).find(|path| executable(path))
}

/// Refuse a command that cannot be started, before anything is made for it.
pub(crate) fn check_command(program: &OsStr, is_found: bool) -> Result<(), Message> {
    if is_found {
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

/// Pass on the signals that the command did not receive itself.
pub(crate) fn pass_on(received: &[Received], command: u32) {
    for one in received.iter().filter(|one| !one.by_group) {
        signals::send(command, one.signal);
    }
}

/// An unguessable number: for ids of files, which are derived from kernel addresses, and for names
/// in the temporary folder.
pub(crate) fn secret() -> u64 {
    let mut bytes = [0u8; 8];
    let got = rustix::rand::getrandom(&mut bytes[..], GetRandomFlags::empty());
    if got == Ok(8) { u64::from_ne_bytes(bytes) } else { u64::from(std::process::id()) << 32 | 0x5d0c }
}
