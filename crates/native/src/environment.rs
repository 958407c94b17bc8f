//! The `environment` table: the machine on which a recording was made, or a note that it is
//! unknown.

use std::{
    ffi::{CStr, OsString},
    fs,
    process::Command,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use sysdock_disk::Cost;
use sysdock_table::{Fact, Facts, Manifest, Recording, TableError, facts, rows};

/// One row: section, name, value, source.
#[derive(Debug)]
pub(crate) struct Row {
    section: &'static str,
    name: String,
    value: Option<String>,
    source: &'static str,
}

fn row(section: &'static str, name: &str, value: Option<String>) -> Row {
    let source = if value.is_some() { "recorder" } else { "unknown" };
    Row { section, name: name.into(), value, source }
}

/// Nanoseconds since the Unix epoch.
pub(crate) fn epoch_ns(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().try_into().unwrap_or(i64::MAX)
}

/// Write the rows, in place of existing ones.
pub(crate) fn write(recording: &mut Recording, rows: &[Row]) -> Result<(), TableError> {
    recording.replace_rows(rows.iter().map(columns))
}

/// Write the rows after those of another capture.
pub(crate) fn add(recording: &mut Recording, rows: &[Row]) -> Result<(), TableError> {
    recording.write_rows(rows.iter().map(columns))
}

fn columns(row: &Row) -> rows::Environment<'_> {
    rows::Environment {
        section: row.section.into(),
        name: row.name.as_str().into(),
        value: row.value.as_deref().map(Into::into),
        source: row.source.into(),
    }
}

/// The cost of the kernel recorder. Rates are those of docs/explain/measurements.md; times are
/// measured.
pub(crate) fn of_the_recorder(attach: Duration, detach: Duration) -> [Row; 4] {
    let milliseconds = |time: Duration| Some(format!("{:.1} ms", time.as_secs_f64() * 1e3));
    [
        row("recorder", "loaded and attached in", milliseconds(attach)),
        row("recorder", "detached in", milliseconds(detach)),
        row("recorder", "added to each recorded call", Some("about 0.15 us of CPU".into())),
        row("recorder", "added to each call of other processes", Some("0.03 to 0.1 us of CPU".into())),
    ]
}

/// The file system on which load was made.
pub(crate) fn of_load(facts: Vec<(String, Option<String>)>) -> Vec<Row> {
    facts.into_iter().map(|(name, value)| row("file system", &name, value)).collect()
}

/// A description of the confinement of the process that writes the recording.
pub(crate) fn of_its_limits(confined: String) -> Row {
    row("recorder", "confined", Some(confined))
}

/// Facts about this machine at the current time.
pub(crate) fn of_this_machine(command: &[OsString], directory: Option<String>) -> Vec<Row> {
    let (kernel, release, machine) = uname();
    let mut rows = vec![
        row("host", "name", host_name()),
        row("host", "operating system", os_release()),
        row("host", "machine", machine),
        row("kernel", "name", kernel),
        row("kernel", "release", release),
        row("cpu", "model", field("/proc/cpuinfo", "model name")),
        row("cpu", "online", online_cpus()),
        row("memory", "total", field("/proc/meminfo", "MemTotal")),
        row("memory", "available at start", field("/proc/meminfo", "MemAvailable")),
        row("tool", "sysdock", Some(env!("CARGO_PKG_VERSION").into())),
        row("tool", "strace", strace_version()),
        row("command", "command", Some(command_text(command))),
        row("command", "directory", directory),
        row("command", "user id", Some(rustix::process::getuid().as_raw().to_string())),
    ];
    rows.extend(place_in_job(|name| std::env::var(name).ok()));
    rows.extend(mounts());
    rows
}

/// Variables that MPI and batch systems set for each process of a parallel job: its rank, and the
/// number of ranks. The innermost system comes first: a batch system that starts `mpirun` sets it
/// to process 0 of 1, and all ranks inherit that.
const PLACE_IN_JOB: [&str; 9] = [
    "OMPI_COMM_WORLD_RANK",
    "PMIX_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_NTASKS",
];

/// Rows for the variables that contain a number; `sysdock merge` reads them.
fn place_in_job(variable: impl Fn(&str) -> Option<String>) -> Vec<Row> {
    let number = |name: &&str| variable(name).filter(|value| value.parse::<u32>().is_ok());
    PLACE_IN_JOB.iter().filter_map(|name| Some(row("job", name, Some(number(name)?)))).collect()
}

/// Parameters of a file system.
pub(crate) fn of_file_system(facts: &[(String, String)]) -> impl Iterator<Item = Row> {
    facts.iter().map(|(name, value)| row("file system", name, Some(value.clone())))
}

/// The machine and the tool with which instructions were traced.
pub(crate) fn of_trace(facts: &sysdock_itrace::TraceFacts) -> Vec<Row> {
    let rows = [
        ("backend", Some(facts.backend.clone())),
        ("cpu model", facts.cpu.clone()),
        ("kernel", facts.kernel.clone()),
        ("mitigations", facts.mitigations.clone()),
        ("qemu", facts.qemu.clone()),
        ("path of requests", facts.path.clone()),
    ];
    rows.into_iter().filter(|(_, value)| value.is_some()).map(|(name, value)| row("trace", name, value)).collect()
}

/// The cost of a request to the scanned device; the rules and analyses about disks read these
/// names.
pub(crate) fn of_device(name: &str, cost: &Result<Cost, Fact>) -> [Row; 4] {
    let cost = cost.as_ref();
    let measurement = cost.map_or_else(|why| facts::disk::not_measured(why.clone()), |cost| cost.measurement.clone());
    [
        row("device", "name", Some(name.into())),
        row("device", "one more request", cost.ok().map(|cost| format!("{} ns", cost.request_ns))),
        row("device", "reads in order", cost.ok().map(|cost| format!("{} B/s", cost.bytes_per_second))),
        row("device", "measurement", Facts::from(measurement).json()),
    ]
}

/// Facts that an imported log states about its origin; most are stated as unknown.
pub(crate) fn of_log(manifest: &Manifest) -> Vec<Row> {
    let command = Row {
        section: "command",
        name: "command".into(),
        value: manifest.command.clone(),
        source: if manifest.command.is_some() { "log" } else { "unknown" },
    };
    let unknown = [
        ("host", "name"),
        ("host", "operating system"),
        ("kernel", "release"),
        ("cpu", "model"),
        ("cpu", "online"),
        ("memory", "total"),
        ("mount", "all"),
        ("command", "directory"),
    ];
    let mut rows: Vec<Row> = unknown.iter().map(|(section, name)| row(section, name, None)).collect();
    rows.push(command);
    rows.push(row("tool", "sysdock (importer)", Some(env!("CARGO_PKG_VERSION").into())));
    rows.sort_by_key(|row| row.section);
    rows
}

/// A command as one line, quoted where a shell requires it.
pub(crate) fn command_text(command: &[OsString]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    let word = |word: &OsString| {
        let text = word.to_string_lossy();
        if !text.is_empty() && text.chars().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
    };
    command.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub(crate) fn host_name() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_string())
}

fn uname() -> (Option<String>, Option<String>, Option<String>) {
    let name = rustix::system::uname();
    let text = |field: &CStr| Some(field.to_string_lossy().into_owned()).filter(|text| !text.is_empty());
    (text(name.sysname()), text(name.release()), text(name.machine()))
}

fn os_release() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_string())
}

/// Value of the first `name : value` line of a file in /proc.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':').map(|value| value.trim().to_string()))
}

fn online_cpus() -> Option<String> {
    // SAFETY: sysconf has no preconditions.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    (count > 0).then(|| count.to_string())
}

fn strace_version() -> Option<String> {
    let output = Command::new("strace").arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string)
}

/// Mount points with device, type and options, as the kernel lists them.
fn mounts() -> Vec<Row> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mount = |line: &str| {
        let mut words = line.split(' ');
        let (device, point, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(row("mount", point, Some(format!("{kind} on {device} ({options})"))))
    };
    text.lines().filter_map(mount).collect()
}

/// Whether /proc uses the process ids of this process's namespace.
pub(crate) fn proc_is_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|own| own.to_str() == Some(&std::process::id().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_what_the_variables_of_mpi_say_and_no_text_that_is_no_number() {
        let variable = |name: &str| match name {
            "PMI_RANK" => Some("3".to_string()),
            "SLURM_PROCID" => Some("0".to_string()),
            "SLURM_NTASKS" => Some("4(x2)".to_string()),
            _ => None,
        };
        let rows = place_in_job(variable);
        let shown: Vec<_> = rows.iter().map(|row| (row.section, row.name.as_str(), row.value.as_deref())).collect();
        assert_eq!(shown, [("job", "PMI_RANK", Some("3")), ("job", "SLURM_PROCID", Some("0"))]);
    }
}
