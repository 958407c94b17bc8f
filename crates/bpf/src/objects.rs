//! BPF objects: opens, configures, loads (so that they share maps) and attaches them.

use std::{ffi::OsStr, os::fd::AsFd, time::Duration};

use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject};

use crate::{
    config::{Config, Stacks},
    counters::{self, NotAttached},
    families::{Converter, FAMILIES, Family, PROBES, STACKS, Shrink, calls::Calls, probes::attach, processes::Processes},
    probe_list::ProbeList,
    probes::{ProbeError, Step, failed},
    programs::unpacked,
    transport::ring,
};

/// Load the programs that are always needed: those for system calls and for processes.
pub(crate) fn load_first(config: &Config, cpus: usize, families: &[Family]) -> Result<(Object, Object), ProbeError> {
    let mut open = open(Calls::FAMILY.object, config)?;
    // Maps that only unrecorded families fill are made small.
    let is_recorded = |family: &Family| if *family == STACKS { config.stacks != Stacks::Off } else { families.contains(family) };
    let (used, unused): (Vec<&Family>, Vec<&Family>) = FAMILIES.iter().partition(|family| is_recorded(family));
    let is_used = |map: &str| used.iter().flat_map(|family| family.unused_maps).any(|shrunk| shrunk.map() == map);
    let shrunk: Vec<Shrink> =
        unused.iter().flat_map(|family| family.unused_maps).copied().filter(|shrunk| !is_used(shrunk.map())).collect();
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let sized = match shrunk.iter().find(|shrunk| shrunk.map() == name) {
            _ if name == "rings" => {
                map.set_max_entries(cpus as u32).and_then(|()| map.set_value_size(ring::stride(config.ring_bytes)))
            }
            Some(Shrink::Value(_)) => map.set_value_size(8),
            Some(Shrink::Entries(_)) => map.set_max_entries(1),
            None => Ok(()),
        };
        sized.map_err(failed(Step::SizeRings))?;
    }
    let calls = open.load().map_err(failed(Step::LoadCalls))?;
    let processes = load_sharing(Processes::FAMILY.object, config, &calls, &[], Step::LoadProcesses)?;
    Ok((calls, processes))
}

/// Load the programs of a family that fit this kernel. If none do, the error is that of the last
/// attempt.
pub(crate) fn load_family(family: Family, config: &Config, first: &Object) -> Result<Object, ProbeError> {
    let mut tries =
        family.left_out.iter().map(|without| load_sharing(family.object, config, first, without, Step::LoadFamily(family.name)));
    let mut loaded = tries.next().expect("each family has programs to try");
    while loaded.is_err()
        && let Some(next) = tries.next()
    {
        loaded = next;
    }
    loaded
}

/// Load the programs that the user's probes need.
pub(crate) fn load_probes(probe_list: &ProbeList, config: &Config, first: &Object) -> Result<Object, ProbeError> {
    let mut open = open(PROBES.object, config)?;
    for mut map in open.maps_mut() {
        if map.name() == OsStr::new(".rodata.probes") {
            map.set_initial_value(&[u8::from(probe_list.stacks)]).map_err(failed(Step::LoadFamily(PROBES.name)))?;
        }
    }
    load_opened(open, first, &attach::unused(probe_list), Step::LoadFamily(PROBES.name))
}

/// Load an object that uses the maps of `first` where both have one of the same name. Programs
/// named in `without` are left out.
fn load_sharing(object: &[u8], config: &Config, first: &Object, without: &[&str], step: Step) -> Result<Object, ProbeError> {
    load_opened(open(object, config)?, first, without, step)
}

fn load_opened(mut open: OpenObject, first: &Object, without: &[&str], step: Step) -> Result<Object, ProbeError> {
    const SHARED: [&str; 7] = ["rings", "processes", "exec_tids", "reported", "layouts", "inode_ids", "inodes_left_out"];
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

/// Open a compressed object.
pub(crate) fn open(object: &[u8], config: &Config) -> Result<OpenObject, ProbeError> {
    let mut open = ObjectBuilder::default().open_memory(&unpacked(object)).map_err(failed(Step::ReadPrograms))?;
    for mut map in open.maps_mut() {
        if map.name() == OsStr::new(".rodata.config") {
            map.set_initial_value(&config.bytes()).map_err(failed(Step::SetConfig))?;
        }
    }
    Ok(open)
}

/// Attach all programs of a family that were loaded.
pub(crate) fn attach_all(object: &Object, family: Option<&Family>, sample_period: Duration) -> Result<Vec<Link>, NotAttached> {
    let counters = family.map_or(&[][..], |family| family.counters);
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        match counters.iter().find(|(name, _)| program.name() == OsStr::new(name)) {
            Some((_, counter)) => links.extend(counters::attach(&program, *counter, sample_period)?),
            // The program itself states where it is attached.
            None => links.push(program.attach()?),
        }
    }
    Ok(links)
}
