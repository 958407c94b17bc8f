//! Records a command through the kernel's events, as a recording: `record REC CMD [ARGUMENT...]`.
//! Requires root.
#![expect(clippy::print_stderr, reason = "an example")]

use std::{env, error::Error, fs, path::Path, process::Command, time::Duration};

use sysdock_bpf::{
    Capture, End, Gate, KernelNames, NO_CPU, Note, Probes, SPOOL, Settings, Spool, Start, Target, clock_note, convert_own,
    first_task,
};
use sysdock_table::{Cancel, Folder, Recording};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, command @ ..] = &arguments[..] else { return Err("record REC CMD [ARGUMENT...]".into()) };
    let recording = Recording::create(Path::new(folder), sysdock_bpf::manifest())?;
    let spool = record(recording.folder(), command)?;
    eprintln!("spool {spool} B");
    make(recording)
}

/// Record into a spool. Returns the size of the spool.
fn record(folder: &Folder, command: &[String]) -> Result<u64, Box<dyn Error>> {
    let mut start = Command::new(&command[0]);
    start.args(&command[1..]);
    let gate = Gate::close(start, || Ok(()))?;
    let target = Target::Processes(vec![gate.pid()]);
    let settings = Settings {
        target,
        calls: true,
        families: Vec::new(),
        ring_bytes: 1 << 24,
        secret: 42,
        stacks: Default::default(),
        sample_period: Duration::from_millis(5),
        no_loss: false,
        probe_list: Default::default(),
    };
    let mut probes = Probes::load(&settings).map_err(|error| format!("{error:?}"))?;
    probes.attach().map_err(|error| format!("{error:?}"))?;
    let mut spool = Spool::create(folder)?;
    spool.note(&Note::Start(Box::new(Start { command: Some(command.join(" ")), pid: Some(gate.pid()), ..Start::default() })))?;
    spool.note(&clock_note())?;
    spool.append(NO_CPU, &first_task(gate.pid()))?;
    let mut capture = Capture::new(probes, spool, None, None)?;
    let mut child = gate.open()?;
    let mut status = None;
    capture.run(|| {
        status = child.try_wait().ok().flatten();
        status.is_some()
    })?;
    let exit_code = status.and_then(|status| status.code());
    let totals = capture.finish(|_| Note::End(End { exit_code, ..End::default() }))?;
    drop(capture);
    eprintln!("{totals:?}");
    Ok(totals.bytes)
}

fn make(mut recording: Recording) -> Result<(), Box<dyn Error>> {
    let spool = recording.folder().path().join(SPOOL);
    let ending = convert_own(&mut recording, KernelNames::open(), &Cancel::default(), &mut |_| {})?;
    let manifest = recording.finish(ending)?;
    eprintln!("{:?} calls {} issues {:?}", ending, manifest.tables["calls"].rows, manifest.capture().issues);
    if env::var_os("KEEP_SPOOL").is_none() {
        fs::remove_file(spool)?;
    }
    Ok(())
}
