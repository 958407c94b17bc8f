//! Families of events. The folder of a family contains everything about it: its BPF programs
//! (`*.bpf.c`), the layout of its events (`events.h`), their conversion to rows, and its tests.
//! Only the list in this file names it elsewhere.
//!
//! Families that are recorded on demand have programs of their own, so that a kernel that lacks a
//! feature for one of them still records the others. docs/howto/add-a-family.md adds one, step by
//! step.

#[macro_use]
mod list;

use sysdock_calls::{CallRow, syscalls::Shape};

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    counters::Counter,
    events::Raw,
    families::calls::events::Call,
    transport::notes::Start,
};

/// Static description of an event family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Name in `--what` and in recordings.
    pub name: &'static str,
    /// What it shows, for help and messages.
    pub shows: &'static str,
    pub recorded: Recorded,
    /// Its compressed programs; empty: they are part of those for system calls, or the recorder
    /// makes its events.
    pub(crate) object: &'static [u8],
    /// Sets of programs to leave out, because a kernel lacks what they need or they are for other
    /// kernels. They are tried in this order.
    pub(crate) left_out: &'static [&'static [&'static str]],
    /// Programs that run at events of perf.
    pub(crate) counters: &'static [(&'static str, Counter)],
    /// Maps of the programs for system calls that only this family fills: without the family they
    /// are made small.
    pub(crate) unused_maps: &'static [Shrink],
    /// Maps in which its programs add up, each with the kind of event as which its entries are
    /// written.
    pub(crate) sums: &'static [(&'static str, u8)],
    /// Kinds of its events, each with the table that lacks the rows of lost events.
    pub(crate) kinds: &'static [(u8, &'static str)],
    /// Tables that are listed if the family is recorded, even without rows.
    pub(crate) tables: &'static [&'static str],
}

/// When a family is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Always: without it nothing can be recorded.
    Always,
    /// Unless other families are requested.
    Usually,
    /// Only on request.
    OnDemand,
}

/// How a map that nothing uses is made small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shrink {
    /// To one entry: the map of this name.
    Entries(&'static str),
    /// To values of 8 bytes: the map of this name.
    Value(&'static str),
}

impl Shrink {
    pub(crate) fn map(self) -> &'static str {
        let (Shrink::Entries(map) | Shrink::Value(map)) = self;
        map
    }
}

impl Family {
    /// A family without events, tables and programs, for use as `..Family::NONE`.
    pub(crate) const NONE: Family = Family {
        name: "",
        shows: "",
        recorded: Recorded::OnDemand,
        object: &[],
        left_out: &[&[]],
        counters: &[],
        unused_maps: &[],
        sums: &[],
        kinds: &[],
        tables: &[],
    };
}

/// Makes rows of the events of a family. An object lives while a spool is read, which happens
/// twice: first each event is passed to [`Converter::survey`], in the order of the spool; then
/// those that have a time are passed to [`Converter::event`], ordered by time.
pub(crate) trait Converter: Default {
    const FAMILY: Family;

    /// Whether an event contains everything that its kind and flags announce. Reading a stream ends
    /// at the first one that does not.
    fn is_whole(_event: &Raw<'_>) -> bool {
        true
    }

    /// Time of an event, `CLOCK_MONOTONIC` [ns]; its end, if it has a duration. `None`: it has no
    /// time, and is passed to `survey` only.
    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        event.first_number()
    }

    /// Called when reading of the spool begins.
    fn begins(&mut self, _start: &Start, _places: &mut Places) {}

    /// Called in the first pass, for what later or earlier events refer to.
    fn survey(&mut self, _event: &Raw<'_>, _places: &mut Places) {}

    /// Called in the second pass, with the time of the event [ns, Unix time].
    fn event(&mut self, _event: &Raw<'_>, _at_ns: i64, _conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }

    /// Called for each system call, before its row is written.
    #[inline]
    fn call(&mut self, _call: &Call<'_>, _shape: Shape, _row: &mut CallRow, _: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }

    /// Called after the last event: write the remaining rows.
    fn finish(&mut self, _conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }
}

// A line also declares the module. (`cargo fmt` does not format inside macros: `tools/check` runs
// rustfmt on these folders.)
families! {
    // The other families see each call, so that they can add to its row.
    calls: calls::Calls,
    always: {
        paths: paths::Paths,
        processes: processes::Processes,
    },
    on_demand: {
        // Must precede the families that use the stack of a call.
        stacks: stacks::Stacks,
        uring: uring::Uring,
        faults: faults::Faults,
        page_io: page_io::PageCache,
        block: block::Block,
        sched: sched::Sched,
        cpu: cpu::Cpu,
        locks: locks::Locks,
        irq: irq::Interrupts,
        memory: memory::Memory,
        system: system::System,
        sockets: sockets::Sockets,
        syscalls: syscalls::Syscalls,
        probes: probes::Probes,
    }
}

/// CPU samples of running threads.
pub(crate) const CPU: Family = cpu::Cpu::FAMILY;

/// When threads run, and what they wait for.
pub(crate) const SCHED: Family = sched::Sched::FAMILY;

/// Places in programs that the user named.
pub const PROBES: Family = probes::Probes::FAMILY;

/// Durations of system calls, added up.
pub const SYSCALLS: Family = syscalls::Syscalls::FAMILY;

/// Addresses of sockets.
pub(crate) const SOCKETS: Family = sockets::Sockets::FAMILY;

/// Load of the whole machine.
pub const SYSTEM: Family = system::System::FAMILY;

/// Places in programs from which calls are made.
pub const STACKS: Family = stacks::Stacks::FAMILY;

/// Name in `--what` of system calls and processes, which are always recorded.
pub const IO: &str = calls::Calls::FAMILY.name;

/// The families that a list names; without names, the usual ones.
///
/// # Errors
/// The first unknown name.
pub fn chosen<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Vec<Family>, &'a str> {
    let mut words = words.into_iter().peekable();
    if words.peek().is_none() {
        return Ok(FAMILIES.iter().copied().filter(|family| family.recorded == Recorded::Usually).collect());
    }
    let mut chosen = Vec::new();
    for word in words.filter(|word| *word != IO) {
        let family = FAMILIES.iter().copied().find(|family| family.name == word).ok_or(word)?;
        if !chosen.contains(&family) {
            chosen.push(family);
        }
    }
    Ok(chosen)
}

/// The table that lacks the rows of lost events of a kind.
pub(crate) fn table_of(kind: u8) -> Option<&'static str> {
    let mut kinds = ALL.iter().flat_map(|family| family.kinds);
    kinds.find(|(number, _)| *number == kind).map(|(_, table)| *table)
}

/// Tables that are listed even without rows: an empty table states that there were none, a missing
/// one states nothing.
pub(crate) fn tables(start: &Start) -> impl Iterator<Item = &'static str> {
    let recorded = |family: &&Family| family.recorded == Recorded::Always || start.records(family.name);
    let is_recorded = |table: &&str| !start.without_calls || !["calls", "mappings"].contains(table);
    ALL.iter().filter(recorded).flat_map(|family| family.tables).copied().filter(is_recorded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_choose_families() {
        assert_eq!(chosen(["io"]), Ok(vec![]));
        assert_eq!(chosen(["uring", "io", "uring"]), Ok(vec![uring::Uring::FAMILY]));
        assert_eq!(chosen(["io", "urine"]), Err("urine"));
        let usual = chosen([]).expect("no word is wrong");
        assert!(usual.contains(&uring::Uring::FAMILY) && !usual.contains(&STACKS));
    }

    #[test]
    fn every_kind_has_a_table_of_the_list() {
        for (_, table) in ALL.iter().flat_map(|family| family.kinds) {
            assert_eq!(sysdock_table::table(table).name, *table);
        }
        assert_eq!((table_of(crate::events::EVENT_CALL), table_of(0)), (Some("calls"), None));
    }
}
