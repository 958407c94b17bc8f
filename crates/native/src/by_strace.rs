//! Recording by strace, where the kernel recorder may not or cannot run.
//!
//! strace writes into a FIFO and the importer reads from it, so no log lies on disk. States: *starting* (both ends of the FIFO are open
//! here, so that neither side waits for the other) -> *running* -> *strace ended* (our writing end is closed, the reader sees the end).

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    fs::{self, File},
    io,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use sysdock_strace::{ImportError, Logs, Options};
use sysdock_table::{Cancel, Manifest, Recording};

use crate::{
    arguments, environment, import,
    messages::{EXIT_INTERRUPTED, Message},
    progress::Reporter,
    record,
    signals::{self, Counts},
};

/// Children, wall clock, durations, paths of descriptors; strings long enough for a command line, not for data.
const STRACE_OPTIONS: [&str; 6] = ["-f", "-ttt", "-T", "-y", "-s", "128"];

/// Record; returns the exit status of the command (128 + N if signal N killed it), as a shell would.
pub(crate) fn run(arguments: &arguments::Record, output: &Path) -> Result<u8, Message> {
    let strace = record::find(OsStr::new("strace"))
        .ok_or_else(|| Message::new("strace is not installed", "apt-get install strace (or dnf install strace)"))?;
    let directory = env::current_dir().ok();
    let rows = environment::of_this_machine(&arguments.command, directory.as_deref().map(|d| d.to_string_lossy().into_owned()));
    let fifo = Fifo::make()
        .map_err(|error| Message::new(format!("cannot make a FIFO: {error}"), "is the temporary folder (TMPDIR) writable?"))?;
    let mut recording = Recording::create(output, manifest(&arguments.command, directory.as_deref()))?;
    environment::write(&mut recording, &rows)?;

    signals::count_signals();
    signals::ring_alarms();
    let child = start(&strace, &fifo.path, &arguments.command)
        .map_err(|error| Message::new(format!("cannot start strace: {error}"), "is it executable?"))?;
    let cancel = Cancel::default();
    let watch = Watch::start(child, fifo.writer, cancel.clone());
    let mut reporter = Reporter::new(&arguments.progress);
    let options = Options { directory, name: Some("strace".into()), ..Options::default() };
    let rest = fifo.reader.try_clone();
    let outcome = Logs::of_pipe(fifo.reader, &options)
        .and_then(|logs| logs.import(&mut recording, &options, &cancel, &mut |progress| reporter.report(progress)));
    if outcome.is_err() {
        drain(rest);
    }
    let status = watch.join();
    let refused = matches!(outcome, Err(ImportError::Empty(_)));
    let ended = import::finish(recording, outcome);
    if refused {
        return Err(Message::new(
            format!("strace recorded nothing (it ended with {status})"),
            "may this user trace programs? In a container ptrace is often forbidden (docker run --cap-add SYS_PTRACE)",
        ));
    }
    ended?;
    Ok(if cancel.requested() { EXIT_INTERRUPTED } else { record::exit_code(status) })
}

fn manifest(command: &[OsString], directory: Option<&Path>) -> Manifest {
    let mut manifest = sysdock_strace::manifest("strace");
    manifest.command = Some(environment::command_text(command));
    manifest.directory = directory.map(|directory| directory.to_string_lossy().into_owned());
    manifest.host = environment::host_name();
    manifest.capture_mut().options = STRACE_OPTIONS.map(String::from).to_vec();
    manifest
}

fn start(strace: &Path, fifo: &Path, command: &[OsString]) -> io::Result<Child> {
    let mut start = Command::new(strace);
    start.args(STRACE_OPTIONS).arg("-o").arg(fifo).arg("--").args(command);
    // SAFETY: between fork and exec, prctl only sets an attribute of the new process. If the recorder is killed, strace goes with it and
    // the command runs on untraced; it would otherwise stay, and complain about the broken pipe for each call.
    unsafe {
        start.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    start.spawn()
}

/// Read on to the end without importing, after an error: strace must not wait for a reader, nor the command for strace.
fn drain(rest: io::Result<File>) {
    if let Ok(mut rest) = rest {
        let _ = io::copy(&mut rest, &mut io::sink());
    }
}

/// A FIFO in a folder of its own.
struct Fifo {
    path: PathBuf,
    /// Our writing end, held until strace has ended: without it the reader would see the end before strace opens its own.
    writer: File,
    reader: File,
    _folder: tempfile::TempDir,
}

impl Fifo {
    fn make() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("sysdock-").tempdir()?;
        let path = folder.path().join("strace");
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: `name` is a NUL-terminated string that lives through the call.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let writer = File::options().read(true).write(true).open(&path)?;
        let reader = File::open(&path)?;
        Ok(Fifo { path, writer, reader, _folder: folder })
    }
}

/// Waits for strace and passes signals on, while the main thread imports.
struct Watch {
    waiter: thread::JoinHandle<ExitStatus>,
    ended: Arc<AtomicBool>,
    signals: thread::JoinHandle<()>,
}

impl Watch {
    fn start(mut child: Child, writer: File, cancel: Cancel) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let strace = child.id();
        let flag = Arc::clone(&ended);
        let signals = thread::spawn(move || pass_signals(strace, &flag, &cancel));
        let flag = Arc::clone(&ended);
        let waiter = thread::spawn(move || {
            let status = child.wait().unwrap_or_default();
            flag.store(true, Ordering::Relaxed);
            drop(writer);
            status
        });
        Watch { waiter, ended, signals }
    }

    fn join(self) -> ExitStatus {
        let status = self.waiter.join().unwrap_or_default();
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.signals.join();
        status
    }
}

/// What a signal to the recorder means: SIGTERM and SIGHUP go on to the command. SIGINT comes from the terminal, which has sent it to
/// the command too; a second one says that the command does not heed it: then recording ends and the command runs on.
fn pass_signals(strace: u32, ended: &AtomicBool, cancel: &Cancel) {
    let mut seen = Counts::default();
    while !ended.load(Ordering::Relaxed) {
        let now = signals::counts();
        if now.terminations > seen.terminations {
            send_to_command(strace, libc::SIGTERM);
        }
        if now.hangups > seen.hangups {
            send_to_command(strace, libc::SIGHUP);
        }
        if now.interrupts >= 2 && now.interrupts > seen.interrupts {
            cancel.request();
            record::send(strace, libc::SIGKILL);
        }
        seen = now;
        thread::sleep(Duration::from_millis(20));
    }
}

/// The command is strace's first child.
fn send_to_command(strace: u32, signal: libc::c_int) {
    let children = fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).unwrap_or_default();
    if let Some(command) = children.split_whitespace().next().and_then(|pid| pid.parse().ok()) {
        record::send(command, signal);
    }
}
