//! Names of Linux errors on x86-64, as strace prints them.

/// Names of errors from number 1 on; `-` where there is none.
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

/// Names of errors that only the kernel sees, from number 512 on.
const KERNEL_ERRORS: &str = "\
    ERESTARTSYS ERESTARTNOINTR ERESTARTNOHAND ENOIOCTLCMD ERESTART_RESTARTBLOCK EPROBE_DEFER EOPENSTALE ENOPARAM - EBADHANDLE \
    ENOTSYNC EBADCOOKIE ENOTSUPP ETOOSMALL ESERVERFAULT EBADTYPE EJUKEBOX EIOCBQUEUED ERECALLCONFLICT";

const FIRST_KERNEL_ERROR: usize = 512;

/// The least result that is an error. Smaller ones are addresses: mmap may return negative numbers,
/// too.
const LEAST_ERROR: i64 = -4095;

/// The number of the error, if a result is one.
#[inline]
pub fn error_of(result: i64) -> Option<u16> {
    (LEAST_ERROR..0).contains(&result).then(|| result.unsigned_abs() as u16)
}

/// Name of an error.
pub fn error_name(number: u16) -> String {
    let number = usize::from(number);
    let name = match number.checked_sub(FIRST_KERNEL_ERROR) {
        None => number.checked_sub(1).and_then(|index| ERRORS.split_ascii_whitespace().nth(index)),
        Some(index) => KERNEL_ERRORS.split_ascii_whitespace().nth(index),
    };
    name.filter(|name| *name != "-").map_or_else(|| format!("ERRNO_{number}"), Into::into)
}

/// Name of an error whose number is the same on every architecture: those of
/// asm-generic/errno-base.h, and the kernel's own.
#[must_use]
pub fn common_name(number: u16) -> Option<&'static str> {
    let name = match number {
        1..=34 => ERRORS.split_ascii_whitespace().nth(usize::from(number) - 1),
        _ => usize::from(number)
            .checked_sub(FIRST_KERNEL_ERROR)
            .and_then(|index| KERNEL_ERRORS.split_ascii_whitespace().nth(index)),
    };
    name.filter(|name| *name != "-")
}

/// Whether the kernel restarts a call that ended with this error.
pub fn is_restart(number: u16) -> bool {
    matches!(number, 512 | 513 | 514 | 516)
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
            assert_eq!(error_name(number as u16), name);
        }
        for (number, name) in [(512, "ERESTARTSYS"), (514, "ERESTARTNOHAND"), (516, "ERESTART_RESTARTBLOCK"), (524, "ENOTSUPP")] {
            assert_eq!(error_name(number), name);
        }
        assert_eq!([41, 4000, 0].map(error_name), ["ERRNO_41", "ERRNO_4000", "ERRNO_0"]);
    }

    #[test]
    fn only_common_numbers_have_a_name_everywhere() {
        let names = [0, 5, 34, 35, 110, 512, 520, 60_000].map(common_name);
        assert_eq!(names, [None, Some("EIO"), Some("ERANGE"), None, None, Some("ERESTARTSYS"), None, None]);
    }

    #[test]
    fn only_small_negative_numbers_are_errors() {
        assert_eq!([-1, -4095, -4096, 0, i64::MIN].map(error_of), [Some(1), Some(4095), None, None, None]);
    }
}
