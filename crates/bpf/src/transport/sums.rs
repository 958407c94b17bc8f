//! Sums that the programs of a family add up in a map, where an event each would be too much. They
//! are read repeatedly, and written as events of one kind. The last event of a key has its final
//! value, so a recorder that is killed loses only what the last second added.

use std::ffi::OsStr;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, Result};
use rustc_hash::FxHashMap;

use crate::{
    events::{self, SUMS_BEFORE, SumsEvent},
    transport::spool::monotonic_ns,
};

/// Number of entries that are read at a time.
const BATCH: u32 = 4096;

/// A map of sums.
#[derive(Debug)]
pub(crate) struct Sums {
    map: MapHandle,
    kind: u8,
    /// The last written value by key.
    written: FxHashMap<Vec<u8>, Vec<u8>>,
}

impl Sums {
    /// The sums of programs that were loaded: the names of their maps, and the kinds of their events.
    pub(crate) fn of(maps: &[(&str, u8)], object: &Object) -> Result<Vec<Sums>> {
        let sums = |(name, kind): &(&str, u8)| {
            let map = object.maps().find(|map| map.name() == OsStr::new(name)).expect("the object has its maps");
            Ok(Sums { map: MapHandle::try_from(&map)?, kind: *kind, written: FxHashMap::default() })
        };
        maps.iter().map(sums).collect()
    }

    /// Events for the values written so far: later increases are relative to them.
    pub(crate) fn so_far(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in &self.written {
            let entry = [&value[..], &key[..]].concat();
            events::add(&mut out, self.kind, SUMS_BEFORE as u8, &SumsEvent { at_ns: monotonic_ns() }, &entry);
        }
        out
    }

    /// Events for all sums that have changed since the last call.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        // A map that can no longer be read has no changes.
        let Ok(entries) = self.map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY) else { return out };
        let at_ns = monotonic_ns();
        for (key, value) in entries {
            if self.written.get(&key).is_some_and(|written| *written == value) {
                continue;
            }
            let entry = [&value[..], &key[..]].concat();
            events::add(&mut out, self.kind, 0, &SumsEvent { at_ns }, &entry);
            self.written.insert(key, value);
        }
        out
    }
}
