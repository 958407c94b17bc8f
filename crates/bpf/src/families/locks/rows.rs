//! Rows of `lock_waits` from events, and the locks as rows of `locks`.

use rustc_hash::FxHashMap;
use sysdock_calls::syscalls::CLASS_WORDS;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, Recording, TableError,
    rows::{self, LockWaitsColumns, LocksColumns},
};

use super::{
    kinds::{Kind, mode},
    naming::{Names, described, plain},
};
use crate::{
    conversion::{Conversion, waits::WaitedFor},
    events::{LOCK_GIVEN_UP, LOCK_NESTED, LockEvent, LockWaitEvent, Raw, until_nul},
    families::calls::call_kinds::CallKinds,
    stacks::unwind::End,
};

/// Number of stacks of threads that waited for a lock that are tried for its name.
const MOST_STACKS: usize = 4;
/// Largest number of frames of an event.
const FRAMES: usize = 16;

/// A wait as it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait<'a> {
    fixed: LockWaitEvent,
    flags: u32,
    frames: &'a [u8],
}

impl<'a> Wait<'a> {
    /// `None`: the event is broken.
    pub(super) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, frames) = event.read::<LockWaitEvent>()?;
        Some(Wait { fixed, flags: event.flags, frames })
    }

    fn frames(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.frames.chunks_exact(8).map(|address| u64::from_le_bytes(address.try_into().expect("eight bytes")))
    }
}

/// Locations of locks by address. If a lock has several descriptions, each applies from its time
/// on.
#[derive(Default)]
pub(super) struct Descriptions {
    all: FxHashMap<u64, Vec<LockEvent>>,
    sorted: bool,
}

impl Descriptions {
    pub(super) fn add(&mut self, description: LockEvent) {
        self.all.entry(description.lock).or_default().push(description);
        self.sorted = false;
    }

    /// The description that applies at a time, and its index among those of that address.
    fn at(&mut self, lock: u64, at_ns: u64) -> (usize, LockEvent) {
        if !self.sorted {
            self.all.values_mut().for_each(|all| {
                all.sort_by_key(|description| description.at_ns);
                all.dedup_by(|next, before| is_same_place(next, before));
            });
            self.sorted = true;
        }
        let all = self.all.get(&lock).map(Vec::as_slice).unwrap_or_default();
        // A description that another CPU reported a moment later applies, too.
        let number = all.partition_point(|description| description.at_ns <= at_ns).saturating_sub(1);
        (number, all.get(number).copied().unwrap_or(LockEvent { lock, ..LockEvent::default() }))
    }
}

fn is_same_place(one: &LockEvent, other: &LockEvent) -> bool {
    (one.region, one.cpu, one.cache) == (other.region, other.cpu, other.cache)
}

/// A lock that a thread waited for.
struct Lock {
    place: LockEvent,
    kind: Kind,
    /// Stacks of threads that waited for it.
    stacks: Vec<i32>,
}

/// Rows that are not written yet, and what is needed to name their locks.
pub(super) struct LockRows {
    waits: Batch<LockWaitsColumns>,
    meanings: CallKinds,
    locks: Vec<Lock>,
    numbers: FxHashMap<(u64, usize), i32>,
}

impl Default for LockRows {
    fn default() -> Self {
        LockRows { waits: Batch::default(), meanings: CallKinds::new(), locks: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl LockRows {
    pub(super) fn push(
        &mut self,
        wait: &Wait<'_>,
        at_ns: i64,
        descriptions: &mut Descriptions,
        conversion: &mut Conversion<'_>,
    ) -> Result<(), TableError> {
        let LockWaitEvent { lock, wait_ns, tid, holder_tid, holder, cpu, call, .. } = wait.fixed;
        let dur_ns = i64::try_from(wait_ns).unwrap_or(i64::MAX);
        let ts_ns = at_ns.saturating_sub(dur_ns);
        conversion.seen(ts_ns, at_ns);
        let end = if wait.frames.len() < 8 * FRAMES { End::Whole } else { End::TooDeep };
        let stack = conversion.stacks.kernel_number(wait.frames(), end, false);
        let lock_id = self.lock(lock, wait, stack, descriptions);
        let task_id = (tid != 0).then(|| conversion.task(tid, at_ns) as i32);
        if let Some(task) = task_id.filter(|_| wait.flags & LOCK_NESTED == 0) {
            conversion.waits.was_at(task.cast_unsigned(), (ts_ns, at_ns), WaitedFor::Lock(lock_id));
        }
        let holder_task_id = Some(holder_tid).filter(|tid| *tid != 0).and_then(|tid| conversion.threads.task_of(tid));
        let meaning = u16::try_from(call).ok().map(|call| self.meanings.of(call));
        let names = self.meanings.calls.names();
        self.waits.push(&rows::LockWaits {
            ts_ns,
            dur_ns,
            task_id,
            lock_id,
            mode: mode(wait.flags).map(Into::into),
            cpu: i32::from(cpu),
            nested: wait.flags & LOCK_NESTED != 0,
            given_up: wait.flags & LOCK_GIVEN_UP != 0,
            call: meaning.map(|meaning| names[usize::from(meaning.call)].as_str().into()),
            class: meaning.map(|meaning| CLASS_WORDS[meaning.class as usize].into()),
            holder_task_id: holder_task_id.map(|task| task as i32),
            holder: (holder_tid != 0 && holder_task_id.is_none()).then(|| sysdock_table::readable(until_nul(&holder))),
            kernel_stack_id: Some(stack).filter(|stack| *stack >= 0),
        });
        if self.waits.len() >= ROWS_PER_GROUP { self.flush(conversion.recording) } else { Ok(()) }
    }

    /// The number of the lock at an address.
    fn lock(&mut self, address: u64, wait: &Wait<'_>, stack: i32, descriptions: &mut Descriptions) -> i32 {
        let (number, place) = descriptions.at(address, wait.fixed.at_ns);
        let locks = &mut self.locks;
        let id = *self.numbers.entry((address, number)).or_insert_with(|| {
            locks.push(Lock { place, kind: Kind::of(wait.flags), stacks: Vec::new() });
            (locks.len() - 1) as i32
        });
        let stacks = &mut locks[id as usize].stacks;
        if stack >= 0 && stacks.len() < MOST_STACKS && !stacks.contains(&stack) {
            stacks.push(stack);
        }
        id
    }

    fn flush(&mut self, recording: &mut Recording) -> Result<(), TableError> {
        recording.write_batch(&mut self.waits)
    }

    /// Write the remaining rows, and `locks`.
    pub(super) fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        self.flush(conversion.recording)?;
        if self.locks.is_empty() {
            return Ok(());
        }
        let boot = conversion.start.boot.clone();
        let stacks: Vec<i32> = self.locks.iter().flat_map(|lock| &lock.stacks).copied().collect();
        let functions = conversion.stacks.kernel_functions(&stacks, (&conversion.names, boot.as_deref()));
        let addresses: Vec<u64> = self.locks.iter().map(|lock| lock.place.lock).collect();
        let variables = conversion.names.variables(&addresses, boot.as_deref());
        // For another boot, nothing can be looked up.
        let is_this = boot.is_some() && boot == crate::boot();
        let mut names = Names::default();
        let mut batch = Batch::<LocksColumns>::default();
        for ((lock, variable), lock_id) in self.locks.iter().zip(&variables).zip(0..) {
            batch.push(&row(lock, lock_id, variable.as_ref(), &functions, is_this.then_some(&mut names)));
            if batch.len() >= ROWS_PER_GROUP {
                conversion.recording.write_batch(&mut batch)?;
            }
        }
        conversion.recording.write_batch(&mut batch)
    }
}

/// Functions of the kernel by the number of their stack.
type Functions = FxHashMap<i32, Vec<String>>;

fn row(
    lock: &Lock,
    lock_id: i32,
    variable: Option<&(String, u64)>,
    functions: &Functions,
    names: Option<&mut Names>,
) -> rows::Locks<'static> {
    let callers = |stack: &i32| functions.get(stack).map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
    let stacks: Vec<Vec<&str>> = lock.stacks.iter().filter_map(callers).collect();
    let (found, by_functions) = names.map_or((None, None), |names| {
        let found = stacks.iter().find_map(|callers| names.of(&lock.place, lock.kind, variable, callers));
        (found, stacks.iter().find_map(|callers| names.by_callers(lock.kind, callers)))
    });
    let caller = stacks.first().and_then(|callers| callers.iter().find(|function| !is_of_locks(function))).copied();
    let cache = until_nul(&lock.place.cache);
    let named_by = found.as_ref().map(|(_, by)| (*by).into());
    rows::Locks {
        lock_id,
        name: found.map_or_else(|| described(&lock.place, lock.kind, caller), |(name, _)| name).into(),
        kind: lock.kind.name().into(),
        named_by,
        by_functions: by_functions.map(Into::into),
        cache: (!cache.is_empty()).then(|| sysdock_table::readable(cache).into_owned().into()),
    }
}

/// Whether a function takes locks in general, so that it says nothing about which lock.
pub(super) fn is_of_locks(function: &str) -> bool {
    const WORDS: [&str; 13] = [
        "spin_lock",
        "read_lock",
        "write_lock",
        "mutex_lock",
        "rwsem",
        "down_read",
        "down_write",
        "percpu_down",
        "__down",
        "rt_mutex",
        "contention_begin",
        "trace_",
        "bpf_",
    ];
    let function = plain(function);
    WORDS.iter().any(|word| function.contains(word)) || matches!(function, "down" | "down_interruptible" | "down_timeout")
}
