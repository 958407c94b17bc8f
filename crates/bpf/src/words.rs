//! Numbers of Linux on x86-64 in the words in which strace prints them.

use std::fmt::Write;

/// Names of errors from 1 on; empty where there is none.
const ERRORS: &str = "\
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV \
    ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG \
    ENOLCK ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR EXFULL \
    ENOANO EBADRQC EBADSLT - EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV ESRMNT ECOMM EPROTO EMULTIHOP \
    EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS \
    ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT \
    EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN \
    ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM \
    EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE \
    ERFKILL EHWPOISON";

/// Names of errors that only the kernel sees, from 512 on.
const KERNEL_ERRORS: &str = "\
    ERESTARTSYS ERESTARTNOINTR ERESTARTNOHAND ENOIOCTLCMD ERESTART_RESTARTBLOCK EPROBE_DEFER EOPENSTALE ENOPARAM - EBADHANDLE \
    ENOTSYNC EBADCOOKIE ENOTSUPP ETOOSMALL ESERVERFAULT EBADTYPE EJUKEBOX EIOCBQUEUED ERECALLCONFLICT";

const FIRST_KERNEL_ERROR: usize = 512;

/// The least result that is an error: mmap returns addresses that are negative, too.
const LEAST_ERROR: i64 = -4095;

/// The number of an error, where a result is one.
#[inline]
pub(crate) fn error_of(result: i64) -> Option<u16> {
    (LEAST_ERROR..0).contains(&result).then(|| result.unsigned_abs() as u16)
}

/// Name of an error.
pub(crate) fn error(number: u16) -> String {
    let number = usize::from(number);
    let name = match number.checked_sub(FIRST_KERNEL_ERROR) {
        None => number.checked_sub(1).and_then(|index| ERRORS.split_ascii_whitespace().nth(index)),
        Some(index) => KERNEL_ERRORS.split_ascii_whitespace().nth(index),
    };
    name.filter(|name| *name != "-").map_or_else(|| format!("ERRNO_{number}"), Into::into)
}

/// Whether the kernel starts a call again that ended with this error.
pub(crate) fn is_restart(number: u16) -> bool {
    matches!(number, 512 | 513 | 514 | 516)
}

/// Flags of opens, in strace's order. A set of several bits stands before its parts.
const OPEN_FLAGS: [(u64, &str); 19] = [
    (0o100, "O_CREAT"),
    (0o200, "O_EXCL"),
    (0o400, "O_NOCTTY"),
    (0o1000, "O_TRUNC"),
    (0o2000, "O_APPEND"),
    (0o4000, "O_NONBLOCK"),
    (0o4_010_000, "O_SYNC"),
    (0o10_000, "O_DSYNC"),
    (0o4_000_000, "__O_SYNC"),
    (0o40_000, "O_DIRECT"),
    (0o100_000, "O_LARGEFILE"),
    (0o400_000, "O_NOFOLLOW"),
    (0o1_000_000, "O_NOATIME"),
    (0o2_000_000, "O_CLOEXEC"),
    (0o10_000_000, "O_PATH"),
    (0o20_200_000, "O_TMPFILE"),
    (0o20_000_000, "__O_TMPFILE"),
    (0o200_000, "O_DIRECTORY"),
    (0o20_000, "FASYNC"),
];

/// How a file was opened: access mode, then flags.
pub(crate) fn open_flags(flags: u64) -> String {
    const MODES: [&str; 4] = ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"];
    // The argument is an int.
    let flags = flags & 0xffff_ffff;
    joined(MODES[(flags & 3) as usize].into(), flags & !3, &OPEN_FLAGS)
}

/// Whether the flags of an open ask for a directory.
pub(crate) fn asks_for_directory(flags: u64) -> bool {
    flags & 0o20_200_000 == 0o200_000
}

/// What a mapping may be used for.
pub(crate) fn protection(bits: u32) -> String {
    const BITS: [(u64, &str); 6] = [
        (1, "PROT_READ"),
        (2, "PROT_WRITE"),
        (4, "PROT_EXEC"),
        (8, "PROT_SEM"),
        (0x100_0000, "PROT_GROWSDOWN"),
        (0x200_0000, "PROT_GROWSUP"),
    ];
    if bits == 0 { "PROT_NONE".into() } else { joined(String::new(), bits.into(), &BITS) }
}

/// Names of bits joined by `|`, the rest as a number.
fn joined(mut out: String, mut bits: u64, names: &[(u64, &str)]) -> String {
    for (mask, name) in names {
        if bits & mask == *mask {
            bits &= !mask;
            let bar = if out.is_empty() { "" } else { "|" };
            let _ = write!(out, "{bar}{name}");
        }
    }
    if bits != 0 {
        let bar = if out.is_empty() { "" } else { "|" };
        let _ = write!(out, "{bar}{bits:#x}");
    }
    out
}

/// Names of signals from 1 on.
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Name of a signal.
pub(crate) fn signal(number: i32) -> String {
    let name = usize::try_from(number).ok().and_then(|number| SIGNALS.get(number.checked_sub(1)?));
    match (name, number) {
        (Some(name), _) => (*name).into(),
        (None, 32) => "SIGRTMIN".into(),
        (None, 33..=64) => format!("SIGRT_{}", number - 32),
        (None, _) => format!("SIG_{number}"),
    }
}

/// The si_code of a signal.
pub(crate) fn signal_code(signal: i32, code: i32) -> String {
    let own: &[&str] = match signal {
        libc::SIGCHLD => &["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"],
        libc::SIGSEGV => &["SEGV_MAPERR", "SEGV_ACCERR", "SEGV_BNDERR", "SEGV_PKUERR"],
        libc::SIGBUS => &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"],
        libc::SIGFPE => {
            &["FPE_INTDIV", "FPE_INTOVF", "FPE_FLTDIV", "FPE_FLTOVF", "FPE_FLTUND", "FPE_FLTRES", "FPE_FLTINV", "FPE_FLTSUB"]
        }
        libc::SIGILL => {
            &["ILL_ILLOPC", "ILL_ILLOPN", "ILL_ILLADR", "ILL_ILLTRP", "ILL_PRVOPC", "ILL_PRVREG", "ILL_COPROC", "ILL_BADSTK"]
        }
        libc::SIGTRAP => &["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"],
        libc::SIGIO => &["POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"],
        libc::SIGSYS => &["SYS_SECCOMP", "SYS_USER_DISPATCH"],
        _ => &[],
    };
    let any = ["SI_USER", "SI_QUEUE", "SI_TIMER", "SI_MESGQ", "SI_ASYNCIO", "SI_SIGIO", "SI_TKILL", "SI_DETHREAD"];
    let name = match code {
        0x80 => Some(&"SI_KERNEL"),
        -60 => Some(&"SI_ASYNCNL"),
        1.. => usize::try_from(code - 1).ok().and_then(|index| own.get(index)),
        _ => usize::try_from(code.unsigned_abs()).ok().and_then(|index| any.get(index)),
    };
    name.map_or_else(|| format!("{code:#x}"), |name| (*name).into())
}

/// Whether a signal with this code says who sent it. Else the same bytes hold an address, or a timer.
pub(crate) fn has_sender(signal: i32, code: i32, sender: u32) -> bool {
    match signal {
        _ if code <= 0 => code != -2,
        libc::SIGCHLD => true,
        libc::SIGSEGV | libc::SIGBUS | libc::SIGFPE | libc::SIGILL | libc::SIGTRAP | libc::SIGIO | libc::SIGSYS => false,
        _ => sender != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_names_of_libc() {
        let cases = [
            (libc::EPERM, "EPERM"),
            (libc::EAGAIN, "EAGAIN"),
            (libc::ENOSYS, "ENOSYS"),
            (libc::ELOOP, "ELOOP"),
            (libc::ENOMSG, "ENOMSG"),
            (libc::EBFONT, "EBFONT"),
            (libc::EOPNOTSUPP, "EOPNOTSUPP"),
            (libc::ETIMEDOUT, "ETIMEDOUT"),
            (libc::EDQUOT, "EDQUOT"),
            (libc::EHWPOISON, "EHWPOISON"),
        ];
        for (number, name) in cases {
            assert_eq!(error(number as u16), name);
        }
        for (number, name) in [(512, "ERESTARTSYS"), (514, "ERESTARTNOHAND"), (516, "ERESTART_RESTARTBLOCK"), (524, "ENOTSUPP")] {
            assert_eq!(error(number), name);
        }
        assert_eq!([error(41), error(4000), error(0)], ["ERRNO_41", "ERRNO_4000", "ERRNO_0"]);
    }

    #[test]
    fn only_small_negative_numbers_are_errors() {
        assert_eq!([-1, -4095, -4096, 0, i64::MIN].map(error_of), [Some(1), Some(4095), None, None, None]);
    }

    #[test]
    fn flags_are_those_that_strace_prints() {
        // Printed by strace 6.1 for these arguments.
        for (flags, words) in [
            (0o2_304_000u64, "O_RDONLY|O_NONBLOCK|O_LARGEFILE|O_CLOEXEC|O_DIRECTORY"),
            (
                0x7f_ffff,
                "O_ACCMODE|O_CREAT|O_EXCL|O_NOCTTY|O_TRUNC|O_APPEND|O_NONBLOCK|O_SYNC|O_DIRECT|O_LARGEFILE|O_NOFOLLOW|O_NOATIME|O_CLOEXEC|O_PATH|O_TMPFILE|FASYNC|0x3c",
            ),
            (0x8000_0040, "O_RDONLY|O_CREAT|0x80000000"),
            (0o4_010_002, "O_RDWR|O_SYNC"),
            (0o10_000, "O_RDONLY|O_DSYNC"),
            (3, "O_ACCMODE"),
        ] {
            assert_eq!(open_flags(flags), words, "{flags:o}");
        }
        assert_eq!(protection(0), "PROT_NONE");
        assert_eq!(protection(5), "PROT_READ|PROT_EXEC");
        assert_eq!(protection(0xffff_ffff), "PROT_READ|PROT_WRITE|PROT_EXEC|PROT_SEM|PROT_GROWSDOWN|PROT_GROWSUP|0xfcfffff0");
    }

    #[test]
    fn signals_have_names_and_codes() {
        assert_eq!(
            [signal(1), signal(17), signal(31), signal(32), signal(34)],
            ["SIGHUP", "SIGCHLD", "SIGSYS", "SIGRTMIN", "SIGRT_2"]
        );
        assert_eq!([signal(0), signal(-3), signal(65)], ["SIG_0", "SIG_-3", "SIG_65"]);
        assert_eq!(signal_code(libc::SIGCHLD, 1), "CLD_EXITED");
        assert_eq!(signal_code(libc::SIGINT, 0x80), "SI_KERNEL");
        assert_eq!(signal_code(libc::SIGUSR1, -6), "SI_TKILL");
        assert_eq!(signal_code(libc::SIGUSR1, 3), "0x3");
        assert_eq!(signal_code(libc::SIGUSR1, i32::MIN), "0x80000000");
        assert!(has_sender(libc::SIGCHLD, 1, 5) && !has_sender(libc::SIGSEGV, 1, 5) && has_sender(libc::SIGTERM, 0, 0));
    }
}
