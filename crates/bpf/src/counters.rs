//! Software events of perf that a program is run at: page faults, where the kernel has served and counted them.

use std::{fs, io};

use libbpf_rs::{ErrorExt, Link, ProgramMut, Result};

/// Of `enum perf_type_id` (linux/perf_event.h).
const SOFTWARE: u32 = 1;
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// `struct perf_event_attr` in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    rest: [u64; 5],
}

/// Run a program at each event of a kind, on every CPU that is there.
///
/// # Errors
/// Where the kernel refuses.
pub(crate) fn attach(program: &ProgramMut<'_>, event: u64) -> Result<Vec<Link>> {
    let cpus = libbpf_rs::num_possible_cpus()?;
    let mut links = Vec::new();
    for cpu in 0..cpus {
        match open(event, cpu as i32) {
            // The link closes it.
            Ok(counter) => links.push(program.attach_perf_event(counter)?),
            // This CPU is switched off.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => {
                let reason = reason_of(&error);
                return Err(libbpf_rs::Error::from(error)).context(reason);
            }
        }
    }
    Ok(links)
}

/// Kernels of Debian know a stricter setting than others, which takes from the capability for counters what it is for.
fn reason_of(error: &io::Error) -> String {
    let setting = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let is_stricter = setting.trim().parse::<i32>().is_ok_and(|level| level > 2);
    let why = if is_stricter && error.kind() == io::ErrorKind::PermissionDenied {
        format!("; while kernel.perf_event_paranoid is {} it needs CAP_SYS_ADMIN, else CAP_PERFMON", setting.trim())
    } else {
        String::new()
    };
    format!("failed to open a counter of page faults: {error}{why}")
}

fn open(event: u64, cpu: i32) -> io::Result<i32> {
    let attributes = Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config: event,
        sample_period: 1,
        ..Attributes::default()
    };
    // SAFETY: the structure is as long as it says; the kernel only reads it.
    let counter = unsafe { libc::syscall(libc::SYS_perf_event_open, &raw const attributes, -1, cpu, -1, CLOSE_ON_EXEC) };
    if counter < 0 { Err(io::Error::last_os_error()) } else { Ok(counter as i32) }
}
