//! The process of the command, which waits until it is released.
//!
//! States, in a page shared with us: *made* -> *ready* (it has done everything except executing the
//! program, and sleeps) -> *released*. It goes to *failed* from any of them. A page is used instead
//! of a pipe, because reads from a pipe would count as transfers of the command.

use std::{
    ffi::{CString, OsStr, OsString},
    fs::{File, OpenOptions},
    io, mem,
    os::{
        fd::{AsRawFd, RawFd},
        unix::{ffi::OsStrExt, fs::PermissionsExt, process::ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::ExitStatus,
    ptr,
    sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering},
};

use rustix::{thread::futex, time::Timespec};
use sysdock_table::User;

use crate::{Attempt, Command, MeasureError, clock, signals::Signals, usage};

const MADE: u32 = 0;
const READY: u32 = 1;
const LET_GO: u32 = 2;
const FAILED: u32 = 3;

/// The step that failed before the program ran.
const IN_DIRECTORY: u32 = 1;
const IN_CPUS: u32 = 2;
const IN_EXEC: u32 = 3;
const IN_USER: u32 = 4;

unsafe extern "C" {
    static mut environ: *const *const libc::c_char;
}

/// The shared page.
#[repr(C)]
struct Shared {
    state: AtomicU32,
    failed_in: AtomicU32,
    errno: AtomicI32,
    before: Before,
}

/// What the process had used before it was released: until then it was a copy of ours.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Before {
    pub(crate) cpu_ns: AtomicU64,
    pub(crate) minor_faults: AtomicU64,
    pub(crate) major_faults: AtomicU64,
    pub(crate) voluntary_switches: AtomicU64,
    pub(crate) involuntary_switches: AtomicU64,
}

/// The process, ready or released.
pub(crate) struct Launched {
    pub(crate) pid: u32,
    program: OsString,
    directory: Option<PathBuf>,
    shared: *mut Shared,
}

/// Everything that must exist before the fork: no memory is allocated after it.
struct Prepared {
    /// The program, already looked up: a look-up between fork and exec would be part of the run.
    program: CString,
    words: Vec<CString>,
    environment: Vec<CString>,
    directory: Option<CString>,
    files: [File; 3],
    cpus: Option<libc::cpu_set_t>,
    user: Option<User>,
}

impl Prepared {
    fn new(command: &Command) -> Result<Self, MeasureError> {
        let program = || command.words.first().cloned().unwrap_or_default();
        let cannot_run = || MeasureError::CannotRun(program(), io::ErrorKind::InvalidInput.into());
        let string = |text: &OsStr| CString::new(text.as_bytes()).map_err(|_| cannot_run());
        if command.words.is_empty() {
            return Err(cannot_run());
        }
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        for (name, value) in &command.environment {
            variables.retain(|(other, _)| other != name);
            variables.push((name.clone(), value.clone()));
        }
        let join = |(name, value): &(OsString, OsString)| {
            let mut text = name.clone();
            text.push("=");
            text.push(value);
            string(&text)
        };
        let null = Path::new("/dev/null");
        let input = File::open(null).map_err(|error| MeasureError::Output(null.into(), error))?;
        Ok(Prepared {
            program: string(&found_in_path(&command.words[0], &variables))?,
            words: command.words.iter().map(|word| string(word)).collect::<Result<_, _>>()?,
            environment: variables.iter().map(join).collect::<Result<_, _>>()?,
            directory: command.directory.as_ref().map(|path| string(path.as_os_str())).transpose()?,
            files: [input, output(command.output.as_deref())?, output(command.errors.as_deref())?],
            cpus: command.cpus.as_deref().map(cpu_set).transpose()?,
            user: command.user.clone(),
        })
    }
}

/// The path of a program, by the PATH that it gets; unchanged if it contains a slash, or is in no
/// folder of PATH.
fn found_in_path(program: &OsStr, variables: &[(OsString, OsString)]) -> OsString {
    let path = variables.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path);
    let folders = path.into_iter().flat_map(std::env::split_paths);
    let is_program =
        |path: &PathBuf| std::fs::metadata(path).is_ok_and(|status| status.is_file() && status.permissions().mode() & 0o111 != 0);
    let absolute = folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join(program));
    let found = if program.as_bytes().contains(&b'/') { None } else { absolute.into_iter().find(is_program) };
    found.map_or_else(|| program.into(), PathBuf::into_os_string)
}

fn output(path: Option<&Path>) -> Result<File, MeasureError> {
    let (path, is_given) = (path.unwrap_or(Path::new("/dev/null")), path.is_some());
    let opened = OpenOptions::new().write(true).create(is_given).truncate(is_given).open(path);
    opened.map_err(|error| MeasureError::Output(path.into(), error))
}

fn cpu_set(cpus: &[usize]) -> Result<libc::cpu_set_t, MeasureError> {
    // SAFETY: zeros are an empty set; numbers are checked to be within it.
    unsafe {
        let mut set: libc::cpu_set_t = mem::zeroed();
        for cpu in cpus {
            if *cpu >= libc::CPU_SETSIZE as usize {
                return Err(MeasureError::Cpus(io::Error::from_raw_os_error(libc::EINVAL)));
            }
            libc::CPU_SET(*cpu, &mut set);
        }
        Ok(set)
    }
}

/// Pointers to strings, terminated by a null pointer, as execve(2) requires.
fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

impl Launched {
    /// Create the process, and wait until it is ready.
    pub(crate) fn prepare(command: &Command, signals: &Signals) -> Result<Self, MeasureError> {
        let prepared = Prepared::new(command)?;
        let (words, environment) = (pointers(&prepared.words), pointers(&prepared.environment));
        let shared = page()?;
        let parent = std::process::id();
        // SAFETY: this process has one thread; the copy only makes system calls until it executes the program, or leaves.
        let pid = unsafe { libc::fork() };
        match pid {
            ..0 => Err(MeasureError::System(Attempt::MakeProcess, io::Error::last_os_error())),
            0 => become_command(&prepared, &words, &environment, signals, shared, parent),
            _ => {
                let program = command.words[0].clone();
                let launched = Launched { pid: pid.unsigned_abs(), program, directory: command.directory.clone(), shared };
                launched.wait_until_ready()?;
                Ok(launched)
            }
        }
    }

    fn page(&self) -> &Shared {
        // SAFETY: the page is ours until this is dropped, and contains only atomics.
        unsafe { &*self.shared }
    }

    pub(crate) fn before(&self) -> &Before {
        &self.page().before
    }

    fn wait_until_ready(&self) -> Result<(), MeasureError> {
        while self.page().state.load(Ordering::Acquire) == MADE {
            futex_wait(&self.page().state, MADE);
            if let Some(status) = status_of(self.pid) {
                reap(self.pid);
                return Err(self.failure().unwrap_or(MeasureError::EndedBefore(self.program.clone(), status)));
            }
        }
        match self.failure() {
            Some(error) => {
                reap(self.pid);
                Err(error)
            }
            None => Ok(()),
        }
    }

    /// Release the process, so that it executes the program.
    pub(crate) fn let_go(&self) {
        self.page().state.store(LET_GO, Ordering::Release);
        futex_wake(&self.page().state);
    }

    /// Why it did not become the program; the process has ended then.
    pub(crate) fn failure(&self) -> Option<MeasureError> {
        let page = self.page();
        if page.state.load(Ordering::Acquire) != FAILED {
            return None;
        }
        let error = io::Error::from_raw_os_error(page.errno.load(Ordering::Relaxed));
        Some(match page.failed_in.load(Ordering::Relaxed) {
            IN_DIRECTORY => MeasureError::Directory(self.directory.clone().unwrap_or_default(), error),
            IN_CPUS => MeasureError::Cpus(error),
            IN_USER => MeasureError::User(error),
            _ => MeasureError::CannotRun(self.program.clone(), error),
        })
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // SAFETY: nothing refers to the page any longer.
        unsafe { libc::munmap(self.shared.cast(), size_of::<Shared>()) };
    }
}

fn page() -> Result<*mut Shared, MeasureError> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: allocates memory of zeros, which are a value of the struct.
    let page = unsafe { libc::mmap(ptr::null_mut(), size_of::<Shared>(), access, kind, -1, 0) };
    match page {
        libc::MAP_FAILED => Err(MeasureError::System(Attempt::GetMemory, io::Error::last_os_error())),
        page => Ok(page.cast()),
    }
}

/// Code of the copy of this process; it never returns.
fn become_command(
    prepared: &Prepared,
    words: &[*const libc::c_char],
    environment: &[*const libc::c_char],
    signals: &Signals,
    shared: *mut Shared,
    parent: u32,
) -> ! {
    // SAFETY: the page is mapped in both processes. Only system calls, with pointers into what was
    // prepared, which the copy has, too; the pointers end with a null pointer.
    unsafe {
        let page = &*shared;
        libc::setpgid(0, 0);
        if prepared.user.as_ref().is_some_and(|user| user.become_user().is_err()) {
            fail(page, IN_USER);
        }
        // After the change of the user, which resets it. If we were killed, nothing else would end the command.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid().unsigned_abs() != parent {
            libc::_exit(127);
        }
        // Rust ignores SIGPIPE, and a program would inherit that.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        for (number, file) in prepared.files.iter().enumerate() {
            libc::dup2(file.as_raw_fd(), number as RawFd);
        }
        if prepared.directory.as_ref().is_some_and(|path| libc::chdir(path.as_ptr()) != 0) {
            fail(page, IN_DIRECTORY);
        }
        if prepared.cpus.as_ref().is_some_and(|set| libc::sched_setaffinity(0, size_of_val(set), set) != 0) {
            fail(page, IN_CPUS);
        }
        signals.unblock();
        environ = environment.as_ptr();
        note_use(&page.before);
        page.state.store(READY, Ordering::Release);
        futex_wake(&page.state);
        while page.state.load(Ordering::Acquire) == READY {
            futex_wait(&page.state, READY);
        }
        libc::execvp(prepared.program.as_ptr(), words.as_ptr());
        fail(page, IN_EXEC)
    }
}

fn fail(page: &Shared, place: u32) -> ! {
    page.errno.store(io::Error::last_os_error().raw_os_error().unwrap_or(0), Ordering::Relaxed);
    page.failed_in.store(place, Ordering::Relaxed);
    page.state.store(FAILED, Ordering::Release);
    futex_wake(&page.state);
    // SAFETY: ends this process.
    unsafe { libc::_exit(127) }
}

fn note_use(before: &Before) {
    let usage = usage::own();
    before.minor_faults.store(usage.minor_faults, Ordering::Relaxed);
    before.major_faults.store(usage.major_faults, Ordering::Relaxed);
    // Sleeping until the release is one more.
    before.voluntary_switches.store(usage.voluntary_switches + 1, Ordering::Relaxed);
    before.involuntary_switches.store(usage.involuntary_switches, Ordering::Relaxed);
    before.cpu_ns.store(clock::own_cpu_ns(), Ordering::Relaxed);
}

/// Sleep while the word has this value, at most a tenth of a second.
fn futex_wait(word: &AtomicU32, value: u32) {
    // Callers look at the word again, whatever ended the wait.
    let _ = futex::wait(word, futex::Flags::empty(), value, Some(&Timespec { tv_sec: 0, tv_nsec: 100_000_000 }));
}

fn futex_wake(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), 1);
}

/// How a child ended, which stays a zombie. `None`: it still runs.
pub(crate) fn status_of(pid: u32) -> Option<ExitStatus> {
    // SAFETY: zeros are a value of the struct, which the call fills.
    unsafe {
        let mut found: libc::siginfo_t = mem::zeroed();
        let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        if libc::waitid(libc::P_PID, pid, &raw mut found, how) != 0 || found.si_pid() == 0 {
            return None;
        }
        Some(match found.si_code {
            libc::CLD_EXITED => ExitStatus::from_raw((found.si_status() & 0xff) << 8),
            _ => ExitStatus::from_raw(found.si_status()),
        })
    }
}

/// Reap a child that has ended. Its usage then counts as that of our children.
pub(crate) fn reap(pid: u32) {
    // SAFETY: takes numbers; no status is requested.
    unsafe { libc::waitpid(pid.cast_signed(), ptr::null_mut(), libc::__WALL) };
}

/// Reap ended children, except this one. Returns whether any other child is left.
pub(crate) fn reap_all_but(kept: Option<u32>) -> bool {
    loop {
        // SAFETY: zeros are a value of the struct, which the call fills.
        let (status, pid) = unsafe {
            let mut found: libc::siginfo_t = mem::zeroed();
            let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
            (libc::waitid(libc::P_ALL, 0, &raw mut found, how), found.si_pid().unsigned_abs())
        };
        match (status, pid) {
            (0, 0) => return true,
            (0, pid) if Some(pid) == kept => return true,
            (0, pid) => reap(pid),
            _ => return false,
        }
    }
}
