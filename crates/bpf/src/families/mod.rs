//! Families of events. A folder holds everything of one: its BPF programs (`*.bpf.c`), the layout of its events (`events.h`), what is made
//! of them, and its tests. The list in this file is the only other place that a family is named in.
//!
//! Families that are recorded on demand have programs of their own, so that a kernel that lacks what one of them needs still records the
//! others. docs/howto/add-a-family.md makes one, step by step.

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

/// What there is to know of a family before anything is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// Its name in `--what` and in a recording.
    pub name: &'static str,
    /// What it shows, for the help and for messages.
    pub shows: &'static str,
    /// When it is recorded.
    pub recorded: Recorded,
    /// Its programs, packed; none: it is a part of those for system calls, or the recorder makes its events.
    pub(crate) object: &'static [u8],
    /// Names of programs to leave out, because a kernel lacks what they need or they are for other kernels: what is tried, in this order.
    pub(crate) left_out: &'static [&'static [&'static str]],
    /// Programs that are run at an event of perf.
    pub(crate) counters: &'static [(&'static str, Counter)],
    /// Maps of the programs for system calls that only this family fills: without it they take no memory.
    pub(crate) unused_maps: &'static [Shrink],
    /// Maps where its programs add up, each with the kind of event that its entries are written as.
    pub(crate) sums: &'static [(&'static str, u8)],
    /// Kinds of its events, each with the table that lacks what was lost of them.
    pub(crate) kinds: &'static [(u8, &'static str)],
    /// Tables that are listed where it is recorded, even if they have no rows.
    pub(crate) tables: &'static [&'static str],
}

/// When a family is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// Without it nothing is.
    Always,
    /// Unless something else is requested.
    Usually,
    /// Where it is requested.
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
    /// One without events, tables and programs of its own: what others are made of (`..Family::NONE`).
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

    /// Its kinds as bits.
    const fn kind_bits(&self) -> u32 {
        let (mut bits, mut index) = (0, 0);
        while index < self.kinds.len() {
            bits |= 1 << self.kinds[index].0;
            index += 1;
        }
        bits
    }
}

/// Makes rows of the events of a family. One object of it lives as long as a spool is read, which happens twice: first each event is shown
/// to [`Converter::survey`], in the order of the spool; then those that have a time come to [`Converter::event`], in the order of their
/// times.
pub(crate) trait Converter: Default {
    /// What it is.
    const FAMILY: Family;
    /// The kinds of its events, as bits.
    const KIND_BITS: u32 = Self::FAMILY.kind_bits();

    /// Whether an event holds all that its kind and flags announce. Reading ends at one that does not.
    fn is_whole(_event: &Raw<'_>) -> bool {
        true
    }

    /// When it happened, `CLOCK_MONOTONIC` [ns]; of what takes time the end. `None`: it has no time, and is only surveyed.
    fn at_ns(event: &Raw<'_>) -> Option<u64> {
        event.first_number()
    }

    /// Recording begins.
    fn begins(&mut self, _start: &Start, _places: &mut Places) {}

    /// An event of its own, first time: for what later events refer to forwards and backwards.
    fn survey(&mut self, _event: &Raw<'_>, _places: &mut Places) {}

    /// An event of its own, at a time since the epoch [ns].
    fn event(&mut self, _event: &Raw<'_>, _at_ns: i64, _conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }

    /// A system call has become a row, which is not yet written.
    #[inline]
    fn call(&mut self, _call: &Call<'_>, _shape: Shape, _row: &mut CallRow, _: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }

    /// That was all: write what is left.
    fn finish(&mut self, _conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        Ok(())
    }
}

// A line declares the module, too. (`cargo fmt` does not look into macros: `tools/check` has rustfmt check these folders.)
families! {
    // Others see each call, so that they can add to its row.
    calls: calls::Calls,
    always: {
        paths: paths::Paths,
        processes: processes::Processes,
    },
    on_demand: {
        // Before those that want to know the stack of a call.
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

/// What threads are at while they run.
pub(crate) const CPU: Family = cpu::Cpu::FAMILY;

/// When threads run, and what they wait for.
pub(crate) const SCHED: Family = sched::Sched::FAMILY;

/// Places that the user named.
pub const PROBES: Family = probes::Probes::FAMILY;

/// How long system calls take, added up.
pub const SYSCALLS: Family = syscalls::Syscalls::FAMILY;

/// Addresses of sockets.
pub(crate) const SOCKETS: Family = sockets::Sockets::FAMILY;

/// Load of the whole machine.
pub const SYSTEM: Family = system::System::FAMILY;

/// Where in programs calls are made.
pub const STACKS: Family = stacks::Stacks::FAMILY;

/// What `--what` calls the system calls and processes, which are always recorded.
pub const IO: &str = calls::Calls::FAMILY.name;

/// The families that a list names. Without names: the usual ones.
///
/// # Errors
/// The first name that is unknown.
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

/// The table that lacks the lost events of a kind.
pub(crate) fn table_of(kind: u8) -> Option<&'static str> {
    let mut kinds = ALL.iter().flat_map(|family| family.kinds);
    kinds.find(|(number, _)| *number == kind).map(|(_, table)| *table)
}

/// Tables that are listed although they may have no rows: an empty table is a statement, a missing one is not.
pub(crate) fn tables(start: &Start) -> impl Iterator<Item = &'static str> {
    let recorded = |family: &&Family| family.recorded == Recorded::Always || start.records(family);
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
