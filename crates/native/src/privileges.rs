//! The user who requests a recording, the rights of the recorder, and the rights that it drops once
//! its probes are attached.

use std::{
    env,
    ffi::{CStr, CString, OsStr, OsString},
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use nix::unistd::{self, Gid, Uid, getgrouplist};
use rustix::thread::set_keep_capabilities;
use sysdock_table::{Access, User, sudo_caller};

use crate::{environment, messages::Message, signals};

/// Capabilities by number (linux/capability.h).
const DAC_READ_SEARCH: u32 = 2;
const KILL: u32 = 5;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// The user who called sudo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: User,
    /// Variables of the user's environment: HOME and so on.
    variables: Vec<(&'static str, OsString)>,
}

impl Caller {
    /// `None`: the recorder runs as the user who started it.
    pub(crate) fn find() -> Option<Caller> {
        let uid = sudo_caller()?;
        let gid = env::var("SUDO_GID").ok()?.parse().ok()?;
        let name = CString::new(env::var("SUDO_USER").ok()?).ok()?;
        Some(Caller { user: User { uid, gid, groups: groups(&name, gid) }, variables: variables(&name, uid) })
    }

    /// Become this user, for good. May be called between fork and exec.
    pub(crate) fn become_user(&self) -> io::Result<()> {
        self.user.become_user()
    }

    /// The user's search path for programs; `None`: its value before sudo is unknown.
    pub(crate) fn path(&self) -> Option<&OsStr> {
        self.variables.iter().find_map(|(name, value)| (*name == "PATH").then_some(value.as_os_str()))
    }

    /// The user's values of variables that sudo sets for root.
    pub(crate) fn variables(&self) -> &[(&'static str, OsString)] {
        &self.variables
    }
}

/// Owner and permissions of a recording that this process makes.
pub(crate) fn access(shared: bool) -> Access {
    Access { owner: Caller::find().map(|caller| (caller.user.uid, caller.user.gid)), shared }
}

/// Continue as the user who called sudo, if there is one. Open files stay open.
pub(crate) fn become_caller() -> Result<(), Message> {
    let cannot = |error| Message::bare(format!("cannot become the user who called sudo: {error}"));
    Caller::find().map_or(Ok(()), |caller| caller.become_user().map_err(cannot))
}

fn groups(name: &CStr, gid: u32) -> Vec<u32> {
    getgrouplist(name, Gid::from_raw(gid)).map_or_else(|_| vec![gid], |all| all.into_iter().map(Gid::as_raw).collect())
}

fn variables(name: &CStr, uid: u32) -> Vec<(&'static str, OsString)> {
    let text = |text: &CStr| OsStr::from_bytes(text.to_bytes()).to_os_string();
    let mut variables = vec![("USER", text(name)), ("LOGNAME", text(name))];
    if let Ok(Some(user)) = unistd::User::from_uid(Uid::from_raw(uid)) {
        variables.push(("HOME", user.dir.into_os_string()));
        variables.push(("SHELL", user.shell.into_os_string()));
    }
    // The mailbox is a file with the name of its user. sudo may have kept that of the user.
    let of_root = env::var_os("MAIL").map(PathBuf::from).filter(|path| path.ends_with("root"));
    variables.extend(of_root.map(|path| ("MAIL", path.with_file_name(text(name)).into_os_string())));
    variables.extend(path_before_sudo().map(|path| ("PATH", path)));
    variables
}

/// The PATH of the user who called sudo: sudo sets another one (`secure_path`) for the command, but
/// its own process still has the original.
fn path_before_sudo() -> Option<OsString> {
    let sudo = sysdock_bpf::ancestors(std::process::id())
        .into_iter()
        .find(|pid| fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"sudo\n"))?;
    let environment = fs::read(format!("/proc/{sudo}/environ")).ok()?;
    let path = environment.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(b"PATH="))?;
    Some(OsStr::from_bytes(path).to_os_string())
}

/// The command for running sysdock with all rights. sudo does not search folders of a single user,
/// such as a virtual environment.
pub(crate) fn sudo_sysdock() -> String {
    const LOOKED_THROUGH: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let neighbour = env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("sysdock"))).filter(|path| path.is_file());
    let is_found =
        |path: &PathBuf| path.parent().is_some_and(|folder| LOOKED_THROUGH.iter().any(|known| folder == Path::new(known)));
    match neighbour.filter(|path| !is_found(path)) {
        Some(path) => format!("sudo {}", environment::command_text(&[path.into()])),
        None => "sudo sysdock".into(),
    }
}

/// Names of the rights that the kernel recorder needs and this process lacks.
pub(crate) fn missing() -> Vec<&'static str> {
    let has = effective();
    if has & (1 << SYS_ADMIN) != 0 {
        return Vec::new();
    }
    [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(bit, _)| has & (1 << bit) == 0)
        .map(|(_, name)| name)
        .collect()
}

fn effective() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    mask(&status, "CapEff:")
}

/// A set of capabilities in a status of proc_pid_status(5); 0 if there is none.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Drop all rights that recording does not need once the probes are attached, and the way to regain
/// them, in every thread of this process. Under sudo none is left. Root itself keeps the rights to
/// pass on signals, and to read the symbols of programs that others may not read. A command that runs
/// as root under sudo (`as_root`) can still be sent signals.
pub(crate) fn drop_rest(as_root: bool) -> io::Result<()> {
    let caller = Caller::find();
    let needed = match (&caller, as_root) {
        (None, _) => 1 << DAC_READ_SEARCH | 1 << KILL,
        (Some(_), true) => 1 << KILL,
        (Some(_), false) => 0,
    };
    let kept = (effective() as u32) & needed;
    if let Some(caller) = caller {
        // SAFETY: takes numbers only. Without it, the change of user drops all capabilities.
        set_keep_capabilities(true)?;
        caller.become_user()?;
    }
    keep_only(kept)?;
    in_other_threads(kept)
}

/// Drop all rights but the one to send signals, in a process of one thread.
pub(crate) fn keep_signals_only() -> io::Result<()> {
    keep_only((effective() as u32) & (1 << KILL))
}

/// Keep these capabilities in this thread, for good. May be called in a signal handler.
fn keep_only(kept: u32) -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    // capset(2): version 3 has two sets of 32.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let low = Data { effective: kept, permitted: kept, inheritable: 0 };
    let data = [low, Data { effective: 0, permitted: 0, inheritable: 0 }];
    // SAFETY: both structures have the layout of capset(2), version 3, and outlive the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// What other threads are to keep.
static KEPT: AtomicU32 = AtomicU32::new(0);

extern "C" fn keep_what_is_stated(_signal: libc::c_int) {
    // Whether it worked is read from /proc.
    let _ = keep_only(KEPT.load(Ordering::Relaxed));
}

/// Capabilities belong to a thread, and only the thread itself can drop them (capset(2)): each is
/// interrupted by a signal that nothing else uses.
///
/// # Errors
/// A thread does not drop them.
fn in_other_threads(kept: u32) -> io::Result<()> {
    const PAUSE: Duration = Duration::from_millis(1);
    const PAUSES: u32 = 5000;
    KEPT.store(kept, Ordering::Relaxed);
    signals::interrupt_by(libc::SIGURG, keep_what_is_stated);
    for pause in 0..PAUSES {
        let others = threads_with_more_than(kept)?;
        if others.is_empty() {
            return Ok(());
        }
        if pause == 0 {
            // A thread that has ended needs no signal.
            others.iter().for_each(|thread| drop(tgkill(std::process::id(), *thread, libc::SIGURG)));
        }
        std::thread::sleep(PAUSE);
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn tgkill(process: u32, thread: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers only.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) };
    if sent == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Threads of this process that have further capabilities.
fn threads_with_more_than(kept: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in fs::read_dir("/proc/self/task")? {
        let Ok(thread) = thread?.file_name().to_string_lossy().parse() else { continue };
        // One that has just ended has no status.
        let status = fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default();
        if mask(&status, "CapPrm:") & !u64::from(kept) != 0 {
            found.push(thread);
        }
    }
    Ok(found)
}
