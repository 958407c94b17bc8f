//! The command line.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, sync::LazyLock, time::Duration};

use clap::{
    Args, CommandFactory, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use sysdock_bpf::Stacks;

use crate::messages;

#[derive(Debug, Parser)]
#[command(name = "sysdock-native", version = version(), about = "Record programs and import their traces (the native half of sysdock)")]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Turn logs of strace or truss, output of fio, IOR, mdtest or elbencho, or profiles of callgrind, into a recording.
    #[command(
        after_help = "Example:\n  strace -f -ttt -T -y -o run.strace make\n  sysdock-native import run.strace -o rec\n  sysdock-native import fio.json ior.txt mdtest.txt -o results"
    )]
    Import(Import),
    /// Record a command, or processes that run.
    #[command(
        after_help = "Examples:\n  sysdock-native record -o rec -- tar cf /dev/null /usr/share/doc\n  sysdock-native record -o rec -p 4242 --for 30s\n  sysdock-native record -o rec -a --for 10s\n  sysdock-native record -o rec --with kernel --stacks=slower:100us -- ./simulation"
    )]
    Record(Record),
    /// Make a recording readable whose recorder, or machine, died.
    #[command(after_help = "Example:\n  sysdock-native salvage rec")]
    Salvage(Salvage),
    /// Show what processes, control groups, files, devices and locks do, refreshed every second.
    ///
    /// The views process, cgroup and device cost other processes nothing. While it is shown, the view file lengthens each system call of the
    /// machine by 0.1 us, and reads and writes of files by 0.4 us; --calls lengthens each by 0.3 us; the view lock lengthens each wait for a
    /// lock by some microseconds.
    #[command(
        after_help = "Keys: p c f d l views, s or < > sort key, / filter, y system calls, space pause, q quit.\n\nExamples:\n  sysdock-native top\n  sysdock-native top --view file --sort time_s\n  sysdock-native top --once --interval 5s --view lock --format json"
    )]
    Top(Top),
    /// Keep the last minute in memory, and write it as a recording when something happens.
    Flight {
        /// What to do with it.
        #[command(subcommand)]
        verb: Flight,
    },
    /// Load on a file system: what so many processes get of it at a time.
    ///
    /// Works in a folder of its own below DIR, which it removes; also those that killed runs left there.
    #[command(
        after_help = "Examples:\n  sysdock-native load /data --item transfer --length 1MiB --processes 8 --for 5s -o rec\n  sysdock-native load /data --item log --length 8KiB --for 5s --rows\n  sysdock-native load /data --plan plan.json -o rec"
    )]
    Load(Load),
    /// Load on a web server: requests that are due at random times, whatever became of those before; one JSON object on standard output.
    ///
    /// Latency counts from the time at which a request was due, so that a server that stands still makes all requests late that were due
    /// meanwhile. Fields: docs/reference/http-load.md.
    #[command(
        after_help = "Examples:\n  sysdock-native http-load http://127.0.0.1:8080/ --rate 2000 --connections 64 --for 10s --keep-alive\n  sysdock-native http-load http://127.0.0.1:8080/ --closed --connections 64 --for 10s --keep-alive"
    )]
    HttpLoad(HttpLoad),
    /// One run of a command, and what it used: one JSON object on standard output.
    ///
    /// Nothing is traced: times, delays, faults, transfers and requests of devices are differences of what the kernel counts anyway, of all
    /// processes of the run. Ends with status 0 where there was a run, whatever became of it. Fields: docs/reference/measure.md.
    #[command(
        after_help = "Examples:\n  sysdock-native measure -- make -j2\n  sysdock-native measure --device vda --timeout 5m --output out.txt -- ./benchmark"
    )]
    Measure(Measure),
    /// What each job of this node does to the file systems, and what it uses, as a series.
    Agent {
        /// What to do with it.
        #[command(subcommand)]
        verb: AgentVerb,
    },
    /// Take what agents send, and write it into a lake. Several may run on one lake.
    #[command(
        after_help = "Each line of the token file is a token, followed by the cluster whose agents may use it. Without a cluster, all agents may.\n\nExamples:\n  sysdock-native collect --listen 127.0.0.1:8404 --lake /data/lake --token-file tokens\n  sysdock-native collect --listen 0.0.0.0:8404 --lake /data/lake --token-file tokens --certificate chain.pem --key key.pem"
    )]
    Collect(Collect),
    /// Where the files of a file system lie on its device.
    Disk {
        /// What to do with it.
        #[command(subcommand)]
        verb: Disk,
    },
    /// What a kernel was doing when it died: reads crash dumps of kdump, makedumpfile and qemu, without debug information.
    Dump {
        /// What to do with it.
        #[command(subcommand)]
        verb: Dump,
    },
    /// Every instruction that a program executes, and every access to memory.
    Itrace {
        /// What to do with it.
        #[command(subcommand)]
        verb: Itrace,
    },
    /// Print the options of all verbs as JSON, for the Python half.
    #[command(hide = true)]
    Options,
}

/// What to do with a trace of instructions.
#[derive(Debug, Subcommand)]
pub(crate) enum Itrace {
    /// Execute a process, or a command, instruction by instruction, and record each one. What the kernel does is not recorded.
    #[command(
        after_help = "The process runs some thousand times slower meanwhile.\n\nExamples:\n  sysdock-native itrace attach -o rec -- ls\n  sysdock-native itrace attach -o rec --limit 1000000 4711"
    )]
    Attach(ItraceAttach),
    /// Run a command under qemu-user, and record each instruction of its first thread. What the kernel does is not recorded.
    #[command(
        after_help = "Example:\n  sysdock-native itrace user --qemu /usr/bin/qemu-x86_64 --plugin libsysdock_itrace_plugin.so -o rec -- gzip file"
    )]
    User(ItraceUser),
    /// Make the tables of a recording of an event file (trace.sdit) in its folder.
    #[command(after_help = "Example:\n  sysdock-native itrace convert guest-trace -o rec")]
    Convert(ItraceConvert),
    /// Print the instructions of a recording, disassembled: who executed each, its function, and the addresses that it touched.
    #[command(
        after_help = "Examples:\n  sysdock-native itrace dump rec --first-step 1000 --limit 50\n  sysdock-native itrace dump rec --function memcpy --format json"
    )]
    Dump(ItraceDump),
    /// Print the events of a recording, one a line: blocks of instructions, loads, stores, system calls.
    #[command(after_help = "Example:\n  sysdock-native itrace decode rec | head")]
    Decode(ItraceDecode),
}

/// Arguments of `itrace attach`.
#[derive(Debug, Args)]
pub(crate) struct ItraceAttach {
    /// A process that runs; all its threads are traced, and what they start.
    #[arg(value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) pid: Option<i32>,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Release the program after N instructions.
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
    /// The command to run.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `itrace user`.
#[derive(Debug, Args)]
pub(crate) struct ItraceUser {
    /// qemu-x86_64, with plugins.
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) qemu: PathBuf,
    /// The plugin that it loads.
    #[arg(long, value_name = "FILE")]
    pub(crate) plugin: PathBuf,
    /// Version of qemu, to be noted.
    #[arg(long, value_name = "VERSION")]
    pub(crate) version_of_qemu: Option<String>,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Stop recording after N instructions.
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
    /// The command to run.
    #[arg(last = true, value_name = "CMD", required = true)]
    pub(crate) command: Vec<OsString>,
}

/// Arguments of `itrace convert`.
#[derive(Debug, Args)]
pub(crate) struct ItraceConvert {
    /// Folder with trace.sdit and, where its recorder wrote them, facts.json and the files that it names.
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Arguments of `itrace dump`.
#[derive(Debug, Args)]
pub(crate) struct ItraceDump {
    /// Folder of a recording.
    #[arg(value_name = "REC")]
    pub(crate) folder: PathBuf,
    /// First step.
    #[arg(long, value_name = "STEP", default_value_t = 0, hide_default_value = true)]
    pub(crate) first_step: u64,
    /// End step; exclusive.
    #[arg(long, value_name = "STEP")]
    pub(crate) end_step: Option<u64>,
    /// Only this task, by number or name.
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,
    /// Only this mode.
    #[arg(long, value_name = "MODE", value_parser = ["user", "library", "kernel"])]
    pub(crate) mode: Option<String>,
    /// Only files whose path contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) image: Option<String>,
    /// Only this function.
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Only instructions that are at, or access, these addresses (hexadecimal).
    #[arg(long, value_name = "FIRST[-END]", value_parser = addresses)]
    pub(crate) address: Option<(u64, u64)>,
    /// Maximum number of instructions; 0: all.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u64,
    /// json: one object per line.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
}

fn addresses(text: &str) -> Result<(u64, u64), String> {
    let number =
        |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).map_err(|_| "a hexadecimal number".to_string());
    match text.split_once('-') {
        Some((first, end)) => Ok((number(first)?, number(end)?)),
        None => number(text).map(|first| (first, first.saturating_add(1))),
    }
}

/// Arguments of `itrace decode`.
#[derive(Debug, Args)]
pub(crate) struct ItraceDecode {
    /// Folder of a recording, or of an event file.
    #[arg(value_name = "REC")]
    pub(crate) folder: PathBuf,
    /// First step.
    #[arg(long, value_name = "STEP", default_value_t = 0, hide_default_value = true)]
    pub(crate) first_step: u64,
    /// Maximum number of lines; 0: all.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) limit: u64,
}

/// The type that clap expects.
const FEWEST_SERIES: i64 = sysdock_agent::FEWEST_SERIES as i64;

/// What to do with an agent.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentVerb {
    /// Count until a signal comes. Jobs are those of Slurm, PBS, LSF, Flux, OAR and Grid Engine, units of systemd, containers, and what the
    /// settings name.
    #[command(
        after_help = "Each system call of the machine takes 0.3 us longer while it runs, one on a file 0.6 to 0.9 us.\n\nExamples:\n  sysdock-native agent run --lake /data/lake\n  sysdock-native agent run --push https://collector:8404 --token-file /etc/sysdock/token\n  sysdock-native agent run --lake /data/lake --metrics 127.0.0.1:8405"
    )]
    Run(Box<AgentRun>),
    /// What a job has used on this node: for the epilogue script of a batch system.
    #[command(after_help = "Example, in an epilogue that runs as root:\n  sysdock-native agent print --job $SLURM_JOB_ID --over")]
    Print(AgentPrint),
    /// How an agent is: what waits to be sent, what is not taken, and why.
    #[command(after_help = "Example:\n  sysdock-native agent status")]
    Status(AgentStatus),
    /// Remove from the kernel what an agent that was killed has left there. (One that is ended by a signal removes it itself.)
    Stop(AgentStop),
}

/// Where an agent keeps what has not landed.
#[derive(Debug, Args)]
pub(crate) struct AgentSpool {
    /// Folder of the agent, for data that is not in the lake yet.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/sysdock/agent")]
    pub(crate) spool: PathBuf,
}

/// Arguments of `agent run`.
#[derive(Debug, Args)]
pub(crate) struct AgentRun {
    /// Write to this lake.
    #[arg(long, value_name = "DIR", conflicts_with = "push")]
    pub(crate) lake: Option<PathBuf>,
    /// Send to this collector.
    #[arg(long, value_name = "URL")]
    pub(crate) push: Option<String>,
    /// File with the token for the collector.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// CA certificates (PEM) to trust instead of the public ones.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Send what jobs did to this OTLP receiver over HTTP, in addition to the lake or instead of it. /v1/metrics is appended to URL.
    #[arg(long, value_name = "URL")]
    pub(crate) otlp: Option<String>,
    /// File with the bearer token for the receiver.
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub(crate) otlp_token_file: Option<PathBuf>,
    /// Settings of the site. Default: /etc/sysdock/agent.toml, if it exists.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Name of the cluster.
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Name of this node. Default: that of the host.
    #[arg(long, value_name = "NAME")]
    pub(crate) node: Option<String>,
    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) interval: Duration,
    /// A job that has no processes for this time has ended.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) linger: Duration,
    /// Maximum size of the spool; beyond it, the oldest data is dropped and counted.
    #[arg(long, value_name = "SIZE", default_value = "1024M", value_parser = mebibytes)]
    pub(crate) spool_limit: u32,
    /// Serve sums of all jobs together in OpenMetrics at http://ADDRESS/metrics, for Prometheus.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Tokens for clients that read metrics; required on addresses other than loopback.
    #[arg(long, value_name = "FILE", requires = "metrics")]
    pub(crate) metrics_token_file: Option<PathBuf>,
    /// Maximum number of series to serve; further ones are summed up, and counted.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(FEWEST_SERIES..=100_000))]
    pub(crate) metrics_series: u32,
    /// Leave no programs in the kernel that keep counting while the agent is not running.
    #[arg(long)]
    pub(crate) no_pin: bool,
    #[command(flatten)]
    pub(crate) spool: AgentSpool,
}

/// Arguments of `agent print`.
#[derive(Debug, Args)]
pub(crate) struct AgentPrint {
    /// Id of the job.
    #[arg(long, value_name = "ID")]
    pub(crate) job: String,
    /// The job has ended: write its totals to the lake.
    #[arg(long)]
    pub(crate) over: bool,
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: PrintFormat,
    #[command(flatten)]
    pub(crate) spool: AgentSpool,
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintFormat {
    Text,
    Json,
}

/// Arguments of `agent status`.
#[derive(Debug, Args)]
pub(crate) struct AgentStatus {
    /// How to print it.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: PrintFormat,
    #[command(flatten)]
    pub(crate) spool: AgentSpool,
}

/// Arguments of `agent stop`.
#[derive(Debug, Args)]
pub(crate) struct AgentStop {
    /// The BPF file system, if not /sys/fs/bpf.
    #[arg(long, value_name = "DIR")]
    pub(crate) pins: Option<PathBuf>,
}

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub(crate) struct Collect {
    /// Address and port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8404")]
    pub(crate) listen: SocketAddr,
    /// Folder of the lake.
    #[arg(long, value_name = "DIR")]
    pub(crate) lake: PathBuf,
    /// File of the tokens that agents may use.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Certificate chain (PEM), for HTTPS.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
    /// Permit HTTP without encryption on addresses that other hosts can reach.
    #[arg(long)]
    pub(crate) plain: bool,
    /// How often batches are written to the lake; agents wait for this.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) land_every: Duration,
    /// Agents send a batch again if writing it to the lake takes longer.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) land_limit: Duration,
    /// Connections at a time, each of which takes up to 45 KiB; a quarter of them for clients that have shown no token yet.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(16..=1_000_000))]
    pub(crate) connections: u32,
    /// Connections at a time of one address (IPv6: of one network). Raise it for agents that share an address.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) connections_per_address: u32,
    /// Memory for requests and for batches that are not in the lake yet; agents wait for it.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = collector_memory)]
    pub(crate) memory: u32,
}

/// What to do with a flight recorder.
#[derive(Debug, Subcommand)]
pub(crate) enum Flight {
    /// Begin to record into memory, in the background.
    #[command(
        after_help = "Triggers (--on): call:TIME a call about files that takes longer, call/NAME:TIME this call, run-queue:TIME a wait for a CPU, lock:TIME a wait for a lock of the kernel, pressure/cpu:PERCENT (or memory, io) threads that waited for it in the last second, signal a process that is killed (not by TERM, INT, HUP or PIPE; signal:NAME by this one), probe a place named by --probe, command:COMMAND a program with its arguments, run every 10 s, that ends with status 0.\n\nExamples:\n  sysdock-native flight start\n  sysdock-native flight start --keep 30s --on call/fsync:500ms --on signal"
    )]
    Start(FlightStart),
    /// Show what a flight recorder holds, and what it has written.
    Status(FlightStatus),
    /// Write what it holds as a recording.
    #[command(after_help = "Example:\n  sysdock-native flight dump -o rec --text 'the page was slow'")]
    Dump(FlightDump),
    /// End it. What it holds is gone.
    Stop(FlightName),
    /// Make a recording of a spool that comes from standard input.
    #[command(hide = true)]
    Receive(FlightDump),
}

/// Which flight recorder.
#[derive(Debug, Args)]
pub(crate) struct FlightName {
    /// Name of the flight recorder, if there are several.
    #[arg(long, value_name = "NAME", default_value = "flight", value_parser = flight_name)]
    pub(crate) name: String,
}

/// Arguments of `flight start`.
#[derive(Debug, Args)]
pub(crate) struct FlightStart {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Keep this much time, if it fits into the memory.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) keep: Duration,
    /// Total memory for each CPU. A number without a unit is in MiB.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = flight_memory)]
    pub(crate) memory: u32,
    /// Part of it for events that were not read yet: a power of two.
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = ring)]
    pub(crate) ring: u32,
    /// Write a recording when this happens.
    #[arg(long, value_name = "TRIGGER", value_parser = trigger)]
    pub(crate) on: Vec<(String, sysdock_bpf::Trigger)>,
    /// Folder for recordings that triggers write.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/sysdock/flight")]
    pub(crate) into: PathBuf,
    /// After a trigger, only count further ones for this time.
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = duration)]
    pub(crate) pause: Duration,
    /// Maximum number of recordings to keep. Then each new one replaces the oldest of the second half.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) most: usize,
    /// Maximum size of DIR. Beyond, a new recording replaces earlier ones in the same way, or is not written.
    #[arg(long, value_name = "SIZE", default_value = "2048M", value_parser = mebibytes)]
    pub(crate) disk: u32,
    /// What to record, in the words of `record`. System calls only with io: they cost most. If not given: sched,system,block, and what other
    /// options need.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = family)]
    pub(crate) what: Vec<String>,
    #[command(flatten)]
    pub(crate) details: Details,
    /// Stay in the foreground, as services do.
    #[arg(long)]
    pub(crate) foreground: bool,
    #[command(flatten)]
    pub(crate) name: FlightName,
}

/// Arguments of `flight status`.
#[derive(Debug, Args)]
pub(crate) struct FlightStatus {
    /// As lines, or as one JSON object.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: TopFormat,
    #[command(flatten)]
    pub(crate) name: FlightName,
}

/// Arguments of `flight dump`.
#[derive(Debug, Args)]
pub(crate) struct FlightDump {
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Reason, noted in the recording.
    #[arg(long, value_name = "TEXT", default_value = "by hand")]
    pub(crate) text: String,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) name: FlightName,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// What to do with a file system.
#[derive(Debug, Subcommand)]
pub(crate) enum Disk {
    /// Read which file has which blocks, what is free, and what the file system keeps for itself.
    #[command(after_help = "Examples:\n  sysdock-native disk scan / -o rec\n  sysdock-native disk scan disk.img -o rec")]
    Scan(Scan),
    /// Draw where files lie in what was scanned: a picture without text, and on standard output what it shows, as JSON.
    #[command(after_help = "Example:\n  sysdock-native disk map rec -o map.png --size 1024")]
    Map(Map),
}

/// What to do with a crash dump.
#[derive(Debug, Subcommand)]
pub(crate) enum Dump {
    /// Describe a dump: one JSON object on standard output.
    #[command(after_help = "Example:\n  sysdock-native dump info /var/crash/202611271200/dump.202611271200")]
    Info(DumpInfo),
    /// Read a dump into a recording.
    #[command(
        after_help = "Examples:\n  sysdock-native dump run /var/crash/dump -o rec\n  sysdock-native dump run /var/crash/dump -o rec --part tasks"
    )]
    Run(DumpRun),
    /// Answer questions about a dump: a JSON object on each line of standard input, and of standard output. For scripts.
    #[command(
        after_help = "Example:\n  echo '{\"op\": \"symbol\", \"name\": \"init_task\"}' | sysdock-native dump serve /var/crash/dump"
    )]
    Serve(DumpServe),
}

/// Debug information of the kernel of a dump.
#[derive(Debug, Args)]
pub(crate) struct DebugInfo {
    /// Debug information of the same kernel, for source lines and inlined functions.
    #[arg(long, value_name = "FILE")]
    pub(crate) vmlinux: Option<PathBuf>,
    /// Use debug information of another build.
    #[arg(long, requires = "vmlinux")]
    pub(crate) force: bool,
}

/// Arguments of `dump serve`.
#[derive(Debug, Args)]
pub(crate) struct DumpServe {
    /// A crash dump: ELF, or compressed by makedumpfile, also flattened. Or a kernel that runs: /proc/kcore, or qmp:SOCKET, the monitor of a
    /// guest of qemu.
    #[arg(value_name = "CORE")]
    pub(crate) core: PathBuf,
    #[command(flatten)]
    pub(crate) debug_info: DebugInfo,
    /// Let scripts also read the memory of processes and the content of files.
    #[arg(long)]
    pub(crate) user_memory: bool,
}

/// Arguments of `dump info`.
#[derive(Debug, Args)]
pub(crate) struct DumpInfo {
    /// A crash dump: ELF, or compressed by makedumpfile, also flattened. Or a kernel that runs: /proc/kcore, or qmp:SOCKET, the monitor of a
    /// guest of qemu.
    #[arg(value_name = "CORE")]
    pub(crate) core: PathBuf,
}

/// Arguments of `dump run`.
#[derive(Debug, Args)]
pub(crate) struct DumpRun {
    /// A crash dump: ELF, or compressed by makedumpfile, also flattened. Or a kernel that runs: /proc/kcore, or qmp:SOCKET, the monitor of a
    /// guest of qemu.
    #[arg(value_name = "CORE")]
    pub(crate) core: PathBuf,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Only this part: tasks, stacks, locks, log, memory, files, mounts, modules, processors, panic, requests, sockets, counts or flight (what a
    /// flight recorder held). May be repeated.
    #[arg(long = "part", value_name = "PART", value_parser = part)]
    pub(crate) parts: Vec<sysdock_dump::Part>,
    #[command(flatten)]
    pub(crate) debug_info: DebugInfo,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

fn part(word: &str) -> Result<sysdock_dump::Part, String> {
    let words = || sysdock_dump::Part::ALL.map(sysdock_dump::Part::name).join(", ");
    sysdock_dump::Part::named(word).ok_or_else(|| format!("one of {}", words()))
}

/// Arguments of `disk map`.
#[derive(Debug, Args)]
pub(crate) struct Map {
    /// Folder of a recording that `disk scan` made.
    #[arg(value_name = "REC")]
    pub(crate) recording: PathBuf,
    /// Picture to write (PNG).
    #[arg(short, long, value_name = "PNG")]
    pub(crate) output: Option<PathBuf>,
    /// File to write the pieces to, packed for a page that draws them itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) pieces: Option<PathBuf>,
    /// Pieces to write at most: the longest.
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    pub(crate) most: usize,
    /// hilbert: what is near on the device is near on the map. rows: line by line.
    #[arg(long, value_enum, default_value = "hilbert")]
    pub(crate) curve: MapCurve,
    /// Side of the picture [pixels]: a power of two from 64 to 4096.
    #[arg(long, value_name = "PIXELS", default_value_t = 1024, value_parser = side)]
    pub(crate) size: u32,
    /// Paint a cell as a break if a quarter of it is one.
    #[arg(long)]
    pub(crate) worst: bool,
    /// Start of the window on the device: 4096, 16M, 1G.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub(crate) from: u64,
    /// Its length. Default: to the end.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) length: Option<u64>,
    /// Draw as if the device had at least this size, so that several maps are to one scale.
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub(crate) least_size: u64,
    /// Highlight what is at or below this path.
    #[arg(long, value_name = "PATH")]
    pub(crate) find: Option<String>,
}

/// How addresses are laid on the square.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapCurve {
    /// What is near on the device is near on the map.
    Hilbert,
    /// Line by line.
    Rows,
}

/// Arguments of `disk scan`.
#[derive(Debug, Args)]
pub(crate) struct Scan {
    /// A mount point, folder, file, block device or image file.
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Number of threads. Default: one or two for each core; 32 for file by file.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Leave out file names: folders are not read, which takes less memory.
    #[arg(long)]
    pub(crate) no_names: bool,
    /// Do not measure what a request costs the device.
    #[arg(long)]
    pub(crate) no_measure: bool,
    /// Add the scan to the complete recording REC, alongside what it contains.
    #[arg(long)]
    pub(crate) into: bool,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    /// List of files that were used, and how much: see `sysdock_disk::add_usage`.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) usage: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Arguments of `load`.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// The directory to work in.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC", required_unless_present_any = ["rows", "agent"])]
    pub(crate) output: Option<PathBuf>,
    /// Steps to do, as JSON `{"steps": [...]}` (fields: `docs/reference/load-plan.md`); - for standard input.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["item", "agent"], conflicts_with = "item")]
    pub(crate) plan: Option<PathBuf>,
    /// Do steps that come on standard input, one a line, at the times that come there, too: for one host of several.
    #[arg(long, hide = true, conflicts_with_all = ["plan", "item", "output"])]
    pub(crate) agent: bool,
    /// What to measure: transfer, volume, metadata, log, random_read, random_mix, mmap, depth or control.
    #[arg(long, value_name = "ITEM", value_parser = enumerated::<sysdock_load::Item>)]
    pub(crate) item: Option<sysdock_load::Item>,
    /// Size of a request: 4096, 4KiB, 1MiB.
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = size)]
    pub(crate) length: u64,
    /// Number of concurrent processes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) processes: u32,
    /// Duration of each operation: 5s, 500ms.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// Total size of all files. Default: 256MiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) size: Option<u64>,
    /// Files per process.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) files: u32,
    /// Requests in flight.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) depth: u32,
    /// Bypass the page cache (O_DIRECT).
    #[arg(long)]
    pub(crate) direct: bool,
    /// A file for each process, or one for all.
    #[arg(long, default_value = "own", value_parser = one_of::<sysdock_load::Layout>(&["own", "shared"]))]
    pub(crate) layout: sysdock_load::Layout,
    /// How writes reach the device. Default: fdatasync for a log, otherwise end (once).
    #[arg(long, value_parser = one_of::<sysdock_load::Sync>(&["none", "end", "fdatasync", "fsync", "dsync"]))]
    pub(crate) sync: Option<sysdock_load::Sync>,
    /// Only these operations of the item.
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = enumerated::<sysdock_load::Operation>)]
    pub(crate) operations: Vec<sysdock_load::Operation>,
    /// Share of requests that write (random_mix).
    #[arg(long, value_name = "SHARE", default_value_t = 0.3)]
    pub(crate) write_share: f64,
    /// Overwrite a log of full size instead of extending it.
    #[arg(long)]
    pub(crate) prefilled: bool,
    /// Compare each block read with what was written.
    #[arg(long)]
    pub(crate) verify: bool,
    /// Begin no step after this time: the rest is marked as skipped.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) within: Option<Duration>,
    /// Print each measurement as one JSON object a line on standard output.
    #[arg(long)]
    pub(crate) rows: bool,
    /// Give a step up when nothing comes forward for this time.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub(crate) patience: Duration,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    /// What the user called, where that is not this program.
    #[arg(long, value_name = "TEXT", hide = true)]
    pub(crate) called: Option<String>,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Arguments of `http-load`.
#[derive(Debug, Args)]
pub(crate) struct HttpLoad {
    /// Addresses: http://HOST[:PORT][/PATH]. Of several, each request goes to one that is drawn.
    #[arg(required = true, value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// File with the requests, one a line: `GET /PATH` or `POST /PATH` (without content). Each request is a line drawn at random, sent to
    /// the one URL, which has no path then.
    #[arg(long, value_name = "FILE")]
    pub(crate) requests: Option<PathBuf>,
    /// Add up the numbers that answers have in this field of their heads. Several times for several.
    #[arg(long, value_name = "FIELD")]
    pub(crate) sum: Vec<String>,
    /// Compute the CRC-32 of each address's content, where all its answers have the same.
    #[arg(long)]
    pub(crate) checksums: bool,
    /// Requests that are due in a second.
    #[arg(long, value_name = "PER_SECOND", value_parser = rate, required_unless_present = "closed")]
    pub(crate) rate: Option<f64>,
    /// Closed loop instead: each connection sends the next request when the last one was answered. Finds the highest rate.
    #[arg(long, conflicts_with = "rate")]
    pub(crate) closed: bool,
    /// Connections at a time, at most. Requests that find none free wait, and their wait is part of their latency.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) connections: u32,
    /// How long requests are made.
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) time: Duration,
    /// A request without an answer is given up this time after it was due.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Use connections again, instead of one for each request.
    #[arg(long)]
    pub(crate) keep_alive: bool,
    /// The same seed draws the same times, and the same addresses.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Threads of this client.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: u32,
}

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    /// End all of the run after this time: by SIGTERM, and 2 s later by SIGKILL.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Block device to count requests of: its name, or the path of its file. Several times for several.
    #[arg(long, value_name = "NAME")]
    pub(crate) device: Vec<String>,
    /// Where standard output of the command goes. Default: /dev/null.
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Where its standard error goes. Default: /dev/null.
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Option<PathBuf>,
    /// Where it starts. Default: here.
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// A variable of its environment, in addition. Several times for several.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(OsString, OsString)>,
    /// CPUs that it may use: numbers and ranges, as in 0,2-3.
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<Cpus>,
    /// Under sudo: run CMD as root, not as the caller.
    #[arg(long)]
    pub(crate) as_root: bool,
    /// Leave processes alone that outlive the command, instead of killing them.
    #[arg(long)]
    pub(crate) keep_left_over: bool,
    /// The command and its arguments.
    #[arg(required = true, last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

/// Numbers of CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Cpus(pub(crate) Vec<usize>);

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Logs: files (plain, .gz, .zst), a set that strace -ff wrote, or - for standard input. Those of system calls and those of load go into
    /// recordings of their own; the format of a log is recognized by its contents.
    #[arg(required = true, value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    /// Date of the first line, for logs that have only times of day (-t, -tt). Default: the file's date.
    #[arg(long, value_name = "YYYY-MM-DD")]
    pub(crate) date: Option<String>,
    /// Seconds to add to the times of a log, which is given by its name, or by a folder or dotted part of its path.
    #[arg(long, value_name = "HOST=SECONDS")]
    pub(crate) offset: Vec<String>,
    /// Estimate the clock differences between the logs from files that they share. Reads the logs twice.
    #[arg(long)]
    pub(crate) align: bool,
    /// Continue to read logs that are still written, until Ctrl-C or until every process in them has ended.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Time columns of a truss log, as the letters of truss's options. Default: detected from the log.
    #[arg(long, value_name = "dDE")]
    pub(crate) truss_columns: Option<String>,
    /// Number of threads. Default: one for each core.
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) threads: usize,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// New folder for the recording.
    #[arg(short, long, value_name = "REC")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Stop after this time: 500ms, 30s, 5m. The command continues.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) time: Option<Duration>,
    /// Record with eBPF (kernel), with strace, or with the first of the two that is permitted (auto).
    #[arg(long = "with", value_enum, default_value = "auto")]
    pub(crate) recorder: Recorder,
    /// What to record: io (system calls and processes; always), uring (io_uring operations), faults (page faults on mapped files), page_io
    /// (disk reads and writes for files), sched (when threads run, and what they wait for), cpu (CPU samples of threads), system (load of the
    /// whole machine), sockets (addresses, peers, retransmits). Default: all of these. Only if named: locks (waits for kernel locks), block
    /// (requests to block devices: time in the queue and in the device), irq (interrupts, softirqs, timers), memory (kernel memory allocations
    /// by call site, and waits for memory), syscalls (durations of system calls, summed by process and call).
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = family)]
    pub(crate) what: Vec<String>,
    /// Leave system calls out, which a flight recorder may.
    #[arg(skip)]
    pub(crate) without_calls: bool,
    #[command(flatten)]
    pub(crate) details: Details,
    /// Stop the processes for a moment when events come too fast, rather than lose any.
    #[arg(long)]
    pub(crate) no_loss: bool,
    /// Event buffer of each CPU: a power of two from 1M to 64M. A number without a unit is in MiB.
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = ring)]
    pub(crate) ring: u32,
    /// Record requests: a function (u:PATH:FUNCTION) from its start to its return, or 'PROBE -> PROBE'. Not with strace.
    #[arg(long, value_name = "REQUEST", value_parser = request)]
    pub(crate) request: Vec<sysdock_bpf::Ends>,
    /// Record where in the program probes are reached, with source lines.
    #[arg(long)]
    pub(crate) probe_stacks: bool,
    /// all: record until all processes that CMD leaves running have ended; no: stop when CMD ends.
    #[arg(long, value_enum, default_value = "all")]
    pub(crate) wait: Wait,
    /// Under sudo: run CMD as root, not as the caller.
    #[arg(long)]
    pub(crate) as_root: bool,
    /// Let other users read the recording. It contains paths and program arguments.
    #[arg(long)]
    pub(crate) share: bool,
    /// Command and its arguments.
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["pid", "cgroup", "all"])]
    pub(crate) command: Vec<std::ffi::OsString>,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Details of a recording, for `record` and `flight start`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Details {
    /// What to record for a question. bottleneck: what holds a program back; all but syscalls.
    #[arg(long, value_enum, conflicts_with = "what")]
    pub(crate) preset: Option<Preset>,
    /// Record where in the program file calls are made: for all calls, slow ones, or one in N. Not with strace.
    #[arg(long, value_name = "all|slower:TIME|every:N", num_args = 0..=1, require_equals = true, default_missing_value = "all", value_parser = stacks)]
    pub(crate) stacks: Option<(String, Stacks)>,
    /// CPU samples per second, on each CPU. Default: 199. Not with strace.
    #[arg(short = 'F', long, value_name = "HZ", value_parser = frequency)]
    pub(crate) freq: Option<u32>,
    /// Record each time a place is reached: u:PATH:FUNCTION(TYPE,...), ur:PATH:FUNCTION (its return), usdt:PATH:PROVIDER:NAME(TYPE,...),
    /// t:CATEGORY:EVENT. Not with strace.
    #[arg(long, value_name = "PROBE", value_parser = probe)]
    pub(crate) probe: Vec<sysdock_bpf::Probe>,
}

/// Whose calls are recorded, where it is not a command.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// A running process, its child processes, and all processes that they start.
    #[arg(short, long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// All processes of a control group (version 2), given by its folder.
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// All processes of the system.
    #[arg(short, long)]
    pub(crate) all: bool,
}

impl Target {
    /// Whether no process was named, so that a command is required.
    pub(crate) fn is_empty(&self) -> bool {
        self.pid.is_empty() && self.cgroup.is_none() && !self.all
    }
}

/// Until when a command is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wait {
    /// Until all that it started has ended.
    All,
    /// Until it has ended itself.
    No,
}

/// What is recorded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Everything but stacks of calls.
    Bottleneck,
}

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Recorder {
    /// The best there is.
    Auto,
    /// The kernel's own events, by BPF.
    Kernel,
    /// strace.
    Strace,
}

fn duration(text: &str) -> Result<Duration, String> {
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    let factor = match unit {
        "us" => 0.000_001,
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("not a time: write 500ms, 30s, 5m or 1h".into()),
    };
    let seconds: f64 = digits.parse().map_err(|_| "not a time: write 500ms, 30s, 5m or 1h".to_string())?;
    Duration::try_from_secs_f64(seconds * factor).map_err(|error| error.to_string())
}

/// Parse a size [B]: a number, with an optional unit K, M, G, T or KiB, MiB, ... (powers of 1024)
/// or kB, MB, GB, TB (powers of 1000).
fn size(text: &str) -> Result<u64, String> {
    const FORM: &str = "not a size: write 4096, 4K, 16M or 1GB";
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    let factor = match unit.trim() {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "m" | "M" | "MiB" => 1_048_576.0,
        "g" | "G" | "GiB" => 1_073_741_824.0,
        "t" | "T" | "TiB" => 1_099_511_627_776.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        _ => return Err(FORM.into()),
    };
    let bytes = digits.parse::<f64>().map_err(|_| FORM.to_string())? * factor;
    if bytes.fract() == 0.0 && bytes < 9e15 { Ok(bytes as u64) } else { Err(FORM.into()) }
}

/// Parse a memory size [MiB]: a plain number, or a size that is a whole number of MiB.
fn mebibytes(text: &str) -> Result<u32, String> {
    let bytes = if text.bytes().all(|byte| byte.is_ascii_digit()) { size(&format!("{text}M"))? } else { size(text)? };
    match u32::try_from(bytes >> 20) {
        Ok(mib) if bytes.is_multiple_of(1 << 20) => Ok(mib),
        _ => Err("not a whole number of MiB".into()),
    }
}

/// Parse the memory of a collector [MiB]. The longest request must fit into three quarters of it.
fn collector_memory(text: &str) -> Result<u32, String> {
    match mebibytes(text)? {
        mib @ 16..=65536 => Ok(mib),
        _ => Err("not from 16M to 64G".into()),
    }
}

/// Parse the memory of a flight recorder per CPU [MiB].
fn flight_memory(text: &str) -> Result<u32, String> {
    match mebibytes(text)? {
        mib @ 4..=16384 => Ok(mib),
        _ => Err("not from 4M to 16G".into()),
    }
}

/// A parser of these words, each the name of a value of an enumeration in plans.
fn one_of<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).try_map(|word| enumerated(&word))
}

/// Parse a value of an enumeration by its name in plans.
fn enumerated<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(text)).map_err(|error| error.to_string())
}

/// Parse a rate of requests per second: a number, with an optional /s.
fn rate(text: &str) -> Result<f64, String> {
    match text.trim_end_matches("/s").parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("not a rate: write 2000, or 2000/s".into()),
    }
}

/// Parse a variable and its value, which may contain any byte but NUL.
fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
    }
}

fn cpu_list(text: &str) -> Result<Cpus, String> {
    const FORM: &str = "not a list of CPUs: write 0, 0,1 or 0-3";
    /// The kernel's limit.
    const MOST: usize = 8192;
    let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number < MOST);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => cpus.extend(first..=last),
            _ => return Err(FORM.into()),
        }
    }
    Ok(Cpus(cpus))
}

fn trigger(text: &str) -> Result<(String, sysdock_bpf::Trigger), String> {
    let trigger = sysdock_bpf::Trigger::parse(text, duration).map_err(messages::wrong_trigger)?;
    Ok((text.into(), trigger))
}

fn probe(text: &str) -> Result<sysdock_bpf::Probe, String> {
    sysdock_bpf::Probe::parse(text).map_err(|wrong| messages::wrong_probe(&wrong))
}

fn request(text: &str) -> Result<sysdock_bpf::Ends, String> {
    sysdock_bpf::Ends::parse(text).map_err(|wrong| messages::wrong_probe(&wrong))
}

/// Parse a name that is used as a file name.
fn flight_name(text: &str) -> Result<String, String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        Ok(text.into())
    } else {
        Err("a name has letters, digits, - and _, 64 at most".into())
    }
}

/// Parse the interval between readings: at least as long as a terminal needs, at most a day.
fn interval(text: &str) -> Result<Duration, String> {
    const FROM_TO: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(86_400));
    duration(text).and_then(|time| {
        if (FROM_TO.0..=FROM_TO.1).contains(&time) { Ok(time) } else { Err("not a time from 100ms to 24h".into()) }
    })
}

fn frequency(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=9999) => Ok(number),
        _ => Err("not a number from 1 to 9999".into()),
    }
}

/// The choice, and its text.
fn stacks(text: &str) -> Result<(String, Stacks), String> {
    const FORM: &str = "write all, slower:100us or every:10";
    let chosen = match text.split_once(':') {
        None if text == "all" => Ok(Stacks::All),
        Some(("slower", time)) => duration(time).map(Stacks::Slower),
        Some(("every", number)) => match number.parse() {
            Ok(number) if number > 0 => Ok(Stacks::Every(number)),
            _ => Err(FORM.into()),
        },
        _ => Err(FORM.into()),
    };
    chosen.map(|stacks| (text.into(), stacks))
}

fn family(word: &str) -> Result<String, String> {
    let words = || sysdock_bpf::FAMILIES.iter().fold(sysdock_bpf::IO.to_string(), |words, family| words + ", " + family.name);
    sysdock_bpf::chosen([word]).map_or_else(|_| Err(format!("there are {}", words())), |_| Ok(word.to_string()))
}

fn side(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(pixels) if pixels.is_power_of_two() && (64..=4096).contains(&pixels) => Ok(pixels),
        _ => Err("not a power of two from 64 to 4096".into()),
    }
}

fn ring(text: &str) -> Result<u32, String> {
    match mebibytes(text) {
        Ok(mib) if mib.is_power_of_two() && mib <= 64 => Ok(mib),
        _ => Err("not a power of two from 1M to 64M".into()),
    }
}

/// Arguments of `top`.
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// View to show first.
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) view: TopView,
    /// Time between two updates: 500ms, 5s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Column to sort by, as named in JSON. Default: the resource used most.
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sort: Option<String>,
    /// Show only rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Also count the system calls of each process.
    #[arg(long)]
    pub(crate) calls: bool,
    /// Print one interval, and exit.
    #[arg(long)]
    pub(crate) once: bool,
    /// With --once: format of the output.
    #[arg(long, value_enum, default_value = "text", requires = "once")]
    pub(crate) format: TopFormat,
    /// With --once: maximum number of rows. Default: 20; all as JSON.
    #[arg(long, value_name = "N", requires = "once")]
    pub(crate) limit: Option<usize>,
}

/// What `top` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopView {
    /// CPU time, switches and bytes of each process.
    Process,
    /// The same by control group (version 2).
    Cgroup,
    /// Reads and writes of files by system calls.
    File,
    /// Requests to block devices.
    Device,
    /// Waits for locks of the kernel.
    Lock,
}

impl TopView {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TopView::Process => "process",
            TopView::Cgroup => "cgroup",
            TopView::File => "file",
            TopView::Device => "device",
            TopView::Lock => "lock",
        }
    }
}

/// How `top --once` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopFormat {
    /// A table.
    Text,
    /// One object.
    Json,
}

/// Arguments of `salvage`.
#[derive(Debug, Args)]
pub(crate) struct Salvage {
    /// Folder of a recording whose recorder died.
    #[arg(value_name = "REC")]
    pub(crate) recording: PathBuf,
    /// Only show how many events would be recovered.
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) progress: Progress,
}

/// Where progress goes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Progress {
    /// Report progress as one JSON object a line on standard error.
    #[arg(long)]
    pub(crate) progress: bool,
    /// Report progress on this descriptor instead.
    #[arg(long, value_name = "N")]
    pub(crate) progress_fd: Option<i32>,
}

/// Version, commit (set by `make dist`) and format of recordings, in the same form as `sysdock
/// --version`.
fn version() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let commit = option_env!("SYSDOCK_COMMIT").map(|commit| format!("commit {commit}, ")).unwrap_or_default();
        format!("{} ({commit}recording format {})", env!("CARGO_PKG_VERSION"), sysdock_table::FORMAT_VERSION)
    });
    &TEXT
}

/// Parse the command line; help, version and mistakes end the program here.
pub(crate) fn parse() -> Verb {
    CommandLine::parse().verb
}

/// The command line as it is declared.
pub(crate) fn declared() -> clap::Command {
    CommandLine::command()
}

#[cfg(test)]
mod tests {
    use super::{flight_memory, mebibytes, ring, size};

    #[test]
    fn sizes_have_units_of_1024_and_of_1000() {
        let of = |text| size(text).ok();
        assert_eq!([of("4096"), of("4K"), of("4KiB"), of("16M"), of("1.5G")], [4096, 4096, 4096, 1 << 24, 3 << 29].map(Some));
        assert_eq!([of("4kB"), of("1MB"), of("1TB"), of("1T")], [4000, 1_000_000, 1_000_000_000_000, 1 << 40].map(Some));
        assert_eq!([of(""), of("M"), of("4X"), of("-1"), of("0.3")], [None; 5]);
    }

    #[test]
    fn memory_without_a_unit_is_in_mebibytes() {
        assert_eq!([mebibytes("16"), mebibytes("16M"), mebibytes("16384K")], [Ok(16), Ok(16), Ok(16)]);
        assert_eq!(mebibytes("1G"), Ok(1024));
        assert!(mebibytes("4K").is_err());
    }

    #[test]
    fn memory_of_recorders_has_bounds() {
        assert_eq!([ring("64M"), ring("8")], [Ok(64), Ok(8)]);
        assert!(ring("3M").is_err());
        assert!(ring("128M").is_err());
        assert_eq!(flight_memory("16G"), Ok(16384));
        assert!(flight_memory("3M").is_err());
    }
}
