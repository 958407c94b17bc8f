//! Events about threads and processes that consist of more than their fixed part.

use sysdock_calls::Usage;

use crate::events::{ExecEvent, ExitEvent, Raw, TaskEvent, until_nul};

/// The start of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exec<'a> {
    pub(crate) fixed: ExecEvent,
    pub(crate) filename: &'a [u8],
    /// Each ends with NUL; the last may be cut.
    pub(crate) arguments: &'a [u8],
}

impl<'a> Exec<'a> {
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<ExecEvent>()?;
        let (filename, rest) = rest.split_at_checked(usize::from(fixed.filename_length))?;
        let arguments = rest.get(..usize::from(fixed.arguments_length))?;
        Some(Exec { fixed, filename: until_nul(filename), arguments })
    }
}

/// A thread that existed when recording began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundTask<'a> {
    pub(crate) fixed: TaskEvent,
    /// Arguments of its process. Each ends with NUL; the last may be cut.
    pub(crate) arguments: &'a [u8],
}

impl<'a> FoundTask<'a> {
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<TaskEvent>()?;
        Some(FoundTask { fixed, arguments: rest.get(..usize::from(fixed.arguments_length))? })
    }
}

/// What the kernel counted for a thread that ended.
pub(crate) fn usage(event: &ExitEvent) -> Usage {
    let counted = |number: u64| number.min(i64::MAX.cast_unsigned()).cast_signed();
    let (user_ns, system_ns) = shares(event.user_ns, event.system_ns, event.cpu_ns);
    Usage {
        user_ns,
        system_ns,
        minor_faults: counted(event.minor_faults),
        major_faults: counted(event.major_faults),
        read_chars: counted(event.read_chars),
        write_chars: counted(event.write_chars),
        device_read_bytes: counted(event.read_bytes),
        device_write_bytes: counted(event.write_bytes),
    }
}

/// CPU time in programs and in the kernel [ns]: the measured total, divided in proportion to
/// samples. The kernel does the same (`cputime_adjust`).
fn shares(user: u64, system: u64, measured_ns: u64) -> (i64, i64) {
    let measured_ns = measured_ns.min(i64::MAX.cast_unsigned());
    let sampled = u128::from(user) + u128::from(system);
    let system_ns = (u128::from(measured_ns) * u128::from(system)).checked_div(sampled).unwrap_or(0) as u64;
    ((measured_ns - system_ns).cast_signed(), system_ns.cast_signed())
}
