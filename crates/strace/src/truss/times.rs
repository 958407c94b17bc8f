//! The times of the lines of a truss log, and the meaning of these times.

use rustc_hash::FxHashMap;

use sysdock_table::{Facts, facts::clock as facts};

use super::Layout;
use crate::line::{Prefix, Stamp};

/// All columns are printed with four decimals (main.c:timestamp).
const RESOLUTION_NS: i64 = 100_000;

/// Converts the stamps of one log to times.
#[derive(Debug)]
pub(crate) struct Times {
    layout: Layout,
    /// With `-D` alone: time of the last event of each thread, by process and LWP. The first one of
    /// a thread counts from the base, so the sums equal the stamps of `-d`.
    last_ns: FxHashMap<(Option<i32>, i32), i64>,
    now_ns: i64,
}

impl Times {
    pub(crate) fn new(layout: Layout) -> Self {
        Times { layout, last_ns: FxHashMap::default(), now_ns: layout.base_ns.unwrap_or(0) }
    }

    /// The time of a line; a line without columns in a log that has them keeps the time of the line
    /// before.
    pub(crate) fn time(&mut self, prefix: &Prefix) -> i64 {
        match prefix.stamp {
            Some(Stamp::Epoch(ns)) => self.now_ns = ns,
            Some(Stamp::SinceLast(gap_ns)) => {
                let last_ns = self.last_ns.entry((prefix.tid, prefix.lwp)).or_default();
                *last_ns = last_ns.saturating_add(gap_ns);
                self.now_ns = *last_ns;
            }
            Some(Stamp::TimeOfDay(_)) => {}
            None if self.is_order() => self.now_ns = self.now_ns.saturating_add(1),
            None => {}
        }
        self.now_ns
    }

    /// Without `-d` and `-D` only the order of lines is known.
    fn is_order(&self) -> bool {
        !self.layout.columns.stamp && !self.layout.columns.since_last
    }

    /// The description of the clock in recording.json.
    pub(crate) fn describe(&self, has_durations: bool) -> sysdock_table::Clock {
        let dated = self.layout.columns.stamp && self.layout.base_ns.is_some();
        let mut note = Facts::default();
        let (kind, resolution_ns) = match (self.is_order(), dated) {
            (true, _) => {
                note.extend([facts::no_clock(), facts::lines_only()]);
                ("order", 1)
            }
            (false, true) => ("epoch", RESOLUTION_NS),
            (false, false) => {
                note.extend([facts::no_start(), facts::from_start()]);
                ("relative", RESOLUTION_NS)
            }
        };
        if !self.is_order() {
            note.push(facts::stamps_of_returns());
        }
        if has_durations {
            note.push(facts::system_cpu());
        }
        if !self.layout.certain {
            note.push(facts::columns_uncertain());
        }
        sysdock_table::Clock {
            includes_tracer: false,
            kind: kind.into(),
            resolution_ns,
            has_durations,
            durations: if has_durations { "system_cpu" } else { "none" }.into(),
            stamps: "return".into(),
            note,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truss::Columns;

    fn times(letters: &str, base_ns: Option<i64>) -> Times {
        Times::new(Layout { base_ns, ..Layout::given(Columns::from_letters(letters).unwrap()) })
    }

    fn line(lwp: i32, stamp: Option<Stamp>) -> Prefix {
        Prefix { tid: Some(7), lwp, stamp, decimals: 4 }
    }

    #[test]
    fn gaps_add_up_for_each_thread() {
        let mut times = times("D", None);
        let gaps = [(1, 5), (2, 6), (1, 3), (2, 3)].map(|(lwp, gap)| times.time(&line(lwp, Some(Stamp::SinceLast(gap)))));
        assert_eq!(gaps, [5, 6, 8, 9]);
        assert_eq!(times.time(&line(1, None)), 9, "the last time known");
        assert_eq!((times.describe(false).kind.as_str(), times.describe(false).durations.as_str()), ("relative", "none"));
    }

    #[test]
    fn the_clock_says_what_it_measures() {
        let clock = times("dE", Some(1)).describe(true);
        assert_eq!((clock.kind.as_str(), clock.resolution_ns, clock.has_durations), ("epoch", 100_000, true));
        assert_eq!((clock.durations.as_str(), clock.stamps.as_str()), ("system_cpu", "return"));
        assert_eq!(clock.note.codes(), ["clock/stamps_of_returns", "clock/system_cpu"]);
        assert_eq!(times("d", None).describe(false).kind, "relative");
        let mut lines = times("", None);
        assert_eq!((lines.time(&line(1, None)), lines.time(&line(1, None))), (1, 2));
        assert_eq!(lines.describe(false).kind, "order");
        let unsure = Times::new(Layout { certain: false, ..Layout::given(Columns::from_letters("D").unwrap()) });
        assert!(unsure.describe(false).note.codes().contains(&"clock/columns_uncertain"));
    }
}
