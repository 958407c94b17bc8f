//! Errors of `sysdock-bpf` as text.

use std::{io, path::Path};

use sysdock_bpf::{BpfError, FAMILIES, NoPlace, Step, WrongProbe, WrongTrigger};

use super::Message;
use crate::sentences;

impl From<BpfError> for Message {
    fn from(error: BpfError) -> Self {
        match error {
            BpfError::Table(error) => error.into(),
            BpfError::Full(path) => {
                Message::new(full(&path), "everything recorded so far is kept: free some space, then run sysdock salvage REC")
            }
            BpfError::InUse(path) => Message::new(
                format!("{}: recording in progress", path.display()),
                "wait until the recorder ends, or stop it with Ctrl-C",
            ),
            BpfError::NotASpool(path) => Message::new(
                format!("{}: no recorded events", path.display()),
                "salvage works on the folder of a recording whose recorder died",
            ),
            BpfError::Spool(path, error) if error.kind() == io::ErrorKind::NotFound => Message::new(
                format!("{}: not found", path.display()),
                "salvage works on the folder of a recording whose recorder died; a complete recording needs no salvage",
            ),
            BpfError::Spool(path, error) => Message::bare(format!("{}: {error}", path.display())),
        }
    }
}

/// A recorder cannot distinguish the two causes: nothing more can be written.
pub(crate) fn full(spool: &Path) -> String {
    format!("{}: the disk is full, or the file is larger than this shell's limit (ulimit -f)", spool.display())
}

/// Why a flight recorder, whose spool is memory, cannot pass on its events.
pub(crate) fn not_taken(error: BpfError) -> String {
    match error {
        BpfError::Full(path) => format!("{}: no space left", path.display()),
        other => Message::from(other).text(),
    }
}

/// A step of the recorder, after "cannot".
pub(crate) fn step(step: Step) -> &'static str {
    match step {
        Step::CountCpus => "count the CPUs",
        Step::FindPidNamespace => "find this PID namespace",
        Step::FindMountNamespace => "find this mount namespace",
        Step::IdentifyBoot => "identify this boot",
        Step::ReadPrograms => "read the programs",
        Step::SetConfig => "set what to record",
        Step::SizeRings => "size the rings",
        Step::Load => "load the programs",
        Step::LoadCalls => "load the programs for system calls",
        Step::LoadProcesses => "load the programs for processes",
        Step::LoadFamily(name) => FAMILIES.iter().find(|family| family.name == name).map_or(name, |family| family.shows),
        Step::Attach => "attach a program",
        Step::AttachIterator => "attach the iterator",
        Step::NameProcesses => "name the processes",
        Step::MapRings => "map the rings",
        Step::FindSums => "find what programs add up",
        Step::MapReported => "map what was reported",
        Step::PassLayouts => "pass on the code layouts of processes",
        Step::ReadNames => "read names of files",
        Step::TakeOver => "take over the programs of another agent",
        Step::KeepMap => "keep a map",
        Step::KeepProgram => "keep a program",
        Step::KeepPrograms => "keep the programs",
    }
}

/// Why a probe cannot be attached.
pub(crate) fn no_place(reason: NoPlace) -> String {
    match reason {
        NoPlace::Function(path, function) => {
            format!("{path} has no function {function}; of a stripped program only those are known that `nm -D` lists")
        }
        NoPlace::Usdt(path, provider, name) => {
            format!("{path} has no probe {provider}:{name}; `readelf -n` lists those that it has")
        }
        NoPlace::Programs(why) => sentences::sentence(&why),
        NoPlace::Other(error) => error.to_string(),
    }
}

pub(crate) fn wrong_probe(wrong: &WrongProbe) -> String {
    match wrong {
        WrongProbe::Form => "write u:PATH:FUNCTION(TYPE,...), ur:PATH:FUNCTION(TYPE), usdt:PATH:PROVIDER:NAME(TYPE,...) \
                             or t:CATEGORY:EVENT(FIELD,...)"
            .into(),
        WrongProbe::RequestForm => "write a function as u:PATH:FUNCTION, or two probes as 'BEGIN -> END'".into(),
        WrongProbe::Unclosed => "the list of arguments does not end with `)`".into(),
        WrongProbe::NoFile(path) => format!("{path}: no such file"),
        WrongProbe::NotFound(name) => format!("{name}: no program in PATH and no library of this name; give its path"),
        WrongProbe::TooManyArguments(most) => format!("at most {most} can be recorded"),
        WrongProbe::TooManyFields(most) => format!("at most {most} fields can be recorded"),
        WrongProbe::TooManyProbes(most) => format!("at most {most} probes can be recorded"),
        WrongProbe::NoType(word) => format!("{word}: not a type: i8, i16, i32, i64, u8, u16, u32, u64 or str"),
        WrongProbe::NoTracepoint(category, event) => {
            format!("{category}:{event}: no such tracepoint; /sys/kernel/tracing/available_events lists them")
        }
        WrongProbe::NoTracefs => "tracepoints cannot be seen here: root sees them where tracefs is mounted: \
                                  mount -t tracefs tracefs /sys/kernel/tracing"
            .into(),
        WrongProbe::NoField { name, there } => format!("{name}: no such field; there are {}", there.join(", ")),
    }
}

pub(crate) fn wrong_trigger(wrong: WrongTrigger) -> String {
    match wrong {
        WrongTrigger::Form => "no such trigger: write call:TIME, call/NAME:TIME, run-queue:TIME, lock:TIME, \
                               pressure/cpu:PERCENT (or memory, io), signal, signal:NAME, probe or command:COMMAND"
            .into(),
        WrongTrigger::Time(why) => why,
        WrongTrigger::Resource => "there is pressure of cpu, memory and io".into(),
        WrongTrigger::Percent => "not a percentage from 1 to 100".into(),
        WrongTrigger::NoSignal(name) => format!("{name}: no such signal"),
    }
}
