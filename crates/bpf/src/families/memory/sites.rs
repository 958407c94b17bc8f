//! Rows of `allocations` from sums.

use rustc_hash::FxHashMap;
use sysdock_symbols::Symbol;
use sysdock_table::{
    Batch, ROWS_PER_GROUP, TableError,
    rows::{self, AllocationsColumns},
};

use crate::{
    conversion::{Conversion, owners::Owners},
    events::{
        ALLOCATION_CACHE, ALLOCATION_FREE, ALLOCATION_KMALLOC, ALLOCATION_PAGES, AllocationCount, AllocationEvent,
        AllocationSite, until_nul,
    },
};

const PAGE_BYTES: u32 = 4096;

/// What distinguishes one sum from another.
type Key = (u64, u64, u64, u32, u32, u32);

/// The last value of each sum, and its value when recording began.
#[derive(Default)]
pub(super) struct Allocations {
    last: FxHashMap<Key, (AllocationSite, AllocationCount)>,
    before: FxHashMap<Key, AllocationCount>,
}

impl Allocations {
    /// Add the value of a sum; `is_before`: the value when recording began.
    pub(super) fn add(&mut self, sum: AllocationEvent, is_before: bool) {
        let AllocationEvent { count, site, .. } = sum;
        let AllocationSite { call_site, cache, started_ns, pid, what, given_bytes } = site;
        let key = (call_site, cache, started_ns, pid, what, given_bytes);
        if is_before {
            self.before.insert(key, count);
        } else {
            self.last.insert(key, (site, count));
        }
    }

    /// The increase of each sum since recording began.
    fn added(&mut self) -> Vec<(AllocationSite, AllocationCount)> {
        let before = std::mem::take(&mut self.before);
        let added = std::mem::take(&mut self.last).into_iter().map(|(key, (site, mut count))| {
            if let Some(before) = before.get(&key) {
                count.number = count.number.saturating_sub(before.number);
                count.asked_bytes = count.asked_bytes.saturating_sub(before.asked_bytes);
            }
            (site, count)
        });
        added.filter(|(_, count)| count.number > 0).collect()
    }

    /// Write all rows. At the end it is known which task had which process number.
    pub(super) fn write(&mut self, conversion: &mut Conversion<'_>) -> Result<(), TableError> {
        let sums = self.added();
        if sums.is_empty() {
            return Ok(());
        }
        let names = Names::of(&sums, conversion);
        let owners = Owners::of(&conversion.threads);
        // Stacks that differ only further up belong to one call site.
        let mut rows: FxHashMap<_, Sum> = FxHashMap::default();
        for (site, count) in &sums {
            let first_ns = conversion.clock.epoch_ns(count.first_ns);
            let address = names.call_site(site, count);
            let key = (owners.task(site.pid, first_ns), site.what, address, site.cache, size_of(site, count));
            rows.entry(key).or_insert_with(|| Sum { site: *site, ..Sum::new(count, first_ns) }).add(count, first_ns);
        }
        let mut ordered: Vec<_> = rows.into_iter().collect();
        ordered.sort_by_key(|(key, sum)| (sum.first_ns, *key));
        let mut batch = Batch::<AllocationsColumns>::default();
        for ((task, _, address, ..), sum) in &ordered {
            batch.push(&row(sum, *task, address.and_then(|address| names.symbols.get(&address))));
            if batch.len() >= ROWS_PER_GROUP {
                conversion.recording.write_batch(&mut batch)?;
            }
        }
        conversion.recording.write_batch(&mut batch)
    }
}

/// The sum that becomes one row.
struct Sum {
    site: AllocationSite,
    count: AllocationCount,
    first_ns: i64,
    number: u64,
    asked_bytes: u64,
}

impl Sum {
    fn new(count: &AllocationCount, first_ns: i64) -> Self {
        Sum { site: AllocationSite::default(), count: *count, first_ns, number: 0, asked_bytes: 0 }
    }

    fn add(&mut self, count: &AllocationCount, first_ns: i64) {
        self.first_ns = self.first_ns.min(first_ns);
        self.number = self.number.saturating_add(count.number);
        self.asked_bytes = self.asked_bytes.saturating_add(count.asked_bytes);
    }
}

fn is_free(what: u32) -> bool {
    what & ALLOCATION_FREE != 0
}

/// Size of each allocation [B]; 0: unknown.
fn size_of(site: &AllocationSite, count: &AllocationCount) -> u32 {
    if site.what & !ALLOCATION_FREE == ALLOCATION_CACHE { count.slot_bytes } else { site.given_bytes }
}

fn row<'a>(sum: &'a Sum, task: Option<i32>, function: Option<&'a Symbol>) -> rows::Allocations<'a> {
    let Sum { site, count, first_ns, number, asked_bytes } = sum;
    let size_bytes = size_of(site, count);
    let times = |bytes: u64| i64::try_from(number.saturating_mul(bytes)).unwrap_or(i64::MAX);
    let what = site.what & !ALLOCATION_FREE;
    let asked_bytes = match what {
        ALLOCATION_KMALLOC => i64::try_from(*asked_bytes).unwrap_or(i64::MAX),
        ALLOCATION_CACHE => times(count.object_bytes.into()),
        _ => times(size_bytes.into()),
    };
    let cache = until_nul(&count.cache);
    rows::Allocations {
        first_ts_ns: *first_ns,
        task_id: task,
        kind: kind(what).into(),
        freed: is_free(site.what),
        function: function.and_then(|symbol| symbol.function.as_deref()).map(Into::into),
        offset_bytes: function.and_then(|symbol| symbol.offset),
        module: function.and_then(|symbol| symbol.object.as_deref()).map(Into::into),
        cache: (!cache.is_empty()).then(|| sysdock_table::readable(cache)),
        size_bytes: (size_bytes != 0).then_some(size_bytes.into()),
        page_order: (what == ALLOCATION_PAGES).then(|| (size_bytes / PAGE_BYTES).max(1).ilog2() as i32),
        number: times(1),
        asked_bytes: (!is_free(site.what)).then_some(asked_bytes),
        given_bytes: (size_bytes != 0).then(|| times(size_bytes.into())),
    }
}

fn kind(what: u32) -> &'static str {
    match what {
        ALLOCATION_KMALLOC => "kmalloc",
        ALLOCATION_CACHE => "cache",
        ALLOCATION_PAGES => "pages",
        _ => "?",
    }
}

/// Functions of the kernel that request memory, by address.
struct Names {
    symbols: FxHashMap<u64, Symbol>,
}

impl Names {
    fn of(sums: &[(AllocationSite, AllocationCount)], conversion: &Conversion<'_>) -> Names {
        let addresses = |(site, count): &(AllocationSite, AllocationCount)| {
            let frames = if site.what == ALLOCATION_PAGES { count.frames.to_vec() } else { vec![site.call_site] };
            frames.into_iter().filter(|address| *address != 0)
        };
        let mut all: Vec<u64> = sums.iter().flat_map(addresses).collect();
        all.sort_unstable();
        all.dedup();
        // An address is the one to which the call returns, which may be in the next function.
        let calls: Vec<u64> = all.iter().map(|address| address - 1).collect();
        let found = conversion.names.symbols(&calls, conversion.start.boot.as_deref()).into_iter();
        let symbol = |found: Vec<Symbol>| {
            let symbol = found.into_iter().next()?;
            Some(Symbol { offset: symbol.offset.map(|offset| offset + 1), ..symbol })
        };
        Names { symbols: all.into_iter().zip(found).filter_map(|(address, found)| Some((address, symbol(found)?))).collect() }
    }

    /// Address of the call: for pages, the innermost function outside the allocator. `None`: pages
    /// that are freed.
    fn call_site(&self, site: &AllocationSite, count: &AllocationCount) -> Option<u64> {
        if site.what != ALLOCATION_PAGES {
            return (site.call_site != 0).then_some(site.call_site);
        }
        let asks =
            |address: &u64| self.symbols.get(address).and_then(|it| it.function.as_deref()).is_none_or(|it| !allocates(it));
        let frames = || count.frames.iter().copied().filter(|address| *address != 0);
        frames().find(asks).or_else(|| frames().next())
    }
}

/// Whether a function only passes on a request for pages.
fn allocates(function: &str) -> bool {
    const WORDS: [&str; 11] = [
        "alloc_pages",
        "alloc_frozen_pages",
        "folio_alloc",
        "alloc_folio",
        "alloc_page",
        "get_free_page",
        "get_zeroed_page",
        "get_page_from_freelist",
        "trace_",
        "traceiter_",
        "bpf_",
    ];
    WORDS.iter().any(|word| function.contains(word))
}
