//! Errors as text: place, fact, and remedy. All text for people is formed here.

use std::{io, path::Path};

use sysdock_agent::{AgentError, SettingsError};
use sysdock_bpf::{BpfError, accounting::RUNNING};
use sysdock_disk::{DiskError, map::MapError};
use sysdock_dump::DumpError;
use sysdock_itrace::ItraceError;
use sysdock_itrace_file::FileError;
use sysdock_load::LoadError;
use sysdock_measure::MeasureError;
use sysdock_strace::{Estimate, ImportError, Sign, Tool};
use sysdock_table::TableError;

use crate::{sentences, terminal};

/// Exit status of an error.
pub(crate) const EXIT_ERROR: u8 = 2;
/// Exit status after SIGINT or SIGTERM.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// An error for display.
#[derive(Debug)]
pub(crate) struct Message {
    fact: String,
    hint: Option<String>,
}

impl Message {
    pub(crate) fn new(fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Message { fact: fact.into(), hint: Some(hint.into()) }
    }

    pub(crate) fn bare(fact: impl Into<String>) -> Self {
        Message { fact: fact.into(), hint: None }
    }

    /// The text for places other than standard error.
    pub(crate) fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n\nhint: {}", harmless(hint)));
        harmless(&self.fact) + &hint.unwrap_or_default()
    }
}

#[allow(clippy::print_stderr)]
pub(crate) fn print(message: &Message) {
    eprintln!("{}", terminal::fitted(&format!("sysdock: {}", message.text())));
}

/// Print a message that is neither an error nor data.
#[allow(clippy::print_stderr)]
pub(crate) fn note(text: &str) {
    eprintln!("{}", terminal::fitted(&format!("sysdock: {}", harmless(text))));
}

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

/// Escape control characters, which names may contain and a terminal would execute.
fn harmless(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
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
            other => Message::bare(other.to_string()),
        }
    }
}

impl From<BpfError> for Message {
    fn from(error: BpfError) -> Self {
        match error {
            BpfError::Table(error) => error.into(),
            BpfError::Full(path) => {
                Message::new(full(&path), "everything recorded so far is kept: free some space, then run sysdock salvage REC")
            }
            BpfError::InUse(path) => Message::new(
                format!("{}: recording in progress", path.display()),
                "wait until the recorder ends, or stop it with Ctrl-C",
            ),
            BpfError::NotASpool(path) => Message::new(
                format!("{}: no recorded events", path.display()),
                "salvage works on the folder of a recording whose recorder died",
            ),
            BpfError::Spool(path, error) if error.kind() == io::ErrorKind::NotFound => Message::new(
                format!("{}: not found", path.display()),
                "salvage works on the folder of a recording whose recorder died; a complete recording needs no salvage",
            ),
            other => Message::bare(other.to_string()),
        }
    }
}

impl From<AgentError> for Message {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Table(error) => error.into(),
            AgentError::Io(path, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Message::new(format!("{}: {error}", path.display()), "run as root")
            }
            AgentError::Io(path, error) => Message::bare(format!("{}: {error}", path.display())),
            AgentError::Probe(error) if error.reason == RUNNING => Message::new(
                RUNNING,
                "one agent counts for the whole node; a second one for a trial needs --no-pin and its own --spool",
            ),
            AgentError::Probe(error) => Message::new(
                format!("cannot {}: {}", error.step, error.reason),
                "programs in the kernel need root, or CAP_BPF, CAP_PERFMON and CAP_SYS_RESOURCE; see docs/explain/kernel-recorder.md",
            ),
            AgentError::Settings(error) => settings(error),
            AgentError::InUse(path) => Message::new(
                format!("{}: another agent runs with this spool", path.display()),
                "one agent counts for the whole node; give --spool to try a second one",
            ),
            AgentError::Kernel(error) => Message::bare(format!("the kernel's counters cannot be read: {error}")),
            AgentError::Address(url) => Message::new(format!("{url}: not a valid destination"), "write https://HOST:PORT"),
            AgentError::Collector(why) => Message::bare(format!("the collector: {why}")),
            AgentError::Otlp(why, None) => Message::bare(format!("the OTLP receiver: {why}")),
            AgentError::Otlp(why, Some(after)) => {
                Message::bare(format!("the OTLP receiver: {why}; it requests a wait of {} s", after.as_secs()))
            }
            AgentError::Certificate(path, why) => {
                Message::new(format!("{}: {why}", path.display()), "certificates and keys are read in PEM")
            }
            AgentError::NewerLake(path) => {
                Message::new(format!("{}: this lake was made by a newer version of sysdock", path.display()), "update sysdock")
            }
            AgentError::TooLate => Message::bare("the file system of the lake took too long"),
            AgentError::NoAgent(path, error) => Message::new(
                format!("{}: {error}", path.display()),
                "no agent runs with this spool: start it by `systemctl start sysdock-agent`, or give --spool",
            ),
        }
    }
}

fn settings(error: SettingsError) -> Message {
    match error {
        SettingsError::Io(error) => Message::bare(error.to_string()),
        SettingsError::Toml(why) => Message::bare(why),
        SettingsError::NoPlace(segment) => Message::new(
            format!("group `{segment}` does not contain the place of the job"),
            "write it as in segment = \"job_{job}\"",
        ),
        SettingsError::NoSecret => Message::new(
            "`hide` needs `secret`",
            "names are hashed with it: write a text that only this site knows, the same on all nodes",
        ),
    }
}

impl From<DiskError> for Message {
    fn from(error: DiskError) -> Self {
        match error {
            DiskError::Table(error) => error.into(),
            DiskError::Io(path, error) => {
                let fact = format!("{}: {error}", path.display());
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        Message::new(fact, "give a mount point, a folder, a file, a block device or an image file")
                    }
                    io::ErrorKind::PermissionDenied => Message::new(fact, "run as root, or give a folder that you can read"),
                    _ => Message::bare(fact),
                }
            }
            DiskError::NoFileSystem(path) => Message::new(
                format!("{}: no known file system", path.display()),
                "blkid shows what a device holds; a disk with partitions has a device for each",
            ),
            DiskError::Refused(path, why, hint) => {
                Message::new(format!("{}: {}", path.display(), sentences::sentence(&why)), hint)
            }
            other => Message::bare(other.to_string()),
        }
    }
}

impl From<DumpError> for Message {
    fn from(error: DumpError) -> Self {
        let fact = error.to_string();
        match error {
            DumpError::Table(error) => error.into(),
            DumpError::Io(_, error) => match error.kind() {
                io::ErrorKind::NotFound => Message::new(fact, "kdump writes dumps below /var/crash"),
                io::ErrorKind::PermissionDenied => Message::new(fact, "run as root: a dump contains the memory of all users"),
                _ => Message::bare(fact),
            },
            DumpError::NoDump(..) => Message::new(
                fact,
                "give what kdump, makedumpfile or `dump-guest-memory` of qemu wrote; of a program that crashed, see `coredumpctl`",
            ),
            DumpError::Damaged(..) => {
                Message::new(fact, "is the file complete? compare its size with that on the machine that wrote it")
            }
            DumpError::OtherBuild(..) => Message::new(
                fact,
                "install the debug information of that very kernel; --force uses this one, whose lines may be wrong",
            ),
            other => Message::bare(other.to_string()),
        }
    }
}

impl From<ItraceError> for Message {
    fn from(error: ItraceError) -> Self {
        match error {
            ItraceError::Table(error) => error.into(),
            ItraceError::Facts(path, error) => Message::bare(format!("{}: {error}", path.display())),
            ItraceError::File(path, error) => {
                let path = path.display();
                match error {
                    FileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
                        Message::new(format!("{path}: {error}"), "to record instructions: sysdock itrace attach -o REC -- CMD")
                    }
                    FileError::Io(error) => Message::bare(format!("{path}: {error}")),
                    FileError::NoEventFile => Message::bare(format!("{path}: not an event file of an instruction trace")),
                    FileError::Version(version) => Message::new(
                        format!("{path}: unknown format version {version}"),
                        "it was written by a newer version of sysdock: update sysdock",
                    ),
                    FileError::Damaged(offset) => Message::bare(format!("{path}: damaged at byte {offset}")),
                }
            }
        }
    }
}

impl From<LoadError> for Message {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Io(path, error) if error.kind() == io::ErrorKind::TimedOut => Message::new(
                format!("{}: the file system does not answer", path.display()),
                "is its server up? see `dmesg`, and the state of processes that wait for it",
            ),
            LoadError::Io(path, error) => {
                let hint = match error.raw_os_error() {
                    Some(libc::EACCES | libc::EPERM) => "choose a directory that you may write, or use sudo",
                    Some(libc::EROFS) => "the mount is read-only: choose another directory",
                    Some(libc::ENOSPC | libc::EDQUOT) => "free some room, or raise the quota",
                    _ => "choose a directory on the file system to be measured",
                };
                Message::new(format!("{}: {}", path.display(), error), hint)
            }
            LoadError::NotADirectory(path) => Message::new(
                format!("{}: not a directory", path.display()),
                "choose a directory on the file system to be measured",
            ),
            LoadError::Step(why) => Message::new(why, "see `sysdock-native load --help`"),
            LoadError::Address(why) => Message::new(why, "see `sysdock-native http-load --help`"),
            LoadError::Http(error) => Message::bare(format!("the client failed: {error}")),
            LoadError::Table(error) => error.into(),
        }
    }
}

impl From<MeasureError> for Message {
    fn from(error: MeasureError) -> Self {
        match error {
            MeasureError::CannotRun(program, error) => {
                let program = program.to_string_lossy();
                match error.kind() {
                    io::ErrorKind::NotFound => Message::new(
                        format!("cannot run {program}: No such file"),
                        "give the path of the program, or a name that is in PATH",
                    ),
                    _ => Message::bare(format!("cannot run {program}: {error}")),
                }
            }
            MeasureError::Output(path, error) => {
                Message::new(format!("{}: {error}", path.display()), "--output and --errors name files that can be written")
            }
            MeasureError::Directory(path, error) => {
                Message::new(format!("{}: {error}", path.display()), "--directory names a folder that is there")
            }
            MeasureError::Cpus(error) => {
                Message::new(format!("--cpus: {error}"), "/sys/devices/system/cpu/online has the CPUs that there are")
            }
            MeasureError::NoSuchDevice(name) => {
                Message::new(format!("--device {name}: no such block device"), "/sys/class/block has their names")
            }
            MeasureError::DoesNotEnd(pid) => Message::new(
                format!("process {pid} does not end, although it was killed"),
                "it waits for a device or a server: see `cat /proc/PID/stack` and `dmesg`",
            ),
            MeasureError::System(what, error) => Message::bare(format!("cannot {what}: {error}")),
        }
    }
}

impl From<MapError> for Message {
    fn from(error: MapError) -> Self {
        let fact = error.to_string();
        match error {
            MapError::Io(_, error) if error.kind() == io::ErrorKind::NotFound => {
                Message::new(fact, "to record a disk: sysdock disk scan TARGET -o REC")
            }
            MapError::Damaged(..) => Message::new(fact, "the recording was damaged or changed after it was written; scan again"),
            MapError::NoTable(..) => Message::new(fact, "a map is drawn of what `sysdock disk scan` recorded"),
            MapError::NotFound(_) => {
                Message::new(fact, "give the path of a file or directory as `sysdock show REC disk/files` has it")
            }
            _ => Message::bare(fact),
        }
    }
}

/// A recorder cannot distinguish the two causes: nothing more can be written.
pub(crate) fn full(spool: &Path) -> String {
    format!("{}: the disk is full, or the file is larger than this shell's limit (ulimit -f)", spool.display())
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
    let what = match likeness {
        _ if binary => "a binary file".to_string(),
        Some(tool) => format!("it looks like {}", describe(tool).0),
        None => format!("it begins with {first:?}"),
    };
    let hint = likeness.filter(|_| !binary).map_or(HOW, |tool| describe(tool).1);
    Message::new(format!("{}: not a strace log: none of {lines} lines was understood ({what})", path.display()), hint)
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
        Tool::Gdb => ("a session of gdb", HOW),
        Tool::Compiler => ("messages of a compiler", HOW),
        Tool::Syslog => ("a system log", HOW),
    }
}

impl From<TableError> for Message {
    fn from(error: TableError) -> Self {
        let kind = error.io_kind();
        match (&error, kind) {
            (TableError::Exists(path), _) => Message::new(
                format!("{}: exists and is not empty", path.display()),
                "name another folder with -o, or remove this one",
            ),
            (TableError::Stranger(path, user), _) => Message::new(
                format!("{}: belongs to another user (uid {user})", path.display()),
                "only its owner may write to a recording; name another folder with -o, or work as that user",
            ),
            (TableError::OthersWrite(path), _) => Message::new(
                format!("{}: others may write to this folder", path.display()),
                format!("if you trust what is in it: chmod -R go-w {}", path.display()),
            ),
            (TableError::NotComplete(path), _) => Message::new(
                format!("{}: not a complete recording of this version", path.display()),
                "a capture is added to a recording that `sysdock run` or `sysdock import` finished",
            ),
            (
                TableError::Io(path, _) | TableError::Parquet(path, _),
                Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            ) => Message::new(
                format!("{}: no space left on device", path.display()),
                "what was closed before can be read; free some space or give another place with -o, and import again",
            ),
            (TableError::Io(path, _) | TableError::Parquet(path, _), Some(io::ErrorKind::FileTooLarge)) => Message::new(
                format!("{}: larger than this shell's limit for files", path.display()),
                "ulimit -f shows the limit; what was closed before can be read",
            ),
            (TableError::Io(path, _) | TableError::Parquet(path, _), Some(io::ErrorKind::PermissionDenied)) => {
                Message::new(format!("{}: permission denied", path.display()), "give a folder you may write with -o")
            }
            _ => Message::bare(error.to_string()),
        }
    }
}
