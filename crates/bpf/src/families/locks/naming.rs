//! Names of locks. A lock has no name of its own. It is found by, from the most to the least
//! certain: a variable that the kernel names; the run queue of a CPU; a member of the structure
//! that the objects of its slab cache are; a member of a structure in which a function is known to
//! take a lock; a lock that a function is known to take. A member counts only if the kernel's types
//! have a lock of that kind there.

use std::{fs, path::Path};

use rustc_hash::FxHashMap;

use super::{kinds::Kind, members::KernelTypes};
use crate::events::{LOCK_ELSEWHERE, LOCK_IN_SLAB, LOCK_RUN_QUEUE, LOCK_STATIC, LockEvent, until_nul};

const KNOWN: &str = include_str!("names.txt");
const CACHES: &str = "/sys/kernel/slab";
const PAGE: u64 = 4096;

/// A name, and how it was found: the values of `locks.named_by`.
pub(super) type Name = (String, &'static str);

/// Knowledge in addition to the kernel's types: `names.txt`.
struct Known {
    caches: FxHashMap<&'static str, &'static str>,
    members: FxHashMap<&'static str, Vec<&'static str>>,
    /// By kind of lock, and function.
    variables: FxHashMap<&'static str, FxHashMap<&'static str, &'static str>>,
}

impl Known {
    fn new() -> Self {
        let mut known = Known { caches: FxHashMap::default(), members: FxHashMap::default(), variables: FxHashMap::default() };
        for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["cache", cache, structure] => _ = known.caches.insert(cache, structure),
                ["member", structure, ref functions @ ..] => {
                    functions.iter().for_each(|function| known.members.entry(function).or_default().push(structure));
                }
                ["variable", kind, name, ref functions @ ..] => {
                    let of_kind = known.variables.entry(kind).or_default();
                    functions.iter().for_each(|function| _ = of_kind.insert(function, name));
                }
                _ => unreachable!("a test reads the file"),
            }
        }
        known
    }
}

/// Finds the names of locks.
pub(super) struct Names {
    known: Known,
    types: KernelTypes,
    /// The structures that the objects of a cache may be.
    caches: FxHashMap<String, Vec<String>>,
}

impl Default for Names {
    fn default() -> Self {
        Names { known: Known::new(), types: KernelTypes::default(), caches: FxHashMap::default() }
    }
}

impl Names {
    /// The name of a lock at this location. `variable`: the kernel's name for it; `callers`:
    /// functions of a thread that waits for it, the innermost first.
    pub(super) fn of(
        &mut self,
        place: &LockEvent,
        kind: Kind,
        variable: Option<&(String, u64)>,
        callers: &[&str],
    ) -> Option<Name> {
        if let Some((name, offset)) = variable.filter(|_| place.region == LOCK_STATIC) {
            return Some((if *offset == 0 { name.clone() } else { format!("{name}+{offset}") }, "symbol"));
        }
        match place.region {
            LOCK_RUN_QUEUE => return Some(("rq.__lock".into(), "run queue")),
            LOCK_IN_SLAB => {
                if let Some(name) = self.in_slab(place, kind, callers) {
                    return Some(name);
                }
            }
            _ => {}
        }
        self.by_callers(kind, callers).map(|name| (name, "functions"))
    }

    /// The lock that one of the waiting functions is known to take.
    pub(super) fn by_callers(&self, kind: Kind, callers: &[&str]) -> Option<String> {
        let of_kind = self.known.variables.get(kind.name())?;
        callers.iter().find_map(|function| of_kind.get(plain(function))).map(|name| (*name).to_string())
    }

    fn in_slab(&mut self, place: &LockEvent, kind: Kind, callers: &[&str]) -> Option<Name> {
        let cache = String::from_utf8_lossy(until_nul(&place.cache)).into_owned();
        let structures = self.structures(&cache);
        let is_shared = structures.len() > 1;
        for offset in offsets(place) {
            let found: Vec<String> = structures.iter().filter_map(|name| self.types.member(name, offset, kind)).collect();
            if let [only] = &found[..] {
                return Some((only.clone(), if is_shared { "merged cache" } else { "cache" }));
            }
            for structure in self.callers_structures(callers) {
                if let Some(member) = self.types.member(structure, offset, kind) {
                    return Some((member, "functions"));
                }
            }
        }
        None
    }

    fn callers_structures(&self, callers: &[&str]) -> Vec<&'static str> {
        callers.iter().filter_map(|function| self.known.members.get(plain(function))).flatten().copied().collect()
    }

    /// Structures that the objects of a cache may be: those of all caches that were merged with it.
    fn structures(&mut self, cache: &str) -> Vec<String> {
        if let Some(known) = self.caches.get(cache) {
            return known.clone();
        }
        let structure = |name: String| self.known.caches.get(name.as_str()).map_or(name, |known| (*known).to_string());
        let mut found: Vec<String> = merged(Path::new(CACHES), cache).into_iter().map(structure).collect();
        found.sort();
        found.dedup();
        self.caches.insert(cache.to_string(), found.clone());
        found
    }
}

/// A description of a lock whose name is unknown, with what helps to find one.
pub(super) fn described(place: &LockEvent, kind: Kind, caller: Option<&str>) -> String {
    let cache = String::from_utf8_lossy(until_nul(&place.cache));
    let place = match place.region {
        LOCK_IN_SLAB => format!("{cache}+{}", offsets(place).next().unwrap_or_default()),
        LOCK_STATIC => format!("static {}", kind.name()),
        LOCK_ELSEWHERE => kind.name().to_string(),
        _ => "lock".to_string(),
    };
    caller.map_or(place.clone(), |caller| format!("{place} ({caller})"))
}

/// Possible offsets of a lock in its object [B]. Slabs begin at multiples of their length, which
/// has one of two values.
fn offsets(place: &LockEvent) -> impl Iterator<Item = u64> + use<> {
    let (lock, object, start) = (place.lock, u64::from(place.object_bytes), u64::from(place.object_start));
    let mut orders = vec![place.order & 31, place.least_order & 31];
    orders.dedup();
    orders.into_iter().filter_map(move |order| (lock & ((PAGE << order) - 1)).checked_rem(object)?.checked_sub(start))
}

/// Names of a cache: all that link to the same folder.
fn merged(folder: &Path, cache: &str) -> Vec<String> {
    let mut names = vec![cache.to_string()];
    let Ok(to) = fs::read_link(folder.join(cache)) else { return names };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if fs::read_link(entry.path()).is_ok_and(|other| other == to) {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names
}

/// The name without a suffix that the compiler adds for a part of a function.
pub(super) fn plain(function: &str) -> &str {
    function.split('.').next().unwrap_or(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_slab(cache: &str, object_bytes: u32, lock: u64) -> LockEvent {
        let mut name = [0; 32];
        name[..cache.len()].copy_from_slice(cache.as_bytes());
        LockEvent { lock, region: LOCK_IN_SLAB, object_bytes, order: 3, least_order: 0, cache: name, ..LockEvent::default() }
    }

    #[test]
    fn what_is_known_is_well_written() {
        const KINDS: [&str; 7] = ["spinlock", "rwlock", "mutex", "rwsem", "percpu_rwsem", "rtmutex", "semaphore"];
        let mut seen = Vec::new();
        for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                ["cache", _, _] | ["member", _, _, ..] => {}
                ["variable", kind, _, ref functions @ ..] if !functions.is_empty() => {
                    assert!(KINDS.contains(&kind), "{line}");
                    seen.extend(functions.iter().map(|function| (kind, *function)));
                }
                _ => panic!("{line}"),
            }
        }
        seen.sort_unstable();
        let twice: Vec<_> = seen.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert_eq!(twice, [], "a function takes one lock of a kind");
    }

    #[test]
    fn an_object_begins_at_a_multiple_of_its_length_in_its_slab() {
        let mut place = in_slab("inode_cache", 600, 0xffff_8880_0000_0000 + (5 << 15) + 3 * 600 + 40);
        // Offsets for the longer slabs, then for the shorter ones.
        assert_eq!(offsets(&place).collect::<Vec<_>>(), [40, (3 * 600 + 40) % 600]);
        place.object_start = 64;
        assert_eq!(offsets(&place).next(), None);
    }

    #[test]
    fn the_surest_name_is_taken() {
        let mut names = Names::default();
        let elsewhere = LockEvent::default();
        let fixed = LockEvent { region: LOCK_STATIC, ..elsewhere };
        let callers = ["queued_write_lock_slowpath", "release_task.part.0", "wait_task_zombie"];
        let mut name = |place, kind, variable: Option<(&str, u64)>| {
            let variable = variable.map(|(name, offset)| (name.to_string(), offset));
            names.of(&place, kind, variable.as_ref(), &callers)
        };
        assert_eq!(name(fixed, Kind::Rwlock, None), Some(("tasklist_lock".into(), "functions")));
        assert_eq!(name(fixed, Kind::Rwlock, Some(("a_lock", 0))), Some(("a_lock".into(), "symbol")));
        assert_eq!(name(fixed, Kind::Rwlock, Some(("locks", 64))), Some(("locks+64".into(), "symbol")));
        assert_eq!(name(fixed, Kind::Mutex, None), None);
        let queue = LockEvent { region: LOCK_RUN_QUEUE, ..elsewhere };
        assert_eq!(name(queue, Kind::Spinlock, None), Some(("rq.__lock".into(), "run queue")));
        let unknown = in_slab("kmalloc-2k", 2048, 2048 + 1032);
        assert_eq!(described(&unknown, Kind::Mutex, Some("f")), "kmalloc-2k+1032 (f)");
    }
}
