//! Software events of perf at which a program runs: page faults that the kernel has served and
//! counted, or the end of a period.

use std::{fs, io, time::Duration};

use libbpf_rs::{ErrorExt, Link, ProgramMut, Result};

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

/// Run a program at each event of a kind, or after each period, on every present CPU.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn attach(program: &ProgramMut<'_>, counter: Counter, period: Duration) -> Result<Vec<Link>> {
    let attributes = attributes(counter, period);
    let cpus = libbpf_rs::num_possible_cpus()?;
    let mut links = Vec::new();
    for cpu in 0..cpus {
        match open(&attributes, cpu as i32) {
            // The link closes the counter.
            Ok(counter) => links.push(program.attach_perf_event(counter)?),
            // This CPU is offline.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => {
                let reason = reason_of(&error);
                return Err(libbpf_rs::Error::from(error)).context(reason);
            }
        }
    }
    Ok(links)
}

/// Kernels of Debian have a stricter setting, under which the capability for counters is not
/// enough.
fn reason_of(error: &io::Error) -> String {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let is_stricter = setting.trim().parse::<i32>().is_ok_and(|level| level > 2);
    let why = if is_stricter && error.kind() == io::ErrorKind::PermissionDenied {
        format!("; while kernel.perf_event_paranoid is {} it needs CAP_SYS_ADMIN, else CAP_PERFMON", setting.trim())
    } else {
        String::new()
    };
    format!("failed to open a counter of perf: {error}{why}")
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
