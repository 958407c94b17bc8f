//! Names of signals, as strace prints them.

/// Names of signals from number 1 on.
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
#[must_use]
pub fn name(number: i32) -> String {
    let name = usize::try_from(number).ok().and_then(|number| SIGNALS.get(number.checked_sub(1)?));
    match (name, number) {
        (Some(name), _) => (*name).into(),
        (None, 32) => "SIGRTMIN".into(),
        (None, 33..=64) => format!("SIGRT_{}", number - 32),
        (None, _) => format!("SIG_{number}"),
    }
}

/// Name of the si_code of a signal.
pub(crate) fn code(signal: i32, code: i32) -> String {
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

/// Whether a signal with this code states who sent it. Otherwise the same bytes contain an address,
/// or a timer.
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
    fn signals_have_names_and_codes() {
        assert_eq!([name(1), name(17), name(31), name(32), name(34)], ["SIGHUP", "SIGCHLD", "SIGSYS", "SIGRTMIN", "SIGRT_2"]);
        assert_eq!([name(0), name(-3), name(65)], ["SIG_0", "SIG_-3", "SIG_65"]);
        assert_eq!(code(libc::SIGCHLD, 1), "CLD_EXITED");
        assert_eq!(code(libc::SIGINT, 0x80), "SI_KERNEL");
        assert_eq!(code(libc::SIGUSR1, -6), "SI_TKILL");
        assert_eq!(code(libc::SIGUSR1, 3), "0x3");
        assert_eq!(code(libc::SIGUSR1, i32::MIN), "0x80000000");
        assert!(has_sender(libc::SIGCHLD, 1, 5) && !has_sender(libc::SIGSEGV, 1, 5) && has_sender(libc::SIGTERM, 0, 0));
    }
}
