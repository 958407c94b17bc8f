//! Loads the BPF programs and attaches them.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, AsRawFd},
};

use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};

use crate::{
    config::{Config, Stacks, Target},
    layouts::Teller,
    notes::Note,
    ring::{self, Ring},
    spool::clock_note,
};

const CALLS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.bpf.o"));
const URING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/uring.bpf.o"));
const PROCESSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/processes.bpf.o"));

/// Word for what is recorded of io_uring.
pub(crate) const IO_URING: &str = "io_uring";
/// Word for where in a program calls are made.
pub(crate) const STACKS: &str = "stacks";

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whose events.
    pub target: Target,
    /// Size of the ring of each CPU [B], a power of two.
    pub ring_bytes: u32,
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
    /// What is recorded beside system calls and processes, and what could not be, with what the kernel said.
    pub families: Vec<&'static str>,
    /// As pairs of family and reason.
    pub missing: Vec<(&'static str, String)>,
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
        let (mut families, mut missing) = (Vec::new(), Vec::new());
        let (calls, processes) = match load_first(&config, cpus) {
            Err(error) if config.stacks != Stacks::Off => {
                config.stacks = Stacks::Off;
                missing.push((STACKS, error.error.to_string()));
                load_first(&config, cpus)?
            }
            loaded => loaded?,
        };
        if config.stacks != Stacks::Off {
            families.push(STACKS);
        }
        let mut objects = vec![processes];
        // A kernel that lacks these, or has them with other arguments, is no reason not to record the rest.
        match load_beside(URING, &config, &calls, "load the programs for io_uring") {
            Ok(object) => {
                objects.push(object);
                families.push(IO_URING);
            }
            Err(error) => missing.push((IO_URING, error.error.to_string())),
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
        Ok(Probes { objects, links: Vec::new(), rings, families, missing, secret: settings.secret })
    }

    /// Tell what code lies where in processes that are there already, if that is wanted. Returns events for the spool.
    ///
    /// # Errors
    /// [`ProbeError`] where the kernel refuses.
    pub fn tell_layouts(&self, pids: &[u32]) -> Result<Vec<u8>, ProbeError> {
        if !self.families.contains(&STACKS) {
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
