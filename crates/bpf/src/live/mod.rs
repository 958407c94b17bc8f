//! Numbers for `sysdock top`, added up in the kernel. [`Tasks`], [`CallSums`], [`FileSums`] and
//! [`LockSums`] each load their own object, which is unloaded when they are dropped: other programs
//! pay for it only while it is loaded. There is no ring of events: maps with a limited number of
//! entries are emptied at each reading, and what found no room is counted.

mod calls;
mod files;
mod locks;
mod tasks;

use std::{ffi::OsStr, io, time::Duration};

use libbpf_rs::{Link, Map, MapCore, MapFlags, Object};

use crate::{
    config::{Config, Stacks, Target, own_pid_namespace},
    events::Layout,
    objects,
    probes::{ProbeError, Step, failed},
    refusal,
};

pub use calls::{CallSum, CallSums};
pub(crate) use files::path_of;
pub use files::{FileSums, UsedFile};
pub use locks::{LockSums, WaitedLock};
pub use tasks::{Counts, Process, Tasks};

/// Number of entries of a map that are read at a time.
const BATCH: u32 = 2048;

#[cfg(test)]
pub(crate) const OBJECTS: [&[u8]; 4] = [tasks::OBJECT, calls::OBJECT, files::OBJECT, locks::OBJECT];

/// Programs in the kernel, and their sums.
struct Sums {
    // Declared first, so that the programs are detached before the maps are closed.
    _links: Vec<Link>,
    object: Object,
}

impl Sums {
    /// Load and attach the programs.
    fn begin(object: &[u8]) -> Result<Sums, ProbeError> {
        let object = load(object)?;
        let links = objects::attach_all(&object, None, Duration::ZERO).map_err(|refused| refused.at(Step::Attach))?;
        Ok(Sums { _links: links, object })
    }

    fn map(&self, name: &str) -> Map<'_> {
        self.object.maps().find(|map| map.name() == OsStr::new(name)).expect("the object has this map")
    }

    /// The sums since the last call.
    fn take<K: Layout, V: Layout>(&self) -> io::Result<Vec<(K, V)>> {
        let map = self.map("sums");
        let all = map.lookup_and_delete_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(io::Error::other)?;
        Ok(all.filter_map(|(key, value)| Some((K::read(&key)?, V::read(&value)?))).collect())
    }

    /// Number of events that found no room since counting began.
    fn lost(&self) -> u64 {
        let number = self.map("lost").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        number.ok().flatten().and_then(|bytes| Some(u64::from_ne_bytes(*bytes.first_chunk()?))).unwrap_or(0)
    }
}

fn load(object: &[u8]) -> Result<Object, ProbeError> {
    load_with(object, &[])
}

/// Load programs for all processes, with initial values of further maps: names and bytes.
pub(crate) fn load_with(object: &[u8], values: &[(&str, &[u8])]) -> Result<Object, ProbeError> {
    refusal::listen();
    let pid_namespace = own_pid_namespace().map_err(|error| ProbeError::new(Step::FindPidNamespace, &error))?;
    let config = Config {
        target: Target::All,
        secret: 0,
        pid_namespace,
        recorder: std::process::id(),
        ring_bytes: 4096,
        wait_above: 0,
        stacks: Stacks::Off,
        layouts: false,
    };
    let mut open = objects::open(object, &config)?;
    let cpus = libbpf_rs::num_possible_cpus().map_err(failed(Step::CountCpus))?;
    // Only the number of rings matters.
    if let Some(mut map) = open.maps_mut().find(|map| map.name() == OsStr::new("rings")) {
        map.set_max_entries(cpus as u32).and_then(|()| map.set_value_size(8)).map_err(failed(Step::Load))?;
    }
    for (name, bytes) in values {
        let mut map = open.maps_mut().find(|map| map.name() == OsStr::new(name)).expect("the object has this map");
        map.set_initial_value(bytes).map_err(failed(Step::Load))?;
    }
    open.load().map_err(failed(Step::Load))
}

/// Numbers as keys of maps.
macro_rules! number {
    ($number:ty) => {
        impl Layout for $number {
            const BYTES: usize = size_of::<$number>();

            fn read(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| <$number>::from_ne_bytes(*bytes))
            }

            fn write(&self, out: &mut [u8]) {
                out[..Self::BYTES].copy_from_slice(&self.to_ne_bytes());
            }
        }
    };
}
number!(u32);
number!(u64);
