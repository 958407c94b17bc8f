//! Names of Linux constants on x86-64, as strace prints them.

use std::fmt::Write;

/// Flags of opens, in strace's order. A set of several bits precedes its parts.
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

/// Whether the flags of an open request a directory.
pub(crate) fn requests_directory(flags: u64) -> bool {
    flags & 0o20_200_000 == 0o200_000
}

/// The permitted access of a mapping.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_those_that_strace_prints() {
        // Output of strace 6.1 for these arguments.
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
}
