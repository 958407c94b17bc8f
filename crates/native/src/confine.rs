//! Confines processes that parse data that may come from an attacker, recorded or imported: they
//! can write only to their recording (Landlock, from kernel 5.13 on), and cannot make system calls
//! that an intruder would want and a parser does not need (seccomp).

use std::path::Path;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus,
};
use libc::c_long;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use sysdock_table::Folder;

/// Version of Landlock with the requested rights; an older kernel applies those that it has.
const RIGHTS: ABI = ABI::V3;

/// Calls that are refused with EPERM: they run programs, reach other processes, the network or the
/// kernel's own memory, mount file systems, or change the machine.
const REFUSED: [c_long; 38] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_io_uring_setup,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_open_by_handle_at,
    libc::SYS_personality,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
];

/// Confine this thread, which parses untrusted data, and threads that it starts later; returns a
/// description of the restrictions.
pub(crate) fn parser(folder: &Folder) -> String {
    to_folder(Some(folder), &[libc::SYS_bpf])
}

/// The same for a thread that writes no files.
pub(crate) fn reader() -> String {
    to_folder(None, &[libc::SYS_bpf])
}

/// The same for a thread that reads the maps of programs that it has loaded into the kernel.
pub(crate) fn recorder(folder: &Folder) -> String {
    to_folder(Some(folder), &[])
}

fn to_folder(folder: Option<&Folder>, refused: &[c_long]) -> String {
    let writing = match restrict(folder).map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced) => "writes into its recording only (Landlock)".into(),
        Ok(RulesetStatus::NotEnforced) => "writes are not confined: this kernel has no Landlock".into(),
        Err(error) => format!("writes are not confined: {error}"),
    };
    let calling = match refuse(refused) {
        Ok(()) => "runs no program and opens no socket (seccomp)".into(),
        Err(error) => format!("system calls are not confined: {error}"),
    };
    format!("{writing}; {calling}")
}

fn restrict(folder: Option<&Folder>) -> Result<RestrictionStatus, RulesetError> {
    let writes = AccessFs::from_write(RIGHTS);
    let above = |folder: &Folder| {
        PathFd::new(folder.path().parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."))).ok()
    };
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(writes | AccessFs::Execute)?
        .create()?
        .add_rules(folder.map(|folder| Ok::<_, RulesetError>(PathBeneath::new(folder, writes))))?
        // An unused folder is removed at the end, which changes its parent.
        .add_rules(folder.and_then(above).map(|above| Ok::<_, RulesetError>(PathBeneath::new(above, AccessFs::RemoveDir))))?
        .restrict_self()
}

/// Refuse these calls and [`REFUSED`] from here on.
fn refuse(more: &[c_long]) -> Result<(), seccompiler::Error> {
    let rules = REFUSED.iter().chain(more).map(|call| (*call, Vec::new())).collect();
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, std::env::consts::ARCH.try_into()?)?;
    let program: BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}

#[cfg(test)]
mod tests {
    use std::{fs, io, net::TcpListener, os::unix::process::CommandExt, process::Command, thread};

    use sysdock_table::Access;

    use super::*;

    #[test]
    fn what_is_confined_writes_into_its_folder_only_and_runs_nothing() {
        let (own, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let folder = Folder::open(own.path(), Access::default()).expect("it is ours");
        // Only this thread is confined, not the other tests.
        let confined = thread::spawn(move || {
            let state = parser(&folder);
            let inside = folder.create_file("a").map(drop).and_then(|()| folder.replace("b", b"x"));
            let outside = fs::write(other.path().join("a"), b"x").map_err(|error| error.kind());
            let read = fs::read("/proc/self/status").is_ok();
            let run = Command::new("/bin/true").exec().kind();
            let socket = TcpListener::bind("127.0.0.1:0").map(drop).map_err(|error| error.kind());
            let later = thread::spawn(|| Command::new("/bin/true").exec().kind()).join().expect("it ends");
            (state, inside.is_ok(), outside, read, run, socket, later)
        });
        let (state, inside, outside, read, run, socket, later) = confined.join().expect("it ends");
        let denied = io::ErrorKind::PermissionDenied;
        assert!(inside && read);
        if state.starts_with("writes into") {
            assert_eq!(outside, Err(denied));
        }
        assert!(state.ends_with("(seccomp)"), "{state}");
        assert_eq!((run, socket, later), (denied, Err(denied), denied));
    }
}
