//! System calls of 32-bit programs on x86-64. Their numbers differ, and some have their arguments
//! elsewhere. Each is recorded as the equivalent 64-bit call: `fstat64` as `fstat`, `mmap2` as
//! `mmap`, `socketcall` as the call that it makes.

use super::numbers;

/// Names by number (Linux, arch/x86/entry/syscalls/syscall_32.tbl, up to 6.18); `-`: there is none.
/// From 424 on the numbers are those of 64-bit programs.
const LOW: &str = "\
    restart_syscall exit fork read write open close waitpid creat link unlink execve chdir time mknod chmod lchown break \
    oldstat lseek getpid mount umount setuid getuid stime ptrace alarm oldfstat pause utime stty gtty access nice ftime \
    sync kill rename mkdir rmdir dup pipe times prof brk setgid getgid signal geteuid getegid acct umount2 lock ioctl \
    fcntl mpx setpgid ulimit oldolduname umask chroot ustat dup2 getppid getpgrp setsid sigaction sgetmask ssetmask \
    setreuid setregid sigsuspend sigpending sethostname setrlimit getrlimit getrusage gettimeofday settimeofday \
    getgroups setgroups select symlink oldlstat readlink uselib swapon reboot readdir mmap munmap truncate ftruncate \
    fchmod fchown getpriority setpriority profil statfs fstatfs ioperm socketcall syslog setitimer getitimer stat lstat \
    fstat olduname iopl vhangup idle vm86old wait4 swapoff sysinfo ipc fsync sigreturn clone setdomainname uname \
    modify_ldt adjtimex mprotect sigprocmask create_module init_module delete_module get_kernel_syms quotactl getpgid \
    fchdir bdflush sysfs personality afs_syscall setfsuid setfsgid _llseek getdents _newselect flock msync readv writev \
    getsid fdatasync _sysctl mlock munlock mlockall munlockall sched_setparam sched_getparam sched_setscheduler \
    sched_getscheduler sched_yield sched_get_priority_max sched_get_priority_min sched_rr_get_interval nanosleep mremap \
    setresuid getresuid vm86 query_module poll nfsservctl setresgid getresgid prctl rt_sigreturn rt_sigaction \
    rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend pread64 pwrite64 chown getcwd capget \
    capset sigaltstack sendfile getpmsg putpmsg vfork ugetrlimit mmap2 truncate64 ftruncate64 stat64 lstat64 fstat64 \
    lchown32 getuid32 getgid32 geteuid32 getegid32 setreuid32 setregid32 getgroups32 setgroups32 fchown32 setresuid32 \
    getresuid32 setresgid32 getresgid32 chown32 setuid32 setgid32 setfsuid32 setfsgid32 pivot_root mincore madvise \
    getdents64 fcntl64 - - gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr \
    llistxattr flistxattr removexattr lremovexattr fremovexattr tkill sendfile64 futex sched_setaffinity \
    sched_getaffinity set_thread_area get_thread_area io_setup io_destroy io_getevents io_submit io_cancel fadvise64 - \
    exit_group lookup_dcookie epoll_create epoll_ctl epoll_wait remap_file_pages set_tid_address timer_create \
    timer_settime timer_gettime timer_getoverrun timer_delete clock_settime clock_gettime clock_getres clock_nanosleep \
    statfs64 fstatfs64 tgkill utimes fadvise64_64 vserver mbind get_mempolicy set_mempolicy mq_open mq_unlink \
    mq_timedsend mq_timedreceive mq_notify mq_getsetattr kexec_load waitid - add_key request_key keyctl ioprio_set \
    ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat futimesat \
    fstatat64 unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list \
    get_robust_list splice sync_file_range tee vmsplice move_pages getcpu epoll_pwait utimensat signalfd timerfd_create \
    eventfd fallocate timerfd_settime timerfd_gettime signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv \
    pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 name_to_handle_at \
    open_by_handle_at clock_adjtime syncfs sendmmsg setns process_vm_readv process_vm_writev kcmp finit_module \
    sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat socket socketpair bind connect \
    listen accept4 getsockopt setsockopt getsockname getpeername sendto sendmsg recvfrom recvmsg shutdown userfaultfd \
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx arch_prctl io_pgetevents \
    rseq - - - - - - semget semctl shmget shmctl shmat shmdt msgget msgsnd msgrcv msgctl clock_gettime64 clock_settime64 \
    clock_adjtime64 clock_getres_time64 clock_nanosleep_time64 timer_gettime64 timer_settime64 timerfd_gettime64 \
    timerfd_settime64 utimensat_time64 pselect6_time64 ppoll_time64 - io_pgetevents_time64 recvmmsg_time64 \
    mq_timedsend_time64 mq_timedreceive_time64 semtimedop_time64 rt_sigtimedwait_time64 futex_time64 \
    sched_rr_get_interval_time64";

/// Equivalent calls under another name. Names that end in `_time64`, `64` or `32` are found without
/// that ending.
const SAME: [(&str, &str); 19] = [
    ("waitpid", "wait4"),
    ("umount", "umount2"),
    ("_llseek", "lseek"),
    ("_newselect", "select"),
    ("mmap2", "mmap"),
    ("oldstat", "stat"),
    ("oldlstat", "lstat"),
    ("oldfstat", "fstat"),
    ("fstatat64", "newfstatat"),
    ("fadvise64_64", "fadvise64"),
    ("ugetrlimit", "getrlimit"),
    ("readdir", "getdents"),
    ("sigaction", "rt_sigaction"),
    ("sigprocmask", "rt_sigprocmask"),
    ("sigpending", "rt_sigpending"),
    ("sigsuspend", "rt_sigsuspend"),
    ("sigreturn", "rt_sigreturn"),
    ("olduname", "uname"),
    ("oldolduname", "uname"),
];

/// How arguments become those of the 64-bit call: `enum compat_how` of `bpf/compat.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
enum How {
    Same = 0,
    /// The offset is in pages.
    Pages,
    /// The argument points to all arguments.
    InMemory,
    /// The fourth and fifth argument are the halves of a number.
    HalvesFromFourth,
    /// The second and third argument are the halves of a number.
    HalvesFromSecond,
    /// `_llseek`, which writes its result to memory.
    LongSeek,
    /// The first argument selects a socket call, the second points to its arguments.
    Sockets,
    /// Pointers to offsets point to 32 bits.
    ShortOffsets,
}

/// Number of bits for the call's number in an entry of [`table`]; `How` is above them.
const NUMBER_BITS: u32 = 10;

impl How {
    fn of(name: &str) -> Self {
        match name {
            "mmap2" => How::Pages,
            "mmap" | "select" => How::InMemory,
            "pread64" | "pwrite64" | "preadv" | "pwritev" | "preadv2" | "pwritev2" => How::HalvesFromFourth,
            "truncate64" | "ftruncate64" | "readahead" => How::HalvesFromSecond,
            "_llseek" => How::LongSeek,
            "socketcall" => How::Sockets,
            "sendfile" => How::ShortOffsets,
            _ => How::Same,
        }
    }
}

/// For each 32-bit number: the number of the equivalent 64-bit call, and how its arguments are
/// found.
pub(crate) fn table(length: usize) -> Vec<u16> {
    let known = numbers::names();
    let number = |name: &str| known.iter().position(|other| *other == name && !name.is_empty());
    let mut names: Vec<&str> = LOW.split_ascii_whitespace().collect();
    names.extend(known.iter().skip(names.len()));
    names.resize(length, "");
    let entry = |name: &&str| {
        let number = same(name).into_iter().find_map(number).unwrap_or(numbers::WITHOUT_NAME);
        u16::try_from(number).unwrap_or(0) | (How::of(name) as u16) << NUMBER_BITS
    };
    names.iter().map(entry).collect()
}

/// Possible names of the equivalent call, best first.
fn same(name: &str) -> Vec<&str> {
    let alias = SAME.iter().find(|(known, _)| *known == name).map(|(_, same)| *same);
    let shorter = ["_time64", "64", "32"].iter().find_map(|end| name.strip_suffix(end));
    alias.into_iter().chain([name]).chain(shorter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_32_bit_programs_are_those_that_do_the_same() {
        let table = table(512);
        let names = numbers::names();
        let of = |number: usize| (names[usize::from(table[number] & 0x3ff)], table[number] >> NUMBER_BITS);
        // Numbers of asm/unistd_32.h.
        for (number, name, how) in [
            (1, "exit", How::Same),
            (3, "read", How::Same),
            (5, "open", How::Same),
            (7, "wait4", How::Same),
            (19, "lseek", How::Same),
            (90, "mmap", How::InMemory),
            (140, "lseek", How::LongSeek),
            (180, "pread64", How::HalvesFromFourth),
            (192, "mmap", How::Pages),
            (194, "ftruncate", How::HalvesFromSecond),
            (195, "stat", How::Same),
            (199, "getuid", How::Same),
            (295, "openat", How::Same),
            (300, "newfstatat", How::Same),
            (403, "clock_gettime", How::Same),
            (422, "futex", How::Same),
            (437, "openat2", How::Same),
        ] {
            assert_eq!(of(number), (name, how as u16), "{number}");
        }
        // `socketcall` stands for many calls; its first argument selects one.
        assert_eq!(table[102] >> NUMBER_BITS, How::Sockets as u16);
        // Calls that 64-bit programs do not have.
        assert_eq!(usize::from(table[34] & 0x3ff), numbers::WITHOUT_NAME);
    }
}
