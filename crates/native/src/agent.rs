//! `sysdock-native agent` and `collect`: the agent that counts what each job of a node uses, and
//! the collector that writes this to a lake.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    mount::{MountFlags, mount},
};
use sysdock_agent::{
    Agent, AgentError, Collector, CollectorOptions, Event, JobAnswer, Landing, MetricsOptions, Options, Settings, SettingsFile,
    Target, query_job, query_status,
};
use sysdock_bpf::accounting::{AccountingError, remove_pins};
use sysdock_table::Cancel;

use crate::{
    arguments::{AgentPrint, AgentRun, AgentStatus, AgentStop, AgentVerb, Collect, PrintFormat},
    messages::{self, Message, note},
    signals,
};

/// Settings of the site, if the file exists.
const SETTINGS: &str = "/etc/sysdock/agent.toml";
const BPF: &str = "/sys/fs/bpf";

pub(crate) fn run(verb: &AgentVerb) -> Result<u8, Message> {
    match verb {
        AgentVerb::Run(arguments) => count(arguments),
        AgentVerb::Print(arguments) => print(arguments),
        AgentVerb::Status(arguments) => status(arguments),
        AgentVerb::Stop(arguments) => stop(arguments),
    }
}

fn count(arguments: &AgentRun) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let pins = if arguments.no_pin { None } else { Some(bpf_folder()?) };
    let options = Options {
        spool: arguments.spool.spool.clone(),
        spool_bytes: u64::from(arguments.spool_limit) << 20,
        pins: pins.clone(),
        targets: targets(arguments)?,
        metrics: metrics(arguments)?,
    };
    let agent = Agent::begin(settings(arguments)?, options)?;
    agent.run(&cancel, &report)?;
    if let Some(pins) = pins {
        let _ = remove_pins(&pins);
    }
    Ok(0)
}

fn targets(arguments: &AgentRun) -> Result<Vec<Target>, Message> {
    let ca = || arguments.ca.clone();
    let mut targets = Vec::new();
    if let Some(lake) = &arguments.lake {
        targets.push(Target::Lake(lake.clone()));
    } else if let Some(url) = &arguments.push {
        let token_file = arguments.token_file.clone().ok_or_else(no_token)?;
        targets.push(Target::Push { url: url.clone(), token_file, ca: ca() });
    }
    if let Some(url) = &arguments.otlp {
        targets.push(Target::Otlp { url: url.clone(), token_file: arguments.otlp_token_file.clone(), ca: ca() });
    }
    if targets.is_empty() {
        let hint = "give --lake DIR, or --push URL with --token-file FILE, or --otlp URL";
        return Err(Message::new("no destination for the rows", hint));
    }
    Ok(targets)
}

/// Names of mount points are private; on loopback, anyone who can connect can see them anyway.
fn metrics(arguments: &AgentRun) -> Result<Option<MetricsOptions>, Message> {
    let Some(listen) = arguments.metrics else { return Ok(None) };
    let tokens = arguments.metrics_token_file.clone();
    if !listen.ip().is_loopback() && tokens.is_none() {
        return Err(Message::new(
            format!("--metrics {listen}: anyone on the network could read what this node does"),
            "give --metrics-token-file FILE, or an address on loopback, such as 127.0.0.1:8405",
        ));
    }
    Ok(Some(MetricsOptions { listen, tokens, series: arguments.metrics_series as usize }))
}

fn no_token() -> Message {
    Message::new(
        "--push needs --token-file",
        "write a token of the collector's file of tokens into a file that only root may read",
    )
}

fn settings(arguments: &AgentRun) -> Result<Settings, Message> {
    let usual = Path::new(SETTINGS);
    let file = match &arguments.settings {
        Some(path) => SettingsFile::read(path).map_err(|error| settings_error(path, error.into()))?,
        None if usual.exists() => SettingsFile::read(usual).map_err(|error| settings_error(usual, error.into()))?,
        None => SettingsFile::default(),
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let path = arguments.settings.as_deref().unwrap_or(usual);
    let mut settings = Settings::new(&file, host.trim()).map_err(|error| settings_error(path, error.into()))?;
    if let Some(cluster) = &arguments.cluster {
        settings.cluster.clone_from(cluster);
    }
    if let Some(node) = &arguments.node {
        settings.node.clone_from(node);
    }
    settings.check_names().map_err(AgentError::from)?;
    settings.interval = arguments.interval;
    settings.linger = arguments.linger;
    Ok(settings)
}

fn settings_error(path: &Path, error: AgentError) -> Message {
    let message = Message::from(error);
    Message::bare(format!("{}: {}", path.display(), message.text()))
}

/// Folder in which programs stay when the agent is killed; mounts the file system if necessary.
fn bpf_folder() -> Result<PathBuf, Message> {
    let folder = PathBuf::from(BPF);
    let is_mounted =
        sysdock_mounts::all().is_ok_and(|all| all.iter().any(|mount| mount.fs_type == "bpf" && mount.point == folder));
    if is_mounted {
        return Ok(folder);
    }
    let cannot = |error: Errno| {
        Message::new(
            format!("{BPF}: cannot be mounted: {}", io::Error::from(error)),
            "run as root, or with --no-pin: jobs are then not counted while no agent is running",
        )
    };
    // As systemd mounts it: without a mode, all users may write to it.
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("bpf", BPF, "bpf", flags, Some(c"mode=0700")).map_err(cannot)?;
    Ok(folder)
}

fn report(event: Event) {
    match event {
        Event::Begun { is_resumed, left_out, metrics } => {
            if let Some(address) = metrics {
                note(&format!("metrics at http://{address}/metrics"));
            }
            note(if is_resumed { "counting continues where the previous agent stopped" } else { "counting" });
            for name in left_out {
                note(&format!("variable {name}: left out, its name is too long or there are too many"));
            }
        }
        Event::Waits(error) => note(&format!("batches wait in the spool: {}", Message::from(error).text())),
        Event::Refused(why) => note(&format!("a batch was refused and put aside: {}", messages::refused(&why))),
        Event::Rejected(points, why) => {
            let why = messages::rejected(points, &why);
            note(&format!("the OTLP receiver refused data that is not sent again: {why}"));
        }
        Event::Unkept(error) => {
            note(&format!("a batch is missing at the OTLP receiver: {}", Message::from(error).text()));
        }
        Event::Dropped(series) => {
            note(&format!("metrics: {series} series have no room and are added up as (other); --metrics-series sets the limit"));
        }
        Event::Unserved(error) => note(&format!("metrics are not served any more: {}", Message::from(error).text())),
        Event::Missed(error) => note(&format!("this interval is added to the next one: {}", Message::from(error).text())),
    }
}

fn print(arguments: &AgentPrint) -> Result<u8, Message> {
    let answer = query_job(&arguments.spool.spool, &arguments.job, arguments.over)?;
    let text = match arguments.format {
        PrintFormat::Json => serde_json::to_string(&answer).map_err(|error| Message::bare(error.to_string()))? + "\n",
        PrintFormat::Text => text_of(&answer).ok_or_else(|| {
            Message::new(
                format!("job {}: not known on this node", arguments.job),
                "its processes have not run here since the agent began, or ended longer ago than it remembers",
            )
        })?,
    };
    write(&text)
}

fn write(text: &str) -> Result<u8, Message> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Message::bare(format!("standard output: {error}")))?;
    Ok(0)
}

fn status(arguments: &AgentStatus) -> Result<u8, Message> {
    let status = query_status(&arguments.spool.spool)?;
    match arguments.format {
        PrintFormat::Json => write(&(serde_json::to_string(&status).map_err(|error| Message::bare(error.to_string()))? + "\n")),
        PrintFormat::Text => write(&messages::agent_status(&status)),
    }
}

/// The text that a user sees at the end of a job.
fn text_of(answer: &JobAnswer) -> Option<String> {
    let total = answer.total.as_ref()?;
    let metadata = total.opens + total.creates + total.closes + total.stats + total.readdirs + total.removes + total.renames;
    let metadata = metadata + total.makes + total.attributes;
    let (wall_ns, name) = (total.ended_ns - total.begun_ns, total.name.as_deref().unwrap_or_default());
    let mut text = format!(
        "sysdock: job {} {}({} on {})\n",
        total.job_id.as_deref().unwrap_or_default(),
        if name.is_empty() { String::new() } else { format!("{name} ") },
        seconds(wall_ns),
        total.node,
    );
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<22}{value}\n"));
    line("read, written", format!("{}, {}", bytes(total.read_bytes), bytes(total.written_bytes)));
    line("from, to devices", format!("{}, {}", bytes(total.disk_read_bytes), bytes(total.disk_written_bytes)));
    line("reads, writes, syncs", format!("{}, {}, {}", total.reads, total.writes, total.syncs));
    let parts = format!("{} opens, {} creates, {} stats, {} removes", total.opens, total.creates, total.stats, total.removes);
    line("metadata operations", format!("{metadata} ({parts})"));
    line("failed calls", total.errors.to_string());
    line("waited for files", format!("{} of all threads, {} in the calls", seconds(total.io_wait_ns), seconds(total.io_time_ns)));
    line("CPU time", format!("{}, {} waiting for a CPU", seconds(total.cpu_ns), seconds(total.cpu_wait_ns)));
    line("largest process", bytes(total.largest_process_bytes.unwrap_or(0)));
    if !total.is_whole {
        line("", "the agent was started after the job, or was interrupted: these numbers are too small".into());
    }
    if !answer.files.is_empty() {
        text.push_str("  files that took most time:\n");
        for file in answer.files.iter().take(5) {
            let path = if file.file_path.is_empty() { "(name not known)" } else { &file.file_path };
            let transferred = format!("{} read, {} written", bytes(file.read_bytes), bytes(file.written_bytes));
            text.push_str(&format!("    {:>9}  {} calls, {transferred}  {path}\n", seconds(file.io_time_ns), file.calls));
        }
    }
    Some(text)
}

fn seconds(ns: i64) -> String {
    let number = ns as f64;
    let (unit, name) = match ns {
        ..=999_999 => (1e3, "us"),
        1_000_000..=999_999_999 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{:.1} {name}", number / unit)
}

pub(crate) fn bytes(number: i64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = number as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{number} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

fn stop(arguments: &AgentStop) -> Result<u8, Message> {
    let folder = arguments.pins.clone().unwrap_or_else(|| BPF.into());
    match remove_pins(&folder) {
        Ok(0) => note("no programs of an agent are left in the kernel"),
        Ok(number) => note(&format!("removed the programs of {number} agents")),
        Err(AccountingError::AgentRuns) => {
            return Err(Message::new(messages::AGENT_RUNS, "end it by SIGTERM: it removes its programs itself"));
        }
        Err(AccountingError::Io(error)) => return Err(Message::new(format!("{}: {error}", folder.display()), "run as root")),
        Err(AccountingError::Probe(error)) => return Err(AgentError::from(AccountingError::Probe(error)).into()),
    }
    Ok(0)
}

/// Accept batches until a signal comes.
pub(crate) fn collect(arguments: &Collect) -> Result<u8, Message> {
    let cancel = Cancel::default();
    signals::cancel_on_signal(&cancel);
    let tls = match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => Some((certificate.clone(), key.clone())),
        (None, None) if arguments.listen.ip().is_loopback() || arguments.plain => None,
        (None, None) => {
            return Err(Message::new(
                format!("--listen {}: tokens would cross the network unencrypted", arguments.listen),
                "give --certificate and --key, or --plain where the network is trusted",
            ));
        }
        _ => return Err(Message::new("--certificate and --key belong together", "give both, or none")),
    };
    let options = CollectorOptions {
        listen: arguments.listen,
        lake: arguments.lake.clone(),
        tokens: arguments.token_file.clone(),
        tls,
        landing: Landing { every: arguments.land_every, limit: arguments.land_limit },
        connections: arguments.connections as usize,
        connections_of_one: arguments.connections_per_address as usize,
        memory: (arguments.memory as usize) << 20,
    };
    let collector = Collector::open(options)?;
    if let Some(address) = collector.address() {
        note(&format!("listening on {address}"));
    }
    collector.run(&cancel, |error| note(&format!("batches were not written: {}", Message::from(error).text())))?;
    Ok(0)
}
