//! BPF objects: opened, told what to record, loaded so that they share maps, attached.

use std::{ffi::OsStr, os::fd::AsFd};

use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject, ProgramMut, ProgramType};

use crate::{
    config::{Config, Stacks},
    counters,
    families::{CACHE, Family},
    probes::{ProbeError, failed},
    ring,
};

const CALLS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/calls.bpf.o"));
const PROCESSES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/processes.bpf.o"));

/// Load the programs without which nothing is recorded: for system calls and for processes.
pub(crate) fn load_first(config: &Config, cpus: usize, families: &[Family]) -> Result<(Object, Object), ProbeError> {
    let mut open = open(CALLS, config)?;
    for mut map in open.maps_mut() {
        let sized = match map.name().to_str() {
            Some("rings") => map.set_max_entries(cpus as u32).and_then(|()| map.set_value_size(ring::stride(config.ring_bytes))),
            // Not needed, so that they take no memory.
            Some("known_stacks" | "learned_tops" | "told_codes") if config.stacks == Stacks::Off => map.set_value_size(8),
            Some("layouts") if config.stacks == Stacks::Off => map.set_max_entries(1),
            Some("inode_ids") if !families.contains(&CACHE) => map.set_max_entries(1),
            _ => Ok(()),
        };
        sized.map_err(failed("size the rings"))?;
    }
    let calls = open.load().map_err(failed("load the programs for system calls"))?;
    let processes = load_beside(PROCESSES, config, &calls, &[], "load the programs for processes")?;
    Ok((calls, processes))
}

/// Load the programs of a family that fit this kernel. Where none do: what the kernel says of the last ones.
pub(crate) fn load_family(family: Family, config: &Config, first: &Object) -> Result<Object, ProbeError> {
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
    const SHARED: [&str; 6] = ["rings", "processes", "told", "layouts", "inode_ids", "inodes_left_out"];
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

/// Attach all programs that were loaded.
pub(crate) fn attach_all(object: &Object) -> libbpf_rs::Result<Vec<Link>> {
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
