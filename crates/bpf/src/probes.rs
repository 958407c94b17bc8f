//! The BPF programs of a recording: the loaded ones, the reasons for missing ones, and the rings
//! that they write.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, AsRawFd},
    thread,
    time::Duration,
};

use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, Object};
use sysdock_table::{Fact, FamilyState, facts::capture as facts};

use crate::{
    config::{Config, Stacks, Target, own_pid_namespace},
    families::{
        CPU, FAMILIES, Family, PROBES, SCHED, STACKS,
        probes::attach::{NoPlace, Refused, attach},
        processes::tasks::task_events,
        stacks::layouts::LayoutReporter,
    },
    objects::{attach_all, load_family, load_first, load_probes},
    probe_list::ProbeList,
    refusal,
    transport::{
        reported::{REPORTED, Reported},
        ring::{self, Ring},
        spool::monotonic_ns,
        sums::Sums,
    },
};

/// What to record, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The processes to record.
    pub target: Target,
    /// Size of the ring of each CPU [B], a power of two.
    pub ring_bytes: u32,
    /// Whether system calls are recorded.
    pub calls: bool,
    /// Families to record besides system calls and processes.
    pub families: Vec<Family>,
    /// Key by which addresses become ids of files; different in each recording.
    pub secret: u64,
    /// The calls whose stacks are recorded.
    pub stacks: Stacks,
    /// Interval between samples of a CPU.
    pub sample_period: Duration,
    /// Whether to slow processes down when a ring is half full, rather than lose events.
    pub no_loss: bool,
    /// Places in programs that the user named.
    pub probe_list: ProbeList,
}

/// Why recording cannot start.
#[derive(Debug)]
pub struct ProbeError {
    /// The step that failed.
    pub step: Step,
    /// Why: mostly what the kernel or libbpf states.
    pub reason: Fact,
}

impl ProbeError {
    pub(crate) fn new(step: Step, error: &impl ToString) -> ProbeError {
        ProbeError { step, reason: facts::refused(error.to_string()) }
    }
}

/// A step towards programs that record.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    CountCpus,
    FindPidNamespace,
    FindMountNamespace,
    /// Identify the boot that maps belong to.
    IdentifyBoot,
    ReadPrograms,
    /// Set what the programs record.
    SetConfig,
    SizeRings,
    /// Load the programs of the only object.
    Load,
    LoadCalls,
    LoadProcesses,
    /// Load the programs of the family of this name.
    LoadFamily(&'static str),
    Attach,
    AttachIterator,
    NameProcesses,
    MapRings,
    /// Find the maps in which programs add up.
    FindSums,
    /// Map what was reported.
    MapReported,
    /// Pass on the code layouts of processes.
    PassLayouts,
    /// Read names of files from their ring.
    ReadNames,
    /// Take over the programs of another agent.
    TakeOver,
    KeepMap,
    KeepProgram,
    /// Keep all programs, in a folder.
    KeepPrograms,
}

pub(crate) fn failed(step: Step) -> impl FnOnce(libbpf_rs::Error) -> ProbeError {
    move |error| {
        let why = refusal::take();
        let reason = match why {
            // This process has the capabilities, as others are requested by name.
            Some(why) if why.contains(refusal::NONE_LOADS) && error.kind() == ErrorKind::PermissionDenied => {
                facts::bpf_not_permitted()
            }
            Some(why) => facts::refused(format!("{error}: {why}")),
            None => facts::refused(error.to_string()),
        };
        ProbeError { step, reason }
    }
}

/// A loaded object.
struct Loaded {
    object: Object,
    /// The family that recording can do without; `None`: the object is always needed.
    family: Option<Family>,
    /// Whether it is loaded only for what others share with it, and not attached.
    is_idle: bool,
}

/// Programs in the kernel. Dropping this unloads them.
pub struct Probes {
    objects: Vec<Loaded>,
    links: Vec<Link>,
    /// The rings that they write.
    pub rings: Vec<Ring>,
    /// Sums that the programs add up.
    pub(crate) sums: Vec<Sums>,
    /// State of each family.
    pub families: Vec<FamilyState>,
    secret: u64,
    sample_period: Duration,
    /// Whether events report mapped code.
    layouts: bool,
    reported: Vec<Reported>,
}

/// Calls that take longer are waits whose place is of interest.
const LONG_WAIT: Duration = Duration::from_millis(1);

/// The calls whose stacks are recorded: if none are requested, those of long waits.
fn wanted_stacks(settings: &Settings) -> Stacks {
    match settings.stacks {
        // Stacks of calls are taken at their return.
        _ if !settings.calls => Stacks::Off,
        Stacks::Off if settings.families.contains(&SCHED) => Stacks::Slower(LONG_WAIT),
        wanted => wanted,
    }
}

/// Load the programs of families that have some, in their order. Several are loaded at a time,
/// since each object parses the kernel's types again.
fn load_families(settings: &Settings, config: &Config, calls: &Object) -> Vec<Result<Object, ProbeError>> {
    let is_loaded = |family: &&Family| **family != STACKS && settings.families.contains(family) && !family.object.is_empty();
    let load = |family: Family| {
        if family == PROBES { load_probes(&settings.probe_list, config, calls) } else { load_family(family, config, calls) }
    };
    thread::scope(|scope| {
        let load = &load;
        let threads = FAMILIES.iter().filter(is_loaded).map(|family| scope.spawn(move || load(*family)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("loading does not panic")).collect()
    })
}

/// Tell the kernel side to record these thread groups.
fn name_processes(calls: &Object, pids: &[u32]) -> Result<(), ProbeError> {
    let map = calls.maps().find(|map| map.name() == OsStr::new("processes")).expect("the object has processes");
    for pid in pids {
        map.update(&pid.to_ne_bytes(), &[1], MapFlags::ANY).map_err(failed(Step::NameProcesses))?;
    }
    Ok(())
}

impl Probes {
    /// Load the programs. Nothing is recorded yet.
    ///
    /// # Errors
    /// [`ProbeError`]: no permission, or the kernel lacks a feature.
    pub fn load(settings: &Settings) -> Result<Probes, ProbeError> {
        let pid_namespace = own_pid_namespace().map_err(|error| ProbeError::new(Step::FindPidNamespace, &error))?;
        let mut config = Config {
            target: settings.target.clone(),
            secret: settings.secret,
            pid_namespace,
            recorder: std::process::id(),
            ring_bytes: settings.ring_bytes,
            // Higher than the level at which processes are frozen: events wait only if that was too
            // late.
            wait_above: if settings.no_loss { settings.ring_bytes / 2 } else { 0 },
            stacks: wanted_stacks(settings),
            layouts: wanted_stacks(settings) != Stacks::Off || settings.families.contains(&CPU) || settings.probe_list.stacks,
        };
        refusal::listen();
        let cpus = libbpf_rs::num_possible_cpus().map_err(failed(Step::CountCpus))?;
        let mut without_stacks = facts::not_requested();
        let (calls, processes) = match load_first(&config, cpus, &settings.families) {
            Err(error) if config.stacks != Stacks::Off => {
                config.stacks = Stacks::Off;
                without_stacks = error.reason;
                config.layouts = settings.families.contains(&CPU) || settings.probe_list.stacks;
                load_first(&config, cpus, &settings.families)?
            }
            loaded => loaded?,
        };
        let mut objects = vec![Loaded { object: processes, family: None, is_idle: false }];
        let mut families = Vec::new();
        let mut loaded = load_families(settings, &config, &calls).into_iter();
        for family in FAMILIES.iter().copied() {
            // A family that the kernel cannot provide does not prevent the others from being
            // recorded.
            let missing = if family == STACKS {
                let is_missing = settings.stacks == Stacks::Off || config.stacks == Stacks::Off;
                is_missing.then(|| without_stacks.clone())
            } else if settings.families.contains(&family) && family.object.is_empty() {
                None
            } else if settings.families.contains(&family) {
                let loaded = loaded.next().expect("each family was loaded").map_err(|error| error.reason);
                loaded.map(|object| objects.push(Loaded { object, family: Some(family), is_idle: false })).err()
            } else {
                Some(facts::not_requested())
            };
            families.push(FamilyState { family: family.name.to_string(), missing });
        }
        let map = calls.maps().find(|map| map.name() == OsStr::new("rings")).expect("the object has rings");
        let rings = ring::map(map.as_fd().as_raw_fd(), cpus, settings.ring_bytes)
            .map_err(|error| ProbeError::new(Step::MapRings, &error))?;
        if let Target::Processes(pids) = &settings.target {
            name_processes(&calls, pids)?;
        }
        let mut sums = Vec::new();
        for Loaded { object, family, .. } in &objects {
            let of_family = family.as_ref().map_or(Ok(Vec::new()), |family| Sums::of(family.sums, object));
            sums.extend(of_family.map_err(failed(Step::FindSums))?);
        }
        objects.insert(0, Loaded { object: calls, family: None, is_idle: !settings.calls });
        let Settings { secret, sample_period, .. } = *settings;
        let (links, reported) = (Vec::new(), Vec::new());
        let mut probes =
            Probes { objects, links, rings, sums, families, secret, sample_period, layouts: config.layouts, reported };
        probes.reported = probes.find_reported().map_err(|error| ProbeError::new(Step::MapReported, &error))?;
        Ok(probes)
    }

    /// Report the mapped code of processes that exist already, if stacks need it. Returns events
    /// for the spool.
    ///
    /// # Errors
    /// [`ProbeError`]: the kernel refuses.
    pub fn report_layouts(&self, pids: &[u32]) -> Result<Vec<u8>, ProbeError> {
        if !self.layouts {
            return Ok(Vec::new());
        }
        let map = self.objects[0].object.maps().find(|map| map.name() == OsStr::new("layouts")).expect("the object has layouts");
        let mut reporter = LayoutReporter::new(self.secret, monotonic_ns());
        for pid in pids {
            let Some(layout) = reporter.layout(*pid) else { continue };
            map.update(&pid.to_ne_bytes(), &layout, MapFlags::ANY).map_err(failed(Step::PassLayouts))?;
        }
        Ok(reporter.events)
    }

    /// Record these processes, too. Returns events about their threads, for the spool.
    ///
    /// # Errors
    /// [`ProbeError`]: the kernel refuses.
    pub fn follow(&self, pids: &[u32]) -> Result<Vec<u8>, ProbeError> {
        name_processes(&self.objects[0].object, pids)?;
        let mut events = task_events(pids.iter().copied());
        events.extend(self.report_layouts(pids)?);
        Ok(events)
    }

    /// Start recording.
    ///
    /// # Errors
    /// [`ProbeError`]: the kernel refuses.
    pub fn attach(&mut self) -> Result<(), ProbeError> {
        for Loaded { object, family, is_idle } in &self.objects {
            if *is_idle || *family == Some(PROBES) {
                continue;
            }
            match (attach_all(object, family.as_ref(), self.sample_period), family) {
                (Ok(links), _) => self.links.extend(links),
                (Err(refused), None) => return Err(refused.at(Step::Attach)),
                (Err(refused), Some(family)) => {
                    let state = self.families.iter_mut().find(|state| state.family == family.name);
                    state.expect("each family has a state").missing = Some(refused.fact());
                }
            }
        }
        Ok(())
    }

    /// Start recording the user's probes, after the rest.
    ///
    /// # Errors
    /// The first probe that is refused.
    pub fn attach_probes(&mut self, probe_list: &ProbeList) -> Result<(), Refused> {
        let loaded = self.objects.iter().find(|loaded| loaded.family == Some(PROBES));
        match (loaded, probe_list.probes.first()) {
            (Some(loaded), _) => self.links.extend(attach(&loaded.object, probe_list)?),
            (None, Some(probe)) => {
                let state = self.families.iter().find(|state| state.family == PROBES.name);
                let why = state.and_then(|state| state.missing.clone()).unwrap_or_else(facts::not_requested);
                return Err((probe.text.clone(), NoPlace::Programs(why)));
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// Make the kernel side report again what it reports once: paths, stacks, functions of Python.
    pub(crate) fn forget(&self) {
        for reported in &self.reported {
            reported.forget();
        }
    }

    /// Find the maps in which the kernel side remembers what it has reported.
    fn find_reported(&self) -> io::Result<Vec<Reported>> {
        let mut found = Vec::new();
        for map in self.objects.iter().flat_map(|loaded| loaded.object.maps()) {
            let from = REPORTED.iter().find(|(name, _)| map.name() == OsStr::new(name)).map(|(_, from)| *from);
            // A map that is not used has no room for an id.
            if let Some(from) = from.filter(|from| map.value_size() as usize > from + 8) {
                found.push(Reported::map(map.as_fd().as_raw_fd(), map.value_size() as usize, from)?);
            }
        }
        Ok(found)
    }

    /// The image of each process, see `layouts.h`.
    pub(crate) fn images(&self) -> Vec<u64> {
        let map = self.objects[0].object.maps().find(|map| map.name() == OsStr::new("layouts")).expect("the object has layouts");
        let Ok(entries) = map.lookup_batch(1024, MapFlags::ANY, MapFlags::ANY) else { return Vec::new() };
        entries.filter_map(|(_, layout)| Some(u64::from_le_bytes(*layout.first_chunk()?))).collect()
    }

    /// Stop recording. Events in the rings stay there.
    pub fn detach(&mut self) {
        self.links.clear();
    }
}
