//! Errors of `sysdock-strace` as text, and what was found about the clocks of its logs.

use std::{io, path::Path};

use sysdock_strace::{Estimate, ImportError, Sign, Tool};

use super::Message;

/// The difference between the clock of a log and that of the first one.
pub(crate) fn clock(log: &str, estimate: Option<&Estimate>) -> String {
    let Some(estimate) = estimate else {
        return format!("{log}: no shared file to compare clocks by; give --offset {log}=SECONDS if you know the difference");
    };
    let seconds = |ns: i64| match ns {
        i64::MIN => "-∞".to_string(),
        i64::MAX => "∞".to_string(),
        ns => format!("{:+.6}", ns as f64 / 1e9),
    };
    let (least, greatest) = estimate.range_ns;
    format!(
        "{log}: {} s are added to its times (from {} to {} s fit {} shared files)",
        seconds(estimate.offset_ns),
        seconds(least),
        seconds(greatest),
        estimate.files
    )
}

impl From<ImportError> for Message {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Input(path, error) => input(&path, &error),
            ImportError::Empty(path) => Message::new(
                format!("{}: empty", path.display()),
                "a log of strace has a line for each system call; was it written to another file (strace -o)?",
            ),
            ImportError::NotStrace(path, lines, first, likeness) => not_strace(&path, lines, &first, likeness),
            ImportError::Foreign(path, sign) => foreign(&path, sign),
            ImportError::NoSuchLog(name, logs) => {
                Message::new(format!("--offset {name}: no log of that name"), format!("the logs are: {}", logs.join(", ")))
            }
            ImportError::Table(error) => error.into(),
        }
    }
}

fn input(path: &Path, error: &io::Error) -> Message {
    let place = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => Message::new(
            format!("{place}: no such file"),
            "give the file that strace wrote with -o FILE, or - for standard input",
        ),
        io::ErrorKind::IsADirectory => Message::new(
            format!("{place}: is a directory"),
            format!(
                "give files; for a set that strace -ff wrote: sysdock import {}/* -o REC",
                place.to_string().trim_end_matches('/')
            ),
        ),
        io::ErrorKind::PermissionDenied => Message::new(
            format!("{place}: permission denied"),
            "logs of strace run by root are readable by root only; ask for a copy, or run as root",
        ),
        _ => Message::bare(format!("{place}: {error}")),
    }
}

const HOW: &str =
    "to make a log: strace -f -ttt -T -y -o run.strace CMD, or on Solaris and illumos: truss -f -l -d -E -o run.truss CMD";

fn not_strace(path: &Path, lines: u64, first: &str, likeness: Option<Tool>) -> Message {
    let binary = first.chars().any(|c| c == '\0' || c == '\u{fffd}' || (c.is_control() && c != '\t'));
    if let Some((packer, unpack)) = packed(first) {
        let hint = format!("unpack it first: {unpack} {}", path.display());
        return Message::new(format!("{}: compressed by {packer}, which is not read", path.display()), hint);
    }
    let what = match likeness {
        _ if binary => "a binary file".to_string(),
        Some(tool) => format!("it looks like {}", describe(tool).0),
        None => format!("it begins with {first:?}"),
    };
    let hint = likeness.filter(|_| !binary).map_or(HOW, |tool| describe(tool).1);
    Message::new(format!("{}: not a strace log: none of {lines} lines was understood ({what})", path.display()), hint)
}

/// The program that compressed a file, and the command that unpacks it.
fn packed(first: &str) -> Option<(&'static str, &'static str)> {
    match first {
        _ if first.starts_with("\u{fffd}7zXZ") => Some(("xz", "xz -dk")),
        _ if first.starts_with("BZh") => Some(("bzip2", "bzip2 -dk")),
        _ if first.starts_with("PK\u{3}\u{4}") => Some(("zip", "unzip")),
        _ if first.starts_with("\u{4}\"M\u{18}") => Some(("lz4", "lz4 -d")),
        _ => None,
    }
}

fn foreign(path: &Path, sign: Sign) -> Message {
    let (name, hint) = describe(sign.tool);
    Message::new(format!("{}: not a strace log: line {} is of {name}", path.display(), sign.line), hint)
}

/// The tool of a log, and what to do instead.
fn describe(tool: Tool) -> (&'static str, &'static str) {
    match tool {
        Tool::Ltrace => ("ltrace, which prints calls of libraries", HOW),
        Tool::FreeBsdTruss => {
            ("truss of FreeBSD, which is not read", "truss of Solaris and illumos is read, and strace of Linux")
        }
        Tool::Dtruss => ("dtruss, which is not read", "truss of Solaris and illumos is read, and strace of Linux"),
        Tool::Library => ("a tool that prints calls of functions: most of them are not system calls", HOW),
        Tool::Kdump => ("kdump, the log of ktrace", "truss of Solaris and illumos is read, and strace of Linux"),
        Tool::PerfTrace => ("perf trace", "sysdock run -- CMD records system calls by itself, without strace"),
        Tool::KernelEvents => {
            ("perf script, ftrace or trace-cmd", "sysdock run -- CMD records what the scheduler does by itself")
        }
        Tool::Qemu => (
            "qemu -strace, which is not read",
            "record inside of a machine: strace -f -ttt -T -y -o run.strace CMD; or run qemu itself under strace",
        ),
        Tool::Gvisor => ("the system calls of gVisor (runsc), which are not read", HOW),
        Tool::StraceSummary => {
            ("the table of strace -c, which has sums only", "record the calls themselves: strace -f -ttt -T -y -o run.strace CMD")
        }
        Tool::Gdb => ("a session of gdb", HOW),
        Tool::Compiler => ("messages of a compiler", HOW),
        Tool::Syslog => ("a system log", HOW),
    }
}
