//! Passes the probes to the programs, and attaches them.

use std::ffi::OsStr;

use libbpf_rs::{Link, MapCore, MapFlags, Object, ProgramMut, TracepointCategory, TracepointOpts, UprobeOpts, UsdtOpts};
use sysdock_table::Fact;

use crate::probe_list::{Argument, At, Kind, MOST_ARGUMENTS, Probe, ProbeList};

/// Attaches to all processes. The programs ignore those that are not recorded.
const EVERY_PROCESS: i32 = -1;

/// A probe that cannot be attached, as the user wrote it, and the reason.
pub type Refused = (String, NoPlace);

/// The most likely reason why a probe cannot be attached.
#[derive(Debug)]
pub enum NoPlace {
    /// The file has no such function.
    Function(String, String),
    /// The file has no such probe: provider and name.
    Usdt(String, String, String),
    /// The programs for probes are missing: why.
    Programs(Fact),
    Other(libbpf_rs::Error),
}

/// Names of programs that no probe needs.
pub(crate) fn unused(probe_list: &ProbeList) -> Vec<&'static str> {
    let used: Vec<&str> = probe_list.probes.iter().map(|probe| program_of(&probe.at)).collect();
    ["entered", "returned", "marked", "traced"].into_iter().filter(|name| !used.contains(name)).collect()
}

fn program_of(at: &At) -> &'static str {
    match at {
        At::Entry(..) => "entered",
        At::Return(..) => "returned",
        At::Usdt(..) => "marked",
        At::Tracepoint(..) => "traced",
    }
}

/// Attach all probes. If one is refused, those that were attached before it are detached when the
/// links are dropped.
pub(crate) fn attach(object: &Object, probe_list: &ProbeList) -> Result<Vec<Link>, Refused> {
    let described = object.maps().find(|map| map.name() == OsStr::new("probes")).expect("the object has probes");
    let mut links = Vec::new();
    for (number, probe) in (0u32..).zip(&probe_list.probes) {
        let refused = |error: libbpf_rs::Error| (probe.text.clone(), reason(probe, error));
        described.update(&number.to_ne_bytes(), &bytes(&probe.arguments), MapFlags::ANY).map_err(refused)?;
        let name = program_of(&probe.at);
        let program = object.progs_mut().find(|program| program.name() == OsStr::new(name)).expect("the object has programs");
        links.push(attach_one(&program, probe, u64::from(number)).map_err(refused)?);
    }
    Ok(links)
}

fn attach_one(program: &ProgramMut<'_>, probe: &Probe, cookie: u64) -> libbpf_rs::Result<Link> {
    let of_function = |function: &String, retprobe| {
        let func_name = Some(function.clone());
        UprobeOpts { cookie, retprobe, func_name, ..UprobeOpts::default() }
    };
    match &probe.at {
        At::Entry(path, function) => program.attach_uprobe_with_opts(EVERY_PROCESS, path, 0, of_function(function, false)),
        At::Return(path, function) => program.attach_uprobe_with_opts(EVERY_PROCESS, path, 0, of_function(function, true)),
        At::Usdt(path, provider, name) => {
            program.attach_usdt_with_opts(EVERY_PROCESS, path, provider, name, UsdtOpts { cookie, ..UsdtOpts::default() })
        }
        At::Tracepoint(category, event) => {
            let options = TracepointOpts { cookie, ..TracepointOpts::default() };
            program.attach_tracepoint_with_opts(TracepointCategory::Custom(category.clone()), event, options)
        }
    }
}

fn reason(probe: &Probe, error: libbpf_rs::Error) -> NoPlace {
    let is_missing = error.kind() == libbpf_rs::ErrorKind::NotFound;
    match &probe.at {
        At::Entry(path, function) | At::Return(path, function) if is_missing => NoPlace::Function(path.clone(), function.clone()),
        At::Usdt(path, provider, name) if is_missing => NoPlace::Usdt(path.clone(), provider.clone(), name.clone()),
        _ => NoPlace::Other(error),
    }
}

/// `struct probe` of `spec.h`.
fn bytes(arguments: &[Argument]) -> Vec<u8> {
    let texts = arguments.iter().filter(|argument| argument.kind.is_text()).count();
    let mut out = Vec::new();
    out.extend((arguments.len() as u32).to_ne_bytes());
    out.extend((texts as u32).to_ne_bytes());
    for argument in arguments {
        let (offset, length) = argument.place.unwrap_or_default();
        let kind = match argument.kind {
            Kind::Str => 1,
            Kind::FarText => 2,
            Kind::NearText => 3,
            _ => 0u8,
        };
        out.extend(offset.to_ne_bytes());
        out.extend([length, kind]);
    }
    out.resize(8 + 4 * MOST_ARGUMENTS, 0);
    out
}
