//! Names locks while threads wait for them, rather than afterwards from the recording.

use rustc_hash::FxHashMap;

use super::{
    kinds::Kind,
    naming::{Names, described},
    rows::is_of_locks,
};
use crate::{events::LockEvent, stacks::kernel::KernelNames};

/// Limit for cached names.
const MOST_NAMES: usize = 16_384;

/// Key of a lock: its location (the address within its slab), its kind, and the stack of the
/// waiting thread.
type Known = (LockPlace, &'static str, Vec<u64>);
type LockPlace = (u64, u32, [u8; 32]);

/// Finds names, and caches them.
pub(crate) struct Namer {
    kernel: KernelNames,
    names: Names,
    found: FxHashMap<Known, String>,
}

impl Default for Namer {
    fn default() -> Self {
        Namer { kernel: KernelNames::open(), names: Names::default(), found: FxHashMap::default() }
    }
}

impl Namer {
    /// The name of a lock, and its kind. `flags`: those of the tracepoint; `frames`: the stack of a
    /// thread that waits for it.
    pub(crate) fn name(&mut self, place: &LockEvent, flags: u32, frames: &[u64]) -> (String, &'static str) {
        let kind = Kind::of(flags);
        let known = ((place.lock, place.region, place.cache), kind.name(), frames.to_vec());
        if let Some(name) = self.found.get(&known) {
            return (name.clone(), kind.name());
        }
        if self.found.len() >= MOST_NAMES {
            self.found.clear();
        }
        let name = self.find(place, kind, frames);
        self.found.insert(known, name.clone());
        (name, kind.name())
    }

    fn find(&mut self, place: &LockEvent, kind: Kind, frames: &[u64]) -> String {
        let functions: Vec<String> = frames.iter().filter_map(|frame| self.kernel.symbol(*frame)?.function).collect();
        let callers: Vec<&str> = functions.iter().map(String::as_str).collect();
        let variable = self.kernel.variable(place.lock);
        if let Some((name, _)) = self.names.of(place, kind, variable.as_ref(), &callers) {
            return name;
        }
        described(place, kind, callers.iter().find(|function| !is_of_locks(function)).copied())
    }
}
