//! What each system call does and where its arguments are: a flat list, one line for each group of
//! calls with the same shape.
//!
//! Argument positions are those of the manual pages (section 2), counted from 0; strace and truss
//! print them alike. Calls that are not listed have class `other`.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// What a call does: the values of `calls.class`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    Open,
    Close,
    Read,
    Write,
    Copy,
    Seek,
    Stat,
    Dir,
    Name,
    Attr,
    Sync,
    Map,
    Control,
    Lock,
    Wait,
    Socket,
    Process,
    Memory,
    Signal,
    Time,
    Other,
}

/// The names of [`Class`], in its order.
pub const CLASS_WORDS: [&str; 21] = [
    "open", "close", "read", "write", "copy", "seek", "stat", "dir", "name", "attr", "sync", "map", "control", "lock", "wait",
    "socket", "process", "memory", "signal", "time", "other",
];

/// The argument that contains the requested number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested {
    /// It is this argument.
    Argument(usize),
    /// It is the sum of `iov_len` in this argument.
    Vector(usize),
}

/// The position at which a transfer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The file position, which advances.
    Position,
    /// This argument; the file position stays.
    Argument(usize),
    /// This argument, or the file position if it is -1.
    ArgumentOrPosition(usize),
    /// None: sockets and queues.
    Nowhere,
}

/// How the arguments of a call are read, and what the call changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Only name, result and time are read.
    Plain,
    /// Works on the descriptor in argument 0.
    Fd,
    /// Works on the directory in argument 0.
    Directory,
    /// Transfers bytes through the descriptor in argument 0.
    Transfer(Requested, At),
    /// Transfers `size` bytes from one descriptor to another. Offsets are pointers; NULL: the file
    /// position.
    Between {
        from: usize,
        from_offset: Option<usize>,
        to: usize,
        to_offset: Option<usize>,
        size: usize,
    },
    /// Works on the path in this argument, relative to the working directory.
    Path(usize),
    /// Works on the path in the second argument, relative to the directory in the first. An empty
    /// path is the directory itself.
    PathAt(usize, usize),
    /// Opens a path. The arguments of the directory (`None`: working directory), of the path and of
    /// the flags.
    Open(Option<usize>, usize, usize),
    /// `creat(path, mode)`
    Create,
    Close,
    CloseRange,
    Seek,
    Dup,
    /// `dup2`, `dup3`: argument 1 is the new descriptor.
    DupTo,
    Fcntl,
    Ioctl,
    Truncate,
    /// Returns a new descriptor without a path; the text names it.
    NewFd(&'static str),
    /// Creates two descriptors, printed as `[3, 4]` in this argument; the text names them.
    NewPair(&'static str, usize),
    MemfdCreate,
    /// Receives a message, which may carry descriptors.
    ReceiveMessage,
    /// `sendmmsg`, `recvmmsg`: messages in argument 1, each with its number of bytes; the result is
    /// the number of messages.
    Messages,
    Map,
    Fork,
    Exec,
    ChangeDir,
    ChangeDirFd,
    Rename(Option<usize>, usize, Option<usize>, usize),
    Unshare,
    Remove(Option<usize>, usize),
    /// `mq_open(name, flags, ...)`: the name is in the file system of queues, whatever the working
    /// directory is.
    OpenQueue,
    /// `mq_unlink(name)`
    RemoveQueue,
    /// `fsconfig(fd, command, key, value, at)`: by the command, the value is a path relative to
    /// `at`, or `at` itself is the value.
    Configure,
    /// `landlock_add_rule(fd, type, rule, ...)`: a rule about files points to the descriptor of a
    /// directory.
    AddRule,
    /// `io_submit`: operations that complete later.
    Submit,
    /// `io_getevents`: operations that completed.
    Reap,
    /// `io_uring_setup`: operations of the ring make no system call.
    Ring,
}

impl Shape {
    /// The argument with the descriptor that the call works on; of a copy, the one that it reads.
    pub fn descriptor(self) -> usize {
        if let Shape::Between { from, .. } = self { from } else { 0 }
    }

    /// Whether the call may move the position of the open file in that argument.
    pub fn moves_position(self) -> bool {
        match self {
            Shape::Transfer(_, at) => matches!(at, At::Position | At::ArgumentOrPosition(_)),
            Shape::Between { .. } | Shape::Seek => true,
            _ => false,
        }
    }

    /// Number of arguments, from the first on, that determine what the call means. The others need
    /// not be split.
    fn needed(self, class: Class, name: &str) -> u8 {
        const ALL: usize = u8::MAX as usize;
        // The status of a file is printed after its name, in statx as the last argument.
        let upto = |last: usize| if class == Stat { last + 2 } else { last + 1 };
        let needed = match self {
            _ if name == "statx" => ALL,
            Plain => 0,
            Fd => upto(0),
            Shape::Create
            | Shape::Close
            | Shape::Dup
            | Shape::ChangeDir
            | Shape::ChangeDirFd
            | Shape::Unshare
            | Directory
            | Shape::RemoveQueue => 1,
            Shape::Ioctl | Shape::Truncate | Shape::ReceiveMessage | Shape::Messages | Shape::OpenQueue => 2,
            Shape::CloseRange | Shape::Seek | Shape::DupTo | Shape::Fcntl | Shape::Exec | Shape::Submit | Shape::AddRule => 3,
            Shape::Reap => 4,
            Shape::Configure => 5,
            Transfer(Argument(requested) | Vector(requested), at) => match at {
                AtArgument(at) | ArgumentOrPosition(at) => requested.max(at) + 1,
                Position | Nowhere => requested + 1,
            },
            Between { from, from_offset, to, to_offset, size } => {
                [from_offset, to_offset].into_iter().flatten().fold(from.max(to).max(size), usize::max) + 1
            }
            Path(path) => upto(path),
            PathAt(directory, path) => upto(directory.max(path)),
            Shape::Open(directory, path, flags) => directory.unwrap_or(0).max(path).max(flags) + 1,
            // renameat2 has flags after them.
            Shape::Rename(_, old, _, new) => old.max(new) + 2,
            Shape::Remove(_, path) => path + 1,
            // Any argument may contain a flag.
            NewFd(_) | NewPair(..) | Shape::MemfdCreate | Shape::Ring | Shape::Map | Shape::Fork => ALL,
        };
        needed as u8
    }
}

/// Class and shape of one call.
pub type ClassAndShape = (Class, Shape);

use At::{Argument as AtArgument, ArgumentOrPosition, Nowhere, Position};
use Class::{
    Attr, Close, Control, Dir, Lock, Map, Memory, Name, Open, Process, Read, Seek, Signal, Socket, Stat, Sync, Time, Wait, Write,
};
use Requested::{Argument, Vector};
use Shape::{Between, Directory, Fd, NewFd, NewPair, Path, PathAt, Plain, Transfer};

#[rustfmt::skip]
const GROUPS: &[(&str, ClassAndShape)] = &[
    ("open open64", (Open, Shape::Open(None, 0, 1))),
    ("openat openat2 openat64", (Open, Shape::Open(Some(0), 1, 2))),
    ("creat creat64", (Open, Shape::Create)),
    ("mq_open", (Open, Shape::OpenQueue)),
    ("open_by_handle_at", (Open, NewFd("file handle"))),
    ("close", (Close, Shape::Close)),
    ("close_range", (Close, Shape::CloseRange)),
    ("read", (Read, Transfer(Argument(2), Position))),
    ("pread pread64", (Read, Transfer(Argument(2), AtArgument(3)))),
    ("readv", (Read, Transfer(Vector(1), Position))),
    ("preadv", (Read, Transfer(Vector(1), AtArgument(3)))),
    ("preadv2", (Read, Transfer(Vector(1), ArgumentOrPosition(3)))),
    ("recv recvfrom", (Read, Transfer(Argument(2), Nowhere))),
    ("recvmsg", (Read, Shape::ReceiveMessage)),
    ("recvmmsg recvmmsg_time64", (Read, Shape::Messages)),
    ("mq_timedreceive mq_timedreceive_time64", (Read, Transfer(Argument(2), Nowhere))),
    ("write", (Write, Transfer(Argument(2), Position))),
    ("pwrite pwrite64", (Write, Transfer(Argument(2), AtArgument(3)))),
    ("writev", (Write, Transfer(Vector(1), Position))),
    ("pwritev", (Write, Transfer(Vector(1), AtArgument(3)))),
    ("pwritev2", (Write, Transfer(Vector(1), ArgumentOrPosition(3)))),
    ("send sendto", (Write, Transfer(Argument(2), Nowhere))),
    ("sendmsg", (Write, Transfer(Vector(1), Nowhere))),
    ("sendmmsg", (Write, Shape::Messages)),
    ("vmsplice", (Write, Transfer(Vector(1), Nowhere))),
    ("sendfile sendfile64", (Class::Copy, Between { from: 1, from_offset: Some(2), to: 0, to_offset: None, size: 3 })),
    ("copy_file_range splice", (Class::Copy, Between { from: 0, from_offset: Some(1), to: 2, to_offset: Some(3), size: 4 })),
    ("tee", (Class::Copy, Between { from: 0, from_offset: None, to: 1, to_offset: None, size: 2 })),
    ("lseek _llseek llseek", (Seek, Shape::Seek)),
    ("stat stat64 lstat lstat64 oldstat oldlstat access readlink statfs statfs64 statvfs statvfs64 pathconf resolvepath", (Stat, Path(0))),
    ("fstat fstat64 oldfstat fstatfs fstatfs64 fstatvfs fstatvfs64 fpathconf", (Stat, Fd)),
    ("newfstatat fstatat fstatat64 statx faccessat faccessat2 readlinkat name_to_handle_at file_getattr", (Stat, PathAt(0, 1))),
    ("getdents getdents64 readdir", (Dir, Directory)),
    ("chdir", (Dir, Shape::ChangeDir)),
    ("fchdir", (Dir, Shape::ChangeDirFd)),
    ("getcwd", (Dir, Plain)),
    ("chroot", (Dir, Path(0))),
    ("pivot_root mount umount umount2 swapon swapoff acct", (Name, Path(0))),
    ("rename", (Name, Shape::Rename(None, 0, None, 1))),
    ("renameat renameat2", (Name, Shape::Rename(Some(0), 1, Some(2), 3))),
    ("mq_unlink", (Name, Shape::RemoveQueue)),
    ("fsconfig", (Name, Shape::Configure)),
    ("unlink rmdir", (Name, Shape::Remove(None, 0))),
    ("unlinkat", (Name, Shape::Remove(Some(0), 1))),
    ("link mkdir mknod", (Name, Path(0))),
    ("symlink", (Name, Path(1))),
    ("linkat mkdirat mknodat", (Name, PathAt(0, 1))),
    ("symlinkat", (Name, PathAt(1, 2))),
    ("chmod chown chown32 lchown lchown32 utime utimes acl", (Attr, Path(0))),
    ("fchmod fchown fchown32 fgetxattr fsetxattr flistxattr fremovexattr facl futimens", (Attr, Fd)),
    ("fchmodat fchmodat2 fchownat utimensat utimensat_time64 futimesat getxattrat setxattrat listxattrat removexattrat file_setattr", (Attr, PathAt(0, 1))),
    ("getxattr lgetxattr setxattr lsetxattr listxattr llistxattr removexattr lremovexattr", (Attr, Path(0))),
    ("truncate truncate64", (Attr, Path(0))),
    ("ftruncate ftruncate64", (Attr, Shape::Truncate)),
    ("fsync fdatasync sync_file_range syncfs sync_file_range2 fdsync", (Sync, Fd)),
    ("sync msync", (Sync, Plain)),
    ("mmap mmap2 mmap64", (Map, Shape::Map)),
    ("fcntl fcntl64", (Control, Shape::Fcntl)),
    ("ioctl", (Control, Shape::Ioctl)),
    ("dup", (Control, Shape::Dup)),
    ("dup2 dup3", (Control, Shape::DupTo)),
    ("fadvise64 posix_fadvise fadvise64_64 readahead fallocate", (Control, Fd)),
    ("flock", (Lock, Fd)),
    ("futex futex_time64 futex_waitv futex_wait futex_wake futex_requeue set_robust_list get_robust_list semop semget semctl semtimedop semtimedop_time64", (Lock, Plain)),
    ("poll ppoll ppoll_time64 select pselect6 pselect6_time64 _newselect pause nanosleep clock_nanosleep clock_nanosleep_time64", (Wait, Plain)),
    ("epoll_wait epoll_pwait epoll_pwait2 epoll_ctl", (Wait, Fd)),
    ("epoll_create epoll_create1", (Wait, NewFd("eventpoll"))),
    ("eventfd eventfd2", (Control, NewFd("eventfd"))),
    ("timerfd_create", (Time, NewFd("timerfd"))),
    ("timerfd_settime timerfd_gettime timerfd_settime64 timerfd_gettime64", (Time, Fd)),
    ("signalfd signalfd4", (Signal, NewFd("signalfd"))),
    ("inotify_init inotify_init1", (Control, NewFd("inotify"))),
    ("fanotify_init", (Control, NewFd("fanotify"))),
    ("inotify_add_watch inotify_rm_watch fanotify_mark", (Control, Fd)),
    ("userfaultfd", (Memory, NewFd("userfaultfd"))),
    ("memfd_create", (Open, Shape::MemfdCreate)),
    ("memfd_secret", (Open, NewFd("secretmem"))),
    ("io_uring_setup", (Control, Shape::Ring)),
    ("io_uring_enter io_uring_register", (Control, Fd)),
    ("io_submit", (Control, Shape::Submit)),
    ("io_getevents io_pgetevents io_pgetevents_time64", (Wait, Shape::Reap)),
    ("io_setup io_destroy io_cancel", (Control, Plain)),
    ("perf_event_open", (Control, NewFd("perf_event"))),
    ("bpf", (Control, Plain)),
    ("pidfd_open", (Process, NewFd("pidfd"))),
    ("pidfd_getfd", (Process, NewFd("unknown"))),
    ("pidfd_send_signal", (Signal, Fd)),
    ("pipe", (Open, NewPair("pipe", 0))),
    ("pipe2", (Open, NewPair("pipe", 0))),
    ("socket", (Socket, NewFd("socket"))),
    ("accept accept4", (Socket, NewFd("socket"))),
    ("socketpair", (Socket, NewPair("socket", 3))),
    ("bind connect listen shutdown getsockname getpeername getsockopt setsockopt", (Socket, Fd)),
    ("clone clone3 fork vfork fork1 forkall forkx forkallx vforkx forksys", (Process, Shape::Fork)),
    ("execve execveat exec", (Process, Shape::Exec)),
    ("unshare", (Process, Shape::Unshare)),
    ("wait4 waitid waitpid exit exit_group getpid gettid getppid getpgid getpgrp setpgid getsid setsid getuid getgid geteuid getegid setuid setgid \
      getuid32 getgid32 geteuid32 getegid32 setuid32 setgid32 setreuid32 setregid32 setresuid32 setresgid32 getresuid32 getresgid32 \
      getgroups32 setgroups32 ugetrlimit olduname oldolduname setfsuid32 setfsgid32 sched_rr_get_interval_time64 \
      setreuid setregid setresuid setresgid getresuid getresgid getgroups setgroups setfsuid setfsgid capget capset prctl arch_prctl ptrace \
      set_tid_address sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler sched_setscheduler \
      sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval getpriority setpriority ioprio_get ioprio_set \
      getrusage getrlimit setrlimit prlimit64 times personality rseq seccomp setns kcmp getcpu process_vm_readv process_vm_writev umask \
      set_thread_area get_thread_area membarrier uname sysinfo gethostname sethostname setdomainname getrandom landlock_create_ruleset \
      landlock_restrict_self", (Process, Plain)),
    ("landlock_add_rule", (Process, Shape::AddRule)),
    ("brk munmap mprotect mremap madvise mincore mlock mlock2 mlockall munlock munlockall mbind set_mempolicy get_mempolicy move_pages \
      migrate_pages remap_file_pages pkey_alloc pkey_free pkey_mprotect process_madvise shmget shmat shmdt shmctl", (Memory, Plain)),
    ("rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_sigqueueinfo rt_tgsigqueueinfo sigaltstack sigreturn \
      sigaction sigprocmask signal kill tkill tgkill restart_syscall", (Signal, Plain)),
    ("time gettimeofday settimeofday clock_gettime clock_settime clock_getres clock_adjtime adjtimex alarm getitimer setitimer timer_create \
      timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime64 clock_getres_time64 clock_settime64 clock_adjtime64 \
      timer_settime64 timer_gettime64", (Time, Plain)),
    ("msgget msgctl msgsnd msgrcv mq_notify mq_getsetattr mq_timedsend mq_timedsend_time64", (Class::Other, Plain)),
    // Calls of Solaris and illumos only, with the arguments in the order in which truss prints them
    // (illumos usr/src/cmd/truss/systable.c).
    ("xstat lxstat", (Stat, Path(1))),
    ("fxstat", (Stat, Plain)),
    ("xmknod", (Name, Path(1))),
    ("fchroot", (Dir, Fd)),
    ("mmapobj", (Map, Fd)),
    ("sendfilev sendfilev64", (Class::Copy, Plain)),
    ("getmsg getpmsg", (Read, Fd)),
    ("putmsg putpmsg", (Write, Fd)),
    ("so_socket", (Socket, NewFd("socket"))),
    ("so_socketpair sockconfig", (Socket, Plain)),
    ("getpeerucred", (Socket, Fd)),
    ("port_create", (Wait, NewFd("port"))),
    ("port_get port_getn", (Wait, Fd)),
    ("port_associate port_dissociate port_send port_dispatch port_alert", (Control, Fd)),
    ("door_create", (Control, NewFd("door"))),
    ("door_call door_info door_revoke door_bind door_getparam door_setparam", (Control, Fd)),
    ("door door_return door_unbind door_unref door_cred door_ucred portfs port_sendn kaio", (Control, Plain)),
    ("pollsys wait lwp_wait sigsuspend sigtimedwait", (Wait, Plain)),
    ("lwp_park lwp_unpark lwp_unpark_all lwp_unpark_cancel lwp_set_park lwp_mutex_lock lwp_mutex_timedlock lwp_mutex_trylock lwp_mutex_unlock \
      lwp_mutex_wakeup lwp_mutex_register lwp_sema_wait lwp_sema_timedwait lwp_sema_trywait lwp_sema_post lwp_cond_wait lwp_cond_signal \
      lwp_cond_broadcast lwp_rwlock_rdlock lwp_rwlock_wrlock lwp_rwlock_tryrdlock lwp_rwlock_trywrlock lwp_rwlock_unlock lwp_rwlock_sys \
      semsys semids", (Lock, Plain)),
    ("_exit lwp_create lwp_exit lwp_self lwp_info lwp_detach lwp_suspend lwp_continue lwp_private yield nice pgrpsys setpgrp seteuid setegid \
      tasksys settaskid gettaskid getprojid rctlsys getrctl setrctl rctlsys_lst rctlsys_ctl setprojrctl privsys setppriv getppriv \
      getprivimplinfo setpflags getpflags issetugid ucredsys ucred_get zone_create zone_destroy zone_getattr zone_setattr zone_enter zone_list \
      zone_shutdown zone_lookup zone_boot zone_version priocntlsys processor_bind processor_info p_online pset pset_create pset_destroy \
      pset_assign pset_info pset_bind pset_getloadavg pset_list pset_getattr pset_setattr lgrp_version lgrp_affinity_get lgrp_affinity_set \
      lgrp_latency rusagesys getrusage_chld getrusage_lwp getvmusage getrlimit64 setrlimit64 ulimit profil pcsample corectl auditsys uadmin \
      utssys sysconfig getloadavg modctl sysi86 brand schedctl cladm exacctsys getacct putacct wracct acctctl", (Process, Plain)),
    ("memcntl getpagesizes meminfo shmsys shmids uucopy uucopystr", (Memory, Plain)),
    ("lwp_kill lwp_sigmask sigpending sigfillset sigpendsys sigsendsys sigqueue signotify sigresend context getcontext setcontext getustack \
      setustack", (Signal, Plain)),
    ("stime adjtime ntp_gettime ntp_adjtime", (Time, Plain)),
    ("msgsys msgids msgsnap", (Class::Other, Plain)),
];

/// Number of a call that is not in the list.
pub const UNLISTED: u16 = u16::MAX;

/// The listed calls in a table by name. All parsing threads share it.
struct Listed {
    entries: Vec<Entry>,
    slots: Vec<u16>,
}

struct Entry {
    name: &'static str,
    key: Key,
    needed: u8,
}

/// First and last bytes of a name, and its length: the whole name up to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    head: u64,
    tail: u64,
    len: usize,
}

impl Key {
    #[inline]
    fn of(name: &[u8]) -> Self {
        let four = |at: usize| u64::from(u32::from_le_bytes(name[at..at + 4].try_into().expect("four bytes")));
        let eight = |at: usize| u64::from_le_bytes(name[at..at + 8].try_into().expect("eight bytes"));
        let (head, tail) = match name.len() {
            0 => (0, 0),
            len @ 1..4 => (u64::from(name[0]) << 16 | u64::from(name[len / 2]) << 8 | u64::from(name[len - 1]), 0),
            len @ 4..8 => (four(0), four(len - 4)),
            len => (eight(0), eight(len - 8)),
        };
        Key { head, tail, len: name.len() }
    }

    #[inline]
    fn place(self) -> usize {
        let mixed = (self.head ^ self.tail.rotate_left(23) ^ self.len as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize
    }
}

impl Listed {
    const SLOTS: usize = 4096;

    #[inline]
    fn get() -> &'static Listed {
        static LISTED: OnceLock<Listed> = OnceLock::new();
        LISTED.get_or_init(|| {
            let mut entries = Vec::new();
            for (names, (class, shape)) in GROUPS {
                entries.extend(names.split_ascii_whitespace().map(|name| Entry {
                    name,
                    key: Key::of(name.as_bytes()),
                    needed: shape.needed(*class, name),
                }));
            }
            let mut slots = vec![UNLISTED; Self::SLOTS];
            for (entry, number) in entries.iter().zip(0u16..) {
                let mut at = entry.key.place();
                while slots[at] != UNLISTED {
                    at = (at + 1) % Self::SLOTS;
                }
                slots[at] = number;
            }
            Listed { entries, slots }
        })
    }
}

/// Operations of libaio (linux/aio_abi.h): number, name in C, and the name and class in rows.
const AIO_OPERATIONS: [(u32, &str, &str, Class); 6] = [
    (0, "IOCB_CMD_PREAD", "aio_pread", Class::Read),
    (1, "IOCB_CMD_PWRITE", "aio_pwrite", Class::Write),
    (2, "IOCB_CMD_FSYNC", "aio_fsync", Class::Sync),
    (3, "IOCB_CMD_FDSYNC", "aio_fsync", Class::Sync),
    (7, "IOCB_CMD_PREADV", "aio_preadv", Class::Read),
    (8, "IOCB_CMD_PWRITEV", "aio_pwritev", Class::Write),
];
const OTHER_AIO: (&str, Class) = ("aio_other", Class::Other);

/// Name and class of an operation of libaio, by its number.
#[must_use]
pub fn aio_operation(opcode: u32) -> (&'static str, Class) {
    AIO_OPERATIONS.iter().find(|(number, ..)| *number == opcode).map_or(OTHER_AIO, |(.., call, class)| (*call, *class))
}

/// Name and class of an operation of libaio, by its name in C.
#[must_use]
pub fn aio_operation_named(name: &[u8]) -> (&'static str, Class) {
    let named = |word: &str| word.as_bytes() == name;
    AIO_OPERATIONS.iter().find(|(_, word, ..)| named(word)).map_or(OTHER_AIO, |(.., call, class)| (*call, *class))
}

/// Number of a listed call, or [`UNLISTED`].
#[inline]
pub fn number(name: &[u8]) -> u16 {
    let listed = Listed::get();
    let key = Key::of(name);
    let mut at = key.place();
    loop {
        let number = listed.slots[at];
        if number == UNLISTED {
            return number;
        }
        let entry = &listed.entries[usize::from(number)];
        if entry.key == key && (name.len() <= 16 || entry.name.as_bytes() == name) {
            return number;
        }
        at = (at + 1) % Listed::SLOTS;
    }
}

/// Number of arguments of a call that must be known: see [`Shape::needed`].
#[inline]
pub fn needed(number: u16) -> usize {
    Listed::get().entries.get(usize::from(number)).map_or(0, |entry| usize::from(entry.needed))
}

/// All names of calls of a recording, with number and meaning: the listed ones, and others as they
/// appear.
#[derive(Debug)]
pub struct Calls {
    others: FxHashMap<Box<[u8]>, u16>,
    unlisted: u64,
    names: Vec<String>,
    meanings: Vec<&'static ClassAndShape>,
}

impl Calls {
    /// Only the listed calls.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "no empty list")]
    pub fn new() -> Self {
        let mut calls = Calls { others: FxHashMap::default(), unlisted: 0, names: Vec::new(), meanings: Vec::new() };
        for (names, meaning) in GROUPS {
            for name in names.split_ascii_whitespace() {
                calls.names.push(name.into());
                calls.meanings.push(meaning);
            }
        }
        calls
    }

    /// Number and meaning of a call, from what [`number`] returned for its name. The number is
    /// stable within a recording.
    #[inline]
    pub fn look_up(&mut self, listed: u16, name: &[u8]) -> (u16, &'static ClassAndShape) {
        let number = if listed == UNLISTED { self.other(name) } else { listed };
        (number, self.meanings[usize::from(number)])
    }

    /// How many times a call was looked up that is not in the list.
    pub fn unlisted(&self) -> u64 {
        self.unlisted
    }

    /// Names by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A garbage log may contain any number of names; above the limit they share one number.
    fn other(&mut self, name: &[u8]) -> u16 {
        const LIMIT: usize = 4096;
        const LONGEST: usize = 256;
        self.unlisted += 1;
        if let Some(number) = self.others.get(name) {
            return *number;
        }
        let name = if self.names.len() < LIMIT && name.len() <= LONGEST { name } else { b"(other)" };
        if let Some(number) = self.others.get(name) {
            return *number;
        }
        let number = u16::try_from(self.names.len()).expect("limited above");
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.meanings.push(&(Class::Other, Shape::Plain));
        self.others.insert(name.into(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_listed_twice() {
        let all: Vec<&str> = GROUPS.iter().flat_map(|(names, _)| names.split_ascii_whitespace()).collect();
        let mut unique = all.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len());
    }

    #[test]
    fn names_that_differ_in_the_middle_are_distinguished() {
        assert_ne!(number(b"sched_get_priority_max"), UNLISTED);
        assert_eq!(number(b"sched_get_Priority_max"), UNLISTED);
    }

    #[test]
    fn listed_calls_are_found_by_name() {
        let calls = Calls::new();
        for name in calls.names() {
            assert_eq!(calls.names()[usize::from(number(name.as_bytes()))], *name);
        }
        assert_eq!(number(b"syscall_0x1c5"), UNLISTED);
        assert_eq!(number(b""), UNLISTED);
    }

    #[test]
    fn unknown_calls_keep_their_names_up_to_a_limit() {
        let mut calls = Calls::new();
        let (number, meaning) = calls.look_up(UNLISTED, b"syscall_0x1c5");
        assert_eq!(calls.names()[usize::from(number)], "syscall_0x1c5");
        assert_eq!(*meaning, (Class::Other, Shape::Plain));
        for i in 0..10_000 {
            calls.look_up(UNLISTED, format!("x{i}").as_bytes());
        }
        assert!(calls.names().len() <= 4097);
    }
}
