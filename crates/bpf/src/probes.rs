//! Loads the BPF programs and attaches them.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, ProgramMut, ProgramType};
use sysdock_table::FamilyState;

use crate::{
    config::{Config, Target},
    counters,
    families::{FAMILIES, Family},
    refusal,
    ring::{self, Ring},
};

const CALLS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.bpf.o"));
const PROCESSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/processes.bpf.o"));

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose events.
    pub target: Target,
    /// Size of the ring of each CPU [B], a power of two.
    pub ring_bytes: u32,
    /// What is recorded beside system calls and processes.
    pub families: Vec<Family>,
    /// Makes ids of files from addresses; another one for each recording.
    pub secret: u64,
    /// Count what was produced, for a test.
    pub count_produced: bool,
}

/// Why recording cannot start.
#[derive(Debug)]
pub struct ProbeError {
    /// What was tried.
    pub step: &'static str,
    /// What the kernel said.
    pub reason: String,
}

fn failed(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ProbeError {
    move |error| {
        let reason = refusal::take().map_or_else(|| error.to_string(), |said| format!("{error}: {said}"));
        ProbeError { step, reason }
    }
}

/// Programs that belong together.
struct Loaded {
    object: Object,
    /// Where the recording is worth something without them.
    family: Option<Family>,
}

/// Programs in the kernel. They go when this is dropped.
pub struct Probes {
    objects: Vec<Loaded>,
    links: Vec<Link>,
    /// The rings that they write.
    pub rings: Vec<Ring>,
    /// What became of each family that there is.
    pub families: Vec<FamilyState>,
}

impl Probes {
    /// Load the programs; nothing is recorded yet.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or a kernel without what they need.
    pub fn load(settings: &Settings) -> Result<Probes, ProbeError> {
        let config = Config {
            target: settings.target.clone(),
            secret: settings.secret,
            recorder: std::process::id(),
            ring_bytes: settings.ring_bytes,
            count_produced: settings.count_produced,
        };
        refusal::listen();
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed("count the CPUs"))?;
        let mut open = open(CALLS, &config)?;
        for mut map in open.maps_mut().filter(|map| map.name() == OsStr::new("rings")) {
            map.set_max_entries(cpus as u32).map_err(failed("size the rings"))?;
            map.set_value_size(ring::stride(settings.ring_bytes)).map_err(failed("size the rings"))?;
        }
        let calls = open.load().map_err(failed("load the programs for system calls"))?;
        let processes = load_beside(PROCESSES, &config, &calls, &[], "load the programs for processes")?;
        let mut objects = vec![Loaded { object: processes, family: None }];
        let mut families = Vec::new();
        for family in FAMILIES {
            // A kernel that lacks what one needs, or has it with other arguments, is no reason not to record the rest.
            let loaded = if settings.families.contains(&family) {
                load_family(family, &config, &calls).map_err(|error| error.reason)
            } else {
                Err("not asked for".to_string())
            };
            let missing = loaded.map(|object| objects.push(Loaded { object, family: Some(family) })).err();
            families.push(FamilyState { family: family.word.to_string(), missing });
        }
        let map = calls.maps().find(|map| map.name() == OsStr::new("rings")).expect("the object has rings");
        let rings = ring::map(map.as_fd().as_raw_fd(), cpus, settings.ring_bytes)
            .map_err(|error| ProbeError { step: "map the rings", reason: error.to_string() })?;
        if let Target::Processes(pids) = &settings.target {
            let map = calls.maps().find(|map| map.name() == OsStr::new("processes")).expect("the object has processes");
            for pid in pids {
                map.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(failed("name the processes"))?;
            }
        }
        objects.insert(0, Loaded { object: calls, family: None });
        Ok(Probes { objects, links: Vec::new(), rings, families })
    }

    /// Start recording.
    ///
    /// # Errors
    /// [`ProbeError`] where the kernel refuses.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        for Loaded { object, family } in &self.objects {
            match (attach_all(object), family) {
                (Ok(links), _) => self.links.extend(links),
                (Err(error), None) => return Err(failed("attach a program")(error)),
                (Err(error), Some(family)) => {
                    let state = self.families.iter_mut().find(|state| state.family == family.word);
                    state.expect("each family has a state").missing = Some(error.to_string());
                }
            }
        }
        Ok(())
    }

    /// End recording; what is in the rings stays there.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

fn attach_all(object: &Object) -> libbpf_rs::Result<Vec<Link>> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        match counter_of(&program) {
            Some(event) => links.extend(counters::attach(&program, event)?),
            None => links.push(program.attach()?),
        }
    }
    Ok(links)
}

/// The software event that a program is run at; others say by themselves where they belong.
fn counter_of(program: &ProgramMut<'_>) -> Option<u64> {
    let is_major = program.name() == OsStr::new("end_major");
    (program.prog_type() == ProgramType::PerfEvent).then_some(if is_major {
        counters::MAJOR_FAULTS
    } else {
        counters::MINOR_FAULTS
    })
}

/// Load the programs of a family that fit this kernel. Where none do: what the kernel says of the last ones.
fn load_family(family: Family, config: &Config, first: &Object) -> Result<Object, ProbeError> {
    let mut tries = family.left_out.iter().map(|without| load_beside(family.object, config, first, without, family.shows));
    let mut loaded = tries.next().expect("each family has programs to try");
    while loaded.is_err()
        && let Some(next) = tries.next()
    {
        loaded = next;
    }
    loaded
}

/// Load an object that uses the maps of `first` where both have one of a name; programs named in `without` are left out.
fn load_beside(
    object: &[u8],
    config: &Config,
    first: &Object,
    without: &[&str],
    step: &'static str,
) -> Result<Object, ProbeError> {
    const SHARED: [&str; 3] = ["rings", "processes", "told"];
    let mut open = open(object, config)?;
    for mut program in open.progs_mut() {
        let left_out = without.iter().any(|name| program.name() == OsStr::new(name));
        program.set_autoload(!left_out);
    }
    for mut map in open.maps_mut() {
        let name = map.name().to_owned();
        if SHARED.iter().any(|shared| name == OsStr::new(shared)) {
            let shared = first.maps().find(|map| map.name() == name).expect("the first object has all shared maps");
            map.reuse_fd(shared.as_fd()).map_err(failed(step))?;
        }
    }
    open.load().map_err(failed(step))
}

fn open(object: &[u8], config: &Config) -> Result<OpenObject, ProbeError> {
    let mut open = ObjectBuilder::default().open_memory(object).map_err(failed("read the programs"))?;
    for mut map in open.maps_mut() {
        if map.name() == OsStr::new(".rodata.config") {
            map.set_initial_value(&config.bytes()).map_err(failed("set what to record"))?;
        }
    }
    Ok(open)
}
