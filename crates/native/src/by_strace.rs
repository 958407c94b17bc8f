//! Recording with strace, where the kernel recorder must not or cannot run.
//!
//! strace writes to a FIFO and the importer reads from it, so there is no log on disk. States:
//! *starting* (both ends of the FIFO are open here, so that neither side waits for the other) ->
//! *running* -> *strace ended* (our writing end is closed, the reader sees the end) -> if strace
//! was killed, *untraced*: the command continues without it, and is waited for.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
    io,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::{Signal, set_parent_process_death_signal},
};
use sysdock_strace::{ImportError, Logs, Options};
use sysdock_table::{Cancel, Ending, Folder, Manifest, Recording};

use crate::{
    arguments,
    command::{self, Exit},
    confine, environment, import, inherited,
    left_behind::LeftBehind,
    messages::{self, EXIT_ERROR, EXIT_INTERRUPTED, Message},
    orphans,
    privileges::{self, Caller},
    progress::Reporter,
    relay::{self, Relay},
    signals::{self, Counts},
};

/// Children, wall clock, durations, paths of descriptors; strings are long enough for a command
/// line, not for data.
const STRACE_OPTIONS: [&str; 6] = ["-f", "-ttt", "-T", "-y", "-s", "128"];

/// Record; returns how the command ended.
pub(crate) fn run(arguments: &arguments::Record, output: &Path) -> Result<Exit, Message> {
    let strace = command::find(OsStr::new("strace"))
        .ok_or_else(|| Message::new("strace is not installed", "apt-get install strace (or dnf install strace)"))?;
    let caller = if arguments.as_root { None } else { Caller::find() };
    let folder = Folder::create(output, privileges::access(arguments.share))?;
    if caller.is_some() {
        // strace needs no rights to trace its children. Neither they nor the parser of its text
        // should have any.
        privileges::become_caller()?;
    }
    let directory = env::current_dir().ok();
    let mut rows =
        environment::of_this_machine(&arguments.command, directory.as_deref().map(|d| d.to_string_lossy().into_owned()));
    let place = Fifo::place();
    // Before the FIFO is made: another process removes it whenever this one is killed.
    let relay = Relay::start(|| clear_up(&place));
    let fifo = match Fifo::make(&place) {
        Ok(fifo) => fifo,
        Err(error) => {
            folder.remove_made();
            return Err(Message::new(format!("cannot make a FIFO: {error}"), "is the temporary folder (TMPDIR) writable?"));
        }
    };
    let mut recording = Recording::create_in(folder, manifest(&arguments.command, directory.as_deref()))?;

    signals::ring_alarms();
    orphans::adopt();
    let before = signals::counts();
    if let Some(signal) = signals::end_requests(&Counts::default()).first() {
        // The signal reached no command.
        recording.abandon();
        return Ok(Exit::Signal(*signal));
    }
    let child = start(&strace, &fifo.held.path, arguments, caller.as_ref())
        .map_err(|error| Message::new(format!("cannot start strace: {error}"), "is it executable?"))?;
    // Signals that came meanwhile may not have reached it.
    signals::end_requests(&before).into_iter().for_each(|signal| signals::send(child.id(), signal));
    let cancel = Cancel::default();
    let Fifo { held, reader } = fifo;
    let watch = Watch::start(child, held, cancel.clone(), relay, LeftBehind::new(arguments.wait));
    // strace and its threads exist already and are not confined.
    rows.push(environment::of_its_limits(confine::parser(recording.folder())));
    let mut reporter = Reporter::new(&arguments.progress);
    let options = Options { directory, name: Some("strace".into()), live: true, ..Options::default() };
    let rest = reader.try_clone();
    let outcome = environment::write(&mut recording, &rows)
        .map_err(ImportError::Table)
        .and_then(|()| Logs::of_pipe(reader, &options))
        .and_then(|logs| logs.import(&mut recording, &options, &cancel, &mut |progress| reporter.report(progress)));
    if outcome.is_err() {
        drain(rest);
    }
    let (status, watched) = watch.join();
    let let_go = watched.as_ref().is_some_and(|watched| watched.let_go);
    let refused = matches!(outcome, Err(ImportError::Empty(_)));
    let killed_by = recording.manifest.exit_signal.clone();
    let end = StraceEnd::of(status, killed_by.is_some(), let_go, &cancel);
    let ended_with = recording.manifest.exit_code.and_then(|code| u8::try_from(code).ok());
    let ended = import::finish(recording, outcome.map(|ending| end.of_recording(ending)));
    match end {
        StraceEnd::Killed(signal) => after_a_kill(signal, ended_with, watched),
        StraceEnd::LetGo => ended.map(|_| command_end(ended_with, killed_by.as_deref())),
        _ if refused => Err(Message::new(
            format!("strace recorded nothing (it ended with {status})"),
            "may this user trace programs? In a container ptrace is often forbidden (docker run --cap-add SYS_PTRACE)",
        )),
        StraceEnd::Cancelled => ended.map(|_| Exit::Code(EXIT_INTERRUPTED)),
        StraceEnd::WithCommand => {
            if let Err(message) = ended {
                // The command has run: its caller waits for its status.
                messages::print(&message);
            }
            Ok(status.into())
        }
    }
}

/// Reason why strace ended.
#[derive(Clone, Copy)]
enum StraceEnd {
    /// All processes that it traced had ended.
    WithCommand,
    /// The user ended the recording, so this process killed strace.
    Cancelled,
    /// This process killed strace after the command had ended: processes that it left running
    /// continue.
    LetGo,
    /// Another process killed it with this signal.
    Killed(libc::c_int),
}

impl StraceEnd {
    /// strace kills itself with the signal that ended the command, after it has reported that
    /// (`command_was_killed`). If it died of a signal otherwise, it was killed, possibly while only
    /// processes that the command left behind were running.
    fn of(status: ExitStatus, command_was_killed: bool, let_go: bool, cancel: &Cancel) -> Self {
        if let_go {
            return StraceEnd::LetGo;
        }
        match status.signal().filter(|_| !command_was_killed) {
            None => StraceEnd::WithCommand,
            Some(_) if cancel.requested() => StraceEnd::Cancelled,
            Some(signal) => StraceEnd::Killed(signal),
        }
    }

    /// How the recording ended. The end of strace's text may be read before the request to end is
    /// noticed.
    fn of_recording(self, read: Ending) -> Ending {
        match self {
            StraceEnd::WithCommand | StraceEnd::LetGo => read,
            StraceEnd::Cancelled => Ending::Interrupted,
            StraceEnd::Killed(_) => Ending::InputError,
        }
    }
}

/// How the command ended, by strace's report.
fn command_end(ended_with: Option<u8>, killed_by: Option<&str>) -> Exit {
    let signal = killed_by.and_then(|name| (1..=signals::COUNT as i32).find(|number| sysdock_bpf::signal_name(*number) == name));
    signal.map_or(Exit::Code(ended_with.unwrap_or(EXIT_ERROR)), Exit::Signal)
}

/// How the command ended if strace was killed.
fn after_a_kill(signal: i32, ended_with: Option<u8>, watched: Option<Watched>) -> Result<Exit, Message> {
    let (seen, mut relay) = watched.map_or((None, None), |watched| (watched.command, Some(watched.relay)));
    let command = orphans::command(seen, relay.as_ref().and_then(Relay::witness));
    if ended_with.is_none() && command.is_none() {
        // A terminal sends Ctrl-C to the whole group: a process that is not the command yet ends
        // like the command would.
        if signals::end_requests(&Counts::default()).contains(&signal) {
            return Ok(Exit::Signal(signal));
        }
        return Err(Message::new(
            format!("strace was killed (signal {signal}) before it started the command"),
            "record it again",
        ));
    }
    messages::note(&format!(
        "strace was killed (signal {signal}): what the command did from then on is not recorded; it continues without strace"
    ));
    let status = ended_with.map(Exit::Code).or_else(|| orphans::wait_for(command?, &mut relay).map(Exit::from));
    Ok(status.unwrap_or(Exit::Code(EXIT_ERROR)))
}

fn manifest(command: &[OsString], directory: Option<&Path>) -> Manifest {
    let mut manifest = sysdock_strace::manifest("strace");
    manifest.command = Some(environment::command_text(command));
    manifest.directory = directory.map(|directory| directory.to_string_lossy().into_owned());
    manifest.host = environment::host_name();
    manifest.capture_mut().options = STRACE_OPTIONS.map(String::from).to_vec();
    manifest
}

fn start(strace: &Path, fifo: &Path, arguments: &arguments::Record, caller: Option<&Caller>) -> io::Result<Child> {
    let mut start = Command::new(strace);
    start.args(STRACE_OPTIONS).arg("-o").arg(fifo).arg("--").args(&arguments.command);
    start.envs(inherited::removed_variables());
    start.envs(caller.map(Caller::variables).unwrap_or_default().iter().map(|(name, value)| (name, value)));
    // SAFETY: between fork and exec, prctl only sets an attribute of the new process. If the
    // recorder is killed, strace dies with it and the command continues untraced; otherwise strace
    // would stay and complain about the broken pipe for each call.
    unsafe {
        start.pre_exec(|| {
            inherited::give_back();
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        });
    }
    start.spawn()
}

/// Read to the end without importing, after an error: strace must not wait for a reader, nor the
/// command for strace.
fn drain(rest: io::Result<File>) {
    if let Ok(mut rest) = rest {
        let _ = io::copy(&mut rest, &mut io::sink());
    }
}

/// Clean up after a recorder that was killed.
fn clear_up(fifo: &Path) {
    orphans::settle(fifo);
    let _ = fs::remove_file(fifo);
    let _ = fifo.parent().map(fs::remove_dir);
}

/// A FIFO in a folder of its own.
struct Fifo {
    held: Held,
    reader: File,
}

/// Resources that exist until strace has ended.
struct Held {
    path: PathBuf,
    /// Our writing end: without it the reader would see the end of input before strace opens its
    /// own.
    _writer: File,
    _folder: tempfile::TempDir,
}

impl Fifo {
    /// A path for a FIFO in a new folder with a unique name.
    fn place() -> PathBuf {
        env::temp_dir().join(format!("sysdock-{:016x}", command::secret())).join("strace")
    }

    fn make(path: &Path) -> io::Result<Self> {
        let name = path.parent().and_then(Path::file_name).unwrap_or_default();
        let folder = tempfile::Builder::new().prefix(name).rand_bytes(0).tempdir()?;
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let writer = File::options().read(true).write(true).open(path)?;
        let reader = File::open(path)?;
        Ok(Fifo { held: Held { path: path.into(), _writer: writer, _folder: folder }, reader })
    }
}

/// Waits for strace and passes signals on, while the main thread imports.
struct Watch {
    waiter: thread::JoinHandle<ExitStatus>,
    ended: Arc<AtomicBool>,
    signals: thread::JoinHandle<Watched>,
}

/// Result of watching strace.
struct Watched {
    /// The command's process, if it was ever seen.
    command: Option<u32>,
    relay: Relay,
    /// strace was killed because the command had ended and processes that it left running are not
    /// waited for.
    let_go: bool,
}

impl Watch {
    fn start(mut child: Child, fifo: Held, cancel: Cancel, relay: Relay, left_behind: LeftBehind) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let strace = child.id();
        let flag = Arc::clone(&ended);
        let signals = thread::spawn(move || pass_signals(strace, &flag, &cancel, relay, left_behind));
        let flag = Arc::clone(&ended);
        let waiter = thread::spawn(move || {
            let status = child.wait().unwrap_or_default();
            if status.signal().is_some() {
                // Copies of strace have the FIFO open too, and the reader waits until they close
                // it.
                orphans::settle(&fifo.path);
            }
            flag.store(true, Ordering::Relaxed);
            drop(fifo);
            status
        });
        Watch { waiter, ended, signals }
    }

    /// How strace ended, and what was observed until then.
    fn join(self) -> (ExitStatus, Option<Watched>) {
        let status = self.waiter.join().unwrap_or_default();
        self.ended.store(true, Ordering::Relaxed);
        (status, self.signals.join().ok())
    }
}

/// The command has ended if strace has no child this many times in a row. Before the command
/// starts, strace has none for a moment.
const LOOKS_WITHOUT: u32 = 10;

/// Handle the signals to the recorder. Each is passed on to the command unless the command received
/// it too. A second SIGINT that the command does not handle shows that the command will not end:
/// then the recording ends and the command continues.
///
/// Processes that the command leaves running when it ends are released unless they are waited for.
fn pass_signals(strace: u32, ended: &AtomicBool, cancel: &Cancel, mut relay: Relay, mut left_behind: LeftBehind) -> Watched {
    let mut unhandled = 0;
    let mut command = None;
    let (mut seen_without, mut let_go) = (0, false);
    while !ended.load(Ordering::Relaxed) {
        // Before the command, strace has children that test features of the kernel.
        let now = command_of(strace);
        command = now.or(command);
        seen_without = if now.is_some() { 0 } else { seen_without + 1 };
        let left = || orphans::left_running(strace, relay.witness());
        if seen_without >= LOOKS_WITHOUT && !left().is_empty() && !left_behind.is_waited_for(left) {
            // They continue without it. strace blocks all signals but this one.
            let_go = true;
            signals::send(strace, libc::SIGKILL);
            break;
        }
        if let Some(command) = command {
            let received = relay.received();
            command::pass_on(&received, command);
            unhandled += u32::from(relay::has_unhandled_sigint(&received, command));
            orphans::reap(strace, command);
        }
        if unhandled >= 2 && !cancel.requested() {
            cancel.request();
            signals::send(strace, libc::SIGKILL);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Watched { command, relay, let_go }
}

/// The command is strace's first child.
fn command_of(strace: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{strace}/task/{strace}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
