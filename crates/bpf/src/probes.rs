//! Loads the BPF programs and attaches them.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};
use sysdock_table::FamilyState;

use crate::{
    config::{Config, Stacks, Target},
    families::{self, FAMILIES, Family},
    layouts::Teller,
    notes::Note,
    ring::{self, Ring},
    spool::clock_note,
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
    /// Where in the program calls are made: of which.
    pub stacks: Stacks,
}

/// Why recording cannot start.
#[derive(Debug)]
pub struct ProbeError {
    /// What was tried.
    pub step: &'static str,
    /// What the kernel said.
    pub error: libbpf_rs::Error,
}

fn failed(step: &'static str) -> impl FnOnce(libbpf_rs::Error) -> ProbeError {
    move |error| ProbeError { step, error }
}

/// Programs in the kernel. They go when this is dropped.
pub struct Probes {
    objects: Vec<Object>,
    links: Vec<Link>,
    /// The rings that they write.
    pub rings: Vec<Ring>,
    /// What became of each family that there is.
    pub families: Vec<FamilyState>,
    secret: u64,
}

impl Probes {
    /// Load the programs; nothing is recorded yet.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or a kernel without what they need.
    pub fn load(settings: &Settings) -> Result<Probes, ProbeError> {
        let mut config = Config {
            target: settings.target.clone(),
            secret: settings.secret,
            recorder: std::process::id(),
            ring_bytes: settings.ring_bytes,
            count_produced: settings.count_produced,
            stacks: settings.stacks,
        };
        // What it has to say is in the errors that it returns.
        libbpf_rs::set_print(None);
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed("count the CPUs"))?;
        let mut without_stacks = "not asked for".to_string();
        let (calls, processes) = match load_first(&config, cpus) {
            Err(error) if config.stacks != Stacks::Off => {
                config.stacks = Stacks::Off;
                without_stacks = error.error.to_string();
                load_first(&config, cpus)?
            }
            loaded => loaded?,
        };
        let mut objects = vec![processes];
        let mut families = Vec::new();
        for family in FAMILIES {
            // A kernel that lacks what one needs, or has it with other arguments, is no reason not to record the rest.
            let missing = if family == families::STACKS {
                (config.stacks == Stacks::Off).then(|| without_stacks.clone())
            } else if settings.families.contains(&family) {
                let loaded = load_beside(family.object, &config, &calls, family.shows).map_err(|error| error.error.to_string());
                loaded.map(|object| objects.push(object)).err()
            } else {
                Some("not asked for".to_string())
            };
            families.push(FamilyState { family: family.word.to_string(), missing });
        }
        let map = calls.maps().find(|map| map.name() == OsStr::new("rings")).expect("the object has rings");
        let rings = ring::map(map.as_fd().as_raw_fd(), cpus, settings.ring_bytes)
            .map_err(|error| ProbeError { step: "map the rings", error: error.into() })?;
        if let Target::Processes(pids) = &settings.target {
            let map = calls.maps().find(|map| map.name() == OsStr::new("processes")).expect("the object has processes");
            for pid in pids {
                map.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(failed("name the processes"))?;
            }
        }
        objects.insert(0, calls);
        Ok(Probes { objects, links: Vec::new(), rings, families, secret: settings.secret })
    }

    /// Tell what code lies where in processes that are there already, if that is wanted. Returns events for the spool.
    ///
    /// # Errors
    /// [`ProbeError`] where the kernel refuses.
    pub fn tell_layouts(&self, pids: &[u32]) -> Result<Vec<u8>, ProbeError> {
        if !self.families.iter().any(|state| state.family == families::STACKS.word && state.missing.is_none()) {
            return Ok(Vec::new());
        }
        let map = self.objects[0].maps().find(|map| map.name() == OsStr::new("layouts")).expect("the object has layouts");
        let mut teller = Teller::new(self.secret, now_ns());
        for pid in pids {
            let Some(layout) = teller.layout(*pid) else { continue };
            map.update(&pid.to_ne_bytes(), &layout, MapFlags::ANY).map_err(failed("tell of the processes"))?;
        }
        Ok(teller.events)
    }

    /// Start recording.
    ///
    /// # Errors
    /// [`ProbeError`] where the kernel refuses.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        for object in &self.objects {
            for program in object.progs_mut() {
                self.links.push(program.attach().map_err(failed("attach a program"))?);
            }
        }
        Ok(())
    }

    /// End recording; what is in the rings stays there.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}

fn now_ns() -> u64 {
    if let Note::Clock { monotonic_ns, .. } = clock_note() { monotonic_ns } else { 0 }
}

/// Load the programs without which nothing is recorded: for system calls and for processes.
fn load_first(config: &Config, cpus: usize) -> Result<(Object, Object), ProbeError> {
    let mut open = open(CALLS, config)?;
    for mut map in open.maps_mut() {
        let sized = match map.name().to_str() {
            Some("rings") => map.set_max_entries(cpus as u32).and_then(|()| map.set_value_size(ring::stride(config.ring_bytes))),
            // Not needed, so that they take no memory.
            Some("known_stacks" | "learned_tops") if config.stacks == Stacks::Off => map.set_value_size(8),
            Some("layouts") if config.stacks == Stacks::Off => map.set_max_entries(1),
            _ => Ok(()),
        };
        sized.map_err(failed("size the rings"))?;
    }
    let calls = open.load().map_err(failed("load the programs for system calls"))?;
    let processes = load_beside(PROCESSES, config, &calls, "load the programs for processes")?;
    Ok((calls, processes))
}

/// Load an object that uses the maps of `first` where both have one of a name.
fn load_beside(object: &[u8], config: &Config, first: &Object, step: &'static str) -> Result<Object, ProbeError> {
    const SHARED: [&str; 4] = ["rings", "processes", "told", "layouts"];
    let mut open = open(object, config)?;
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
