//! Software events of perf at which a program runs: page faults that the kernel has served and
//! counted, or the end of a period.

use std::{fs, io, time::Duration};

use libbpf_rs::{Link, ProgramMut};
use sysdock_table::{Fact, facts::capture as facts};

use crate::probes::{ProbeError, Step, failed};

/// Value of `enum perf_type_id` (linux/perf_event.h).
const SOFTWARE: u32 = 1;
const CLOSE_ON_EXEC: libc::c_ulong = 8;
/// Value of `enum perf_sw_ids`: counts nanoseconds of a CPU.
const CPU_CLOCK: u64 = 0;
/// `exclude_idle` of `struct perf_event_attr`.
const NOT_WHEN_IDLE: u64 = 1 << 7;

/// `struct perf_event_attr` in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    rest: [u64; 2],
}

/// When a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    /// At each event of a kind: `enum perf_sw_ids`.
    Event(u64),
    /// Periodically, on CPUs that are not idle.
    Clock,
}

/// Why a program is not attached.
pub(crate) enum NotAttached {
    /// The kernel refuses a counter.
    Counter(Fact),
    /// It refuses the program.
    Program(libbpf_rs::Error),
}

impl From<libbpf_rs::Error> for NotAttached {
    fn from(error: libbpf_rs::Error) -> Self {
        NotAttached::Program(error)
    }
}

impl NotAttached {
    pub(crate) fn fact(self) -> Fact {
        match self {
            NotAttached::Counter(why) => why,
            NotAttached::Program(error) => facts::refused(error.to_string()),
        }
    }

    /// As an error of this step.
    pub(crate) fn at(self, step: Step) -> ProbeError {
        match self {
            NotAttached::Counter(reason) => ProbeError { step, reason },
            NotAttached::Program(error) => failed(step)(error),
        }
    }
}

/// Run a program at each event of a kind, or after each period, on every present CPU.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn attach(program: &ProgramMut<'_>, counter: Counter, period: Duration) -> Result<Vec<Link>, NotAttached> {
    let attributes = attributes(counter, period);
    let cpus = libbpf_rs::num_possible_cpus()?;
    let mut links = Vec::new();
    for cpu in 0..cpus {
        match open(&attributes, cpu as i32) {
            // The link closes the counter.
            Ok(counter) => links.push(program.attach_perf_event(counter)?),
            // This CPU is offline.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(NotAttached::Counter(reason_of(&error))),
        }
    }
    Ok(links)
}

/// Kernels of Debian have a stricter setting, under which the capability for counters is not
/// enough.
fn reason_of(error: &io::Error) -> Fact {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    match setting.trim().parse::<i32>() {
        Ok(level) if level > 2 && error.kind() == io::ErrorKind::PermissionDenied => {
            facts::counter_restricted(error.to_string(), level)
        }
        _ => facts::counter_refused(error.to_string()),
    }
}

fn attributes(counter: Counter, period: Duration) -> Attributes {
    let plain = Attributes { kind: SOFTWARE, size: size_of::<Attributes>() as u32, sample_period: 1, ..Attributes::default() };
    match counter {
        Counter::Event(config) => Attributes { config, ..plain },
        Counter::Clock => {
            let sample_period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
            Attributes { config: CPU_CLOCK, sample_period, flags: NOT_WHEN_IDLE, ..plain }
        }
    }
}

fn open(attributes: &Attributes, cpu: i32) -> io::Result<i32> {
    // SAFETY: the structure has the length that it states; the kernel only reads it.
    let counter = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const *attributes, -1, cpu, -1, CLOSE_ON_EXEC) };
    if counter < 0 { Err(io::Error::last_os_error()) } else { Ok(counter as i32) }
}
